"""Asked for one at a time, done many at a time: a statement costs more than a row of it.

Handlers that begin together ask together. Whatever is asked for until the event loop comes round goes into one call, and nobody
waits for latecomers. One that cannot go with others (the call was refused, or gave it no answer) is asked for alone, so that it
harms no neighbour.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from batuta.kernel.errors import StatementRefused, StoreConflict

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Gathering(Generic[Asked, Answer]):
    def __init__(
        self,
        together: Callable[[Sequence[Asked]], Coroutine[Any, Any, Sequence[Answer | None]]],
        alone: Callable[[Asked], Coroutine[Any, Any, Answer]],
    ) -> None:
        """``together`` answers in the order of what was asked; None: ask for that one alone."""
        self._together = together
        self._alone = alone
        self._waiting: list[tuple[Asked, asyncio.Future[Answer | None]]] = []
        self._going: set[asyncio.Task[Sequence[Answer | None]]] = set()  # a task that nobody holds may vanish

    async def ask(self, one: Asked) -> Answer:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._go)
        heard: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((one, heard))
        try:
            answer = await heard
        except (StatementRefused, StoreConflict):
            answer = None
        return await self._alone(one) if answer is None else answer

    def _go(self) -> None:
        waiting, self._waiting = self._waiting, []
        asked, heard = [one for one, _ in waiting], [heard for _, heard in waiting]
        going = asyncio.create_task(self._together(asked))
        self._going.add(going)
        going.add_done_callback(self._going.discard)
        going.add_done_callback(partial(_tell, heard))


def _tell(waiting: Sequence["asyncio.Future[Answer | None]"], gone: "asyncio.Task[Sequence[Answer | None]]") -> None:
    """Who was cancelled meanwhile takes nobody with him."""
    error = None if gone.cancelled() else gone.exception()  # looked at, also if nobody waits any more
    for place, heard in enumerate(waiting):
        if heard.done():
            continue
        if gone.cancelled():
            heard.cancel()
        elif error is not None:
            heard.set_exception(error)
        else:
            heard.set_result(gone.result()[place])
