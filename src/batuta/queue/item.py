"""Items of a queue: the table that holds them, their states, new items, leases and lease holders."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from batuta.kernel.errors import InvalidName
from batuta.kernel.reasons import Reason


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


_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")
_NOT_IDENTIFIERS = frozenset(
    {"ready", "running", "done", "dead", "cancelled", "urgent_is_high", "crash_cap", "keep", "given", "fixed_times"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTable:
    """A table described as a queue: which column means what, and which values.

    The engine's own ``tasks`` is one; an application's tables are others, with their business columns beside these:

        MENSAGENS = QueueTable(
            name="fila_mensagens", state="status", ready=("pendente",), running="processando", done="enviada", dead="erro",
            attempts="tentativas", available_at="agendar_para", error="erro", priority="prioridade", urgent_is_high=True, …)

    A row is *running* while its lease column holds an instant; the ``running`` value, where there is one, is for people's eyes.

    The queue expects two indexes: ``<name>_ready`` (queue, priority, available_at, id) of the ready rows without a lease, and
    ``<name>_leased`` (lease_until) of the leased rows. A table with more than twelve distinct priorities needs a third one:
    ``<name>_due`` (queue, available_at), with the condition of ``<name>_ready``.
    """

    name: str
    id: str = "id"
    state: str = "status"
    ready: tuple[str, ...] = ("ready",)  # the first is what a new or returned row gets; of a pipeline: every stage
    running: str | None = "running"
    done: str = "done"
    dead: str = "dead"
    cancelled: str = "cancelled"
    attempts: str = "attempts"
    crashes: str = "crashes"
    available_at: str = "available_at"
    lease_until: str = "lease_until"
    fence: str = "fence"
    owner: str = "owner"
    error: str = "error"
    created_at: str = "created_at"
    finished_at: str = "finished_at"
    started_at: str | None = None
    updated_at: str | None = None
    priority: str | None = None  # NOT NULL: a row without one waits for ever
    urgent_is_high: bool = False
    key: str | None = None  # unique among the live rows, by an index of the table's own
    group: str | None = None  # one row of a group at a time, and groups take turns; NULL: the row is a group of its own
    queue: str | None = None  # several queues in one table
    result: str | None = None
    expires_at: str | None = None  # when a finished row may go
    cancel_requested: str | None = None  # None: what runs cannot be asked to stop
    last_stage: str | None = None  # of a pipeline: where a dead row died
    # While it is filled nobody claims the row, whatever its state: what was done with it must be found out first.
    doubt: str | None = None
    given: tuple[str, ...] | None = None  # what a handler is given of its row; None: every column
    fixed_times: bool = True  # items may be put for an instant the application chose; a set clock does not move those
    crash_cap: int = 3  # so many dead workers, and the item is taken for the cause
    keep: timedelta = timedelta(days=30)  # of what ended without a worker's word, where ``expires_at`` is a column

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in _NOT_IDENTIFIERS and value is not None:
                refuse_no_identifier(value, "queue table's column", f"{each.name} is no SQL identifier")
        for column in self.given or ():
            refuse_no_identifier(column, "queue table's column", "given holds no SQL identifier")
        for value in (*self.ready, self.running, self.done, self.dead, self.cancelled):
            if value is not None and ("'" in value or not value):
                raise InvalidName(name=value, kind="queue state", why=Reason("table_word", "it must be a plain word"))
        if not self.ready:
            raise InvalidName(
                name=self.name, kind="queue table", why=Reason("table_ready", "no value means that a row is ready")
            )


def refuse_no_identifier(name: str, kind: str, why: str) -> None:
    """It becomes a part of statements."""
    if not _IDENTIFIER.match(name):
        raise InvalidName(name=name, kind=kind, why=why)


def pause_of_queue(name: str) -> str:
    """The switch that holds a queue: read in the statement that claims."""
    return f"pause.queue.{name}"
