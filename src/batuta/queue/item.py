"""Items of a queue: their states, new items, leases and lease holders."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple


class ItemState(StrEnum):
    READY = "ready"  # waiting for its time, or for a worker
    RUNNING = "running"  # leased
    DONE = "done"
    DEAD = "dead"  # it will not be tried again, and says why
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """``values`` are the columns of the table by name. ``key``: while an item with it is alive, a second one is not taken.

    ``delay`` is added to the clock of the database; ``available_at`` is an instant that the application chose. Neither: the
    item is due at once.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    key: str | None = None
    priority: int | None = None  # None: the table's own default
    available_at: datetime | None = None
    delay: timedelta | None = None

    def __post_init__(self) -> None:
        if self.available_at is not None and self.delay is not None:
            raise ValueError("an item has an instant (available_at) or a delay: give one of them")


class Lease(NamedTuple):
    """An item that is ours for a while. ``fence`` is the proof: everything written about the item carries it."""

    id: str
    fence: int
    attempt: int  # counted at the claim: the first is 1
    row: Mapping[str, Any]  # the columns the table gives, as they were claimed
    is_last_chance: bool = False  # one more crash, and it is taken for the cause
    due_at: datetime | None = None  # since when it could have been taken
    spoilt: tuple[
        str, ...
    ] = ()  # columns that somebody wrote by hand and nobody can read: nothing is to be done with it


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHolder:
    """``owner`` is never the same twice. A process that is silent for longer than ``lease`` loses what it holds."""

    owner: str
    lease: timedelta
