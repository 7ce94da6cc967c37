"""Compute the benchmark's figures from marks (the start times of jobs), and verdicts from figures. This module measures
nothing itself.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

Mark = tuple[int, int]  # start of the job in nanoseconds, and the id of the process


def drain_rate(marks: Sequence[Mark], workers: int = 1) -> float | None:
    """Return the jobs per second of a drain, measured from the moment when all workers had started. Return None if a
    worker never started, or if too few jobs remained at that moment.
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
    """Return a percentile by nearest rank: the smallest sample for which at least the fraction ``share`` of all samples
    is not larger.
    """
    return sorted(samples)[max(0, math.ceil(share * len(samples)) - 1)]


def per_second(counted: tuple[int, float]) -> float | None:
    count, seconds = counted
    return count / seconds if count and seconds > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """The figures of one drain, in which one worker runs all jobs of a queue. None means that the figure is unknown for
    this contender.
    """

    jobs: int
    rate: float
    committed: float | None  # jobs per second until the last job was settled
    worker_micros: float
    server_micros: float | None
    statements: float | None
    megabytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    cpu: float  # percent of one core
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
    """Return Batuta's figure divided by another contender's figure, for each repeat. The two figures of a repeat were
    measured within a minute of each other.
    """
    pairs = zip(ours.values.get(name, ()), theirs.values.get(name, ()), strict=False)
    return [one / other for one, other in pairs if not math.isnan(one / other)]


def cpu_ratios(ours: Figures, theirs: Figures) -> list[float]:
    """Return another contender's processor time per job divided by Batuta's, for each repeat. Both processor times
    include the server's.

    Other load on the machine affects this ratio much less than a ratio of wall times.
    """
    pairs = zip(_cpu(ours), _cpu(theirs), strict=False)
    return [other / one for one, other in pairs if one and other]


def _cpu(figures: Figures) -> list[float]:
    servers = [0.0 if math.isnan(value) else value for value in figures.values.get("server", ())]
    return [worker + server for worker, server in zip(figures.values.get("worker", ()), servers, strict=False)]


@dataclass(frozen=True, slots=True)
class Bar:
    """A promised limit on one figure. ``of`` names the contender, and ``figure`` names its figure. If ``beside`` names
    another contender, the limit applies to the ratio of the two contenders' figures.
    """

    what: str
    of: str
    figure: str
    bound: float
    beside: str | None = None
    at_most: bool = False
    unit: str = "×"
    raw: str | None = None  # name of the raw loop; at most RAW_SHARE of its rate is demanded


@dataclass(frozen=True, slots=True)
class Verdict:
    bar: Bar
    found: Sequence[float]
    by_cpu: Sequence[float] = ()
    most_wanted: float = math.inf  # RAW_SHARE of the raw loop's rate, as a multiple of the other contender's

    @property
    def bound(self) -> float:
        return min(self.bar.bound, self.most_wanted)

    @property
    def is_met(self) -> bool | None:
        """Return whether the limit is met, or None if its figure was not measured."""
        if not self.found:
            return None
        middle = median(self.found)
        return middle <= self.bound if self.bar.at_most else middle >= self.bound


RAW_SHARE = 0.7
_PG, _LITE = "batuta-postgres", "batuta-sqlite"
BARS = (
    Bar("drain rate on PostgreSQL, as a multiple of PgQueuer's", _PG, "drain", 3.0, "pgqueuer", raw="raw-postgres"),
    Bar(
        "drain rate of two workers on PostgreSQL, as a multiple of PgQueuer's",
        _PG,
        "together",
        3.0,
        "pgqueuer",
        raw="raw-postgres",
    ),
    Bar("drain rate on PostgreSQL, as a multiple of the raw loop's", _PG, "drain", RAW_SHARE, "raw-postgres"),
    Bar("drain rate on PostgreSQL, as a multiple of ARQ's", _PG, "drain", 15.0, "arq"),
    Bar("drain rate on SQLite, as a multiple of Huey's", _LITE, "drain", 12.0, "huey", raw="raw-sqlite"),
    Bar("drain rate on SQLite, as a multiple of the raw loop's", _LITE, "drain", 0.5, "raw-sqlite"),
    Bar("processor time of the worker per job, PostgreSQL", _PG, "worker", 25.0, at_most=True, unit=" µs"),
    Bar("processor time of the server per job, PostgreSQL", _PG, "server", 20.0, at_most=True, unit=" µs"),
    Bar("processor time per job, SQLite", _LITE, "worker", 35.0, at_most=True, unit=" µs"),
    Bar(
        "drain rate on PostgreSQL with fences, as a multiple of the rate without fences",
        _PG,
        "drain",
        0.91,
        "unfenced-postgres",
    ),
    Bar(
        "drain rate on SQLite with fences, as a multiple of the rate without fences",
        _LITE,
        "drain",
        0.91,
        "unfenced-sqlite",
    ),
    Bar(
        "rate of bulk enqueues on PostgreSQL, as a multiple of PgQueuer's",
        _PG,
        "bulk",
        2.0,
        "pgqueuer",
        raw="raw-postgres",
    ),
    Bar("rate of bulk enqueues on SQLite, as a multiple of Huey's", _LITE, "bulk", 12.0, "huey", raw="raw-sqlite"),
    Bar(
        "rate of sequential enqueues on PostgreSQL, as a multiple of PgQueuer's",
        _PG,
        "single",
        1.0,
        "pgqueuer",
        raw="raw-postgres",
    ),
    Bar(
        "rate of sequential enqueues on SQLite, as a multiple of Huey's", _LITE, "single", 1.0, "huey", raw="raw-sqlite"
    ),
    # The raw loop is not an upper limit for concurrent enqueues, because it commits once per enqueue.
    Bar(
        "rate of enqueues by 50 callers on PostgreSQL, as a multiple of PgQueuer's", _PG, "concurrent", 5.0, "pgqueuer"
    ),
    Bar("rate of enqueues by 50 callers on SQLite, as a multiple of Huey's", _LITE, "concurrent", 5.0, "huey"),
    Bar("time from enqueue to start, p50, PostgreSQL", _PG, "p50", 2.5, at_most=True, unit=" ms"),
    Bar("time from enqueue to start, p99, PostgreSQL", _PG, "p99", 8.0, at_most=True, unit=" ms"),
    Bar("time from enqueue to start, p50, SQLite, two processes", _LITE, "p50", 5.0, at_most=True, unit=" ms"),
    Bar("time from enqueue to start, p99, SQLite, two processes", _LITE, "p99", 25.0, at_most=True, unit=" ms"),
    Bar("time from enqueue to start, p50, SQLite, one process", _LITE, "inside p50", 3.0, at_most=True, unit=" ms"),
    Bar("time from enqueue to start, p99, SQLite, one process", _LITE, "inside p99", 15.0, at_most=True, unit=" ms"),
    Bar("processor time of an idle worker, PostgreSQL", _PG, "idle cpu", 0.3, at_most=True, unit=" %"),
    Bar("processor time of an idle worker, SQLite", _LITE, "idle cpu", 0.3, at_most=True, unit=" %"),
    Bar("statements of an idle worker, PostgreSQL", _PG, "idle statements", 1.0, at_most=True, unit="/s"),
    Bar("statements of an idle worker, SQLite", _LITE, "idle statements", 1.0, at_most=True, unit="/s"),
    Bar("memory of an idle worker, PostgreSQL", _PG, "idle MB", 90.0, at_most=True, unit=" MB"),
    Bar("memory of an idle worker, SQLite", _LITE, "idle MB", 90.0, at_most=True, unit=" MB"),
    Bar("drain rate of four workers on PostgreSQL, as a multiple of two workers'", _PG, "4 beside 2", 1.0),
    Bar("drain rate of eight workers on PostgreSQL, as a multiple of two workers'", _PG, "8 beside 2", 1.0),
    Bar("drain rate of four workers on SQLite, as a multiple of two workers'", _LITE, "4 beside 2", 1.0),
    Bar("drain rate of eight workers on SQLite, as a multiple of two workers'", _LITE, "8 beside 2", 1.0),
    Bar(
        "drain rate on PostgreSQL while a snapshot is held, as a multiple of the rate without it",
        _PG,
        "held beside free",
        0.9,
    ),
    Bar(
        "jobs per second of processor time while a snapshot is held, as a multiple of those without it",
        _PG,
        "held beside free, cpu",
        0.9,
    ),
    Bar(
        "drain rate in a table of millions on PostgreSQL, as a multiple of the rate in an empty table",
        _PG,
        "share",
        0.9,
    ),
    Bar(
        "drain rate in a table of millions on SQLite, as a multiple of the rate in an empty table", _LITE, "share", 0.9
    ),
)


def verdicts(figures: Mapping[str, Figures]) -> list[Verdict]:
    """Return a verdict for each promised limit. Limits that compare a library which was not measured are left out."""
    found = []
    for bar in BARS:
        if bar.of not in figures or (bar.beside is not None and bar.beside not in figures):
            continue
        ours = figures[bar.of]
        if bar.beside is None:
            found.append(Verdict(bar, ours.of(bar.figure)))
            continue
        theirs = figures[bar.beside]
        by_cpu = cpu_ratios(ours, theirs) if bar.figure == "drain" else ratios(ours, theirs, f"{bar.figure} cpu")
        raw = ratios(figures.get(bar.raw or "", Figures()), theirs, bar.figure)
        most_wanted = RAW_SHARE * median(raw) if raw else math.inf
        found.append(Verdict(bar, ratios(ours, theirs, bar.figure), by_cpu, most_wanted))
    return found
