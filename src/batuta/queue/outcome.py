"""What a handler says happened to its item."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from batuta.kernel.json import Json
from batuta.queue.item import NewItem


@dataclass(frozen=True, slots=True)
class Writes:
    """An effect that is statements and nothing else, each with its values: those of many items are written together.

    Each statement runs once, for all its items, after whatever any of them names before it: one of them must not rely on
    what a later one of another item did.
    """

    statements: tuple[tuple[Any, Mapping[str, object]], ...] = ()

    def __add__(self, other: "Writes") -> "Writes":
        return Writes(self.statements + other.statements)


# Something to be done in the transaction that settles the item: with it, or not at all.
Effect: TypeAlias = Callable[[Any], Awaitable[None]] | Writes


@dataclass(frozen=True, slots=True)
class Done:
    """It worked. ``emit`` is enqueued, and ``effect`` done, in the transaction that settles it."""

    result: Json = None
    emit: tuple[NewItem, ...] = ()
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Snooze:
    """Put the item off without counting an attempt: until an instant, or for a duration.

    Prefer the duration: the database adds it to its own clock, so a wrong clock on this machine does not matter.
    """

    until: datetime | timedelta
    reason: str

    def __post_init__(self) -> None:
        if isinstance(self.until, datetime) and self.until.tzinfo is None:
            raise ValueError("Snooze(until) needs an instant with a zone, as work.clock.now() gives")


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not work. The retry policy decides, unless it can never work. ``error`` is for operators: no personal data."""

    error: str
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody asked for it to stop, and it did."""

    reason: str = "cancelled"


Outcome: TypeAlias = Done | Snooze | Failed | Cancelled
