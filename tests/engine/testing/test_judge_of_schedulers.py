"""Tests for the function that judges recorded scheduler runs, because a checker that has never failed proves
nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.judges.evidence import Logged, Receipt, Rules, Span, Target, earliest_deadline_first
from tests.judges.scheduler import Check, Verdict, judge

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
EPSILON = 10 * SECOND


@dataclass(frozen=True)
class History:
    """The evidence about a scheduler's run, and methods that falsify this evidence."""

    rules: Rules
    targets: tuple[Target, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    log: tuple[Logged, ...] = ()

    def judge(self) -> Verdict:
        return judge(self.targets, self.receipts, self.log, self.rules)

    def checks(self) -> set[Check]:
        return {each.check for each in self.judge().violations}

    def receipt(self, key: str) -> Receipt:
        """Return the last receipt with this idempotency key."""
        return [each for each in self.receipts if each.key == key][-1]

    def plus(self, *more: Target | Receipt | Logged) -> "History":
        return replace(
            self,
            targets=self.targets + tuple(each for each in more if isinstance(each, Target)),
            receipts=self.receipts + tuple(each for each in more if isinstance(each, Receipt)),
            log=self.log + tuple(each for each in more if isinstance(each, Logged)),
        )

    def without_receipt(self, key: str) -> "History":
        return replace(self, receipts=tuple(each for each in self.receipts if each is not self.receipt(key)))

    def without_row(self, key: str) -> "History":
        return replace(self, log=tuple(row for row in self.log if row.id != key))

    def rewritten(self, key: str, /, **changes: object) -> "History":
        return self.without_receipt(key).plus(replace(self.receipt(key), **changes))  # type: ignore[arg-type]

    def relogged(self, key: str, /, **changes: object) -> "History":
        row = next(row for row in self.log if row.id == key)
        return self.without_row(key).plus(replace(row, **changes))  # type: ignore[arg-type]

    def retargeted(self, job: str, when: datetime, /, **changes: object) -> "History":
        old = next(each for each in self.targets if (each.job, each.at) == (job, when))
        others = tuple(each for each in self.targets if each is not old)
        return replace(self, targets=(*others, replace(old, **changes)))  # type: ignore[arg-type]

    def ruled(self, **changes: object) -> "History":
        return replace(self, rules=replace(self.rules, **changes))  # type: ignore[arg-type]


def at(minute: int, second: float = 0) -> datetime:
    return NOON + minute * MINUTE + second * SECOND


def ran(job: str, minute: int, *, after: float = 1, lasts: float = 2) -> tuple[Target, Receipt, Logged]:
    key, start, end = f"{job}-{minute}", at(minute, after), at(minute, after + lasts)
    return (
        Target(job, at(minute)),
        Receipt(job, key, at(minute), 1, start, end),
        Logged(key, job, at(minute), "schedule", "success", None, start, end),
    )


def held(job: str, minute: int, reason: str) -> tuple[Target, Logged]:
    when = at(minute)
    row = Logged(f"{job}-{minute}", job, when, "schedule", "skipped", reason, when, when)
    return Target(job, when, must_run=False), row


def cut_off_and_repeated() -> list[Target | Receipt | Logged]:
    target, receipt, row = ran("minutely", 3, after=4)
    return [target, replace(receipt, start=at(3, 1), end=None), replace(receipt, attempt=2), row]


def by_hand() -> tuple[Receipt, Logged]:
    return (
        Receipt("minutely", "by-hand", None, 1, at(4, 30), at(4, 31)),
        Logged("by-hand", "minutely", None, "manual", "success", None, at(4, 30), at(4, 31)),
    )


def while_down() -> list[Target | Receipt | Logged]:
    """Return the evidence of a night without a scheduler, with hourly fires. One row covers all of them except the
    last, which was caught up after noon.
    """
    last, first_lost, last_lost = NOON - HOUR, NOON - 8 * HOUR, NOON - 2 * HOUR
    night = Logged("night", "hourly", None, "catch_up", "missed", None, NOON, NOON, covers=(first_lost, last_lost))
    return [
        *(Target("hourly", NOON - hours * HOUR, must_run=False) for hours in range(2, 9)),
        night,
        Target("hourly", last, until=at(1)),
        Receipt("hourly", "caught-up", last, 1, at(0, 20), at(0, 25)),
        Logged("caught-up", "hourly", last, "catch_up", "success", None, at(0, 20), at(0, 25)),
    ]


def valid() -> History:
    """Return the evidence of a run without violations. No scheduler runs until noon. The job ``notices`` is paused from
    12:05:30 to 12:07:30. From 12:09:05 on, nothing may start. The log is read at 12:30.
    """
    history = History(
        Rules(
            read_at=at(30),
            epsilon=EPSILON,
            closed=(Span(at(9, 5), at(60)),),
            paused=(Span(at(5, 30), at(7, 30), job="notices"),),
            no_overlap=frozenset({"slow"}),
            healed_at=NOON,
        )
    )
    for minute in range(10):
        history = history.plus(*(cut_off_and_repeated() if minute == 3 else ran("minutely", minute)))
        history = history.plus(*(held("notices", minute, "paused") if minute in (6, 7) else ran("notices", minute)))
    history = history.plus(*ran("slow", 0), *ran("slow", 2, lasts=150), *ran("slow", 6))
    history = history.plus(*held("slow", 4, "the last run had not ended"))
    return history.plus(*by_hand(), *while_down())


def drop(history: History) -> History:
    return history.without_receipt("minutely-5")


def duplicate(history: History) -> History:
    return history.plus(replace(history.receipt("minutely-5"), start=at(5, 4), end=at(5, 6)))


def shift(history: History) -> History:
    return history.rewritten("minutely-5", start=at(5) + EPSILON + SECOND, end=at(5) + EPSILON + 2 * SECOND)


def never_end(history: History) -> History:
    return history.rewritten("minutely-5", end=None)


def move_into_closed_hours(history: History) -> History:
    return history.rewritten("minutely-9", start=at(9, 6), end=at(9, 7))


def swap_keys(history: History) -> History:
    swapped = history.rewritten("minutely-5", key="swapping").rewritten("notices-8", key="minutely-5")
    return swapped.rewritten("swapping", key="notices-8")


def unlog(history: History) -> History:
    return history.without_row("minutely-5")


def lower_the_fence(history: History) -> History:
    return history.rewritten("minutely-3", attempt=1)


Mutant = Callable[[History], History]
# Each falsified history with the check that must find it, and the other checks that must find it too.
MUTANTS: list[tuple[Mutant, Check, set[Check]]] = [
    (drop, Check.COMPLETE, {Check.TRUTHFUL}),
    (duplicate, Check.EXACT, {Check.FENCED}),
    (shift, Check.COMPLETE, set()),
    (never_end, Check.COMPLETE, {Check.TRUTHFUL}),
    (move_into_closed_hours, Check.IN_HOURS, set()),
    (swap_keys, Check.TRUTHFUL, set()),
    (unlog, Check.TRUTHFUL, set()),
    (lower_the_fence, Check.FENCED, set()),
]


def test_clean_history_passes() -> None:
    verdict = valid().judge()
    assert verdict.ok, str(verdict)
    assert str(verdict) == "targets 32, served 22, explained 10, missed 0, doubled 0, early 0, unexplained 0"


@pytest.mark.parametrize(("mutate", "catches", "others"), MUTANTS, ids=[mutate.__name__ for mutate, *_ in MUTANTS])
def test_each_mutant_is_caught_by_its_check(mutate: Mutant, catches: Check, others: set[Check]) -> None:
    assert mutate(valid()).checks() == {catches} | others


# C1 --------------------------------------------------------------------------------------------------------------------


def test_two_runs_in_one_window_serve_one_target_and_leave_one_extra() -> None:
    windows = [(at(0), at(0, 10)), (at(1), at(1, 10))]
    assert earliest_deadline_first(windows, [at(0, 1), at(0, 2)]) == {0: 0}
    history = valid().plus(
        replace(valid().receipt("minutely-5"), key="again", start=at(5, 4), end=at(5, 6)),
        Logged("again", "minutely", None, "schedule", "success", None, at(5, 4), at(5, 6)),
    )
    verdict = history.judge()
    assert (verdict.served, verdict.missed, verdict.doubled) == (22, 0, 1)


def test_run_without_an_end_serves_no_target() -> None:
    verdict = never_end(valid()).judge()
    assert (verdict.served, verdict.missed) == (21, 1)
    assert verdict.of(Check.COMPLETE)[0].what == "did not run; its run never ended"


def test_window_includes_both_its_ends() -> None:
    for start in (at(5), at(5) + EPSILON):
        assert valid().rewritten("minutely-5", start=start, end=start + SECOND).judge().ok


def test_run_serves_the_window_that_closes_first() -> None:
    wide, narrow = (at(0), at(5)), (at(1), at(2))
    assert earliest_deadline_first([wide, narrow], [at(1, 30), at(4)]) == {1: 0, 0: 1}


def test_late_run_is_reported_even_if_another_run_serves_its_target() -> None:
    dense = History(Rules(read_at=at(30), epsilon=90 * SECOND))
    dense = dense.plus(*ran("minutely", 0, after=100), *ran("minutely", 1, after=10))
    verdict = dense.judge()
    assert (verdict.served, verdict.missed) == (2, 0)
    assert [(each.check, each.at, each.what) for each in verdict.violations] == [
        (Check.COMPLETE, at(0), "ran 0:00:10 after its window")
    ]


def test_run_by_hand_serves_no_target() -> None:
    history = drop(valid()).rewritten("by-hand", start=at(5, 1), end=at(5, 2))
    assert history.judge().missed == 1


def test_optional_target_needs_a_row_with_a_reason() -> None:
    for silent in (valid().without_row("notices-6"), valid().relogged("notices-6", reason=None)):
        verdict = silent.judge()
        assert silent.checks() == {Check.COMPLETE}
        assert (verdict.missed, verdict.unexplained, verdict.explained) == (0, 1, 9)


def test_optional_target_may_also_run() -> None:
    assert valid().retargeted("minutely", at(5), must_run=False).judge().ok


def test_no_row_excuses_a_required_target() -> None:
    skipped = valid().retargeted("notices", at(6), must_run=True)
    assert [each.what for each in skipped.judge().violations] == ["did not run; the log says skipped: paused"]
    missed = valid().retargeted("hourly", NOON - 3 * HOUR, must_run=True)
    assert [each.what for each in missed.judge().violations] == ["did not run; the log has it among the missed"]


def test_row_of_many_missed_fires_explains_only_the_span_it_covers() -> None:
    narrower = valid().relogged("night", covers=(NOON - 7 * HOUR, NOON - 3 * HOUR))
    assert [each.at for each in narrower.judge().violations] == [NOON - 8 * HOUR, NOON - 2 * HOUR]


def test_target_with_an_open_window_is_not_judged() -> None:
    assert valid().plus(Target("minutely", at(29, 50))).judge().ok
    assert valid().plus(Target("minutely", at(29, 49))).judge().missed == 1
    assert valid().plus(Target("minutely", at(29, 49))).ruled(longest_run=SECOND).judge().ok


# C2 to C7 --------------------------------------------------------------------------------------------------------------


def test_one_fire_under_two_keys_is_doubled() -> None:
    again = replace(valid().receipt("minutely-5"), key="again", start=at(5, 4), end=None)
    row = Logged("again", "minutely", at(5), "catch_up", "abandoned", None, at(5, 4), at(6))
    verdict = valid().plus(again, row).judge()
    assert verdict.of(Check.EXACT)[0].what == "ran as minutely-5 and as again"
    assert verdict.of(Check.TRUTHFUL)[0].what == "2 rows for one fire"


def test_run_without_a_target_or_a_row_is_a_ghost() -> None:
    unasked = ran("minutely", 15)[1:]
    assert valid().ruled(closed=()).plus(*unasked).checks() == {Check.NO_GHOST}
    nameless = valid().rewritten("by-hand", key="nobody")
    assert nameless.without_row("by-hand").checks() == {Check.NO_GHOST, Check.TRUTHFUL}


def test_row_of_the_key_names_the_fire_that_the_endpoint_does_not_know() -> None:
    silent = valid()
    for receipt in valid().receipts:
        silent = silent.rewritten(receipt.key, scheduled_for=None)
    assert silent.judge().ok
    swapped = silent.rewritten("minutely-5", key="swapping").rewritten("minutely-8", key="minutely-5")
    assert Check.NOT_EARLY in swapped.rewritten("swapping", key="minutely-8").checks()


def test_run_a_microsecond_before_its_instant_is_early() -> None:
    verdict = valid().rewritten("minutely-5", start=at(5) - datetime.resolution).judge()
    assert verdict.early == 1
    assert verdict.missed == 1


def test_runs_that_swap_their_instants_are_early_and_late() -> None:
    swapped = valid().rewritten("minutely-5", scheduled_for=at(8)).rewritten("minutely-8", scheduled_for=at(5))
    assert swapped.checks() == {Check.NOT_EARLY, Check.COMPLETE, Check.TRUTHFUL}


def test_runs_of_a_job_without_overlap_do_not_overlap() -> None:
    longer = valid().rewritten("slow-2", end=at(6, 1))
    assert longer.judge().ok  # the run ended when the next one started
    assert longer.rewritten("slow-2", end=at(6, 1.001)).checks() == {Check.NO_OVERLAP}
    assert longer.rewritten("slow-2", end=at(6, 1.001)).ruled(no_overlap=frozenset()).judge().ok


def test_long_run_overlaps_every_later_short_one() -> None:
    history = History(Rules(read_at=at(30), no_overlap=frozenset({"slow"})))
    history = history.plus(*ran("slow", 0, lasts=600), *ran("slow", 1), *ran("slow", 2))
    assert [each.at for each in history.judge().of(Check.NO_OVERLAP)] == [at(1), at(2)]


def test_run_may_start_at_the_opening_instant_and_not_at_the_closing_one() -> None:
    closed = (Span(at(5, 1), at(6, 1)), Span(at(5, 30), at(5, 40)))
    verdict = valid().ruled(closed=closed).judge()
    assert {(each.check, each.at) for each in verdict.violations} == {(Check.IN_HOURS, at(5))}
    assert {each.job for each in verdict.violations} == {"minutely", "notices"}


def test_pause_applies_a_second_after_its_acknowledgement_until_the_resume() -> None:
    def paused(start: datetime, end: datetime, job: str | None) -> set[Check]:
        return valid().ruled(paused=(Span(start, end, job),)).checks()

    assert paused(at(2), at(2, 30), "minutely") == {Check.PAUSED}
    assert paused(at(2, 0.5), at(2, 30), "minutely") == set()  # within the tolerated second
    assert paused(at(1, 30), at(2, 1), "minutely") == set()  # the job was resumed when the run started
    assert paused(at(2), at(2, 30), None) == {Check.PAUSED}
    assert paused(at(2), at(2, 30), "hourly") == set()


# C8 to C11 -------------------------------------------------------------------------------------------------------------


def test_success_without_a_run_is_untrue() -> None:
    assert valid().relogged("notices-6", status="success").checks() == {Check.COMPLETE, Check.TRUTHFUL}


def test_run_logged_as_not_run_is_untrue() -> None:
    for lie in (
        valid().relogged("minutely-5", status="skipped", reason="paused"),
        valid().relogged("minutely-5", status="error"),
        valid().relogged("night", job="notices", covers=(at(5), at(5))).retargeted("notices", at(5), must_run=False),
    ):
        assert Check.TRUTHFUL in lie.checks()
    cut_off = never_end(valid()).relogged("minutely-5", status="missed", reason="down")
    assert Check.TRUTHFUL in cut_off.checks()


def test_failure_reported_by_the_endpoint_serves_its_target() -> None:
    for status in ("error", "skipped", "timeout"):
        evidence = valid().rewritten("minutely-5", answered=status).relogged("minutely-5", status=status, reason="told")
        assert evidence.judge().ok


def test_row_with_an_unknown_ending_is_listed_without_a_violation() -> None:
    verdict = valid().relogged("minutely-5", status="abandoned", reason="its process died").judge()
    assert verdict.ok
    assert verdict.unknown == ("minutely-5",)


def test_error_during_a_partition_may_count_as_unknown() -> None:
    cut = valid().relogged("minutely-5", status="error", reason="connection lost")
    assert cut.ruled(unknown=frozenset({"error"})).judge().unknown == ("minutely-5",)


def test_no_row_stays_open_longer_than_its_lease_and_the_grace_period() -> None:
    still = valid().relogged("minutely-9", status="running", finished_at=None)
    assert still.checks() == {Check.TERMINAL}
    assert still.ruled(lease=20 * MINUTE, grace=59 * SECOND).judge().ok
    assert still.ruled(lease=20 * MINUTE, grace=58 * SECOND).checks() == {Check.TERMINAL}
    assert valid().relogged("minutely-9", finished_at=None).checks() == {Check.TERMINAL}


def test_recovery_is_the_first_target_served_in_time_after_the_last_fault() -> None:
    assert valid().judge().recovered_at == NOON
    slow_to_heal = valid()
    for job in ("minutely", "notices"):
        for minute in (1, 2):
            slow_to_heal = slow_to_heal.retargeted(job, at(minute), until=at(minute, 40))
            slow_to_heal = slow_to_heal.rewritten(f"{job}-{minute}", start=at(minute, 30), end=at(minute, 31))
    slow_to_heal = slow_to_heal.ruled(healed_at=at(0, 30), no_overlap=frozenset()).rewritten("slow-2", start=at(2, 9))
    assert slow_to_heal.judge().recovered_at == at(2)
    assert slow_to_heal.ruled(rto=80 * SECOND).checks() == {Check.RECOVERED}
    assert slow_to_heal.ruled(rto=90 * SECOND).judge().ok


def test_next_target_must_be_in_time_when_none_is_due_within_the_objective() -> None:
    quiet = valid().ruled(healed_at=at(8, 5), rto=SECOND)
    assert quiet.judge().recovered_at == at(9)
    assert quiet.judge().ok
    assert valid().ruled(healed_at=at(20)).judge().ok  # no target was due after that instant
    never = History(Rules(read_at=at(30), healed_at=NOON)).plus(Target("minutely", at(1)))
    assert never.checks() == {Check.COMPLETE, Check.RECOVERED}


# The verdict and the evidence ------------------------------------------------------------------------------------------


def test_verdict_lists_figures_and_then_sentences() -> None:
    assert str(move_into_closed_hours(drop(valid())).judge()).splitlines() == [
        "targets 32, served 21, explained 10, missed 1, doubled 0, early 0, unexplained 0; "
        "C1 complete 1; C6 in hours 1; C8 truthful log 1",
        "C1 complete: minutely 2026-01-05T12:05:00+00:00: did not run; the log says success: no reason",
        "C6 in hours: minutely 2026-01-05T12:09:00+00:00: minutely-9 started at 2026-01-05T12:09:06+00:00, "
        "closed from 2026-01-05T12:09:05+00:00 to 2026-01-05T13:00:00+00:00",
        "C8 truthful log: minutely 2026-01-05T12:05:00+00:00: minutely-5 is logged as success, and no run of it ended",
    ]


def test_long_verdict_is_cut_with_a_note() -> None:
    silent = replace(valid(), receipts=(), log=())
    assert str(silent.judge()).splitlines()[-1] == f"and {len(silent.judge().violations) - 20} more"


def test_evidence_outside_utc_is_refused() -> None:
    wall = datetime(2026, 1, 5, 9, 0)
    for stranger in (wall, wall.replace(tzinfo=ZoneInfo("America/Sao_Paulo"))):
        with pytest.raises(ValueError, match=r"not in UTC: convert it with astimezone\(UTC\)"):
            Target("minutely", stranger)


def test_fire_expected_twice_is_an_error_of_the_oracle() -> None:
    with pytest.raises(ValueError, match="minutely is expected twice at 2026-01-05T12:05:00"):
        valid().plus(Target("minutely", at(5), until=at(6))).judge()


def test_hundred_thousand_targets_are_judged_at_once() -> None:
    jobs = [f"job-{number}" for number in range(20)]
    events = [ran(job, minute) for job in jobs for minute in range(5000)]
    targets, receipts, log = zip(*events, strict=True)
    rules = Rules(
        read_at=at(6000),
        no_overlap=frozenset(jobs),
        closed=tuple(Span(at(minute, 30), at(minute, 40)) for minute in range(0, 5000, 60)),
        paused=tuple(Span(at(minute, 30), at(minute, 50), job) for minute, job in enumerate(jobs)),
    )
    verdict = judge(targets, receipts, log, rules)
    assert verdict.ok
    assert verdict.served == 100_000
