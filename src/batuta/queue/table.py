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

import re
from dataclasses import dataclass, fields
from datetime import timedelta

from batuta.kernel.errors import InvalidName
from batuta.kernel.reasons import Reason

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")
_NOT_IDENTIFIERS = frozenset(
    {"ready", "running", "done", "dead", "cancelled", "urgent_is_high", "crash_cap", "keep", "given", "fixed_times"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTable:
    """The columns and values by which a table is a queue."""

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
