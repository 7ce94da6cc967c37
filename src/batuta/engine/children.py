"""Runs the function of a task in a child process, with a memory limit, so that heavy computation blocks no other task.

    worker ── function, arguments ──▶ child: limits, function
           ◀── progress, log records, the value or the error ──

A server process, which Python starts at the first call, forks the children, because a worker with threads must not
fork. A cancellation, an exceeded time limit or a lost lease kills the child and its own child processes. If the worker
dies, its children die too.
"""

import asyncio
import ctypes
import importlib
import inspect
import logging
import os
import pickle
import re
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any, Final

from batuta.kernel.calls.usercode import Threads
from batuta.kernel.errors import ChildFailed, InvalidTask
from batuta.kernel.reasons import Reason, define
from batuta.kernel.values import dataclass
from batuta.processes.tree import PR_SET_PDEATHSIG
from batuta.queue.outcome import Failed, Outcome
from batuta.tasks.task import Task, TaskContext, TaskFunction

MEGABYTE: Final = 1024 * 1024
# lower bound of a memory limit, because the interpreter and the program need this much themselves
LEAST_MEGABYTES: Final = 64
_MEMORY = re.compile(r"(\d{1,6})\s*(MB|GB)", re.IGNORECASE)
CHILD_KILLED = define(
    "child_killed",
    "its process was killed by {signal}: the machine may be out of memory; set memory=, or run fewer calls at once",
)
CHILD_ENDED = define(
    "child_ended", "its process ended with exit code {code} before the function returned: remove the exit"
)
CHILD_MEMORY = define(
    "child_memory", "its process needed more than {megabytes} MB: raise memory=, or do less in one call"
)


def in_child(task: str, function: TaskFunction, memory: str | None) -> "ChildProcesses":
    """Return an object that calls a task's function in child processes. Raises InvalidTask if a child process cannot
    import the function, or if the memory limit is invalid.
    """
    if "<locals>" in function.__qualname__ or function.__name__ == "<lambda>":
        why = Reason("child_function", "a child process must import it: define it at the top of a module")
        raise InvalidTask(task=task, why=why)
    megabytes = None if memory is None else _megabytes(task, memory)
    return ChildProcesses(function.__module__, function.__qualname__, megabytes)


def _megabytes(task: str, memory: str) -> int:
    found = _MEMORY.fullmatch(memory.strip()) if isinstance(memory, str) else None
    megabytes = 0 if found is None else int(found[1]) * (1024 if found[2].upper() == "GB" else 1)
    if megabytes < LEAST_MEGABYTES:
        why = Reason(
            "child_memory_form",
            'its memory must be a text such as "512MB" or "2GB", at least {least} MB',
            least=LEAST_MEGABYTES,
        )
        raise InvalidTask(task=task, why=why)
    return megabytes


@dataclass(eq=False)
class _Call:
    """A call that runs in a child process. ``process`` is None until the child has started."""

    lock: threading.Lock
    is_stopped: bool = False
    process: ForkServerProcess | None = None

    def stop(self) -> None:
        with self.lock:
            self.is_stopped = True
            if self.process is not None:
                _kill(self.process)


class ChildProcesses:
    """Runs the calls of one function, each in its own child process."""

    def __init__(self, module: str, qualname: str, megabytes: int | None) -> None:
        self._module = module
        self._qualname = qualname
        self._megabytes = megabytes
        self._threads = Threads()

    async def __call__(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> object:
        """Run the function in a child and return its value or an outcome. A cancellation kills the child."""
        home, call = asyncio.get_running_loop(), _Call(threading.Lock())
        try:
            return await self._threads.call(
                partial(self._run, call, home, tuple(arguments), dict(named)), name=f"child of {self._qualname}"
            )
        finally:
            call.stop()

    def _run(
        self, call: _Call, home: asyncio.AbstractEventLoop, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> object:
        """Run one call in a new child process, and return the function's value or an outcome. This method runs in a
        thread and waits until the child has ended.
        """
        context = arguments[0] if arguments and isinstance(arguments[0], TaskContext) else None
        sent = arguments if context is None else (replace(context, report=_send_nothing), *arguments[1:])
        forking = _forking(self._module)
        receiver, sender = forking.Pipe(duplex=False)
        work = (self._module, self._qualname, sent, named)
        process = forking.Process(target=_main, args=(sender, work, self._megabytes, _log_level()), daemon=True)
        with receiver:
            with sender, call.lock:
                if call.is_stopped:
                    return None
                process.start()
                call.process = process
            try:
                return self._receive(receiver, context, home)
            except EOFError:
                process.join()
                return self._judge_exit(process.exitcode or 0)
            finally:
                _kill(process)
                process.join()

    def _receive(self, receiver: Connection, context: TaskContext | None, home: asyncio.AbstractEventLoop) -> object:
        """Handle the child's messages (log records, progress) until the last one. Return the value of the function, or
        raise its error. Raises EOFError if the child died.
        """
        for _ in count():
            match receiver.recv():
                case ("returned", value):
                    return value
                case ("raised", bytes() as pickled, str() as name, str() as stack):
                    raise _error(pickled, name, stack)
                case ("memory",):
                    return Failed(CHILD_MEMORY(megabytes=self._megabytes))
                case ("log", dict() as fields):
                    record = logging.makeLogRecord(fields)
                    logging.getLogger(record.name).handle(record)
                case ("report", progress) if context is not None:
                    asyncio.run_coroutine_threadsafe(_report(context, progress), home).result()
        raise AssertionError("the loop ends with a return or an error")

    def _judge_exit(self, code: int) -> Outcome:
        if code < 0:
            return Failed(CHILD_KILLED(signal=signal.Signals(-code).name))
        return Failed(CHILD_ENDED(code=code))


async def _report(context: TaskContext, progress: Any) -> None:
    await context.report(progress)


async def _send_nothing(progress: Any) -> None:
    """Do nothing. This function takes the place of ``TaskContext.report`` while a context is sent to a child process.
    The child then replaces it with a function that sends progress to the worker.
    """


def _forking(module: str) -> ForkServerContext:
    """Return a multiprocessing context whose server process imports ``module`` once. Each child then starts with
    ``module`` already imported.
    """
    forking = get_context("forkserver")
    forking.set_forkserver_preload(["batuta.engine.children", module])
    return forking


def _kill(process: ForkServerProcess) -> None:
    """Kill a child and its own child processes. A child that has just started does not lead a process group yet, so
    only the child itself is killed.
    """
    if process.pid is None or process.exitcode is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()


def _error(pickled: bytes, name: str, stack: str) -> Exception:
    """Return the error that the function raised, with a ChildFailed error as its cause. The cause's message contains
    the child's stack trace. If the error could not be pickled, return the ChildFailed error itself.
    """
    cause = ChildFailed(raised=name, stack=stack)
    if not pickled:
        return cause
    error: Exception = pickle.loads(pickled)  # noqa: S301 - written by our own child
    error.__cause__ = cause
    return error


def _log_level() -> int:
    return logging.getLogger().getEffectiveLevel()


# The functions below run in the child.


class _Messages:
    """Sends messages from the child to the worker. Any thread of the child may send."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def send(self, *message: object) -> None:
        with self._lock:
            self._pipe.send(message)


def _main(
    pipe: Connection, work: tuple[str, str, tuple[Any, ...], dict[str, Any]], megabytes: int | None, level: int
) -> None:
    sender = _Messages(pipe)
    os.setpgid(0, 0)
    # ignore Ctrl-C in a terminal: the worker decides whether to stop the child
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    root = logging.getLogger()
    root.handlers[:] = [_Forwarding(sender)]
    root.setLevel(level)
    module, qualname, arguments, named = work
    try:
        function = _find(module, qualname)
        if megabytes is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (megabytes * MEGABYTE, megabytes * MEGABYTE))
        sender.send("returned", _call(function, sender, arguments, named))
    except MemoryError as error:
        _send_error(sender, error) if megabytes is None else sender.send("memory")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - every exit of the function is a message to the worker
        _send_error(sender, error)


def _find(module: str, qualname: str) -> TaskFunction:
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    function: TaskFunction = found.function if isinstance(found, Task) else found
    return function


def _call(function: TaskFunction, sender: _Messages, arguments: tuple[Any, ...], named: dict[str, Any]) -> object:
    if arguments and isinstance(arguments[0], TaskContext):

        async def report(progress: Any) -> None:
            sender.send("report", progress)

        arguments = (replace(arguments[0], report=report), *arguments[1:])
    returned = function(*arguments, **named)
    return asyncio.run(_wait(returned)) if inspect.isawaitable(returned) else returned


async def _wait(returned: Any) -> object:
    return await returned


def _send_error(sender: _Messages, error: BaseException) -> None:
    """Send an error with its stack trace. If the error cannot be pickled, send only the name of its class with the
    stack trace.
    """
    stack = "".join(traceback.format_tb(error.__traceback__))
    pickled = b""
    if isinstance(error, Exception):
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)  # noqa: S301 - our own bytes
        except (pickle.PickleError, TypeError, AttributeError, ValueError, ImportError):
            pickled = b""
    sender.send("raised", pickled, type(error).__name__, stack)


class _Forwarding(logging.Handler):
    """Log handler that sends the child's log records to the worker, which masks and writes them."""

    def __init__(self, sender: _Messages) -> None:
        super().__init__()
        self._sender = sender

    def emit(self, record: logging.LogRecord) -> None:
        fields = {**vars(record), "msg": record.getMessage(), "args": (), "exc_info": None}
        plain = {name: value for name, value in fields.items() if isinstance(value, str | int | float | tuple | None)}
        self._sender.send("log", plain)
