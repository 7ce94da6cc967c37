"""Background work on one SQLite file or a PostgreSQL cluster."""

__version__ = "0.1.0"

from batuta.dispatch.job import Run
from batuta.engine.batuta import Batuta
from batuta.guard.base import Admit, AllOf, Effect, EffectReport, Hold, HoursGuard
from batuta.guard.rate import Limit, RateGuard
from batuta.guard.switches import SwitchGuard
from batuta.kernel.errors import BatutaError
from batuta.queue.outcome import Done, Failed, Partial, Skipped, Snooze
from batuta.supervise.loop import Again, Idle, note_progress
from batuta.tasks.registry import TaskContext

__all__ = [
    "Admit",
    "Again",
    "AllOf",
    "Batuta",
    "BatutaError",
    "Done",
    "Effect",
    "EffectReport",
    "Failed",
    "Hold",
    "HoursGuard",
    "Idle",
    "Limit",
    "Partial",
    "RateGuard",
    "Run",
    "Skipped",
    "Snooze",
    "SwitchGuard",
    "TaskContext",
    "__version__",
    "note_progress",
]
