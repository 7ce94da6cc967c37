"""Judge a real run of a scheduler: no fire was missed, repeated, early, out of hours or wrongly logged.

The method is that of the checker that Jepsen wrote for Chronos. Each expected fire (target) is a window of time, and
each run is a point in time. If each run is assigned to the open window that closes first, the largest possible number
of targets gets a run. The judge therefore needs no solver. The judge reads no clock and shares no code with the
components that it judges.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from operator import attrgetter
from typing import TypeAlias

from tests.judges.evidence import (
    NEVER_RAN,
    Case,
    Logged,
    Outcome,
    Receipt,
    Rules,
    Run,
    Service,
    Spans,
    Target,
    by_job,
    repeated,
)

Finding: TypeAlias = tuple[datetime, str]  # instant and description
SHOWN = 20
_RAN = ("success", "error", "timeout")


class Check(StrEnum):
    COMPLETE = "C1 complete"
    EXACT = "C2 exact"
    NO_GHOST = "C3 no ghost"
    NOT_EARLY = "C4 not early"
    NO_OVERLAP = "C5 no overlap"
    IN_HOURS = "C6 in hours"
    PAUSED = "C7 paused"
    TRUTHFUL = "C8 truthful log"
    TERMINAL = "C9 terminal"
    RECOVERED = "C10 recovery"
    FENCED = "C11 fenced"


@dataclass(frozen=True, slots=True)
class Violation:
    check: Check
    job: str
    at: datetime  # the due instant if there is one, otherwise the instant at which it happened
    what: str

    def __str__(self) -> str:
        return f"{self.check}: {self.job} {self.at.isoformat()}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The figures of a judged run. ``targets``, the number of expected fires, is the sum of the four figures that
    follow it.
    """

    targets: int
    served: int
    explained: int  # did not run, did not have to run, and the log has the reason
    missed: int
    unexplained: int  # did not have to run, and the log has no reason
    unknown: tuple[str, ...]  # keys that ran to their end, but whose row cannot know it
    # the first target in time after the last fault; None if not judged, or if there was none
    recovered_at: datetime | None
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        return not self.violations

    @property
    def doubled(self) -> int:
        return len(self.of(Check.EXACT))

    @property
    def early(self) -> int:
        return len(self.of(Check.NOT_EARLY))

    def of(self, check: Check) -> list[Violation]:
        return [each for each in self.violations if each.check is check]

    def summary(self) -> str:
        """Return a line of figures, followed by the number of failures of each check."""
        names = ("targets", "served", "explained", "missed", "doubled", "early", "unexplained")
        figures = ", ".join(f"{name} {getattr(self, name)}" for name in names)
        failed = Counter(each.check for each in self.violations)
        return "; ".join([figures, *(f"{check} {failed[check]}" for check in Check if failed[check])])

    def __str__(self) -> str:
        more = len(self.violations) - SHOWN
        lines = [self.summary(), *map(str, self.violations[:SHOWN])]
        return "\n".join([*lines, f"and {more} more"] if more > 0 else lines)


def judge(targets: Iterable[Target], receipts: Iterable[Receipt], log: Iterable[Logged], rules: Rules) -> Verdict:
    """Judge a run of a scheduler. A run that an operator started by hand does not belong to any expected fire. All
    other rules apply to it.
    """
    listed = list(log)
    rows = {row.id: row for row in listed}
    found: list[Violation] = []
    figures: Counter[Outcome] = Counter()
    after_healing: list[Service] = []
    unknown: list[str] = []
    for job, evidence in by_job(targets, receipts, listed).items():
        case = Case(job, evidence, rows, rules)
        found += _violations(case)
        figures.update(each.outcome for each in case.service)
        after_healing += (each for each in case.service if rules.healed_at and each.target.at >= rules.healed_at)
        unknown += _unknown(case)
    recovered_at = _recovered_at(after_healing, rules)
    found += _not_recovered(after_healing, recovered_at, rules)
    order = list(Check)
    return Verdict(
        targets=figures.total(),
        served=figures["served"],
        explained=figures["explained"],
        missed=figures["missed"],
        unexplained=figures["unexplained"],
        unknown=tuple(unknown),
        recovered_at=recovered_at,
        violations=tuple(sorted(found, key=lambda each: (order.index(each.check), each.at, each.job))),
    )


def _violations(case: Case) -> Iterator[Violation]:
    for run in case.runs:
        for check, wrong_with in _OF_A_RUN:
            if what := wrong_with(case, run):
                yield Violation(check, case.job, run.fire or run.receipt.start, f"{run.receipt.key} {what}")
    for check, wrong_in in _OF_A_JOB:
        for at, what in wrong_in(case):
            yield Violation(check, case.job, at, what)


def _unknown(case: Case) -> Iterator[str]:
    for run in case.runs:
        if run.receipt.end is not None and run.row is not None and run.row.status in case.rules.unknown:
            yield run.receipt.key


def _not_complete(case: Case) -> Iterator[Finding]:
    for target, outcome, _ in case.service:
        if outcome == "missed":
            yield target.at, f"did not run; {_hint(case, target)}"
        elif outcome == "unexplained":
            yield target.at, f"neither ran nor says why; {_hint(case, target)}"
        elif late := case.lateness(target):
            # The run of another fire served this target: the count is right, but this run was late.
            yield target.at, f"ran {late} after its window"


def _hint(case: Case, target: Target) -> str:
    """Return evidence that may explain why an expected fire did not run."""
    if late := case.lateness(target):
        return f"its run started {late} after its window"
    if run := case.first_end.get(target.at):
        return "its run was early" if run.receipt.start < target.at else "its run had to serve another fire"
    if target.at in case.first_run:
        return "its run never ended"
    if case.missed_together.holding(target.at):
        return "the log has it among the missed"
    row = case.row_of_fire.get(target.at)
    return f"the log says {row.status}: {row.reason or 'no reason'}" if row else "the log has no row"


def _doubled(case: Case) -> Iterator[Finding]:
    ended = [run for run in case.runs if run.receipt.end is not None]
    for key, runs in repeated(ended, _key).items():
        for run in runs[1:]:
            yield run.fire or run.receipt.start, f"{key} ran to its end again at {run.receipt.start.isoformat()}"
    for fire, runs in repeated([run for run in case.runs if run.fire is not None], attrgetter("fire")).items():
        first, *others = dict.fromkeys(map(_key, runs))
        for key in others:
            yield fire, f"ran as {first} and as {key}"


def _key(run: Run) -> str:
    return run.receipt.key


def _ghost(case: Case, run: Run) -> str | None:
    return None if run.by_hand or run.fire in case.targets else "names no target"


def _early(case: Case, run: Run) -> str | None:
    if run.fire is None or run.receipt.start >= run.fire:
        return None
    return f"started {run.fire - run.receipt.start} early"


def _overlapping(case: Case) -> Iterator[Finding]:
    """Yield overlapping runs. A run without an end is treated as an instant, because its end is unknown."""
    if case.job not in case.rules.no_overlap:
        return
    free, last = datetime.min.replace(tzinfo=UTC), ""
    for run in case.runs:
        start, end, key = run.receipt.start, run.receipt.end or run.receipt.start, run.receipt.key
        if start < free:
            yield run.fire or start, f"{key} started while {last} ran"
        if end > free:
            free, last = end, key


def _out_of_hours(case: Case, run: Run) -> str | None:
    return _within(case.closed, run, "closed")


def _in_a_pause(case: Case, run: Run) -> str | None:
    return _within(case.paused, run, "paused")


def _within(spans: Spans, run: Run, why: str) -> str | None:
    start = run.receipt.start
    if (span := spans.holding(start)) is None:
        return None
    return f"started at {start.isoformat()}, {why} from {span.start.isoformat()} to {span.end.isoformat()}"


def _untrue(case: Case, run: Run) -> str | None:
    receipt, row, _, fire = run
    if row is None:
        return "ran and has no row"
    if row.job != receipt.job:
        return f"ran, and its row is of {row.job}"
    if receipt.scheduled_for is not None and receipt.scheduled_for != row.scheduled_for:
        return f"ran, and its row is of {row.scheduled_for.isoformat() if row.scheduled_for else 'no instant'}"
    if fire and case.missed_together.holding(fire):
        return "ran, and is logged among the missed"
    if receipt.end is None:
        return f"ran, and is logged as {row.status}" if row.status in NEVER_RAN else None
    if row.status != receipt.answered and row.status not in case.rules.unknown:
        return f"answered {receipt.answered}, and is logged as {row.status}"
    return None


def _invented(case: Case) -> Iterator[Finding]:
    ended = {run.receipt.key for run in case.runs if run.receipt.end is not None}
    for row in case.log:
        if row.status == "success" and row.id not in ended:
            yield row.scheduled_for or row.started_at, f"{row.id} is logged as success, and no run of it ended"
    scheduled = [row for row in case.log if row.scheduled_for is not None and row.trigger != "manual"]
    for fire, rows in repeated(scheduled, attrgetter("scheduled_for")).items():
        yield fire, f"{len(rows)} rows for one fire"


def _open(case: Case) -> Iterator[Finding]:
    limit = case.rules.read_at - case.rules.lease - case.rules.grace
    for row in case.log:
        is_open = row.status == "running" or (row.status in _RAN and row.finished_at is None)
        if is_open and row.started_at < limit:
            since = row.started_at.isoformat()
            yield row.scheduled_for or row.started_at, f"{row.id} is {row.status} without an end since {since}"


def _unfenced(case: Case) -> Iterator[Finding]:
    for key, runs in repeated(case.runs, _key).items():
        for earlier, later in pairwise(runs):
            if later.receipt.attempt <= earlier.receipt.attempt:
                attempts = f"attempt {later.receipt.attempt} after attempt {earlier.receipt.attempt}"
                yield later.fire or later.receipt.start, f"{key}: {attempts}"


def _recovered_at(after_healing: Sequence[Service], rules: Rules) -> datetime | None:
    """Return the due instant of the first expected fire after an outage whose run started within the usual tolerance
    (epsilon). A run that started later does not count, even if ``until`` allowed it.
    """
    in_time = (target.at for target, _, start in after_healing if start and start <= target.at + rules.epsilon)
    return min(in_time, default=None)


def _not_recovered(
    after_healing: Sequence[Service], recovered_at: datetime | None, rules: Rules
) -> Iterator[Violation]:
    owed = [each.target for each in after_healing if each.target.must_run]
    if rules.healed_at is None or not owed:
        return
    first = min(owed, key=attrgetter("at"))
    # If nothing was due within the objective, the first target after it must be in time.
    if recovered_at is None or recovered_at > max(rules.healed_at + rules.rto, first.at):
        again = "never" if recovered_at is None else f"at {recovered_at.isoformat()}"
        what = f"healed at {rules.healed_at.isoformat()}, in time again {again}"
        yield Violation(Check.RECOVERED, first.job, first.at, what)


_OF_A_RUN: tuple[tuple[Check, Callable[[Case, Run], str | None]], ...] = (
    (Check.NO_GHOST, _ghost),
    (Check.NOT_EARLY, _early),
    (Check.IN_HOURS, _out_of_hours),
    (Check.PAUSED, _in_a_pause),
    (Check.TRUTHFUL, _untrue),
)
_OF_A_JOB: tuple[tuple[Check, Callable[[Case], Iterator[Finding]]], ...] = (
    (Check.COMPLETE, _not_complete),
    (Check.EXACT, _doubled),
    (Check.NO_OVERLAP, _overlapping),
    (Check.TRUTHFUL, _invented),
    (Check.TERMINAL, _open),
    (Check.FENCED, _unfenced),
)
