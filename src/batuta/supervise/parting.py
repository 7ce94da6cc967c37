"""The end of a process: what it started and nobody can stop ends with it, and does not keep it from ending.

its work is over ──▶ tasks are cancelled, threads are waited for ──▶ it ends
                 └── 3 s, and one of them goes on all the same ────▶ it ends, and says which
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from batuta.supervise.lag import leave

PATIENCE = 3.0
FAILED = 1


def run_out(
    main: Coroutine[Any, Any, int | None],
    held: Callable[[str], None],
    *,
    patience: float = PATIENCE,
    exit: Callable[[int], None] = leave,
) -> int:
    """Run what a process is for; what it returns is the exit code. ``held`` is told who would have kept it."""
    before = frozenset(threading.enumerate())
    last_call = _LastCall(before, held, patience, exit)
    try:
        return asyncio.run(_until_over(main, last_call))
    finally:
        if not _strangers(before):
            last_call.cancel()


async def _until_over(main: Coroutine[Any, Any, int | None], last_call: "_LastCall") -> int:
    code = FAILED
    try:
        code = await main or 0
    finally:
        last_call.begin(code)
    return code


class _LastCall:
    """A thread that nobody waits for: the interpreter itself waits for threads that are still at something."""

    def __init__(
        self,
        before: Collection[threading.Thread],
        held: Callable[[str], None],
        patience: float,
        exit: Callable[[int], None],
    ) -> None:
        self._before = before
        self._held = held
        self._patience = patience
        self._exit = exit
        self._timer: threading.Timer | None = None

    def begin(self, code: int) -> None:
        self._timer = threading.Timer(self._patience, self._end, [code, asyncio.get_running_loop()])
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _end(self, code: int, home: asyncio.AbstractEventLoop) -> None:
        names = _tasks(home) or [thread.name for thread in _strangers(self._before)]
        self._held(", ".join(sorted(names)))
        self._exit(code)


def _tasks(home: asyncio.AbstractEventLoop) -> list[str]:
    """Those of somebody's own that go on although they were cancelled; the loop itself waits for threads in one."""
    names = [str(getattr(task.get_coro(), "__qualname__", task.get_name())) for task in asyncio.all_tasks(home)]
    return [name for name in names if not name.startswith("BaseEventLoop.")]


def _strangers(before: Collection[threading.Thread]) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each not in before and not each.daemon]
