"""What a guard answers, and what it is told afterwards."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias

from batuta.kernel.errors import DeadlineExceeded

# What the other side may say about itself although it is a 4xx: come back later.
PASSING = frozenset({408, 425, 429})


class Effect(StrEnum):
    """What became of something that was admitted. Decided by the type of an error or the number of an answer, never by words."""

    WORKED = "worked"
    BROKE = "broke"  # the other side failed, or is overrun
    TIMED_OUT = "timed_out"  # it may or may not have happened
    MISTAKE = "mistake"  # the other side lives, and what we asked for was wrong
    UNREACHED = "unreached"  # it provably never left: nothing happened, and the other side is not there


@dataclass(frozen=True, slots=True)
class Told:
    """``error``: its class or number, for people. ``retry_at``: the other side said when to come back."""

    effect: Effect
    error: str = ""
    retry_at: datetime | None = None


WORKED = Told(Effect.WORKED)


class Ticket(Protocol):
    """Handed out with an Admit: one of the two is called, once. A ticket that is never seen again is taken for used."""

    async def used(self, told: Told) -> None: ...

    async def unused(self) -> None:
        """Nothing was even tried; what was taken for it is given back."""
        ...


class FreeTicket:
    """Of a guard that learns nothing."""

    async def used(self, told: Told) -> None:
        return None

    async def unused(self) -> None:
        return None


FREE = FreeTicket()


@dataclass(frozen=True, slots=True)
class Admit:
    """Go ahead, and say afterwards on the ticket what became of it. ``by``: afterwards it is too late, and has to be asked anew."""

    ticket: Ticket = FREE
    by: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Not before ``until``."""

    until: datetime
    reason: str


Verdict: TypeAlias = Admit | Hold


class Guard(Protocol):
    async def admit(self, now: datetime) -> Verdict:
        """Asked before anything is claimed, and at the instant of the effect. A guard that cannot know says Hold."""
        ...


def effect_of_status(status: int) -> Effect:
    """What an HTTP answer says about whoever gave it."""
    if status in PASSING or status >= 500:
        return Effect.BROKE
    return Effect.MISTAKE if status >= 400 else Effect.WORKED


def effect_of_error(error: BaseException) -> Effect:
    """For errors that are nobody's in particular; a client's own are known to whoever uses that client."""
    if isinstance(error, ConnectionRefusedError):
        return Effect.UNREACHED
    cut_off = (TimeoutError, DeadlineExceeded, asyncio.CancelledError)
    return Effect.TIMED_OUT if isinstance(error, cut_off) else Effect.BROKE
