"""Ends a process: handles the signals that request the end, and limits the time for threads and tasks that do not end.

    work ended ────▶ tasks are cancelled, threads are awaited ──▶ exit

SIGTERM and Ctrl-C request an orderly shutdown; the second signal ends the process immediately. SIGHUP never forces the
exit, because a closed terminal may send it twice. If a task or thread is still running 3 s after the work ended, the
process reports it and exits. A process also drains and restarts when it is too large or too old, or when its database
file was replaced.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import field
from datetime import timedelta
from functools import cache
from typing import Any

from batuta.kernel.clock import Clock, brief
from batuta.kernel.errors import StoreReplaced
from batuta.kernel.reasons import Reason, define
from batuta.kernel.values import dataclass
from batuta.processes.heartbeat import rss_bytes
from batuta.processes.loop_monitor import exit_now
from batuta.processes.restarts import EXIT_AGAIN
from batuta.supervise.loop import FOR_EVER, Idle, LoopPolicy, Pace, Wakeup

EXIT_GRACE = 3.0
FAILED = 1


def run_to_exit(
    main: Coroutine[Any, Any, int | None],
    held: Callable[[str], None],
    *,
    timeout: float = EXIT_GRACE,
    exit: Callable[[int], None] = exit_now,
) -> int:
    """Run the main coroutine and return the exit code. If tasks or threads block the exit, ``held`` is called with
    their names.
    """
    before = frozenset(threading.enumerate())
    forced_exit = _ForcedExit(before, held, timeout, exit)
    try:
        return asyncio.run(_run(main, forced_exit))
    finally:
        if not _foreign_threads(before):
            forced_exit.cancel()


async def _run(main: Coroutine[Any, Any, int | None], forced_exit: "_ForcedExit") -> int:
    code = FAILED
    try:
        code = await main or 0
    finally:
        forced_exit.begin(code)
    return code


@dataclass(eq=False)
class _ForcedExit:
    """Forces the process to exit after ``timeout`` seconds. It does so from a daemon thread, because a normal exit
    would wait for every other thread.
    """

    before: Collection[threading.Thread]
    held: Callable[[str], None]
    timeout: float
    exit: Callable[[int], None]
    _timer: threading.Timer | None = None

    def begin(self, code: int) -> None:
        self._timer = threading.Timer(self.timeout, self._end, [code, asyncio.get_running_loop()])
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _end(self, code: int, home: asyncio.AbstractEventLoop) -> None:
        names = _tasks(home) or [thread.name for thread in _foreign_threads(self.before)]
        self.held(", ".join(sorted(names)))
        self.exit(code)


def _tasks(home: asyncio.AbstractEventLoop) -> list[str]:
    """Return the names of the running asyncio tasks, except asyncio's own task that waits for threads
    (``BaseEventLoop.…``).
    """
    names = [str(getattr(task.get_coro(), "__qualname__", task.get_name())) for task in asyncio.all_tasks(home)]
    return [name for name in names if not name.startswith("BaseEventLoop.")]


def _foreign_threads(before: Collection[threading.Thread]) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each not in before and not each.daemon]


STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_HANDLED: set[signal.Signals] = set()  # signals that this process handles
_FORKING = threading.local()  # saves a thread's signal mask while the thread forks


@contextmanager
def stop_on_signals(stop: asyncio.Event, on_stop: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Context manager that handles signals. The first signal sets ``stop`` and calls ``on_stop``; a second SIGTERM or
    SIGINT ends the process immediately.
    """
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        if stop.is_set() and number in STOP_SIGNALS:
            os._exit(128 + number)
        if not stop.is_set():
            stop.set()
            on_stop()

    # nohup makes a process ignore SIGHUP, so leave it ignored.
    handled = STOP_SIGNALS if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*STOP_SIGNALS, signal.SIGHUP)
    _detach_forked_children()
    for number in handled:
        loop.add_signal_handler(number, on_signal, number)
    # The program that started this process may have blocked the signals until now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
    _HANDLED.update(handled)
    try:
        yield
    finally:
        _HANDLED.clear()
        for number in handled:
            loop.remove_signal_handler(number)


@cache
def _detach_forked_children() -> None:
    """Detach forked children from asyncio's signal pipe. Otherwise a signal to a child would end this process."""
    os.register_at_fork(before=_block_signals, after_in_parent=_unblock_signals, after_in_child=_reset_signals)


def _block_signals() -> None:
    _FORKING.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)


def _unblock_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _FORKING.mask)


def _reset_signals() -> None:
    if _HANDLED:
        signal.set_wakeup_fd(-1)
    for number in _HANDLED:
        signal.signal(number, signal.SIG_DFL)
    _unblock_signals()


RECYCLER_POLICY = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER)
MEGABYTE = 1024 * 1024


TOO_LARGE = define("process_too_large", "uses {megabytes} MB, more than the limit of {most}")
TOO_OLD = define("process_too_old", "has run for {age}, longer than the limit of {longest}")


@dataclass(slots=True, kw_only=True)
class Recycler:
    """Loop in the watchdog thread that calls ``recycle`` once, with the reason, when the process is too large or too
    old. A limit that is None is not checked.
    """

    most_megabytes: int | None
    longest: timedelta | None
    clock: Clock
    recycle: Callable[[str], None]
    name: str = "recycler"
    wakeup: Wakeup = field(default_factory=Wakeup)
    rss: Callable[[], int] = rss_bytes
    why: str | None = None
    _born_at: float | None = None

    @property
    def has_limits(self) -> bool:
        return self.most_megabytes is not None or self.longest is not None

    async def tick(self) -> Pace:
        now = self.clock.monotonic()
        self._born_at = now if self._born_at is None else self._born_at
        if self.why is None and (why := self._reason(now - self._born_at)) is not None:
            self.why = why
            self.recycle(why)
        return Idle()

    def _reason(self, age: float) -> Reason | None:
        megabytes = self.rss() // MEGABYTE
        if self.most_megabytes is not None and megabytes > self.most_megabytes:
            return TOO_LARGE(megabytes=megabytes, most=self.most_megabytes)
        if self.longest is not None and age > self.longest.total_seconds():
            return TOO_OLD(age=brief(timedelta(seconds=age)), longest=brief(self.longest))
        return None


# An idle process must notice a replaced file within about a second.
FILE_WATCH_POLICY = LoopPolicy(
    every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER, max_restarts=FOR_EVER
)
# The drain is short, because results can no longer be stored in a replaced file.
REPLACED_FILE_GRACE = timedelta(seconds=3)


@dataclass(slots=True, kw_only=True)
class FileWatch:
    """Loop that watches the database file. ``check`` raises StoreReplaced if the file was replaced. The loop then calls
    ``stop`` once, and the process ends within REPLACED_FILE_GRACE.
    """

    check: Callable[[], None]
    stop: Callable[[], None]
    clock: Clock
    forced: Callable[[StoreReplaced], None] = lambda error: None
    exit: Callable[[int], None] = exit_now
    name: str = "file-watch"
    wakeup: Wakeup = field(default_factory=Wakeup)
    lost: StoreReplaced | None = None
    _lost_at: float = 0.0

    async def tick(self) -> Pace:
        try:
            self.check()
        except StoreReplaced as error:
            self._notice(error)
        return Idle()

    def _notice(self, error: StoreReplaced) -> None:
        now = self.clock.monotonic()
        if self.lost is None:
            self.lost, self._lost_at = error, now
            self.stop()
        elif now - self._lost_at >= REPLACED_FILE_GRACE.total_seconds():
            self.forced(error)
            self.exit(EXIT_AGAIN)
