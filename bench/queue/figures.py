"""Computes figures from marks and verdicts from figures. This module does not measure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

Mark = tuple[int, int]  # start in nanoseconds, and the process


def drain_rate(marks: Sequence[Mark], workers: int = 1) -> float | None:
    """Return the jobs per second after all workers have started, or None if a worker never started or too few jobs
    remain.
    """
    firsts: dict[int, int] = {}
    for at, pid in marks:
        firsts[pid] = min(at, firsts.get(pid, at))
    if not firsts or len(firsts) < workers:
        return None
    begun, ended = max(firsts.values()), max(at for at, _ in marks)
    after = sum(at > begun for at, _ in marks)
    return after * 1e9 / (ended - begun) if after else None


def percentile(samples: Sequence[float], share: float) -> float:
    """Return the smallest sample that is at least as large as this share of all samples."""
    return sorted(samples)[max(0, math.ceil(share * len(samples)) - 1)]


def per_second(counted: tuple[int, float]) -> float | None:
    count, seconds = counted
    return count / seconds if count and seconds > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """One drain by one worker, and its cost. None means unknown for this contender."""

    jobs: int
    rate: float
    committed: float | None  # jobs per second until the last job was settled
    worker_micros: float
    server_micros: float | None
    statements: float | None
    megabytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    cpu: float  # per cent of one core
    statements: float | None  # per second
    looks: float | None
    megabytes: float


@dataclass(slots=True)
class Figures:
    """Figures of one contender, one value per repeat. A missing value is NaN, so that repeats stay aligned."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float | None) -> None:
        self.values.setdefault(name, []).append(math.nan if value is None else value)

    def of(self, name: str) -> list[float]:
        return [value for value in self.values.get(name, ()) if not math.isnan(value)]

    def middle(self, name: str) -> float | None:
        found = self.of(name)
        return median(found) if found else None


def ratios(ours: Figures, theirs: Figures, name: str) -> list[float]:
    """Return the ratio of both contenders in each repeat. The two figures of a repeat were taken within a minute."""
    pairs = zip(ours.values.get(name, ()), theirs.values.get(name, ()), strict=False)
    return [one / other for one, other in pairs if not math.isnan(one / other)]


def cpu_ratios(ours: Figures, theirs: Figures) -> list[float]:
    """Return the processor time per job of the other contender divided by ours, worker and server together.

    Other load on the machine affects wall time much more than this figure.
    """
    pairs = zip(_cpu(ours), _cpu(theirs), strict=False)
    return [other / one for one, other in pairs if one and other]


def _cpu(figures: Figures) -> list[float]:
    servers = [0.0 if math.isnan(value) else value for value in figures.values.get("server", ())]
    return [worker + server for worker, server in zip(figures.values.get("worker", ()), servers, strict=False)]


@dataclass(frozen=True, slots=True)
class Bar:
    """A promised bound for ``figure`` of one contender, alone or as a ratio to another contender's."""

    what: str
    of: str
    figure: str
    bound: float
    beside: str | None = None
    at_most: bool = False
    unit: str = "×"


@dataclass(frozen=True, slots=True)
class Verdict:
    bar: Bar
    found: Sequence[float]
    by_cpu: Sequence[float] = ()

    @property
    def is_met(self) -> bool | None:
        """Whether the bound is met; None if it was not measured."""
        if not self.found:
            return None
        middle = median(self.found)
        return middle <= self.bar.bound if self.bar.at_most else middle >= self.bar.bound


BARS = (
    Bar("drain, PostgreSQL, beside PgQueuer", "batuta-postgres", "drain", 2.0, "pgqueuer"),
    Bar("drain, PostgreSQL, beside ARQ", "batuta-postgres", "drain", 15.0, "arq"),
    Bar("drain, SQLite, beside Huey", "batuta-sqlite", "drain", 10.0, "huey"),
    Bar("drain, PostgreSQL, beside the raw loop", "batuta-postgres", "drain", 0.5, "raw-postgres"),
    Bar("drain, SQLite, beside the raw loop", "batuta-sqlite", "drain", 0.5, "raw-sqlite"),
    Bar("price of safety, PostgreSQL", "batuta-postgres", "drain", 0.85, "unfenced-postgres"),
    Bar("price of safety, SQLite", "batuta-sqlite", "drain", 0.85, "unfenced-sqlite"),
    Bar("bulk enqueue, PostgreSQL, beside PgQueuer", "batuta-postgres", "bulk", 2.0, "pgqueuer"),
    Bar("single enqueue, PostgreSQL, beside PgQueuer", "batuta-postgres", "single", 1.0, "pgqueuer"),
    Bar("single enqueue, 50 callers, beside PgQueuer", "batuta-postgres", "concurrent", 1.0, "pgqueuer"),
    Bar("enqueue to start, p50, PostgreSQL", "batuta-postgres", "p50", 3.0, at_most=True, unit=" ms"),
    Bar("enqueue to start, p99, PostgreSQL", "batuta-postgres", "p99", 15.0, at_most=True, unit=" ms"),
    Bar("enqueue to start, p50, SQLite, one process", "batuta-sqlite", "inside p50", 3.0, at_most=True, unit=" ms"),
    Bar("enqueue to start, p99, SQLite, one process", "batuta-sqlite", "inside p99", 15.0, at_most=True, unit=" ms"),
    Bar("enqueue to start, p99, SQLite, two processes", "batuta-sqlite", "p99", 400.0, at_most=True, unit=" ms"),
    Bar("idle worker, PostgreSQL: processor", "batuta-postgres", "idle cpu", 0.5, at_most=True, unit=" %"),
    Bar("idle worker, SQLite: processor", "batuta-sqlite", "idle cpu", 0.5, at_most=True, unit=" %"),
    Bar("idle worker, PostgreSQL: statements", "batuta-postgres", "idle statements", 1.0, at_most=True, unit="/s"),
    Bar("idle worker, SQLite: statements", "batuta-sqlite", "idle statements", 1.0, at_most=True, unit="/s"),
    Bar("idle worker, PostgreSQL: memory", "batuta-postgres", "idle MB", 90.0, at_most=True, unit=" MB"),
    Bar("idle worker, SQLite: memory", "batuta-sqlite", "idle MB", 90.0, at_most=True, unit=" MB"),
)


def verdicts(figures: Mapping[str, Figures]) -> list[Verdict]:
    """Return the verdicts on the bounds whose contenders were selected."""
    found = []
    for bar in BARS:
        if bar.of not in figures or (bar.beside is not None and bar.beside not in figures):
            continue
        ours = figures[bar.of]
        if bar.beside is None:
            found.append(Verdict(bar, ours.of(bar.figure)))
            continue
        theirs = figures[bar.beside]
        by_cpu = cpu_ratios(ours, theirs) if bar.figure == "drain" else ()
        found.append(Verdict(bar, ratios(ours, theirs, bar.figure), by_cpu))
    return found
