"""Background work on one SQLite file or a PostgreSQL cluster.

This module exports the names that a first program needs. The modules below export the other public names; everything
else in the package is internal.

    batuta.jobs        job options and calls, windows              batuta.sql        databases, statements, migrations, audit
    batuta.queues      your own table as a queue                   batuta.reasons    reasons as codes with facts
    batuta.pipelines   the stages of a queue                       batuta.errors     the engine's errors
    batuta.guards      hours, limits, switches, circuits           batuta.events     the engine's events
    batuta.loops       loops and their supervisor                  batuta.kernel     clock, ids, JSON, batches, deadlines
    batuta.extension   roles, commands, boards, texts, logs        batuta.config     settings from the environment
    batuta.health      checks, findings, probes                    batuta.web        your own routes beside the engine's
    batuta.testing     clocks, recorders, a simulation             batuta.cli        your own commands beside the engine's
    batuta.arq         tasks that ARQ runs                         batuta.middleware code around enqueueing and execution
    batuta.otel        spans and metrics for OpenTelemetry         batuta.django     Django tasks

Each name is loaded on first use, so ``import batuta`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

__version__ = "0.1.0"

if TYPE_CHECKING:
    from batuta.dispatch.job import Run
    from batuta.engine.batuta import Batuta
    from batuta.kernel.calls.resources import Resource
    from batuta.kernel.errors import BatutaError
    from batuta.queue.limits import Limits
    from batuta.queue.outcome import Cancelled, Done, Failed, Outcome, Partial, Skipped, Snooze, TimedOut
    from batuta.queue.retry import NoRetry, never
    from batuta.stores.sql.foreign import enqueue_in, enqueue_in_sync
    from batuta.supervise.loop import Again, Idle, note_progress
    from batuta.tasks.batch import Batch, BatchProgress
    from batuta.tasks.handle import Handle
    from batuta.tasks.registry import TaskStatus
    from batuta.tasks.task import Task, TaskContext

__all__ = [
    "Again",
    "Batch",
    "BatchProgress",
    "Batuta",
    "BatutaError",
    "Cancelled",
    "Done",
    "Failed",
    "Handle",
    "Idle",
    "Limits",
    "NoRetry",
    "Outcome",
    "Partial",
    "Resource",
    "Run",
    "Skipped",
    "Snooze",
    "Task",
    "TaskContext",
    "TaskStatus",
    "TimedOut",
    "__version__",
    "enqueue_in",
    "enqueue_in_sync",
    "never",
    "note_progress",
]

# Maps each module to the names above that it defines. A test compares this table with the imports under
# ``TYPE_CHECKING``.
_HOMES: Final = {
    "batuta.dispatch.job": ("Run",),
    "batuta.engine.batuta": ("Batuta",),
    "batuta.kernel.errors": ("BatutaError",),
    "batuta.kernel.calls.resources": ("Resource",),
    "batuta.queue.limits": ("Limits",),
    "batuta.queue.outcome": ("Cancelled", "Done", "Failed", "Outcome", "Partial", "Skipped", "Snooze", "TimedOut"),
    "batuta.queue.retry": ("NoRetry", "never"),
    "batuta.stores.sql.foreign": ("enqueue_in", "enqueue_in_sync"),
    "batuta.supervise.loop": ("Again", "Idle", "note_progress"),
    "batuta.tasks.batch": ("Batch", "BatchProgress"),
    "batuta.tasks.handle": ("Handle",),
    "batuta.tasks.registry": ("TaskStatus",),
    "batuta.tasks.task": ("Task", "TaskContext"),
}

if not TYPE_CHECKING:  # hidden from the type checker, because with ``__getattr__`` it would accept every attribute name

    def __getattr__(name: str) -> object:
        for module, names in _HOMES.items():
            if name in names:
                return globals().setdefault(name, getattr(import_module(module), name))
        raise AttributeError(f"module 'batuta' has no attribute '{name}'", name=name, obj=import_module("batuta"))

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
