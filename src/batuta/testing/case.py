"""What there is about one job, put together: which run is which, and which target it serves."""

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from batuta.testing.evidence import Logged, Receipt, Rules, Span, Target

NEVER_RAN = ("skipped", "missed")


def earliest_deadline_first(windows: Sequence[tuple[datetime, datetime]], starts: Sequence[datetime]) -> dict[int, int]:
    """Which start serves which window, by their places: as many as can be, each once. A window holds both its ends."""
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
            heapq.heappop(waiting)  # closed unserved
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
    row: Logged | None  # of its key, whatever job the row names
    by_hand: bool
    fire: datetime | None  # the nominal instant it names; None: by hand, or nobody says which


class Service(NamedTuple):
    target: Target
    start: datetime | None  # of the run that serves it
    explained: bool


class Case:
    """The evidence about one job, found by nominal instant and by key. Runs are in the order they started.

    ``rows`` are those of every job, by id: a run may have come under the key of another.
    """

    def __init__(self, job: str, evidence: Evidence, rows: Mapping[str, Logged], rules: Rules) -> None:
        self.job = job
        self.rules = rules
        self.log = evidence.log
        self.targets = _by_fire(evidence.targets)
        self.runs = [_run(each, rows.get(each.key)) for each in sorted(evidence.receipts, key=attrgetter("start"))]
        self.runs_of_key: dict[str, list[Run]] = defaultdict(list)
        self.runs_of_fire: dict[datetime, list[Run]] = defaultdict(list)
        for run in self.runs:
            self.runs_of_key[run.receipt.key].append(run)
            if run.fire is not None:
                self.runs_of_fire[run.fire].append(run)
        self.rows_of_fire: dict[datetime, list[Logged]] = defaultdict(list)
        for row in self.log:
            if row.scheduled_for is not None and row.trigger != "manual":
                self.rows_of_fire[row.scheduled_for].append(row)
        covers = (row.covers for row in self.log if row.covers is not None and row.status == "missed")
        self.missed_together = Spans(Span(first, last + datetime.resolution) for first, last in covers)
        self.closed = Spans(each for each in rules.closed if each.job in (None, job))
        paused = (Span(each.start + rules.pause_grace, each.end) for each in rules.paused if each.job in (None, job))
        self.paused = Spans(each for each in paused if each.start < each.end)
        self.service = [each for each in self._serve() if self._is_judged(each.target)]

    def lateness(self, target: Target) -> timedelta | None:
        """How long after the window its run started; None where it ran to its end within, or not at all."""
        latest = target.latest(self.rules.epsilon)
        for run in self.runs_of_fire.get(target.at, ()):
            if run.receipt.end is not None:
                return run.receipt.start - latest if run.receipt.start > latest else None
        return None

    def _serve(self) -> Iterator[Service]:
        owed = []
        for target in self.targets.values():
            if self._is_explained(target):
                yield Service(target, None, True)
            else:
                owed.append(target)
        starts = [run.receipt.start for run in self.runs if run.receipt.end is not None and not run.by_hand]
        windows = [(each.at, each.latest(self.rules.epsilon)) for each in owed]
        served = earliest_deadline_first(windows, starts)
        for place, target in enumerate(owed):
            yield Service(target, starts[served[place]] if place in served else None, False)

    def _is_explained(self, target: Target) -> bool:
        if target.must_run or target.at in self.runs_of_fire:
            return False
        rows = self.rows_of_fire.get(target.at, ())
        says_why = any(row.status in NEVER_RAN and row.reason for row in rows)
        return says_why or self.missed_together.holding(target.at) is not None

    def _is_judged(self, target: Target) -> bool:
        return target.latest(self.rules.epsilon) + self.rules.longest_run < self.rules.read_at


class Spans:
    """Answers which span holds an instant; those that overlap are one."""

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
