"""The contenders and the services that they need."""

import sys
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCKS = Path(__file__).parent / "locks"
PEERS = ROOT / ".venv-peers"
OUR_PYTHON = Path(sys.executable)


class Kept(Enum):
    """The storage in which a contender keeps its jobs."""

    SQLITE = auto()
    POSTGRES = auto()
    REDIS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    key: str
    title: str
    module: str
    kept: Kept
    expected: int  # assumed jobs per second before the first measurement
    unsettled: str  # query that returns the number of unsettled jobs
    peer: str | None = None  # name of the contender's own environment; None means ours
    inside: bool = False  # whether the worker can run in the caller's process
    pause: float = 0.05  # longest pause in seconds between two single jobs; longer than the contender's poll interval
    is_real: bool = True  # False for a reference that is only drained
    env: dict[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        return OUR_PYTHON if self.peer is None else PEERS / self.peer / "bin" / "python"


_OUR_REST = "SELECT count(*) FROM tasks WHERE status IN ('queued', 'in_progress')"
_UNFENCED = {"BENCH_FENCED": "0"}

# Contenders that are compared with each other are neighbours, because they are measured one after the other.
ENTRIES = (
    Entry(
        key="batuta-sqlite",
        title="batuta, SQLite",
        module="ours",
        kept=Kept.SQLITE,
        expected=8_000,
        unsettled=_OUR_REST,
        inside=True,
        pause=0.3,
    ),
    Entry(
        key="unfenced-sqlite",
        title="batuta without its fence, SQLite",
        module="ours",
        kept=Kept.SQLITE,
        expected=8_000,
        unsettled=_OUR_REST,
        is_real=False,
        env=_UNFENCED,
    ),
    Entry(
        key="raw-sqlite",
        title="raw loop, SQLite",
        module="raw",
        kept=Kept.SQLITE,
        expected=40_000,
        unsettled=_OUR_REST,
        is_real=False,
    ),
    Entry(
        key="huey",
        title="Huey, SQLite",
        module="huey",
        kept=Kept.SQLITE,
        expected=1_200,
        unsettled="SELECT count(*) FROM task",
        peer="huey",
    ),
    Entry(
        key="batuta-postgres",
        title="batuta, PostgreSQL",
        module="ours",
        kept=Kept.POSTGRES,
        expected=8_000,
        unsettled=_OUR_REST,
        inside=True,
    ),
    Entry(
        key="unfenced-postgres",
        title="batuta without its fence, PostgreSQL",
        module="ours",
        kept=Kept.POSTGRES,
        expected=8_000,
        unsettled=_OUR_REST,
        is_real=False,
        env=_UNFENCED,
    ),
    Entry(
        key="raw-postgres",
        title="raw loop, PostgreSQL",
        module="raw",
        kept=Kept.POSTGRES,
        expected=20_000,
        unsettled=_OUR_REST,
        is_real=False,
    ),
    Entry(
        key="pgqueuer",
        title="PgQueuer, PostgreSQL",
        module="pgqueuer",
        kept=Kept.POSTGRES,
        expected=8_000,
        unsettled="SELECT count(*) FROM pgqueuer",
        peer="pgqueuer",
    ),
    Entry(
        key="arq",
        title="ARQ, Redis (not durable)",
        module="arq",
        kept=Kept.REDIS,
        expected=700,
        unsettled="ZCARD arq:queue",
        peer="arq",
    ),
)
KEYS = tuple(entry.key for entry in ENTRIES)
