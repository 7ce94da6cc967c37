"""Read connections, which see the last committed state and never wait for the writer.

Single reads wait in one shared inbox, which a few threads serve, each with its own connection. A snapshot uses one
connection exclusively, because all its reads need the same state.
"""

import asyncio
import queue
import sqlite3
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from batuta.kernel.clock import Clock
from batuta.kernel.errors import BatutaError, StoreTimeout, StoreUnavailable
from batuta.kernel.values import dataclass
from batuta.stores.sql.database import ConnectionLimits
from batuta.stores.sqlite.connection import Act, attempt, close, settle, translate_errors
from batuta.stores.sqlite.identity import OpenFile

T = TypeVar("T")
Connect: TypeAlias = Callable[[], sqlite3.Connection]
INTERRUPT_AGAIN_AFTER = 0.1
# Seconds that a read waits for an existing connection before another connection is opened. Each connection has its own
# copy of the schema, which takes half a megabyte if the application has a hundred tables.
PATIENCE = 0.1


@dataclass(slots=True)
class Request:
    act: Act
    future: "Future[Any]"
    asked_at: float


class Reader:
    """A thread that serves read requests on its own connection, which it opens at the first request."""

    def __init__(self, inbox: "queue.SimpleQueue[Request | None]", connect: Connect, readers: "Readers") -> None:
        self._inbox = inbox
        self._connect = connect
        self._readers = readers
        self._connection: sqlite3.Connection | None = None
        self._current: Request | None = None
        self._changing = threading.Lock()
        self.thread = threading.Thread(target=self._work, name="batuta-reader", daemon=True)
        self.thread.start()

    def interrupt(self, request: Request) -> None:
        """Interrupt the current read if it serves ``request``. Call this method when the caller of the request was
        cancelled.
        """
        with self._changing:
            if self._current is request and self._connection is not None:
                self._connection.interrupt()

    def _work(self) -> None:
        while (request := self._inbox.get()) is not None:
            self._set_current(request)
            result, error = self._readers.refusal(request) or self._read(request)
            self._set_current(None)
            self._readers.answer(request, result, error)
        if self._connection is not None:
            close(self._connection, self._readers.file)

    def _read(self, request: Request) -> tuple[Any, BatutaError | None]:
        try:
            connection = self._connection or self._connect()
        except BatutaError as error:
            return None, error
        self._connection = connection
        # the caller was cancelled while the request waited in the inbox or the connection was being opened
        if request.future.cancelled():
            return None, None
        return attempt(request.act, connection, self._readers.where)

    def _set_current(self, request: Request | None) -> None:
        with self._changing:
            self._current = request


class Pinned:
    """A read connection that one caller uses exclusively."""

    def __init__(self, connection: sqlite3.Connection, threads: ThreadPoolExecutor, where: str) -> None:
        self.connection = connection
        self._threads = threads
        self._where = where

    async def call(self, act: Callable[[sqlite3.Connection], T]) -> T:
        def translating() -> T:
            with translate_errors(self._where):
                return act(self.connection)

        try:
            reading = asyncio.get_running_loop().run_in_executor(self._threads, translating)
        except RuntimeError:  # the executor is shut down
            raise StoreUnavailable(where=self._where, why="it was closed") from None
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            # The thread still uses the connection, so release it only after the thread has finished.
            self.connection.interrupt()
            await asyncio.wait([reading])
            reading.exception()  # retrieved so that asyncio does not warn about it; the caller was cancelled
            raise


class Readers:
    def __init__(self, connect: Connect, file: OpenFile, limits: ConnectionLimits, clock: Clock, where: str) -> None:
        self.where = where
        self.file = file
        self._connect = connect
        self._clock = clock
        self._timeout = limits.lock.total_seconds()
        self._loop: AbstractEventLoop = asyncio.get_running_loop()
        self._inbox: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._readers: list[Reader] = []
        self._most = limits.readers
        self._reading = 0
        self._help: asyncio.TimerHandle | None = None
        self._threads = ThreadPoolExecutor(limits.readers + 1, thread_name_prefix="batuta-snapshot")
        self._places = asyncio.Semaphore(limits.readers)
        self._idle: list[Pinned] = []
        self._stopped = False
        # has a separate connection, because SQLite keeps data_version per connection
        self._watcher: Pinned | None = None

    async def read(self, act: Act) -> Any:
        request = Request(act, self._loop.create_future(), self._clock.monotonic())
        self._reading += 1
        self._inbox.put(request)
        if not self._readers:
            self._add_reader()
        elif self._reading > len(self._readers) < self._most and self._help is None:
            self._help = self._loop.call_later(PATIENCE, self._add_reader)
        try:
            return await request.future
        except asyncio.CancelledError:
            self._interrupt(request)
            # Interrupt once more later, because a read that was about to start misses the first interrupt.
            self._loop.call_later(INTERRUPT_AGAIN_AFTER, self._interrupt, request)
            raise
        finally:
            self._reading -= 1

    def _add_reader(self) -> None:
        """Open another read connection if a read is still waiting, and check again later whether one more is needed."""
        self._help = None
        if self._inbox.empty() or self._stopped:
            return
        self._readers.append(Reader(self._inbox, self._connect, self))
        if len(self._readers) < self._most:
            self._help = self._loop.call_later(PATIENCE, self._add_reader)

    def _interrupt(self, request: Request) -> None:
        for reader in self._readers:
            reader.interrupt(request)

    def refusal(self, request: Request) -> tuple[None, BatutaError] | None:
        """Return an error if the request waited too long or if the database file was deleted or replaced. Return None
        if the request may be served.
        """
        if (lost := self.file.lost) is not None:
            return None, lost
        if self._clock.monotonic() - request.asked_at <= self._timeout:
            return None
        return None, StoreTimeout(where=self.where, why="every reading connection was in use")

    def answer(self, request: Request, result: Any, error: BatutaError | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(settle, request.future, result, error)

    async def data_version(self) -> int:
        if self._watcher is None:
            self._watcher = await self._open()
        version: int = await self._watcher.call(
            lambda connection: connection.execute("PRAGMA data_version").fetchone()[0]
        )
        return version

    @asynccontextmanager
    async def pin(self) -> AsyncIterator[Pinned]:
        if (lost := self.file.lost) is not None:
            raise lost
        try:
            async with asyncio.timeout(self._timeout):
                await self._places.acquire()
        except TimeoutError:
            raise StoreTimeout(where=self.where, why="every snapshot's connection is in use") from None
        try:
            pinned = self._idle.pop() if self._idle else await self._open()
            try:
                yield pinned
            finally:
                if self._stopped:
                    close(pinned.connection, self.file)
                else:
                    self._idle.append(pinned)
        finally:
            self._places.release()

    def stop(self) -> None:
        """Serve the waiting requests, then stop the threads. This method blocks, so call it outside the event loop."""
        self._stopped = True
        for _ in self._readers:
            self._inbox.put(None)
        for reader in self._readers:
            reader.thread.join()
        self._threads.shutdown(wait=True)
        for pinned in self._idle + ([self._watcher] if self._watcher else []):
            close(pinned.connection, self.file)

    async def _open(self) -> Pinned:
        connection = await self._loop.run_in_executor(self._threads, self._connect)
        return Pinned(connection, self._threads, self.where)
