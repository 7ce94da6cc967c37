"""A child process, and the helper process that kills orphaned process groups.

A child leads its own process group and session, so Ctrl-C reaches only the parent, and the parent can end the whole
group. When the parent dies, the kernel ends each child (``die_with_parent``), but not the processes that a child
started. A small helper process therefore waits on a pipe until the parent has ended and then kills every registered
group.
"""

import asyncio
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

from batuta.kernel.identity import ProcFiles
from batuta.kernel.reasons import Reason, define
from batuta.supervise.stacks import NOT_WORTH_KEEPING, main_thread_first

EXIT_CODE = define("exit_code", "exit code {status}")
KILLED_BY = define("killed_by", "killed by {signal}")

LONGEST_LINE = 64 * 1024
MOST_DUMP_LINES = 400
# Patterns of faulthandler's output. Unlike a traceback, it has no comma before "in".
DUMP_BEGINS = re.compile(r"Fatal Python error: |Timeout \(\d+:\d\d:\d\d")
DUMPED = re.compile(
    r'(?:Current thread|Thread) 0x[0-9a-f]+|  File ".*", line \d+ in |  <(?:no Python frame|tstate )|  \.\.\.$'
)
# Kernel states (proc(5)) in which a process does not respond, in words for operators.
STOPPED = Reason("process_stopped", "stopped")
STATES = {
    "T": STOPPED,
    "t": STOPPED,
    "D": Reason("process_in_kernel", "waiting for a disk or a mount"),
    "R": Reason("process_busy", "busy"),
}


class ChildProcess(asyncio.SubprocessProtocol):
    """One child process. ``on_line`` receives each line of its output; ``on_exit`` is called when the process has ended."""

    def __init__(self, on_line: Callable[[str], None], on_exit: Callable[[], None]) -> None:
        self._on_line = on_line
        self._on_exit = on_exit
        self._unfinished_line = b""
        self._dump: list[str] = []
        self._transport: asyncio.SubprocessTransport | None = None
        self._is_dumping = False
        self._has_closed_output = asyncio.Event()
        self._has_ended = asyncio.Event()
        self.pid = 0

    @classmethod
    async def start(
        cls, argv: Sequence[str], env: Mapping[str, str], on_line: Callable[[str], None], on_exit: Callable[[], None]
    ) -> Self:
        """Start the program. Raise OSError if the program does not exist, or if the system cannot create another
        process.
        """
        _, child = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(on_line, on_exit),
            *argv,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        child.forbid_cores()
        return child

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, or None while it runs. If a signal ended the process, the code is the negated
        signal number.
        """
        return None if self._transport is None else self._transport.get_returncode()

    @property
    def stack(self) -> str | None:
        """The stack trace that faulthandler wrote to the output of the process, or None."""
        return main_thread_first("\n".join(self._dump)) or None

    @property
    def state(self) -> str | None:
        """The state that the kernel reports for the process, as a word for operators. None if the process is idle or
        its state is unknown.
        """
        try:
            status = ProcFiles().status(self.pid)
        except OSError:
            return None
        return None if status is None else STATES.get(status.state)

    def forbid_cores(self) -> None:
        """Prevent the child from writing core dumps. Otherwise ``ask_for_stack`` would write the child's memory, which
        contains personal data, to disk.
        """
        if sys.platform == "linux":
            try:
                resource.prlimit(self.pid, resource.RLIMIT_CORE, (0, 0))
            except OSError:
                return  # the child has ended already

    def ask_to_end(self) -> None:
        self._signal(signal.SIGTERM)

    def ask_for_stack(self) -> None:
        """Send SIGABRT, so that faulthandler writes the child's stack trace and the child ends. This works even if the
        child cannot run any Python code.
        """
        self._signal(signal.SIGABRT)

    def kill(self) -> None:
        """Kill the child and every process in its group."""
        assert self.pid  # a pid of 0 would address the parent's own group
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    async def has_ended(self, within: float) -> bool:
        """Wait up to ``within`` seconds and return whether the child has ended."""
        try:
            async with asyncio.timeout(within):
                await self._has_ended.wait()
        except TimeoutError:
            return False
        return True

    async def clean_up(self, timeout: float) -> None:
        """Kill the remaining processes in the child's group and read the last lines of the child's output.

        Reading stops after ``timeout`` seconds, because another process may hold the pipe open.
        """
        self.kill()
        try:
            async with asyncio.timeout(timeout):
                await self._has_ended.wait()
                await self._has_closed_output.wait()
        except TimeoutError:
            self._has_closed_output.set()
        if self._transport is not None:
            self._transport.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._transport is not None and self.exit_code is None:
            self._transport.send_signal(number)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        self.pid = transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._unfinished_line = (self._unfinished_line + data).split(b"\n")
        if len(self._unfinished_line) > LONGEST_LINE:
            lines, self._unfinished_line = [*lines, self._unfinished_line], b""
        for line in lines:
            self._read_line(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if self._unfinished_line:
            self._read_line(self._unfinished_line)
        self._has_closed_output.set()

    def process_exited(self) -> None:
        """Handle the child's exit. Do not wait until its output pipe is closed, because a process that the child
        started may keep the pipe open.
        """
        self._has_ended.set()
        self._on_exit()

    def _read_line(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()
        if DUMP_BEGINS.match(text):
            self._dump, self._is_dumping = [text], True
        elif self._is_dumping and (not text or DUMPED.match(text) or text.startswith(NOT_WORTH_KEEPING)):
            self._dump += [text] if len(self._dump) < MOST_DUMP_LINES else []
        else:
            self._on_line(text)


def exit_reason(exit_code: int) -> Reason:
    if exit_code >= 0:
        return EXIT_CODE(status=exit_code)
    try:
        return KILLED_BY(signal=signal.Signals(-exit_code).name)
    except ValueError:
        return KILLED_BY(signal=Reason("signal_number", "signal {number}", number=-exit_code))


SCRIPT = """trap '' HUP INT TERM
while read -r line; do groups=$line; done
for group in ${groups:-}; do kill -s KILL -- "$group"; done"""
REAPER_EXIT_TIMEOUT = 2.0


class OrphanReaper:
    """Starts a helper process that kills the registered groups when the parent dies. Each message to the helper
    contains all groups and replaces the previous message.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, groups: Iterable[int]) -> None:
        if self._process is None or self._process.poll() is not None:
            self._close()
            self._process = self._start()
        self._send(" ".join(f"-{group}" for group in groups))

    def dismiss(self) -> None:
        """End the helper. Call this method only after every child has ended normally and no process group is left to kill."""
        if self._process is None:
            return
        self._send("")
        self._close()
        try:
            self._process.wait(REAPER_EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> "subprocess.Popen[bytes] | None":
        try:
            started = subprocess.Popen(
                ["/bin/sh", "-c", SCRIPT, "batuta-orphan-reaper"],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a new session, so that a signal to the parent's group does not end the helper
            )
        except OSError:
            # no shell, or the limit of processes is reached; the kernel still ends the children with their parent
            return None
        assert started.stdin is not None
        os.set_blocking(started.stdin.fileno(), False)
        return started

    def _send(self, groups: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(f"{groups}\n".encode())
        except OSError:
            return  # the helper has just ended; the next call of ``watch`` starts another one

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
