"""Combines concurrent calls into batches, because one statement for many rows costs less than one statement per row.

``Batcher`` combines the calls made in one event-loop iteration into one call, without a delay. ``Gatherer`` combines
the calls that arrive while an earlier call is running; a single call runs immediately. If the combined call raises an
error, or returns no result for one of the calls, that call is repeated alone. So a faulty call does not fail the
others.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from batuta.kernel.errors import StatementRefused, StoreConflict

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Batcher(Generic[Asked, Answer]):
    """Combines the calls made in one event-loop iteration into one call."""

    def __init__(
        self,
        together: Callable[[Sequence[Asked]], Coroutine[Any, Any, Sequence[Answer | None]]],
        alone: Callable[[Asked], Coroutine[Any, Any, Answer]],
    ) -> None:
        """Create a batcher, which combines the calls made in one event-loop iteration. ``together`` receives the
        arguments of these calls and returns one result per argument, in the same order. For each argument whose result
        is None, the batcher calls ``alone``.
        """
        self._together = together
        self._load_one = alone
        self._waiting: list[tuple[Asked, asyncio.Future[Answer | None]]] = []
        # Keeps the tasks alive: the event loop holds only weak references.
        self._running: set[asyncio.Task[Sequence[Answer | None]]] = set()

    async def ask(self, one: Asked) -> Answer:
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._call)
        future: asyncio.Future[Answer | None] = loop.create_future()
        self._waiting.append((one, future))
        try:
            answer = await future
        except (StatementRefused, StoreConflict):
            answer = None
        return await self._load_one(one) if answer is None else answer

    def _call(self) -> None:
        waiting, self._waiting = self._waiting, []
        asked, futures = [one for one, _ in waiting], [future for _, future in waiting]
        call = asyncio.create_task(self._together(asked))
        self._running.add(call)
        call.add_done_callback(self._running.discard)
        call.add_done_callback(partial(_distribute, futures))


class Gatherer(Generic[Asked, Answer]):
    """Combines the calls that arrive while an earlier call is running. Many callers then share one statement and one
    disk sync.
    """

    def __init__(
        self, together: Callable[[Sequence[Asked]], Coroutine[Any, Any, Sequence[Answer]]], most: int = 500
    ) -> None:
        """Create a gatherer, which combines the calls that arrive while an earlier call is running. ``together``
        receives the arguments of the combined calls, at most ``most``, and returns one result per argument, in the same
        order.
        """
        self._together = together
        self._most = most
        self._waiting: list[tuple[Asked, asyncio.Future[Answer]]] = []
        # Keeps the tasks alive: the event loop holds only weak references.
        self._running: set[asyncio.Task[Sequence[Answer]]] = set()
        self._is_busy = False

    async def ask(self, one: Asked) -> Answer:
        if not self._is_busy:
            self._is_busy = True
            try:
                return (await self._together([one]))[0]
            finally:
                self._go_on()
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((one, future))
        try:
            return await future
        except (StatementRefused, StoreConflict):
            return (await self._together([one]))[0]

    def _go_on(self) -> None:
        """Start the next combined call. It includes the waiting calls, at most ``most``, except calls whose caller was
        cancelled.
        """
        waiting = [each for each in self._waiting if not each[1].done()]
        now, self._waiting = waiting[: self._most], waiting[self._most :]
        self._is_busy = bool(now)
        if now:
            self._call([one for one, _ in now], [future for _, future in now])

    def _call(self, asked: Sequence[Asked], futures: Sequence[asyncio.Future[Answer]]) -> None:
        call = asyncio.create_task(self._together(asked))
        self._running.add(call)
        call.add_done_callback(self._running.discard)
        call.add_done_callback(partial(_distribute, futures))
        call.add_done_callback(lambda _: self._go_on())


class BatchLoader(Generic[Asked, Answer]):
    """Looks up keys in batches. ``load`` receives distinct keys in the order in which they were requested, and returns
    a mapping of the keys that exist to their values.
    """

    def __init__(self, load: Callable[[Sequence[Asked]], Coroutine[Any, Any, Mapping[Asked, Answer]]]) -> None:
        self._load = load
        # Each result is wrapped in a one-element tuple, so that the value None (key not found) differs from a missing
        # result.
        self._batcher: Batcher[Asked, tuple[Answer | None]] = Batcher(self._together, self._load_one)

    async def get(self, key: Asked) -> Answer | None:
        return (await self._batcher.ask(key))[0]

    async def _together(self, keys: Sequence[Asked]) -> list[tuple[Answer | None] | None]:
        found = await self._load(list(dict.fromkeys(keys)))
        return [(found.get(key),) for key in keys]

    async def _load_one(self, key: Asked) -> tuple[Answer | None]:
        return ((await self._load([key])).get(key),)


def _distribute(waiting: Sequence["asyncio.Future[Answer]"], call: "asyncio.Task[Sequence[Answer]]") -> None:
    """Pass the result or the error of a finished call to every waiting future, except futures that were cancelled."""
    # Read the error even if no future waits: asyncio logs an error that was never read.
    error = None if call.cancelled() else call.exception()
    for place, future in enumerate(waiting):
        if future.done():
            continue
        if call.cancelled():
            future.cancel()
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(call.result()[place])
