"""A database whose calls somebody may time. Nobody does: it costs one look at an empty list.

Whatever it answers is a note of progress for the loop that asked: a tick may lawfully wait for as long as each call may.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias, TypeVar

from batuta.kernel.clock import Clock
from batuta.stores.sql.database import Database, Dialect, Ear, Query, Reading, Row, Transaction, Values
from batuta.supervise.progress import note_progress

T = TypeVar("T")
# The kind of call, how many seconds it took, and what it failed with.
Observer: TypeAlias = Callable[[str, float, BaseException | None], None]


class ObservedDatabase:
    """A Database. A transaction counts as a whole: what it waits for is not the statements' fault."""

    def __init__(self, inner: Database, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._observers: list[Observer] = []

    def observe(self, observer: Observer) -> None:
        self._observers.append(observer)

    @property
    def where(self) -> str:
        return self._inner.where

    @property
    def dialect(self) -> Dialect:
        return self._inner.dialect

    async def open(self) -> None:
        await self._inner.open()

    async def exists(self) -> bool:
        return await self._inner.exists()

    async def close(self) -> None:
        await self._inner.close()

    def check_file(self) -> None:
        self._inner.check_file()

    async def all(self, query: Query, **values: object) -> list[Row]:
        return await self._timed("statement", self._inner.all(query, **values))

    async def one(self, query: Query, **values: object) -> Row | None:
        return await self._timed("statement", self._inner.one(query, **values))

    async def run(self, query: Query, **values: object) -> int:
        return await self._timed("statement", self._inner.run(query, **values))

    async def run_many(self, query: Query, rows: Sequence[Values]) -> None:
        await self._timed("statement", self._inner.run_many(query, rows))

    async def script(self, text: str) -> None:
        await self._inner.script(text)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._around("transaction", self._inner.transaction())

    def snapshot(self) -> AbstractAsyncContextManager[Reading]:
        return self._around("snapshot", self._inner.snapshot())

    async def hear(self, said: Callable[[str | None], None]) -> Ear:
        return await self._inner.hear(said)

    async def lock_migrations(self, transaction: Transaction) -> None:
        await self._inner.lock_migrations(transaction)

    async def _timed(self, call: str, answering: Awaitable[T]) -> T:
        if not self._observers:
            answer = await answering
            note_progress()
            return answer
        started = self._clock.monotonic()
        try:
            answer = await answering
        except BaseException as error:
            self._tell(call, started, error)
            raise
        self._tell(call, started, None)
        note_progress()
        return answer

    @asynccontextmanager
    async def _around(self, call: str, inner: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
        started = self._clock.monotonic()
        try:
            async with inner as entered:
                yield entered
        except BaseException as error:
            self._tell(call, started, error)
            raise
        self._tell(call, started, None)
        note_progress()

    def _tell(self, call: str, started: float, error: BaseException | None) -> None:
        seconds = self._clock.monotonic() - started
        for observer in self._observers:
            observer(call, seconds, error)
