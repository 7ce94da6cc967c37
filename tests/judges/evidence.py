"""Evidence about a scheduler's run: the expected fires, the endpoint's receipts, and the log.

Each of the three has a different source, so that one bug cannot hide in all of them. Every instant is in UTC, because
two local instants around a clock change do not compare correctly.
"""

import heapq
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias, TypeVar

Status: TypeAlias = Literal["running", "success", "error", "timeout", "skipped", "abandoned", "missed"]
Trigger: TypeAlias = Literal["schedule", "manual", "catch_up"]


@dataclass(frozen=True, slots=True)
class Target:
    """An expected fire, computed without the scheduler's code. If a catch-up may start the fire later than the usual
    tolerance (epsilon), ``until`` is the last instant at which it may start.
    """

    job: str
    at: datetime
    until: datetime | None = None
    must_run: bool = True  # if False, a row with the reason why it did not run is enough

    def __post_init__(self) -> None:
        _in_utc(self.at, self.until)

    def latest(self, epsilon: timedelta) -> datetime:
        return self.until or self.at + epsilon


@dataclass(frozen=True, slots=True)
class Receipt:
    """One delivery that was actually executed, recorded by the endpoint with its own clock."""

    job: str
    key: str  # the execution id, from the Idempotency-Key
    scheduled_for: datetime | None  # None if the call did not contain it; the row of the key has it then
    attempt: int
    start: datetime
    end: datetime | None  # None if it never ended; then it serves no target
    answered: Status = "success"  # the endpoint's own record of its answer

    def __post_init__(self) -> None:
        _in_utc(self.scheduled_for, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Logged:
    """A row of job_executions. If the row represents many missed fires, ``covers`` has the first and the last of
    them.
    """

    id: str
    job: str
    scheduled_for: datetime | None
    trigger: Trigger
    status: Status
    reason: str | None
    started_at: datetime
    finished_at: datetime | None
    covers: tuple[datetime, datetime] | None = None

    def __post_init__(self) -> None:
        _in_utc(self.scheduled_for, self.started_at, self.finished_at, *(self.covers or ()))


@dataclass(frozen=True, slots=True)
class Span:
    """The time from ``start`` until just before ``end``. It applies to one job or, if the job is None, to all jobs."""

    start: datetime
    end: datetime
    job: str | None = None

    def __post_init__(self) -> None:
        _in_utc(self.start, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules for judging a scheduler's run. The judge checks an expected fire only if its time window and the
    longest possible run ended before ``read_at``, the instant at which the log was read.
    """

    read_at: datetime  # when the log was read
    epsilon: timedelta = timedelta(seconds=10)
    longest_run: timedelta = timedelta(0)
    closed: tuple[Span, ...] = ()
    paused: tuple[Span, ...] = ()  # from the pause's acknowledgement until the resume was sent
    pause_grace: timedelta = timedelta(seconds=1)
    no_overlap: frozenset[str] = frozenset()
    lease: timedelta = timedelta(seconds=30)
    grace: timedelta = timedelta(seconds=10)
    # Statuses that say nothing about the end at the endpoint, because the process that wrote them cannot know it.
    unknown: frozenset[Status] = frozenset({"running", "timeout", "abandoned"})
    healed_at: datetime | None = None  # when the last fault ended; None if no recovery is judged
    rto: timedelta = timedelta(seconds=10)

    def __post_init__(self) -> None:
        _in_utc(self.read_at, self.healed_at)


def _in_utc(*instants: datetime | None) -> None:
    for each in instants:
        if each is not None and each.tzinfo is not UTC:
            raise ValueError(f"{each.isoformat()} is not in UTC: convert it with astimezone(UTC)")


NEVER_RAN = ("skipped", "missed")
Outcome: TypeAlias = Literal["served", "explained", "missed", "unexplained"]
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def earliest_deadline_first(windows: Sequence[tuple[datetime, datetime]], starts: Sequence[datetime]) -> dict[int, int]:
    """Assign starts to windows so that as many windows as possible have a start. Each start and each window is used at
    most once. Return the index of the start by the index of its window. A window includes both of its ends.
    """
    opening = sorted(range(len(windows)), key=lambda window: windows[window][0])
    opened = 0
    waiting: list[tuple[datetime, int]] = []
    served: dict[int, int] = {}
    for start in sorted(range(len(starts)), key=starts.__getitem__):
        at = starts[start]
        while opened < len(opening) and windows[opening[opened]][0] <= at:
            heapq.heappush(waiting, (windows[opening[opened]][1], opening[opened]))
            opened += 1
        while waiting and waiting[0][0] < at:
            heapq.heappop(waiting)  # this window closed without a start
        if waiting:
            served[heapq.heappop(waiting)[1]] = start
    return served


@dataclass(slots=True)
class Evidence:
    targets: list[Target] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    log: list[Logged] = field(default_factory=list)


def by_job(targets: Iterable[Target], receipts: Iterable[Receipt], log: Iterable[Logged]) -> dict[str, Evidence]:
    found: dict[str, Evidence] = defaultdict(Evidence)
    for target in targets:
        found[target.job].targets.append(target)
    for receipt in receipts:
        found[receipt.job].receipts.append(receipt)
    for row in log:
        found[row.job].log.append(row)
    return found


class Run(NamedTuple):
    receipt: Receipt
    row: Logged | None  # the row with this key, even if the row names another job
    by_hand: bool
    fire: datetime | None  # the due instant that the call names; None if it was started by hand or is unknown


class Service(NamedTuple):
    target: Target
    outcome: Outcome
    start: datetime | None  # start of the run that serves the target


class Case:
    """The evidence about one job: its expected fires, its log rows, and its runs in the order of their start.

    ``rows`` maps the id of each log row to the row, for the rows of all jobs. A run names its row by a key, and a
    faulty run may name the row of another job.
    """

    def __init__(self, job: str, evidence: Evidence, rows: Mapping[str, Logged], rules: Rules) -> None:
        self.job = job
        self.rules = rules
        self.log = evidence.log
        self.targets = _by_fire(evidence.targets)
        self.runs = [_run(each, rows.get(each.key)) for each in sorted(evidence.receipts, key=attrgetter("start"))]
        self.first_run = {run.fire: run for run in reversed(self.runs) if run.fire is not None}
        self.first_end = {fire: run for run in reversed(self.runs) if run.receipt.end and (fire := run.fire)}
        self.row_of_fire = {fire: row for row in self.log if (fire := row.scheduled_for) and row.trigger != "manual"}
        covers = (row.covers for row in self.log if row.covers is not None and row.status == "missed")
        self.missed_together = Spans(Span(first, last + datetime.resolution) for first, last in covers)
        self.closed = Spans(each for each in rules.closed if each.job in (None, job))
        paused = (Span(each.start + rules.pause_grace, each.end) for each in rules.paused if each.job in (None, job))
        self.paused = Spans(each for each in paused if each.start < each.end)
        horizon = rules.read_at - rules.longest_run
        self.service = [each for each in self._serve() if each.target.latest(rules.epsilon) < horizon]

    def lateness(self, target: Target) -> timedelta | None:
        """Return how long after its window the target's run started, or None if it ran in time or did not run."""
        run, latest = self.first_end.get(target.at), target.latest(self.rules.epsilon)
        return run.receipt.start - latest if run and run.receipt.start > latest else None

    def _serve(self) -> Iterator[Service]:
        owed = []
        for target in self.targets.values():
            if self._is_explained(target):
                yield Service(target, "explained", None)
            else:
                owed.append(target)
        starts = [run.receipt.start for run in self.runs if run.receipt.end is not None and not run.by_hand]
        windows = [(each.at, each.latest(self.rules.epsilon)) for each in owed]
        served = earliest_deadline_first(windows, starts)
        for place, target in enumerate(owed):
            if place in served:
                yield Service(target, "served", starts[served[place]])
            else:
                yield Service(target, "missed" if target.must_run else "unexplained", None)

    def _is_explained(self, target: Target) -> bool:
        if target.must_run or target.at in self.first_run:
            return False
        row = self.row_of_fire.get(target.at)
        says_why = row is not None and row.status in NEVER_RAN and bool(row.reason)
        return says_why or self.missed_together.holding(target.at) is not None


def repeated(items: Sequence[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return, by key, the items that share their key with another item."""
    counts = Counter(map(key, items))
    found: dict[K, list[T]] = defaultdict(list)
    if len(counts) < len(items):
        for each in items:
            if counts[key(each)] > 1:
                found[key(each)].append(each)
    return found


class Spans:
    """Finds the span that contains an instant. Overlapping spans are merged."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._merged: list[Span] = []
        for span in sorted(spans, key=attrgetter("start")):
            if self._merged and span.start <= self._merged[-1].end:
                last = self._merged.pop()
                span = Span(last.start, max(last.end, span.end))
            self._merged.append(span)
        self._starts = [span.start for span in self._merged]

    def holding(self, at: datetime) -> Span | None:
        before = bisect_right(self._starts, at)
        return self._merged[before - 1] if before and at < self._merged[before - 1].end else None


def _run(receipt: Receipt, row: Logged | None) -> Run:
    if row is not None and row.trigger == "manual":
        return Run(receipt, row, True, None)
    return Run(receipt, row, False, receipt.scheduled_for or (row.scheduled_for if row else None))


def _by_fire(targets: Iterable[Target]) -> dict[datetime, Target]:
    found: dict[datetime, Target] = {}
    for each in targets:
        if each.at in found:
            raise ValueError(
                f"{each.job} is expected twice at {each.at.isoformat()}: let the oracle name each fire once"
            )
        found[each.at] = each
    return found
