"""Whoever asks at the same moment is answered by one question to the database."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Juntos(Generic[K, V]):
    """The first to ask waits for the others of this turn of the event loop, and asks for all of them."""

    def __init__(self, ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._ask = ask
        self._waiting: list[tuple[K, asyncio.Future[Any]]] | None = None

    async def get(self, key: K) -> V | None:
        if self._waiting is not None:
            # A future of his own: he may leave without the others, and is awake in time to ask the next thing with the first.
            asked: asyncio.Future[V | None] = asyncio.get_running_loop().create_future()
            self._waiting.append((key, asked))
            return await asked
        waiting: list[tuple[K, asyncio.Future[Any]]] = []
        self._waiting = waiting
        try:
            await asyncio.sleep(0)
            self._waiting = None
            found = await self._ask(list(dict.fromkeys([key, *(other for other, _ in waiting)])))
        except BaseException as error:
            # Whoever waited with us must not wait for ever: our end, even a cancelled one, is a failure to them.
            self._waiting = None if self._waiting is waiting else self._waiting
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error if isinstance(error, Exception) else asyncio.InvalidStateError())
                    future.exception()
            raise
        for other, future in waiting:
            if not future.done():
                future.set_result(found.get(other))
        return found.get(key)
