"""The watchdog thread has an event loop of its own: whatever blocks the event loop of the process does not block it.

the process's thread                      the watchdog thread
┌───────────────────────────┐   ask     ┌──────────────────────────────────┐   alive   ┌────────┐
│ event loop                │ ◀──────── │ monitor: does it answer?         │ ────────▶ │ parent │
│  ├ loops, watchdog        │ ────────▶ │ heartbeat: worker_heartbeats     │           └────────┘
│  └ handlers, requests     │  answer   │  on a connection of its own      │
└───────────────────────────┘           └──────────────────────────────────┘
                                          re-arms, each second, Python's own timer in C, which needs no interpreter:
                                          a thread that holds it holds both of the above, and not that.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

from batuta.supervise.supervisor import Supervisor

THREAD_GRACE = timedelta(seconds=2)
BEGINS_WITHIN = 10.0  # seconds
ENDS_WITHIN = 4.0  # seconds, of the margin that a process has after its grace


async def _nothing() -> None:
    """Nothing to close."""


class WatchdogThread:
    def __init__(self, *supervisors: Supervisor, close: Callable[[], Awaitable[None]] = _nothing) -> None:
        """``close``: called in the thread when everything in it has ended."""
        self._supervisors = supervisors
        self._close = close
        self._home: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name="batuta-sentry", daemon=True)

    def begin(self) -> None:
        self._thread.start()
        self._begun.wait(BEGINS_WITHIN)

    async def end(self) -> None:
        """Stop its loops and wait for their last heartbeat, for a limited time."""
        if self._home is not None and self._stop is not None:
            with suppress(RuntimeError):  # its loop has ended already
                self._home.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, ENDS_WITHIN)

    def _run(self) -> None:
        asyncio.run(self._watch())

    async def _watch(self) -> None:
        self._stop, self._home = asyncio.Event(), asyncio.get_running_loop()
        self._begun.set()
        try:
            await asyncio.gather(*(supervisor.run(self._stop, THREAD_GRACE) for supervisor in self._supervisors))
        finally:
            await self._close()
