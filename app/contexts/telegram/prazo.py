"""Enforce the deadline of every call to Telegram. The Telegram client should end each request at its limit. If it does
not, this module cancels the call.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeVar, cast

from app.contexts.telegram.porta import Unavailable, Unknown
from batuta.kernel import Clock, Late, Raised, Returned, call_with_deadline, dataclass, name_of
from batuta.reasons import define

log = logging.getLogger("julia.telegram")
T = TypeVar("T")
# A call that the client does not end at its limit is cancelled this long afterwards.
MARGIN: Final = timedelta(seconds=2)
TIMEOUT = define("telegram_timeout", "[TIMEOUT] {op} after {seconds}s")
CRASHED = define("telegram_falhou", "{op} failed: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prazos:
    """Time limits for requests to Telegram, and for writing inbound messages."""

    send: timedelta = timedelta(seconds=30)
    entity: timedelta = timedelta(seconds=15)
    media: timedelta = timedelta(seconds=60)
    database: timedelta = timedelta(seconds=10)
    connect: timedelta = timedelta(seconds=30)
    receive: timedelta = timedelta(seconds=20)
    cycle: timedelta = timedelta(seconds=120)

    @property
    def step(self) -> timedelta:
        """The time limit for one step of an account, such as connecting, or receiving and storing updates."""
        return min(self.cycle, self.connect + self.receive + self.database)


def log_timeout(op: str, limit: timedelta) -> None:
    """Log that a Telegram operation took longer than its limit."""
    log.warning("[TIMEOUT] %s após %gs", op, limit.total_seconds())


async def chamar(call: Callable[[timedelta], Awaitable[T]], limit: timedelta, clock: Clock, op: str) -> T | Unknown:
    """Call the Telegram client with a time limit. Return Unknown if the client raises an error or does not return in
    time.
    """
    began = clock.monotonic()
    match await call_with_deadline(lambda: call(limit), clock.now() + limit + MARGIN, clock, op):
        case Returned(value=value):
            # The client itself ended the call at the limit.
            if isinstance(value, Unknown | Unavailable) and clock.monotonic() - began >= limit.total_seconds():
                log_timeout(op, limit)
            return cast("T", value)
        case Raised(error=error):
            return Unknown(CRASHED(op=op, error=name_of(error)))
        case Late():
            log_timeout(op, limit)
            return Unknown(TIMEOUT(op=op, seconds=round(limit.total_seconds())))
