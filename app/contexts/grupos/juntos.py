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
        self._waiting: dict[K, asyncio.Future[Any]] | None = None

    async def get(self, key: K) -> V | None:
        if self._waiting is not None:
            asked = self._waiting.setdefault(key, asyncio.get_running_loop().create_future())
            answer: V | None = await asyncio.shield(asked)  # others may wait for the same
            return answer
        waiting: dict[K, asyncio.Future[Any]] = {}
        self._waiting = waiting
        try:
            await asyncio.sleep(0)
            self._waiting = None
            found = await self._ask([key, *(other for other in waiting if other != key)])
        except BaseException as error:
            # Whoever waited with us must not wait for ever: our end, even a cancelled one, is a failure to them.
            self._waiting = None if self._waiting is waiting else self._waiting
            for future in waiting.values():
                if not future.done():
                    future.set_exception(error if isinstance(error, Exception) else asyncio.InvalidStateError())
                    future.exception()
            raise
        for other, future in waiting.items():
            if not future.done():
                future.set_result(found.get(other))
        return found.get(key)
