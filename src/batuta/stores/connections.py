"""A process's connection pools: one for handlers, one for pages, and two for leases (of items and of runs).

On PostgreSQL, renewals, settlements and rescues never wait for handlers, because they have their own pools, with
timeouts derived from the lease that they protect. SQLite has one writer, so on SQLite there is only one set of
connections for all purposes. ``Wakeups`` wakes this process's workers when another process enqueues work.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from batuta.kernel.clock import Clock, SystemClock
from batuta.kernel.errors import StoreUnavailable
from batuta.stores import ASIDE, connect, liveness_limits, page_limits
from batuta.stores.sql.database import (
    ChangeListener,
    ConnectionLimits,
    Database,
    Dialect,
    Query,
    Reading,
    Row,
    Statements,
    Transaction,
    Values,
)
from batuta.stores.sql.queries import query_of
from batuta.supervise.loop import Idle, Pace, Wakeup, note_progress

ANSWERS = query_of("answers", "SELECT 1 AS answers", writes=False)
T = TypeVar("T")
# Function that receives the kind of a database call, its duration in seconds, and its error or None.
Observer: TypeAlias = Callable[[str, float, BaseException | None], None]


# Whether the calling code is serving a page and only reads.
_reads_for_page: ContextVar[bool] = ContextVar("reads_for_page", default=False)


class PagePath:
    """The connections that serve dashboard pages. They open when the process serves its first page, because few
    processes serve pages.
    """

    def __init__(self, make: Callable[[], Database]) -> None:
        self.is_usable = False  # True while the other connections of the process are open
        self._make = make
        self._opening = asyncio.Lock()
        self._database: Database | None = None

    async def open(self) -> Database:
        async with self._opening:
            if self._database is None:
                made = self._make()
                await made.open()
                self._database = made
            return self._database

    async def close(self) -> None:
        self.is_usable = False
        database, self._database = self._database, None
        if database is not None:
            await database.close()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Reading]:
        async with (await self.open()).snapshot() as reading:
            yield reading


class ObservedDatabase(Transaction):
    """A Database that reports the duration of each call to observers. It also tells the watchdog about each completed
    call, because the call shows that the calling loop is making progress.

    A transaction is reported as one call, because its waits cannot be attributed to single statements.
    """

    def __init__(self, inner: Database, clock: Clock, pages: "PagePath | None" = None) -> None:
        self.inner = inner
        self._clock = clock
        self._pages = pages
        self._observers: list[Observer] = []

    def observe(self, observer: Observer) -> None:
        self._observers.append(observer)

    @property
    def where(self) -> str:
        return self.inner.where

    @property
    def dialect(self) -> Dialect:
        return self.inner.dialect

    async def open(self) -> None:
        await self.inner.open()

    async def exists(self) -> bool:
        return await self.inner.exists()

    async def close(self) -> None:
        await self.inner.close()

    def check_free(self) -> None:
        self.inner.check_free()

    def check_file(self) -> None:
        self.inner.check_file()

    async def all(self, query: Query, **values: object) -> list[Row]:
        if (pages := self._pages_now()) is not None and not query.writes:
            return await (await pages.open()).all(query, **values)
        return await self._observe("statement", self.inner.all(query, **values))

    async def run(self, query: Query, **values: object) -> int:
        return await self._observe("statement", self.inner.run(query, **values))

    async def run_many(self, query: Query, rows: Sequence[Values]) -> None:
        await self._observe("statement", self.inner.run_many(query, rows))

    async def script(self, text: str) -> None:
        await self.inner.script(text)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._observe_context("transaction", self.inner.transaction())

    async def perform(self, steps: Callable[[Statements], T]) -> T:
        return await self._observe("transaction", self.inner.perform(steps))

    def snapshot(self) -> AbstractAsyncContextManager[Reading]:
        if (pages := self._pages_now()) is not None:
            return pages.snapshot()
        return self._observe_context("snapshot", self.inner.snapshot())

    def notify(self, queue: str | None) -> None:
        self.inner.notify(queue)

    async def listen(self, on_change: Callable[[str | None], None]) -> ChangeListener:
        return await self.inner.listen(on_change)

    async def watch(self, on_change: Callable[[str | None], None]) -> ChangeListener:
        return await self.inner.watch(on_change)

    async def empty_log(self) -> bool:
        return await self.inner.empty_log()

    async def lock_migrations(self, transaction: Transaction) -> None:
        await self.inner.lock_migrations(transaction)

    def _pages_now(self) -> PagePath | None:
        """Return the set of connections for pages if the calling code is serving a page, otherwise None."""
        return self._pages if self._pages is not None and self._pages.is_usable and _reads_for_page.get() else None

    async def _observe(self, call: str, answering: Awaitable[T]) -> T:
        if not self._observers:
            answer = await answering
            note_progress()
            return answer
        started = self._clock.monotonic()
        try:
            answer = await answering
        except BaseException as error:
            self._report(call, started, error)
            raise
        self._report(call, started, None)
        note_progress()
        return answer

    @asynccontextmanager
    async def _observe_context(self, call: str, inner: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
        started = self._clock.monotonic()
        try:
            async with inner as entered:
                yield entered
        except BaseException as error:
            self._report(call, started, error)
            raise
        self._report(call, started, None)
        note_progress()

    def _report(self, call: str, started: float, error: BaseException | None) -> None:
        seconds = self._clock.monotonic() - started
        for observer in self._observers:
            observer(call, seconds, error)


# How the process reaches the database: as a file, as a server, or as a server behind a transaction pooler. Behind a
# pooler, notifications need a direct address for LISTEN, or polling.
Way: TypeAlias = Literal["file", "direct", "pooler_direct", "pooler_polled"]


class PoolSizes(NamedTuple):
    handlers: int = 5
    liveness: int = 2
    pages: int = 3


class Connections:
    def __init__(
        self,
        url: str,
        sizes: PoolSizes,
        *,
        queue_lease: Callable[[], timedelta],
        run_lease: timedelta,
        direct_url: str | None = None,
        page_limit: timedelta = timedelta(seconds=2),
    ) -> None:
        """Create the sets of connections. ``queue_lease`` returns the lease length of the queues; it is called when the
        connections open. ``direct_url`` is a PostgreSQL address for LISTEN that bypasses the pooler. ``page_limit`` is
        the timeout for each statement that a page runs.
        """
        self.url = url
        self._first: Database | None = None
        self._direct_url = direct_url
        self._clock: Clock = SystemClock()
        self.pages = PagePath(lambda: self._connect(page_limits(page_limit, sizes.pages)))
        self.database = self._path(ConnectionLimits(pool=sizes.handlers))
        self.liveness = self._own_path(lambda: liveness_limits(queue_lease(), sizes.liveness))
        self.run_liveness = self._own_path(lambda: liveness_limits(run_lease, sizes.liveness))

    def __iter__(self) -> Iterator[ObservedDatabase]:
        """Yield each distinct set of connections for handlers and leases. On SQLite there is only one."""
        yield from dict.fromkeys((self.database, self.liveness, self.run_liveness))

    async def open(self) -> None:
        """Open every set of connections. If one of them fails, close the others and raise the error."""
        try:
            for path in self:
                await path.open()
            self.pages.is_usable = True
        except BaseException:
            await self.close()
            raise

    async def check_liveness(self) -> None:
        """Raise an error if the connections that renew leases do not answer."""
        if self.liveness is not self.database:
            await self.liveness.one(ANSWERS)

    async def close(self) -> None:
        await self.pages.close()
        for path in reversed([*self]):
            await path.close()

    @contextmanager
    def redirected(self, url: str, clock: Clock) -> Iterator[None]:
        """Use another SQLite file inside the block, with ``clock`` as the source of SQL's ``now()``. No connection may
        be open when the block begins. This method is for tests.
        """
        before = self.url, self._clock, self._first, self.database.inner
        self.url, self._clock, self._first = url, clock, None
        self.database.inner = self._connect(ConnectionLimits())
        try:
            yield
        finally:
            self.url, self._clock, self._first, self.database.inner = before

    @contextmanager
    def reading_for_pages(self) -> Iterator[None]:
        """Inside the ``with`` block, read through the set of connections for pages, so that page views never delay
        handlers.
        """
        token = _reads_for_page.set(True)
        try:
            yield
        finally:
            _reads_for_page.reset(token)

    @property
    def way(self) -> Way:
        """How the process reaches the database: as a file, directly, or through a pooler. The value is correct only
        after ``open``, which detects a pooler.
        """
        server = getattr(self._first, "server", None)
        if server is None:
            return "file"
        if not server.is_pooled:
            return "direct"
        return "pooler_direct" if server.direct_url else "pooler_polled"

    def _own_path(self, limits: Callable[[], ConnectionLimits]) -> ObservedDatabase:
        return self.database if self.database.dialect == "sqlite" else self._path(limits)

    def _path(self, limits: ConnectionLimits | Callable[[], ConnectionLimits]) -> ObservedDatabase:
        return ObservedDatabase(self._connect(limits), SystemClock(), self.pages)

    def aside(self) -> Database:
        """Return an additional small set of connections that is not open yet. The caller may use it on another event
        loop.
        """
        return self._connect(ASIDE)

    def _connect(self, limits: ConnectionLimits | Callable[[], ConnectionLimits]) -> Database:
        made = connect(self.url, self._clock, limits, direct_url=self._direct_url, beside=self._first)
        self._first = self._first or made
        return made


class Wakeups:
    name = "wakeups"

    def __init__(self, database: Database, clock: Clock) -> None:
        self.wakeup = Wakeup()
        self._database = database
        self._clock = clock
        self._listener: ChangeListener | None = None
        self._calls: dict[str, list[Callable[[], None]]] = {}

    def add(self, name: str, wakeup: Wakeup) -> None:
        """Register a worker's wake-up. It is set whenever a process enqueues work in the queue ``name``."""
        self.call(name, wakeup.set)

    def call(self, name: str, function: Callable[[], None]) -> None:
        """Register a function. It is called on the event loop whenever a process notifies ``name``."""
        self._calls.setdefault(name, []).append(function)

    @property
    def is_listening(self) -> bool:
        """Whether this process receives notifications from other processes."""
        return self._listener is not None

    def wake(self, name: str | None = None) -> None:
        """Wake a queue's workers after a commit that made items due; None means all queues. On SQLite this also wakes
        workers in other processes. On PostgreSQL the statement that enqueues an item already notifies other processes.
        """
        self.wake_here(name)
        self._database.notify(name)

    def wake_here(self, name: str | None = None) -> None:
        for known, functions in self._calls.items():
            if name in (None, known):
                for function in functions:
                    function()

    def _receive(self, name: str | None) -> None:
        self.wake_here(name)
        if name is None and self._database.dialect == "postgres":
            self.wakeup.set()  # the connection was lost: reconnect immediately instead of at the next probe

    async def tick(self) -> Pace:
        try:
            if self._listener is None:
                self._listener = await self._database.listen(self._receive)
                self.wake_here()  # notifications sent before the LISTEN are lost, so wake all workers once
            await self._listener.probe()
        # The store is unavailable, or the watchdog cancelled a probe that hung.
        except (StoreUnavailable, asyncio.CancelledError):
            await self._forget()
            raise
        return Idle(self._clock.now() + self._listener.period)

    async def drain(self, grace: timedelta) -> None:
        await self._forget()

    async def _forget(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()
