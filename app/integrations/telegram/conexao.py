"""Code that both Telegram clients share: a request's time limit and result, and the start of a connection."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

from app.contexts.telegram.porta import Falha, Unavailable
from app.contexts.telegram.sessoes import Sessoes
from batuta.errors import DeadlineExceeded, StoreError
from batuta.kernel import Clock, with_timeout

T = TypeVar("T")
CLOSES_WITHIN: Final = timedelta(seconds=1)
# Time limit for closing a connection that failed or was cancelled while it began. It is shorter than the time that a
# cancelled step has to end.
ENDS_WITHIN: Final = timedelta(seconds=5)


class Ok:
    """The result of a successful request."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Prazo:
    """The time limit of one request to Telegram. All calls that the request makes share this limit."""

    def __init__(self, limit: timedelta, clock: Clock) -> None:
        self.limit = limit
        self._clock = clock
        self._until = clock.monotonic() + limit.total_seconds()

    @property
    def left(self) -> timedelta:
        return timedelta(seconds=max(0.0, self._until - self._clock.monotonic()))

    async def run(self, awaitable: Awaitable[T], what: str) -> T:
        """Await the call and return its result. If the call exceeds the time limit, cancel it and raise
        DeadlineExceeded.
        """
        return await with_timeout(self.left, awaitable, self._clock, what)

    async def store(self, awaitable: Awaitable[T]) -> T | Unavailable:
        """Return the result of a call to the database, or Unavailable if the database fails or does not answer in time."""
        try:
            return await self.run(awaitable, "database")
        except (StoreError, DeadlineExceeded) as error:
            return Unavailable(type(error).__name__)


async def close_client(closing: Awaitable[None], clock: Clock) -> None:
    """Close a Telegram client. Sockets that do not close in time stay open until the process ends."""
    with suppress(DeadlineExceeded):
        await Prazo(CLOSES_WITHIN, clock).run(closing, "close")


class Inicio(Protocol):
    """The client of one account while the connection is being made."""

    async def begin(self, prazo: Prazo) -> Falha | None: ...
    async def close(self, *, limit: timedelta) -> None: ...


L = TypeVar("L", bound=Inicio)


async def connect_line(sessoes: Sessoes, conta: str, prazo: Prazo, make: Callable[[str], L]) -> L | Falha:
    """Take ownership of a Telegram account's session, build a client with ``make``, and connect the client. If the
    connection fails, the client is closed.
    """
    sessao = await prazo.store(sessoes.take(conta))
    if not isinstance(sessao, str):
        return sessao
    line = make(sessao)
    try:
        failed = await line.begin(prazo)
    except BaseException:
        await line.close(limit=min(prazo.limit, ENDS_WITHIN))
        raise
    if failed is None:
        return line
    await line.close(limit=min(prazo.limit, ENDS_WITHIN))
    return failed
