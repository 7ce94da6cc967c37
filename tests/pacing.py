"""A fake clock for tests that use a real database. The clock does not move while a statement is running."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from batuta.engine.batuta import Batuta
from batuta.stores.connections import ObservedDatabase
from batuta.testing import FakeClock


class PacedClock(FakeClock):
    """A FakeClock that waits for the statements of the engines that it watches, however slow their database is."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way = 0
        self._changed = asyncio.Event()

    def watch(self, work: Batuta) -> None:
        """From now on, let time pass only when ``work`` has no statement or transaction in progress."""
        for path in work.connections:
            self._watch_path(path)

    async def settle(self) -> None:
        await super().settle()
        while self._under_way:
            self._changed.clear()
            await self._changed.wait()
            await super().settle()

    def _watch_path(self, path: ObservedDatabase) -> None:
        observe, observe_context = path._observe, path._observe_context

        async def counted(call: str, answering: Awaitable[Any]) -> Any:
            self._count(1)
            try:
                return await observe(call, answering)
            finally:
                self._count(-1)

        @asynccontextmanager
        async def counted_context(call: str, inner: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
            self._count(1)
            try:
                async with observe_context(call, inner) as entered:
                    yield entered
            finally:
                self._count(-1)

        vars(path).update(_observe=counted, _observe_context=counted_context)

    def _count(self, by: int) -> None:
        self._under_way += by
        self._changed.set()
