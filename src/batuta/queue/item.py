"""Items of a queue: the description of their table, their states, new items and leases."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from batuta.kernel.clock import instant
from batuta.kernel.errors import require
from batuta.kernel.reasons import Reason


class ItemState(StrEnum):
    READY = "ready"  # waits for its time or for a worker
    RUNNING = "running"  # leased
    DONE = "done"
    DEAD = "dead"  # the last attempt failed, or a permanent failure; the error column has the cause
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """A row to insert. ``values`` are columns by name. ``key`` is unique among items that have not ended.

    ``delay`` is added to the database's clock; ``available_at`` is an instant chosen by the application. Without
    either, the item is due immediately.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    key: str | None = None
    priority: int | None = None  # None: the table's default
    available_at: datetime | None = None
    delay: timedelta | None = None

    def __post_init__(self) -> None:
        if self.available_at is not None and self.delay is not None:
            raise ValueError("an item has an instant (available_at) or a delay: give one of them")


class Lease(NamedTuple):
    """A claimed item. Every write about the item includes ``fence``, which proves that the worker still owns the item."""

    id: str
    fence: int
    attempt: int  # number of this attempt, from 1; the claim increments it
    row: Mapping[str, Any]  # values of the ``given`` columns at the time of the claim
    is_last_chance: bool = False  # one more crash makes the item dead
    # When the item became due and when it was created, in microseconds since 1970. Few items need them as a datetime.
    due: float | None = None
    created: float = 0
    unreadable: tuple[str, ...] = ()  # columns with unreadable values, so the item cannot run

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
    """Describes a table that serves as a queue: which columns it has and what its state values mean.

    The engine's own table is ``tasks``. An application's table also has business columns:

        MENSAGENS = QueueTable(
            name="fila_mensagens", state="status", ready=("pendente",), running="processando", done="enviada", dead="erro",
            attempts="tentativas", available_at="agendar_para", error="erro", priority="prioridade", urgent_is_high=True, …)

    A row is *running* while its lease column holds an instant. The ``running`` value of the state column, if any, is
    only for people who read the table.

    The queue expects two indexes: ``<name>_ready`` (queue, priority, available_at, id) on the ready rows without a
    lease, and ``<name>_leased`` (lease_until) on the leased rows. A table with more than twelve distinct priorities
    needs a third index: ``<name>_due`` (queue, available_at), with the condition of ``<name>_ready``.
    ``batuta.queues.index_ddl(table)`` returns the statements for the first two. Opening the database raises
    MissingIndexes, with the statement, if one is missing.
    """

    name: str
    id: str = "id"
    state: str = "status"
    ready: tuple[str, ...] = ("ready",)  # new and returned rows get the first value; a pipeline lists every stage
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
    key: str | None = None  # unique among live rows; the table needs a unique index on it
    group: str | None = None  # one row of a group runs at a time, groups in round robin; NULL: no group
    queue: str | None = None  # distinguishes several queues in one table
    ready_index: str | None = None  # the index of the ready rows of this queue; None: ``<name>_ready``
    result: str | None = None
    expires_at: str | None = None  # instant after which a finished row may be deleted
    cancel_requested: str | None = None  # None: a running item cannot be cancelled
    last_stage: str | None = None  # in a pipeline: the stage in which a dead row failed
    pipeline: str | None = None  # if several pipelines share the table: the value of their column ``pipeline``
    # While this column is filled, no worker claims the row, because an earlier attempt may already have had its effect.
    doubt: str | None = None
    limit_key: str | None = None  # filled for items of tasks with limits, which the plain claim leaves out
    given: tuple[str, ...] | None = None  # columns that a handler receives; None: all columns
    # Columns of ``given`` that hold JSON. PostgreSQL sends them as text, and one call decodes those of all claimed items.
    documents: tuple[str, ...] = ()
    fixed_times: bool = True  # ``available_at`` may be set by the application; clock corrections keep such instants
    crash_cap: int = 3  # an item is dead after this many worker crashes
    keep: timedelta = timedelta(days=30)  # retention of items that end without a worker, for tables with ``expires_at``

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
                require("queue state", value, is_word, Reason("table_word", "it must be a plain word"))
        require("queue table", self.name, self.ready, Reason("table_ready", "ready has no values"))


def require_identifier(name: str, kind: str, why: str) -> None:
    """Raise InvalidName unless ``name`` is an SQL identifier, because statements are built with the name."""
    require(kind, name, _IDENTIFIER.match(name), why)


def pause_of_queue(name: str) -> str:
    """Return the name of the switch that pauses a queue. The claim statement reads the switch."""
    return f"pause.queue.{name}"
