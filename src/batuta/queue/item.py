"""Items of a queue: the description of their table, their states, new items, and leases on them."""

import re
from collections.abc import Mapping
from dataclasses import field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from batuta.kernel.clock import instant
from batuta.kernel.errors import require
from batuta.kernel.reasons import Reason
from batuta.kernel.values import dataclass


class ItemState(StrEnum):
    READY = "ready"  # waits for its due time or for a worker
    RUNNING = "running"  # leased by a worker
    DONE = "done"
    DEAD = "dead"  # the last attempt failed, or a failure was permanent; the error column has the cause
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """A row to insert. ``values`` maps column names to values. A ``key`` must be unique among the items that have not
    ended.

    Set ``delay`` (added to the database's clock) or ``available_at`` (an instant), but not both. If neither is set, the
    item is due immediately.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    key: str | None = None
    priority: int | None = None  # None uses the table's default
    available_at: datetime | None = None
    delay: timedelta | None = None

    def __post_init__(self) -> None:
        if self.available_at is not None and self.delay is not None:
            raise ValueError("pass either available_at or delay, not both")


class Lease(NamedTuple):
    """A claimed item. Every write to the item's row checks ``fence``, a number that grows with each claim, so a worker
    that has lost the lease changes nothing.
    """

    id: str
    fence: int
    attempt: int  # number of this attempt, counted from 1; the claim increments it
    row: Mapping[str, Any]  # values of the ``given`` columns at the time of the claim
    is_last_chance: bool = False  # whether one more crash makes the item dead
    # When the item became due and when it was created, in microseconds since 1970. They are stored as numbers, because
    # few handlers need a datetime.
    due: float | None = None
    created: float = 0
    unreadable: tuple[str, ...] = ()  # columns whose values cannot be decoded; such an item cannot run

    @property
    def task(self) -> str | None:
        """The name of the called task, or None if the item is not a task call."""
        return self.row.get("name")

    @property
    def due_at(self) -> datetime | None:
        return None if self.due is None else instant(self.due)

    @property
    def created_at(self) -> datetime:
        return instant(self.created)


_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")
_NOT_IDENTIFIERS = frozenset(
    {
        "ready",
        "running",
        "done",
        "dead",
        "cancelled",
        "urgent_is_high",
        "crash_cap",
        "keep",
        "given",
        "documents",
        "fixed_times",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTable:
    """Describes a table that serves as a queue: the names of its columns and the meaning of its state values.

    The engine's own table is ``tasks``. An application's table also has business columns:

        MENSAGENS = QueueTable(
            name="fila_mensagens", state="status", ready=("pendente",), running="processando", done="enviada", dead="erro",
            attempts="tentativas", available_at="agendar_para", error="erro", priority="prioridade", urgent_is_high=True, …)

    A row is *running* while its lease column holds an instant. The ``running`` value of the state column, if any, is
    only for people who read the table.

    The queue expects two indexes: ``<name>_ready`` (queue, priority, available_at, id) on the ready rows without a
    lease, and ``<name>_leased`` (lease_until) on the leased rows. A table with more than twelve distinct priorities
    needs a third index: ``<name>_due`` (queue, available_at), with the condition of ``<name>_ready`` and, on
    PostgreSQL, ``AND available_at < 'infinity'``. ``batuta.queues.index_ddl(table)`` returns the statements for the
    first two. Opening the database raises MissingIndexes, with the statement, if one of these two is missing.
    """

    name: str
    id: str = "id"
    state: str = "status"
    ready: tuple[str, ...] = ("ready",)  # new and returned rows get the first value; a pipeline lists all its stages
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
    priority: str | None = None  # must be NOT NULL: a row without a priority is never claimed
    urgent_is_high: bool = False
    key: str | None = None  # unique among unfinished rows; the table needs a unique index on this column
    group: str | None = (
        None  # one row per group runs at a time, and groups take turns; a row with NULL belongs to no group
    )
    queue: str | None = None  # separates several queues in one table
    ready_index: str | None = None  # name of the index on the ready rows of this queue; None means ``<name>_ready``
    result: str | None = None
    expires_at: str | None = None  # instant after which a finished row may be deleted
    cancel_requested: str | None = None  # None means that a running item cannot be cancelled
    last_stage: str | None = None  # for pipelines: stores the stage in which a dead row failed
    pipeline: str | None = None  # value of the column ``pipeline``, if several pipelines share the table
    # While this column is not NULL, no worker claims the row, because an earlier attempt may already have had its
    # effect.
    doubt: str | None = None
    limit_key: str | None = None  # set for items of tasks with limits, which only the claim for limited items takes
    given: tuple[str, ...] | None = None  # columns that a handler receives; None means all columns
    # Columns of ``given`` that hold JSON. PostgreSQL sends them as text, so one call can decode the JSON of all claimed
    # items.
    documents: tuple[str, ...] = ()
    # whether the application may set ``available_at``; clock corrections do not change such instants
    fixed_times: bool = True
    crash_cap: int = 3  # the item is marked dead after this many worker crashes
    # retention of items that end without a worker (cancelled or marked dead), for tables with ``expires_at``
    keep: timedelta = timedelta(days=30)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in _NOT_IDENTIFIERS and value is not None:
                require_identifier(value, "queue table's column", f"{each.name} is not an SQL identifier")
        for column in self.given or ():
            require_identifier(column, "queue table's column", "a name in given is not an SQL identifier")
        for value in (*self.ready, self.running, self.done, self.dead, self.cancelled):
            if value is not None:
                is_word = value and "'" not in value
                require("queue state", value, is_word, Reason("table_word", "it must be a text without an apostrophe"))
        require("queue table", self.name, self.ready, Reason("table_ready", "ready must have at least one value"))


def require_identifier(name: str, kind: str, why: str) -> None:
    """Raise InvalidName unless ``name`` is an SQL identifier, because SQL statements contain the name unquoted."""
    require(kind, name, _IDENTIFIER.match(name), why)


def pause_of_queue(name: str) -> str:
    """Return the key of the switch that pauses a queue."""
    return f"pause.queue.{name}"
