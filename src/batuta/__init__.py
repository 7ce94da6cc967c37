"""Background work on one SQLite file or a PostgreSQL cluster."""

__version__ = "0.1.0"

from batuta.dispatch.answer import Ok, Partial, Skipped
from batuta.dispatch.job import Run
from batuta.engine import Batuta
from batuta.guard.base import Admit, Hold
from batuta.guard.switches import SwitchGuard
from batuta.kernel.errors import BatutaError
from batuta.queue.outcome import Done, Failed, Snooze
from batuta.supervise.loop import Again, Idle

__all__ = [
    "Admit",
    "Again",
    "Batuta",
    "BatutaError",
    "Done",
    "Failed",
    "Hold",
    "Idle",
    "Ok",
    "Partial",
    "Run",
    "Skipped",
    "Snooze",
    "SwitchGuard",
    "__version__",
]
