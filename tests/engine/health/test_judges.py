"""The health of queues, processes and the scheduler is judged by the work that they should have done."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from batuta.guard.breaker import Circuit, CircuitState
from batuta.health.checks import judge_circuits, judge_jobs
from batuta.health.finding import (
    CEILING_WHEN_CRITICAL,
    JOBS_AND_WORKERS,
    QUEUES,
    THRESHOLDS,
    Grade,
    Report,
    Severity,
    assess,
    find_silenced,
    merge_reports,
)
from batuta.health.jobs import JobHealth, Level, judge, level
from batuta.health.queues import Pulse, QueueLimits, WatchedQueue, judge_queue
from batuta.health.workers import (
    DEAD_AFTER,
    SILENT_AFTER,
    Beat,
    LoopSeen,
    Signs,
    judge_restarts,
    judge_scheduler,
    judge_workers,
)
from batuta.processes.restarts import Restart
from batuta.runlog.history import Facts, LastRun
from batuta.texts import Texts
from batuta.texts.findings import message_of
from tests.engine.dispatch.scheduling import job

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


async def never_called() -> Pulse:
    raise AssertionError


def queue(**limits: int) -> WatchedQueue:
    return WatchedQueue(name="mail", pulse=never_called, loops=("worker:mail",), limits=QueueLimits(**limits))  # type: ignore[arg-type]


def pulse(due: int = 0, oldest: timedelta | None = None, **facts: int | datetime) -> Pulse:
    at = None if oldest is None else NOW - oldest
    values = {"stuck": 0, "dead": 0, "dead_lately": 0, **facts}
    return Pulse(now=NOW, due=due, oldest_due_at=at, **values)  # type: ignore[arg-type]


def severities(report: Report) -> dict[str, Severity]:
    return {finding.cause: finding.severity for finding in report.findings}


def test_queue_with_due_items_and_no_worker_is_critical_within_two_minutes() -> None:
    alone = judge_queue(queue(), pulse(50, 61 * SECOND), has_worker=False)
    assert severities(alone) == {"queue.deserted.mail": Severity.CRITICAL}
    assert alone.lost == 20
    assert severities(judge_queue(queue(), pulse(50, 59 * SECOND), has_worker=False)) == {}
    assert severities(judge_queue(queue(), pulse(50, 61 * SECOND), has_worker=True)) == {}


def test_queue_with_handed_over_items_and_no_runner_is_critical() -> None:
    """The health of a queue is critical if the engine has claimed items for an external system such as ARQ, but no
    process of that system is running them.
    """
    handed = replace(queue(), hands_over=True)
    waits = pulse(running=5, running_since=NOW - 61 * SECOND)
    assert severities(judge_queue(handed, waits, has_worker=False)) == {"queue.deserted.mail": Severity.CRITICAL}
    assert severities(judge_queue(handed, waits, has_worker=True)) == {}
    assert severities(judge_queue(queue(), waits, has_worker=False)) == {}
    assert severities(judge_queue(handed, replace(waits, running_since=NOW - 59 * SECOND), has_worker=False)) == {}
    (said,) = judge_queue(handed, waits, has_worker=False).findings
    assert said.says == "queue_unserved"


def test_loop_that_fails_repeatedly_does_not_count_as_living() -> None:
    def seen(failures: int) -> Signs:
        loops = {"arq-runner": LoopSeen(failures=failures), "relay": LoopSeen()}
        beat = Beat(worker_id="a", role="arq", status="online", beat_at=NOW, started_at=NOW, loops=loops)
        return Signs(now=NOW, beats=(beat,))

    assert seen(2).living_loops == {"arq-runner", "relay"}
    assert seen(3).living_loops == {"relay"}


def test_threads_past_their_time_limit_are_reported_while_their_process_lives() -> None:
    loops = {"task-threads": LoopSeen(stuck_threads=4), "worker:mail": LoopSeen()}
    beat = Beat(worker_id="a", role="worker", status="online", beat_at=NOW, started_at=NOW, loops=loops)
    found = judge_workers(Signs(now=NOW, beats=(beat,)))
    assert severities(found) == {"threads.stuck": Severity.WARNING}
    assert (found.lost, found.findings[0].facts) == (5, {"count": 4})
    gone = replace(beat, status="offline")
    assert severities(judge_workers(Signs(now=NOW, beats=(gone,)))) == {}


def test_queue_without_due_items_needs_no_worker() -> None:
    """Items that are waiting for a retry or for a later time are neither backlog nor stuck, so the queue's figures
    exclude them.
    """
    assert judge_queue(queue(), pulse(), has_worker=False) == Report()


def test_large_backlog_that_shrinks_is_not_a_finding() -> None:
    assert judge_queue(queue(), pulse(1_000_000, 5 * SECOND), has_worker=True) == Report()


@pytest.mark.parametrize(
    ("due", "severity"), [(100, None), (101, Severity.WARNING), (500, Severity.WARNING), (501, Severity.CRITICAL)]
)
def test_queue_has_its_own_backlog_limits(due: int, severity: Severity | None) -> None:
    found = severities(
        judge_queue(queue(backlog_warning=100, backlog_critical=500), pulse(due, 2 * MINUTE), has_worker=True)
    )
    assert found.get("queue.backlog.mail") == severity


@pytest.mark.parametrize(("age", "severity"), [(9, None), (11, Severity.WARNING), (61, Severity.CRITICAL)])
def test_one_old_item_is_a_finding(age: int, severity: Severity | None) -> None:
    found = severities(judge_queue(queue(), pulse(1, age * MINUTE), has_worker=True))
    assert found.get("queue.old.mail") == severity


def test_later_rule_does_not_overwrite_a_worse_earlier_one() -> None:
    """Ten stuck items are critical, while six dead items are only a warning. The rule for dead items runs after the one
    for stuck items, but must not lower the severity to a warning.
    """
    found = judge_queue(queue(), pulse(5, MINUTE / 2, stuck=10, dead=6, dead_lately=6), has_worker=True)
    assert severities(found) == {"queue.stuck.mail": Severity.CRITICAL, "queue.dead.mail": Severity.WARNING}
    assert assess([(QUEUES, found)], NOW).worst is Severity.CRITICAL


def test_old_dead_items_are_not_a_finding() -> None:
    found = judge_queue(queue(), pulse(dead=1_000), has_worker=True)
    assert severities(found) == {"queue.dead_kept.mail": Severity.INFO}
    assert found.lost == 0


def test_paused_queue_is_reported_and_costs_no_points() -> None:
    held = Pulse(now=NOW, due=9, oldest_due_at=NOW - HOUR, stuck=0, dead=0, dead_lately=0, is_held=True)
    assert severities(judge_queue(queue(), held, has_worker=False)) == {"queue.held.mail": Severity.INFO}


def beat(
    role: str = "worker",
    ago: timedelta = SECOND,
    started: timedelta = HOUR,
    tick: timedelta | None = None,
    failures: int = 0,
) -> Beat:
    loops: Mapping[str, LoopSeen] = (
        {"dispatcher": LoopSeen(worked_at=NOW - tick)}
        if tick is not None
        else {"worker:mail": LoopSeen(failures=failures)}
    )
    return Beat(
        worker_id=f"{role}{ago}{started}",
        role=role,
        status="online",
        beat_at=NOW - ago,
        started_at=NOW - started,
        loops=loops,
    )


def gone(each: Beat) -> Beat:
    """Return the heartbeat of a process that ended normally."""
    return Beat(
        worker_id=each.worker_id,
        role=each.role,
        status="offline",
        beat_at=each.beat_at,
        started_at=each.started_at,
        loops=each.loops,
    )


def signs(*beats: Beat) -> Signs:
    return Signs(now=NOW, beats=beats)


def test_process_that_missed_three_heartbeats_is_dead() -> None:
    assert severities(judge_workers(signs(beat(ago=DEAD_AFTER)))) == {}
    assert severities(judge_workers(signs(beat(ago=DEAD_AFTER + SECOND)))) == {"workers.dead.worker": Severity.ERROR}


def test_queue_whose_last_worker_died_makes_the_whole_critical() -> None:
    serving = {"worker:mail": LoopSeen(concurrency=5)}
    dead = replace(beat(ago=DEAD_AFTER + SECOND), loops=serving)
    assert severities(judge_workers(signs(dead))) == {"workers.dead.worker": Severity.CRITICAL}
    assert assess([("jobs_and_workers", judge_workers(signs(dead)))], NOW).score <= CEILING_WHEN_CRITICAL
    other = replace(beat("all"), loops=serving)  # another role serves the same queue
    assert severities(judge_workers(signs(dead, other))) == {"workers.dead.worker": Severity.ERROR}


def test_dead_worker_explains_the_queues_that_no_process_serves() -> None:
    dead = replace(beat(ago=DEAD_AFTER + SECOND), loops={"worker:mail": LoopSeen(concurrency=5)})
    why = signs(dead).causes_of_absence(("worker:mail",))
    waiting = judge_queue(queue(), pulse(3, 15 * MINUTE), has_worker=False, because=why)
    found = merge_reports([judge_workers(signs(dead)), waiting]).findings
    assert {finding.cause for finding in found} - set(find_silenced(found)) == {"workers.dead.worker"}


def test_one_dead_process_of_several_is_a_warning_until_it_is_replaced() -> None:
    dead, lives = beat(ago=5 * MINUTE), beat(started=2 * HOUR)
    assert severities(judge_workers(signs(dead, lives))) == {"workers.dead.worker": Severity.WARNING}
    assert severities(judge_workers(signs(dead, lives, beat(started=4 * MINUTE)))) == {}


def test_repeatedly_restarted_process_counts_as_one_process() -> None:
    crashed = [beat(ago=n * MINUTE, started=(n + 1) * MINUTE - SECOND) for n in range(2, 7)]
    assert severities(judge_workers(signs(*crashed, beat(started=90 * SECOND)))) == {}


def test_missing_scheduler_is_reported_only_as_silent() -> None:
    dead = signs(beat("api"), beat("scheduler", MINUTE, HOUR, tick=MINUTE))
    assert severities(judge_workers(dead)) == {}
    assert severities(judge_scheduler(dead, None)) == {"scheduler.silent": Severity.CRITICAL}


def test_process_that_was_asked_to_end_is_not_missed() -> None:
    assert severities(judge_workers(signs(gone(beat(ago=HOUR))))) == {}


def ended(ago: timedelta, times: int, role: str = "worker", loop: str | None = None) -> Restart:
    return Restart(
        id="1", at=NOW - ago, worker_id="here:7", worker_name=role, reason="crashed", detail="exit code 3", host="here",
        pid=7, loop=loop, stack=None, exit_code=3, restarts_in_window=times,
    )  # fmt: skip


def test_crash_loop_is_critical_until_the_process_lives_for_ten_minutes() -> None:
    looping = {"workers.crashing.worker": Severity.CRITICAL}
    assert severities(judge_restarts([ended(MINUTE, 4)], NOW)) == {}
    assert severities(judge_restarts([ended(SECOND, 6), ended(MINUTE, 5), ended(2 * MINUTE, 4)], NOW)) == looping
    assert severities(judge_restarts([ended(10 * MINUTE - SECOND, 5)], NOW)) == looping
    assert severities(judge_restarts([ended(10 * MINUTE, 5)], NOW)) == {}


def test_restarted_loop_does_not_count_as_a_restarted_process() -> None:
    assert severities(judge_restarts([ended(SECOND, 9, loop="outbound")], NOW)) == {}


def test_crash_loop_explains_that_no_process_of_the_role_lives() -> None:
    dead = signs(beat("api"), beat("scheduler", MINUTE, HOUR, tick=MINUTE), beat("worker", HOUR / 2, HOUR))
    crashing = judge_restarts([ended(SECOND, 5), ended(SECOND, 5, "scheduler")], NOW)
    found = merge_reports([judge_workers(dead), judge_scheduler(dead, None), crashing]).findings
    assert {finding.cause for finding in found} - set(find_silenced(found)) == {
        "workers.crashing.worker",
        "workers.crashing.scheduler",
    }


def test_loop_that_fails_repeatedly_is_a_finding() -> None:
    assert severities(judge_workers(signs(beat(failures=3)))) == {"loop.failing.worker:mail": Severity.ERROR}
    assert severities(judge_workers(signs(beat(failures=2)))) == {}


def test_dead_scheduler_cannot_score_a_hundred() -> None:
    report = judge_scheduler(signs(beat("api"), beat("scheduler", 60 * SECOND, HOUR, tick=61 * SECOND)), None)
    assert severities(report) == {"scheduler.silent": Severity.CRITICAL}
    assert assess([(JOBS_AND_WORKERS, report)], NOW).score == 39


def test_scheduler_that_beats_but_does_not_tick_is_silent() -> None:
    report = judge_scheduler(signs(beat("scheduler", SECOND, HOUR, tick=SILENT_AFTER + SECOND)), None)
    assert severities(report) == {"scheduler.silent": Severity.CRITICAL}


def test_scheduler_that_stopped_in_order_is_still_missed() -> None:
    stopped = gone(beat("scheduler", 2 * MINUTE, HOUR, tick=2 * MINUTE))
    assert severities(judge_scheduler(signs(beat("api"), stopped), NOW - HOUR)) == {
        "scheduler.silent": Severity.CRITICAL
    }


def test_live_scheduler_of_two_counts() -> None:
    two = signs(beat("scheduler", HOUR, HOUR, tick=HOUR), beat("scheduler", SECOND, HOUR, tick=SECOND))
    assert severities(judge_scheduler(two, None)) == {}


def test_replacement_scheduler_has_one_beat_to_show_its_first_tick() -> None:
    new = replace(beat("scheduler", SECOND, 20 * SECOND), loops={"dispatcher": LoopSeen()})
    for ticked, found in (
        (SILENT_AFTER + SECOND, {}),
        (2 * SILENT_AFTER + SECOND, {"scheduler.silent": Severity.CRITICAL}),
    ):
        killed = beat("scheduler", 40 * SECOND, HOUR, tick=ticked)
        assert severities(judge_scheduler(signs(beat("api"), killed, new), None)) == found


def test_processes_restarted_after_a_night_ignore_the_tick_of_yesterday() -> None:
    yesterday = gone(beat("scheduler", 12 * HOUR, 13 * HOUR, tick=12 * HOUR))
    assert severities(judge_scheduler(signs(yesterday, beat("api", started=10 * SECOND)), NOW - 24 * HOUR)) == {}
    later = judge_scheduler(signs(yesterday, beat("api", started=MINUTE)), NOW - 24 * HOUR)
    assert severities(later) == {"scheduler.silent": Severity.CRITICAL}


def test_database_on_which_no_process_ran_is_not_healthy() -> None:
    never = judge_scheduler(signs(), None)
    assert severities(never) == {"processes.never_started": Severity.INFO}
    assert assess([(JOBS_AND_WORKERS, never)], NOW).grade is Grade.ATTENTION
    assert severities(judge_scheduler(signs(beat("api", started=10 * SECOND)), None)) == {}


def test_database_that_was_served_expects_a_scheduler() -> None:
    assert severities(judge_scheduler(signs(), NOW - 10 * SECOND)) == {}
    assert severities(judge_scheduler(signs(), NOW - HOUR)) == {"scheduler.silent": Severity.CRITICAL}


def health(
    name: str = "pulse",
    *,
    stale: bool = False,
    failed: bool = False,
    failures: int = 0,
    held: str | None = None,
    **options: Any,
) -> JobHealth:
    last = LastRun(
        scheduled_for=None,
        id="1",
        started_at=NOW,
        status="error" if failed else "success",
        duration_ms=1,
        error=None,
        reason=None,
        items=1,
    )
    facts = Facts(last=last, failures_in_a_row=failures)
    return judge(job(name, **options), facts, expected_at=NOW - HOUR, is_answered=not stale, held=held, now=NOW)


def test_stale_jobs_are_a_finding() -> None:
    found = judge_jobs([health("a", stale=True), health("b", stale=True), health("c")])
    assert severities(found) == {"jobs.stale": Severity.ERROR}
    assert found.findings[0].facts["jobs"] == "a, b"
    assert found.lost == 10


def test_each_stale_critical_job_is_reported_by_name() -> None:
    found = judge_jobs([health("mail", stale=True, critical=True), health()])
    assert severities(found) == {"job.stale.mail": Severity.CRITICAL}
    assert found.findings[0].since == NOW - HOUR + job().sla


def test_one_finding_silences_the_others_when_every_job_is_stale() -> None:
    found = judge_jobs([health("mail", stale=True, critical=True), health("b", stale=True)])
    assert severities(found)["jobs.nothing_works"] is Severity.CRITICAL
    assert find_silenced(found.findings) == {
        "job.stale.mail": "jobs.nothing_works",
        "jobs.stale": "jobs.nothing_works",
    }


@pytest.mark.parametrize(("failed", "says"), [(False, "jobs_none_ran"), (True, "jobs_nothing_works")])
def test_jobs_that_do_not_run_are_distinguished_from_jobs_that_fail(failed: bool, says: str) -> None:
    found = judge_jobs([health("a", stale=True, failed=failed), health("b", stale=True)])
    assert next(each for each in found.findings if each.cause == "jobs.nothing_works").says == says


def test_unfinished_jobs_raise_one_finding_and_keep_the_score_below_perfect() -> None:
    report = judge_jobs([health(f"job{n}", stale=True, finished=False) for n in range(30)])
    assert (severities(report), report.lost) == ({"jobs.unfinished": Severity.INFO}, 1)


def circuit(name: str, state: CircuitState) -> Circuit:
    return Circuit(name=name, state=state, failures=5, reset=MINUTE, opened_at=NOW - MINUTE)


def test_open_circuit_is_critical_and_half_open_circuit_is_a_warning() -> None:
    found = judge_circuits([circuit("llm", CircuitState.HALF_OPEN), circuit("evolution", CircuitState.OPEN)])
    assert severities(found) == {"circuit.llm": Severity.WARNING, "circuit.evolution": Severity.CRITICAL}
    assert found.lost == 11
    assert judge_circuits([circuit("evolution", CircuitState.CLOSED)]) == Report()


def test_open_circuit_of_the_service_silences_the_circuits_behind_it() -> None:
    seen = [circuit("chip:1", CircuitState.OPEN), circuit("evolution", CircuitState.OPEN)]
    found = judge_circuits(seen, {"chip": "evolution"})
    assert find_silenced(found.findings) == {"circuit.chip:1": "circuit.evolution"}


def test_one_open_circuit_of_a_kind_is_a_warning() -> None:
    found = judge_circuits([circuit("chip:1", CircuitState.OPEN)], {"chip": "evolution"})
    assert severities(found) == {"circuit.chip:1": Severity.WARNING}


def test_many_failing_jobs_are_one_finding() -> None:
    found = judge_jobs([health(f"job{n}", failed=True) for n in range(30)])
    assert severities(found) == {"jobs.failing": Severity.WARNING}
    assert found.findings[0].value == 30
    assert " and 25 more" in str(found.findings[0].facts["jobs"])


def score(*jobs: JobHealth) -> int:
    return assess([(JOBS_AND_WORKERS, judge_jobs(jobs))], NOW).score


def test_job_that_always_fails_is_not_healthy() -> None:
    found = judge_jobs([health("a", failed=True, failures=3), health("b")])
    assert severities(found) == {"jobs.not_succeeding": Severity.ERROR}
    assert found.findings[0].facts["jobs"] == "a"
    assert score(health("a", failed=True, failures=3), health("b")) < THRESHOLDS[Grade.HEALTHY]


def test_job_that_failed_and_exceeded_its_sla_is_not_healthy() -> None:
    assert severities(judge_jobs([health("a", stale=True, failed=True), health("b")])) == {
        "jobs.not_succeeding": Severity.ERROR
    }
    assert score(health("a", stale=True, failed=True), health("b")) < THRESHOLDS[Grade.HEALTHY]


def test_job_that_failed_once_or_twice_is_a_warning() -> None:
    assert severities(judge_jobs([health("a", failed=True, failures=2), health("b")])) == {
        "jobs.failing": Severity.WARNING
    }
    assert score(health("a", failed=True, failures=2), health("b")) >= THRESHOLDS[Grade.HEALTHY]


def test_job_that_runs_again_after_three_failures_still_counts_as_failing() -> None:
    assert severities(judge_jobs([health("a", failures=3), health("b")])) == {"jobs.not_succeeding": Severity.ERROR}


def test_critical_job_that_always_fails_is_critical() -> None:
    mail = health("mail", failed=True, failures=3, critical=True)
    assert severities(judge_jobs([mail, health("b")])) == {"job.not_succeeding.mail": Severity.CRITICAL}
    assert score(mail, health("b")) == CEILING_WHEN_CRITICAL
    assert level([mail, health("b")]) is Level.CRITICAL


def test_critical_job_that_is_late_because_it_fails_is_reported_once() -> None:
    mail = health("mail", stale=True, failed=True, failures=3, critical=True)
    assert severities(judge_jobs([mail, health("b")])) == {"job.stale.mail": Severity.CRITICAL}


def test_held_or_unfinished_job_does_not_count_as_failing() -> None:
    assert severities(judge_jobs([health("a", failures=9, held="held: switch pause.job.a is on"), health("b")])) == {}
    report = judge_jobs([health("a", failures=9, finished=False), health("b")])
    assert severities(report) == {"jobs.unfinished": Severity.INFO}


def test_repeatedly_stuck_loop_is_reported_and_a_single_restart_is_not() -> None:
    def stuck(ago: timedelta, loop: str) -> Restart:
        return Restart(
            id="r", at=NOW - ago, worker_id="w:1", worker_name="worker", reason="stuck", detail="", host="h", pid=1,
            loop=loop, stack=None, exit_code=None, restarts_in_window=1,
        )  # fmt: skip

    minutes = [timedelta(minutes=n) for n in (1, 2, 3)]
    assert (
        judge_restarts([stuck(minutes[0], "sync"), *(stuck(timedelta(hours=n), "sync") for n in (1, 2))], NOW).findings
        == ()
    )
    (finding,) = judge_restarts([stuck(ago, "sync") for ago in minutes], NOW).findings
    assert (finding.cause, finding.value) == ("loop.stuck.sync", 3)


def test_stalled_process_beats_but_does_not_work() -> None:
    seen = replace(beat("worker", ago=timedelta(seconds=1)), status="stalled")
    assert not signs(seen).living_loops
    (finding,) = judge_workers(signs(seen)).findings
    assert finding.cause == "workers.stalled.worker"
    assert message_of(finding, Texts("pt-BR")) == "1 processo worker não responde (parado ou travado)"
