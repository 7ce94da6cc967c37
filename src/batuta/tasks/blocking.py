"""Enqueues tasks and waits for them from synchronous code, with a separate event loop and database connection.

Flask, Django, scripts and the threads that run plain functions have no event loop. The first call starts a thread with
an event loop and opens the connection; later calls reuse both. After a fork, a child process starts its own thread.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from batuta.kernel.waiting import cancel_and_wait

T = TypeVar("T")
Backend = TypeVar("Backend")
LAST_CALLS = 5.0  # seconds for the calls that wait while the backend closes


class BlockingTasks(Generic[Backend]):
    def __init__(
        self, open: Callable[[], Coroutine[Any, Any, Backend]], close: Callable[[Backend], Awaitable[None]]
    ) -> None:
        """Create the runner. ``open`` runs at the first call and ``close`` at the end, both on the runner's own event
        loop.
        """
        self._open = open
        self._close = close
        self._lock = threading.Lock()
        self._pid: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._backend: Backend | None = None

    def call(self, method: str, instead: str, work: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """Call ``work`` with the task store, run the coroutine on the runner's event loop, and return its value.

        Raises RuntimeError if the calling thread is running an event loop. ``method`` is the blocking method that the
        caller used, and ``instead`` is the asynchronous method that the error message recommends.
        """
        if _has_running_loop():
            raise RuntimeError(f"{method}() would block the running event loop: write await ….{instead}(…) instead")
        with self._lock:
            loop, backend = self._start()
        called = asyncio.run_coroutine_threadsafe(work(backend), loop)
        try:
            return called.result()
        finally:
            called.cancel()  # ends the wait of an interrupted caller

    async def close(self) -> None:
        """Close the database connection, and end the thread that serves synchronous callers. A later call starts both
        again.
        """
        with self._lock:
            loop, backend, pid = self._loop, self._backend, self._pid
            self._loop = self._backend = self._pid = None
        if loop is None or backend is None or pid != os.getpid():
            return

        async def end() -> None:
            await self._close(backend)

        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(end(), loop))
        loop.call_soon_threadsafe(loop.stop)

    def _start(self) -> tuple[asyncio.AbstractEventLoop, Backend]:
        if self._loop is not None and self._backend is not None and self._pid == os.getpid():
            return self._loop, self._backend
        loop = asyncio.new_event_loop()
        threading.Thread(target=_serve, args=(loop,), name="batuta-sync", daemon=True).start()
        try:
            backend = asyncio.run_coroutine_threadsafe(self._open(), loop).result()
        except BaseException:
            loop.call_soon_threadsafe(loop.stop)
            raise
        self._loop, self._backend, self._pid = loop, backend, os.getpid()
        return loop, backend


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        if calls := asyncio.all_tasks(loop):  # the closed backend has woken them, and they raise its error
            loop.run_until_complete(asyncio.wait(calls, timeout=LAST_CALLS))
            loop.run_until_complete(cancel_and_wait(*asyncio.all_tasks(loop)))
    finally:
        loop.close()


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
