"""The assignment of runs to time windows, earliest deadline first, compared with an independent maximum matching."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults.figures import LONG
from tests.judges.evidence import Logged, Receipt, Rules, Target, earliest_deadline_first
from tests.judges.scheduler import Check, judge

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EPSILON = 10 * SECOND

instants = st.integers(0, 30).map(lambda seconds: START + seconds * SECOND)
windows = st.lists(st.tuples(instants, st.integers(0, 12).map(lambda seconds: seconds * SECOND)), max_size=12).map(
    lambda listed: [(start, start + width) for start, width in listed]
)
starts = st.lists(instants, max_size=12)


def largest_matching(windows: list[tuple[datetime, datetime]], starts: list[datetime]) -> int:
    """Compute a maximum matching with augmenting paths: each window takes a free start, or a start whose window can
    switch to another one.
    """
    owner: dict[int, int] = {}

    def find(window: int, seen: set[int]) -> bool:
        low, high = windows[window]
        for start, instant in enumerate(starts):
            if low <= instant <= high and start not in seen:
                seen.add(start)
                if start not in owner or find(owner[start], seen):
                    owner[start] = window
                    return True
        return False

    return sum(find(window, set()) for window in range(len(windows)))


@settings(max_examples=1000 if LONG else 200, deadline=None)
@given(windows, starts)
def test_earliest_deadline_first_serves_as_many_targets_as_possible(
    windows: list[tuple[datetime, datetime]], starts: list[datetime]
) -> None:
    served = earliest_deadline_first(windows, starts)
    assert len(served) == largest_matching(windows, starts)
    assert len(set(served.values())) == len(served)
    assert all(windows[window][0] <= starts[start] <= windows[window][1] for window, start in served.items())


fires = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", "c"]), instants),
    st.tuples(st.integers(0, 10), st.integers(0, 60), st.booleans()),
    min_size=1,
    max_size=20,
)
Fires = dict[tuple[str, datetime], tuple[int, int, bool]]
Evidence = tuple[list[Target], list[Receipt], list[Logged]]
RULES = Rules(read_at=START + timedelta(hours=1), epsilon=EPSILON)


def true_history(fires: Fires) -> Evidence:
    """Return evidence in which each fire either ran at most ``EPSILON`` late or was skipped with a reason."""
    targets, receipts, log = [], [], []
    for number, ((job, at), (late, lasts, runs)) in enumerate(fires.items()):
        key, start = str(number), at + late * SECOND
        end = start + lasts * SECOND
        targets.append(Target(job, at, must_run=runs))
        if runs:
            receipts.append(Receipt(job, key, at, 1, start, end))
        status, reason = ("success", None) if runs else ("skipped", "paused")
        log.append(Logged(key, job, at, "schedule", status, reason, start, end))  # type: ignore[arg-type]
    return targets, receipts, log


@given(fires)
def test_true_history_passes_however_dense_it_is(fires: Fires) -> None:
    targets, receipts, log = true_history(fires)
    verdict = judge(targets, receipts, log, RULES)
    assert verdict.ok, str(verdict)
    assert (verdict.served, verdict.explained) == (len(receipts), len(targets) - len(receipts))


@given(fires, st.randoms(use_true_random=False))
def test_missing_run_is_one_missed_target_and_an_extra_run_one_doubled(fires: Fires, chance: object) -> None:
    targets, receipts, log = true_history({**fires, ("a", START - EPSILON): (0, 0, True)})
    place = chance.randrange(len(receipts))  # type: ignore[attr-defined]
    fewer = judge(targets, receipts[:place] + receipts[place + 1 :], log, RULES)
    assert (fewer.missed, len(fewer.of(Check.COMPLETE)), fewer.doubled) == (1, 1, 0)
    more = judge(targets, [*receipts, replace(receipts[place], key="again")], log, RULES)
    assert (more.missed, more.doubled) == (0, 1)


@given(fires, st.randoms(use_true_random=False))
def test_order_of_the_evidence_does_not_matter(fires: Fires, chance: object) -> None:
    targets, receipts, log = true_history(fires)
    receipts = receipts[1:]
    before = judge(targets, receipts, log, RULES)
    for listed in (targets, receipts, log):
        chance.shuffle(listed)  # type: ignore[attr-defined]
    after = judge(targets, receipts, log, RULES)
    assert (after.summary(), {each.check for each in after.violations}) == (
        before.summary(),
        {each.check for each in before.violations},
    )
