"""The scheduler's guarantees on both databases, for example that each fire starts one run."""

import asyncio
import json
import sys
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from batuta.dispatch import dispatcher
from batuta.dispatch.dispatcher import JOBS_PER_TRANSACTION
from batuta.dispatch.registry import JobRegistry
from batuta.dispatch.runner import Lanes
from batuta.guard.switches import SwitchRule
from batuta.kernel.errors import DeadlineExceeded, JobRefused, StoreConflict, StoreReadOnly
from batuta.kernel.events import (
    ExecutionCrashed,
    ExecutionEnded,
    ExecutionLost,
    ExecutionStarted,
    ExecutionTakenOver,
    FiresMissed,
    JobsRegistered,
    ScheduleFailed,
    TimetableStandsBy,
)
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.reasons import code_of
from batuta.runlog.execution import Ending, Execution, Status
from batuta.runlog.log import Closing
from batuta.runlog.reasons import BY_HAND, HELD, PARTIAL, WINDOW_CLOSED, hold_reason
from batuta.schedule.due import CatchUp
from batuta.schedule.window import Window
from batuta.stores.sql.database import AsJson
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.targets.call import CallTarget
from batuta.testing import EventRecorder, FakeClock
from tests.engine.dispatch.scheduling import LEASE, MINUTE, Endpoint, House, finish, job, tick_at, watch_leases
from tests.faults.figures import LONG

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
T0 = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # start of the fake clock: Monday, 09:00 in São Paulo
HALF = timedelta(seconds=30)


async def test_fire_runs_once_and_is_recorded(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(answer=Ending(status=Status.SUCCESS, items=3, response_code=200))
    scheduler = house.scheduler(job(target=endpoint, category="report"))
    await tick_at(scheduler, clock, T0 + HALF)
    await tick_at(scheduler, clock, T0 + MINUTE)
    (row,) = await house.rows()
    assert (row["status"], row["scheduled_for"], row["trigger"]) == ("success", T0 + MINUTE, "schedule")
    assert (row["items_processed"], row["response_code"], row["categoria"]) == (3, 200, "report")
    assert row["started_at"] == row["executed_at"]
    assert row["lease_until"] is None
    assert [run.execution.id for run in endpoint.runs] == [row["id"]]


async def test_first_start_of_a_job_has_no_missed_fires(house: House, clock: FakeClock) -> None:
    scheduler = house.scheduler(job(schedule="0 12 * * *"))
    await tick_at(scheduler, clock, T0)
    assert await house.rows() == []


async def test_only_one_of_three_schedulers_fires(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint()
    schedulers = [house.scheduler(job(target=endpoint)) for _ in range(3)]
    for each in schedulers:
        await tick_at(each, clock, T0 + HALF)
    clock.step(HALF)
    await asyncio.gather(*(each.dispatcher.tick() for each in schedulers))
    for each in schedulers:
        await finish(each)
    assert await house.statuses() == ["success"]
    assert len(endpoint.runs) == 1


async def test_restart_in_the_same_minute_repeats_no_fire(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint()
    await tick_at(house.scheduler(job(target=endpoint)), clock, T0)
    await tick_at(house.scheduler(job(target=endpoint)), clock, T0 + MINUTE)
    await tick_at(house.scheduler(job(target=endpoint)), clock, T0 + MINUTE + HALF)
    assert len(endpoint.runs) == 1


async def test_fires_missed_while_no_scheduler_ran_are_caught_up_once_by_default(
    house: House, clock: FakeClock
) -> None:
    endpoint = Endpoint()
    await tick_at(house.scheduler(job(schedule="*/10 * * * *", target=endpoint)), clock, T0 + HALF)
    await tick_at(house.scheduler(job(schedule="*/10 * * * *", target=endpoint)), clock, T0 + 33 * MINUTE)
    rows = await house.rows("status, trigger, reason, scheduled_for, started_at, id")
    assert [(row["status"], row["trigger"]) for row in rows] == [
        ("missed", "catch_up"),
        ("missed", "catch_up"),
        ("success", "catch_up"),
    ]
    assert code_of(rows[0]["reason"]) == "missed_latest"


async def test_missed_fires_of_an_outage_are_one_fact(house: House, clock: FakeClock) -> None:
    jobs = [job("often"), job("rarely", "*/10 * * * *", catch_up="skip")]
    await tick_at(house.scheduler(*jobs), clock, T0 + HALF)
    await tick_at(house.scheduler(*jobs), clock, T0 + timedelta(days=1) + HALF)
    missed = house.events.of(FiresMissed)
    assert [(each.fires, each.jobs, each.counts) for each in missed] == [
        (1439 + 144, 2, {"often": 1439, "rarely": 144})
    ]
    assert (missed[0].first, missed[0].last) == (T0 + MINUTE, T0 + timedelta(days=1))


async def test_fires_older_than_max_age_are_missed(house: House, clock: FakeClock) -> None:
    def late() -> object:
        return job(schedule="0 * * * *", max_age=timedelta(minutes=20))

    await tick_at(house.scheduler(late()), clock, T0 + HALF)  # type: ignore[arg-type]
    await tick_at(house.scheduler(late()), clock, T0 + 90 * MINUTE)  # type: ignore[arg-type]
    assert await house.statuses() == ["missed"]


async def test_catch_up_all_runs_fires_one_after_the_other(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    replay = job(target=endpoint, catch_up=CatchUp.ALL, max_age=timedelta(hours=1))
    await tick_at(house.scheduler(replay), clock, T0 + HALF)
    scheduler = house.scheduler(replay)
    clock.step(3 * MINUTE)
    await scheduler.dispatcher.tick()
    await asyncio.sleep(0)
    assert await house.statuses() == ["running"]
    assert endpoint.gate is not None
    endpoint.gate.set()
    for _ in range(4):
        await finish(scheduler)
        clock.step(timedelta(seconds=1))
        await scheduler.dispatcher.tick()
    await finish(scheduler)
    assert await house.statuses() == ["success"] * 3
    assert [run.execution.scheduled_for for run in endpoint.runs] == [T0 + n * MINUTE for n in (1, 2, 3)]


async def test_catch_up_skip_records_every_fire_and_runs_none(house: House, clock: FakeClock) -> None:
    skipping = job(catch_up="skip")
    await tick_at(house.scheduler(skipping), clock, T0 + HALF)
    await tick_at(house.scheduler(skipping), clock, T0 + 3 * MINUTE + HALF)
    assert await house.statuses() == ["missed"] * 3


async def test_long_gap_is_one_row_with_from_to_and_count(house: House, clock: FakeClock) -> None:
    await tick_at(house.scheduler(job()), clock, T0 + HALF)
    await tick_at(house.scheduler(job()), clock, T0 + timedelta(days=3650))
    missed, ran = await house.rows("status, result, reason, scheduled_for, started_at, id")
    fires = timedelta(days=3650) // MINUTE
    assert missed["result"] == {
        "from": (T0 + MINUTE).isoformat(),
        "to": (T0 + timedelta(days=3650) - MINUTE).isoformat(),
        "count": fires - 1,
    }
    assert (missed["status"], ran["status"]) == ("missed", "success")


async def test_scheduler_fires_on_time_after_the_clock_went_ten_years_ahead_and_back(
    house: House, clock: FakeClock
) -> None:
    endpoint = Endpoint()
    scheduler = house.scheduler(job(target=endpoint))
    await tick_at(scheduler, clock, T0 + MINUTE)
    await tick_at(scheduler, clock, T0 + timedelta(days=3650) + HALF)
    await tick_at(scheduler, clock, T0 + MINUTE + HALF)
    await tick_at(scheduler, clock, T0 + 2 * MINUTE)
    await tick_at(scheduler, clock, T0 + 3 * MINUTE)
    ran = {run.execution.scheduled_for for run in endpoint.runs}
    assert {T0 + 2 * MINUTE, T0 + 3 * MINUTE} <= ran
    assert len(ran) == len(endpoint.runs)


@pytest.mark.parametrize("back", [timedelta(seconds=5), timedelta(hours=1)])
async def test_clock_set_back_runs_nothing_twice(house: House, clock: FakeClock, back: timedelta) -> None:
    endpoint = Endpoint()
    scheduler = house.scheduler(job(target=endpoint))
    for n in range(65):
        await tick_at(scheduler, clock, T0 + n * MINUTE)
    before = len(endpoint.runs)
    end = T0 + 64 * MINUTE
    at = end - back
    while at <= end:
        await tick_at(scheduler, clock, at)
        at += max(timedelta(seconds=5), back / 180)
    assert len(endpoint.runs) == before
    await tick_at(scheduler, clock, end + MINUTE)
    assert len(endpoint.runs) == before + 1


async def test_overlapping_fire_is_a_skipped_row_with_its_reason(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    scheduler = house.scheduler(job(target=endpoint))
    await tick_at(scheduler, clock, T0)
    for n in (1, 2):
        clock.step(T0 + n * MINUTE - clock.now())
        await scheduler.dispatcher.tick()
        await asyncio.sleep(0)
    rows = await house.rows("status, reason, scheduled_for, started_at, id")
    assert [row["status"] for row in rows] == ["running", "skipped"]
    assert code_of(rows[1]["reason"]) == "overlap"
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(scheduler)


async def test_overlapping_fires_both_run_where_overlap_is_allowed(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    scheduler = house.scheduler(job(target=endpoint, overlap="allow"))
    await tick_at(scheduler, clock, T0)
    for n in (1, 2):
        clock.step(T0 + n * MINUTE - clock.now())
        await scheduler.dispatcher.tick()
    assert await house.statuses() == ["running", "running"]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(scheduler)


async def test_changed_schedule_fires_nothing_for_the_past(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint()
    await tick_at(house.scheduler(job(schedule="0 13 * * *", target=endpoint)), clock, T0)
    edited = house.scheduler(job(schedule="30 11 * * *", target=endpoint))
    await tick_at(edited, clock, T0 + 2 * MINUTE)
    await tick_at(edited, clock, T0 + 61 * MINUTE)
    assert endpoint.runs == []


def two_profiles(endpoint: Endpoint) -> JobRegistry:
    registry = JobRegistry(["continuo", "janelas"], windows={"manha": Window(opens=time(10))})
    registry.add(job("grupos", "* * * * *", endpoint), ["continuo"])
    registry.add(job("grupos", "*/15 * * * *", endpoint), ["janelas"])
    registry.add(job("campanhas_manha", "0 10 * * 1-5", endpoint, zone=SAO_PAULO, window="manha"), ["janelas"])
    return registry


async def test_changed_profile_applies_from_the_next_look_and_fires_nothing_at_once(
    house: House, clock: FakeClock, events: EventRecorder
) -> None:
    endpoint = Endpoint()
    scheduler = house.scheduler(registry=two_profiles(endpoint))
    await tick_at(scheduler, clock, T0)
    await tick_at(scheduler, clock, T0 + MINUTE)
    await house.controls.use_profile("janelas", by="test", now=clock.now())
    for n in range(2, 15):
        await tick_at(scheduler, clock, T0 + n * MINUTE)
    assert len(endpoint.runs) == 1
    await tick_at(scheduler, clock, T0 + 15 * MINUTE)
    assert len(endpoint.runs) == 2
    assert [event.profile for event in events.of(JobsRegistered)] == ["continuo", "janelas"]
    await house.controls.use_profile("continuo", by="test", now=clock.now())
    await tick_at(scheduler, clock, T0 + 15 * MINUTE + HALF)
    assert len(endpoint.runs) == 2
    await tick_at(scheduler, clock, T0 + 16 * MINUTE)
    assert len(endpoint.runs) == 3


async def test_moved_window_moves_its_job(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint()
    scheduler = house.scheduler(registry=two_profiles(endpoint))
    await house.controls.use_profile("janelas", by="test", now=clock.now())
    await tick_at(scheduler, clock, T0)  # 09:00 in São Paulo
    await house.controls.set_window("manha", Window(opens=time(9, 20)), by="test", now=clock.now())
    await tick_at(scheduler, clock, T0 + MINUTE)
    await tick_at(scheduler, clock, T0 + 20 * MINUTE)
    assert [run.execution.job for run in endpoint.runs if run.execution.job != "grupos"] == ["campanhas_manha"]
    await tick_at(scheduler, clock, T0 + 60 * MINUTE)
    assert [run.execution.job for run in endpoint.runs if run.execution.job != "grupos"] == ["campanhas_manha"]


async def test_catch_up_outside_the_window_is_held(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint()
    await house.controls.use_profile("janelas", by="test", now=clock.now())
    await tick_at(house.scheduler(registry=two_profiles(endpoint)), clock, T0)
    await tick_at(house.scheduler(registry=two_profiles(endpoint)), clock, T0 + 4 * 60 * MINUTE)  # 13:00
    (row,) = await house.rows(where="job_name = 'campanhas_manha'")
    assert (row["status"], row["reason"]) == ("skipped", HELD(why=WINDOW_CLOSED(window="manha")))


@pytest.mark.parametrize("key", ["pause.all", "pause.category.campanha", "pause.job.pulse", "campaigns.enabled"])
async def test_held_fire_is_a_skipped_row_that_names_the_operator(house: House, clock: FakeClock, key: str) -> None:
    endpoint = Endpoint()
    rule = SwitchRule(key="campaigns.enabled", hold_when=False, default=True)
    scheduler = house.scheduler(job(target=endpoint, category="campanha", holds=(rule,)))
    await tick_at(scheduler, clock, T0)
    await house.pause(key, on=key != "campaigns.enabled")
    await tick_at(scheduler, clock, T0 + MINUTE)
    (row,) = await house.rows()
    assert row["status"] == "skipped"
    assert code_of(row["reason"]) == "held"
    assert row["reason"].facts["why"].facts["setting"].facts == {"by": "test", "said": "by hand"}
    await house.pause(key, on=key == "campaigns.enabled")
    await tick_at(scheduler, clock, T0 + 2 * MINUTE)
    assert len(endpoint.runs) == 1


async def test_pause_also_holds_fires_that_wait_for_a_slot(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    scheduler = house.scheduler(*(job(f"batch_{n}", target=endpoint, category="grupos") for n in range(10)))
    await tick_at(scheduler, clock, T0)
    clock.step(MINUTE)
    await scheduler.dispatcher.tick()
    await asyncio.sleep(0)
    assert len(endpoint.runs) == 4  # the number of slots of a lane
    await house.pause("pause.category.grupos")
    await clock.advance(timedelta(seconds=1))
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(scheduler)
    assert len(endpoint.runs) == 4
    assert sorted(await house.statuses()) == ["skipped"] * 6 + ["success"] * 4


async def test_flood_of_batch_fires_takes_no_slot_of_the_live_lane(house: House, clock: FakeClock) -> None:
    slow, live = Endpoint(gate=asyncio.Event()), Endpoint()
    flood = [job(f"batch_{n}", target=slow, category="grupos") for n in range(50)]
    scheduler = house.scheduler(
        *flood, job("mensagens", target=live, category="live"), lanes=Lanes(reserved={"live": 8})
    )
    await tick_at(scheduler, clock, T0)
    clock.step(MINUTE)
    await scheduler.dispatcher.tick()  # the first batch contains only the live lane
    for _ in range(20):
        await asyncio.sleep(0)
    assert (len(live.runs), len(slow.runs)) == (1, 0)
    await scheduler.dispatcher.tick()
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(slow.runs) == 4
    assert slow.gate is not None
    slow.gate.set()
    await finish(scheduler)


async def test_run_of_a_dead_process_is_delivered_again_with_the_same_key(
    house: House, clock: FakeClock, events: EventRecorder
) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    dead, alive = house.scheduler(job(target=endpoint)), house.scheduler(job(target=endpoint))
    await tick_at(dead, clock, T0)
    await tick_at(alive, clock, T0)
    clock.step(MINUTE)
    await dead.dispatcher.tick()
    await asyncio.sleep(0)
    await watch_leases(clock, alive)
    assert len(endpoint.runs) == 2
    assert endpoint.runs[0].execution.id == endpoint.runs[1].execution.id
    assert endpoint.runs[1].execution.attempt == 2
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(dead)
    await finish(alive)
    # The first scheduler was alive after all. It writes its result too late, so the result is refused.
    assert [event.job for event in events.of(ExecutionLost)] == ["pulse"]
    (row,) = await house.rows()
    assert (row["status"], row["attempt"]) == ("success", 2)


async def test_unrepeatable_run_of_a_dead_process_is_abandoned(
    house: House, clock: FakeClock, events: EventRecorder
) -> None:
    endpoint = Endpoint(gate=asyncio.Event(), repeatable=False)
    dead, alive = house.scheduler(job(target=endpoint)), house.scheduler(job(target=endpoint))
    await tick_at(dead, clock, T0)
    await tick_at(alive, clock, T0)
    clock.step(MINUTE)
    await dead.dispatcher.tick()
    await asyncio.sleep(0)
    await watch_leases(clock, alive)
    (row,) = await house.rows()
    assert (row["status"], code_of(row["reason"])) == ("abandoned", "silent")
    (taken,) = events.of(ExecutionTakenOver)
    assert (taken.again, code_of(taken.reason)) == (False, "silent")
    # The next fire does not count as an overlap.
    await alive.dispatcher.tick()
    assert await house.statuses() == ["abandoned", "running"]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(dead)
    await finish(alive)


async def test_run_with_a_renewed_lease_is_not_taken_over(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    first, second = house.scheduler(job(target=endpoint)), house.scheduler(job(target=endpoint))
    await tick_at(first, clock, T0)
    clock.step(MINUTE)
    await first.dispatcher.tick()
    await asyncio.sleep(0)
    for _ in range(9):
        await clock.advance(LEASE / 3)
        await first.leases.tick()
        await second.reaper.tick()
    assert len(endpoint.runs) == 1
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(first)


async def test_stop_releases_runs_that_did_not_end(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    first, second = house.scheduler(job(target=endpoint)), house.scheduler(job(target=endpoint))
    await tick_at(first, clock, T0)
    await tick_at(second, clock, T0)
    clock.step(MINUTE)
    await first.dispatcher.tick()
    await asyncio.sleep(0)
    draining = asyncio.create_task(first.runner.drain(timedelta(seconds=10)))
    await clock.advance(timedelta(seconds=9))
    await draining
    assert endpoint.gate is not None
    endpoint.gate.set()
    await second.reaper.tick()
    await finish(second)
    assert await house.statuses() == ["success"]


async def test_run_by_hand_is_in_the_same_log_and_refuses_to_overlap(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    pulse = job(target=endpoint)
    scheduler, by_hand = house.scheduler(pulse), house.scheduler(pulse)
    await tick_at(scheduler, clock, T0)
    clock.step(MINUTE)
    await scheduler.dispatcher.tick()
    with pytest.raises(JobRefused, match="already running"):
        await by_hand.run_by_hand(pulse)
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(scheduler)
    await by_hand.run_by_hand(pulse, {"tipo": "manha"})
    manual = await house.rows(where="trigger = 'manual'")
    assert [(row["status"], row["scheduled_for"]) for row in manual] == [("success", None)]
    assert endpoint.runs[-1].params == {"tipo": "manha"}


async def test_run_by_hand_of_a_held_job_requires_even_if_held(house: House, clock: FakeClock) -> None:
    pulse = job()
    await house.pause("pause.job.pulse")
    with pytest.raises(JobRefused, match="held: job pulse is paused"):
        await house.scheduler(pulse).run_by_hand(pulse)
    await house.scheduler(pulse).run_by_hand(pulse, even_if_held=True)
    (row,) = await house.rows()
    assert row["status"] == "success"


def test_reason_of_a_manual_run_says_once_that_the_job_is_held() -> None:
    why = hold_reason(WINDOW_CLOSED(window="manha"))
    assert BY_HAND(why=why) == "run by hand although held: window manha is closed"


async def test_invalid_schedule_never_stops_the_others(house: House, clock: FakeClock, events: EventRecorder) -> None:
    class Poisoned(ZoneInfo):
        def utcoffset(self, instant: datetime | None, /) -> timedelta:
            raise ArithmeticError("no such offset")

    endpoint = Endpoint()
    good = [job("good", target=endpoint)]
    bad = job("bad")
    object.__setattr__(bad, "zone", Poisoned.no_cache("America/Sao_Paulo"))
    scheduler = house.scheduler(bad, *good)
    await tick_at(scheduler, clock, T0)
    await tick_at(scheduler, clock, T0 + MINUTE)
    assert [run.execution.job for run in endpoint.runs] == ["good"]
    assert {event.job for event in events.of(ScheduleFailed)} == {"bad"}


async def test_more_fires_of_one_instant_than_fit_one_transaction_all_run(
    house: House, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = JOBS_PER_TRANSACTION if LONG else 20
    monkeypatch.setattr(dispatcher, "JOBS_PER_TRANSACTION", most)
    endpoint = Endpoint()
    scheduler = house.scheduler(*(job(f"job_{n}", target=endpoint) for n in range(most + 1)))
    await tick_at(scheduler, clock, T0)
    await tick_at(scheduler, clock, T0 + MINUTE)
    assert await house.statuses() == ["success"] * (most + 1)


async def test_pruner_deletes_old_rows_and_keeps_the_newest_of_each_ending(house: House, clock: FakeClock) -> None:
    scheduler = house.scheduler(job())
    for n in range(6):
        await tick_at(scheduler, clock, T0 + n * MINUTE)
    assert await house.log.prune(before=T0 + timedelta(days=1), limit=2) == 2
    assert await house.log.prune(before=T0 + timedelta(days=1), limit=100) == 2
    assert await house.log.prune(before=T0 + timedelta(days=1), limit=100) == 0
    assert await house.statuses() == ["success"]


async def test_scheduler_that_lost_a_run_writes_nothing(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    scheduler = house.scheduler(job(target=endpoint))
    await tick_at(scheduler, clock, T0)
    clock.step(MINUTE)
    await scheduler.dispatcher.tick()
    await asyncio.sleep(0)
    clock.step(LEASE)
    another = LeaseHolder(owner="another", lease=LEASE)
    silent = await house.log.silent(another, ["pulse"], 10)
    (taken,) = await house.log.take_over(silent, another)
    assert await house.log.take_over(silent, LeaseHolder(owner="third", lease=LEASE)) == []
    assert await house.log.close(endpoint.runs[0].execution, Ending(status=Status.ERROR)) is Closing.LOST
    assert await house.log.close(taken, Ending(status=Status.SUCCESS)) is Closing.WRITTEN
    assert await house.log.close(taken, Ending(status=Status.ERROR)) is Closing.LOST
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(scheduler)


async def test_restarted_scheduler_takes_over_the_runs_of_its_predecessor_first(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    dead = house.scheduler(job(target=endpoint))
    await tick_at(dead, clock, T0)
    clock.step(MINUTE)
    await dead.dispatcher.tick()
    await asyncio.sleep(0)
    fresh = house.scheduler(job(target=endpoint))
    await watch_leases(clock, fresh)  # before the first tick of its dispatcher
    assert len(endpoint.runs) == 2
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(fresh)
    await finish(dead)
    assert await house.statuses() == ["success"]


async def test_runs_of_an_unknown_job_are_left_to_other_schedulers(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    newer = house.scheduler(job("novo", target=endpoint))
    await tick_at(newer, clock, T0)
    clock.step(MINUTE)
    await newer.dispatcher.tick()
    await asyncio.sleep(0)
    older = house.scheduler(job("velho"))
    await watch_leases(clock, older)
    assert await house.statuses() == ["running"]
    clock.step(timedelta(hours=2))
    await watch_leases(clock, older)  # now no scheduler knows the job
    (row,) = await house.rows()
    assert row["status"] == "abandoned"
    assert code_of(row["reason"]) == "unknown_job"
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(newer)


async def test_run_by_hand_is_not_repeated_by_a_scheduler(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    pulse = job(target=endpoint)
    by_hand, scheduler = house.scheduler(pulse), house.scheduler(pulse)
    by_hand.leases.tick = asyncio.Event().wait  # type: ignore[method-assign,assignment]
    running = asyncio.create_task(by_hand.run_by_hand(pulse, {"dry_run": "1"}))
    await house.events.wait_for(ExecutionStarted)
    await watch_leases(clock, scheduler)
    assert len(endpoint.runs) == 1
    (row,) = await house.rows()
    assert (row["status"], row["params"]) == ("abandoned", {"dry_run": "1"})
    assert endpoint.gate is not None
    endpoint.gate.set()
    await running


async def test_interrupted_run_by_hand_is_abandoned_and_blocks_no_later_run(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    pulse = job(target=endpoint)
    running = asyncio.create_task(house.scheduler(pulse).run_by_hand(pulse))
    await house.events.wait_for(ExecutionStarted)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (row,) = await house.rows()
    assert (row["status"], code_of(row["reason"])) == ("abandoned", "interrupted")
    assert endpoint.gate is not None
    endpoint.gate.set()
    await house.scheduler(pulse).run_by_hand(pulse)


async def test_pause_lifted_while_no_scheduler_ran_causes_no_catch_up(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint()
    hourly = job(schedule="0 * * * *", target=endpoint)
    await tick_at(house.scheduler(hourly), clock, T0 + MINUTE)
    await house.pause("pause.job.pulse")
    clock.step(90 * MINUTE)
    await house.pause("pause.job.pulse", on=False)
    await tick_at(house.scheduler(hourly), clock, T0 + 95 * MINUTE)
    assert endpoint.runs == []
    (row,) = await house.rows()
    assert code_of(row["reason"].facts["why"]) == "pause_lifted_later"


async def test_profile_chosen_while_no_scheduler_ran_applies_from_that_instant(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint()
    await tick_at(house.scheduler(registry=two_profiles(endpoint)), clock, T0)  # 09:00 in São Paulo
    clock.step(50 * MINUTE)
    await house.controls.use_profile("janelas", by="test", now=clock.now())
    await tick_at(house.scheduler(registry=two_profiles(endpoint)), clock, T0 + 61 * MINUTE)
    rows = await house.rows("job_name, status, reason, scheduled_for, started_at, id")
    campaign = [row for row in rows if row["job_name"] == "campanhas_manha"]
    assert [(row["status"], row["scheduled_for"]) for row in campaign] == [("success", T0 + 60 * MINUTE)]
    before = [row for row in rows if row["job_name"] == "grupos" and row["scheduled_for"] <= T0 + 50 * MINUTE]
    assert len(before) == 50
    assert {row["status"] for row in before} == {"missed"}


async def test_scheduler_of_an_older_version_stands_by_and_reports_it_once(
    house: House, clock: FakeClock, events: EventRecorder
) -> None:
    old = house.scheduler(job("a"), job("b"))
    await tick_at(old, clock, T0)
    await tick_at(house.scheduler(job("a")), clock, T0 + HALF)
    for n in (1, 2, 3):
        await tick_at(old, clock, T0 + n * MINUTE)
    assert len(events.of(TimetableStandsBy)) == 1
    assert await house.rows() == []


@pytest.mark.parametrize(
    "spoilt",
    [
        '{"manha": {"opens": 10, "minutes": 1, "days": "1"}}',
        '{"x": {"opens": null}}',
        "[1]",
        '{"manha": {"minutes": 1e300}}',
    ],
)
async def test_invalid_stored_window_is_ignored(house: House, clock: FakeClock, spoilt: str) -> None:
    endpoint = Endpoint()
    scheduler = house.scheduler(registry=two_profiles(endpoint))
    text = "INSERT INTO app_settings (name, setting, updated_at) VALUES ('windows', :setting, :now)"
    spoil = in_dialect(query_of("spoil", text, writes=True), house.database.dialect)
    await house.database.run(spoil, setting=AsJson(json.loads(spoilt)), now=clock.now())
    await tick_at(scheduler, clock, T0)
    await tick_at(scheduler, clock, T0 + MINUTE)
    assert len(endpoint.runs) == 1


@pytest.mark.parametrize(
    "said",
    [
        {"result": {"taxa": float("nan"), "limite": float("inf")}},
        {"result": {"nome": "a\0b"}},
        {"result": {"\0": "\ud800"}},
        {"result": {"objeto": object(), "grande": 10**400}},
        {"result": {"muito": "x" * 2_000_000}},
        {"reason": "a\0b\ud800"},
        {"reason": "r" * 900_000},
        {"items": 2**31},
        {"items": 2**70},
        {"items": 3.5},
    ],
    ids=lambda said: next(iter(said)),
)
async def test_unstorable_result_does_not_change_the_ending_of_a_run(
    house: House, clock: FakeClock, said: dict[str, object]
) -> None:
    endpoint = Endpoint(answer=Ending(status=Status.SUCCESS, **said))  # type: ignore[arg-type]
    scheduler = house.scheduler(job(target=endpoint))
    await tick_at(scheduler, clock, T0)
    await tick_at(scheduler, clock, T0 + MINUTE)
    (row,) = await house.rows()
    assert (row["status"], row["attempt"], row["items_processed"]) == ("success", 1, None)
    assert len(row["reason"] or "") <= 500


async def test_ending_is_stored_although_the_database_refuses_the_result(
    house: House, clock: FakeClock, events: EventRecorder
) -> None:
    refusal = {
        "sqlite": "CREATE TRIGGER no BEFORE UPDATE ON job_executions WHEN NEW.items_processed IS NOT NULL "
        "BEGIN SELECT RAISE(ABORT, 'no'); END;",
        "postgres": "ALTER TABLE job_executions ADD CONSTRAINT no CHECK (items_processed IS NULL);",
    }
    await house.database.script(refusal[house.database.dialect])
    answer = Ending(status=Status.SUCCESS, reason=PARTIAL(why="one of three"), items=3, result={"x": 1})
    scheduler = house.scheduler(job(target=Endpoint(answer=answer)))
    await tick_at(scheduler, clock, T0)
    await tick_at(scheduler, clock, T0 + MINUTE)
    (row,) = await house.rows()
    assert (row["status"], row["attempt"], row["items_processed"], row["result"]) == ("success", 1, None, None)
    assert row["reason"] == "partial: one of three; the database refused the rest of the answer"
    assert [type(event.error) for event in events.of(ExecutionCrashed)] == [StoreConflict]
    (ended,) = events.of(ExecutionEnded)
    assert (ended.reason, ended.items) == ("partial: one of three", 3)  # the database can store this text


async def test_ending_is_written_when_a_read_only_database_accepts_writes_again(
    house: House, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, tries = house.log.close, 0

    async def after_the_failover(execution: Execution, ending: Ending) -> Closing:
        nonlocal tries
        tries += 1
        if tries <= 3:
            raise StoreReadOnly(where="the old primary", why="it is a standby now")
        return await close(execution, ending)

    monkeypatch.setattr(house.log, "close", after_the_failover)
    endpoint = Endpoint()
    scheduler = house.scheduler(job(target=endpoint))
    await tick_at(scheduler, clock, T0)
    clock.step(MINUTE)
    await scheduler.dispatcher.tick()
    finishing = asyncio.create_task(finish(scheduler))
    await clock.advance(timedelta(seconds=10))
    await finishing
    assert await house.statuses() == ["success"]
    assert (tries, len(endpoint.runs)) == (4, 1)


async def test_job_that_raises_system_exit_fails_and_the_others_continue(house: House, clock: FakeClock) -> None:
    def leaves() -> None:
        sys.exit(3)

    async def leaves_too() -> None:
        raise asyncio.CancelledError

    targets = {"a": CallTarget(leaves, clock), "b": CallTarget(leaves_too, clock), "c": Endpoint()}
    scheduler = house.scheduler(*(job(name, target=target) for name, target in targets.items()))
    await tick_at(scheduler, clock, T0)
    await tick_at(scheduler, clock, T0 + MINUTE)
    rows = {row["job_name"]: (row["status"], row["error"]) for row in await house.rows()}
    assert rows == {
        "a": ("error", "SystemExit in the job; the log has the traceback"),
        "b": ("error", "CancelledError in the job; the log has the traceback"),
        "c": ("success", None),
    }


async def test_deadline_error_inside_a_job_is_recorded_by_its_class_alone(house: House, clock: FakeClock) -> None:
    async def sends() -> None:
        raise DeadlineExceeded(what="envio a 5511987654321 Maria", deadline="12:00")

    scheduler = house.scheduler(job(target=CallTarget(sends, clock)))
    await tick_at(scheduler, clock, T0)
    await tick_at(scheduler, clock, T0 + MINUTE)
    (row,) = await house.rows()
    assert (row["status"], row["error"]) == ("error", "DeadlineExceeded in the job; the log has the traceback")


async def test_run_during_which_the_clock_jumps_for_years_is_recorded(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    scheduler = house.scheduler(job(target=endpoint))
    await tick_at(scheduler, clock, T0)
    clock.step(MINUTE)
    await scheduler.dispatcher.tick()
    clock.step(timedelta(days=3650))
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(scheduler)
    assert await house.statuses() == ["success"]


async def test_scheduler_stops_a_run_as_soon_as_it_knows_that_it_lost_it(house: House, clock: FakeClock) -> None:
    """A process that was suspended for longer than its lease must not continue its run in parallel with the run of the
    next fire.
    """
    endpoint = Endpoint(gate=asyncio.Event(), repeatable=False)
    thawed, other = house.scheduler(job(target=endpoint)), house.scheduler(job(target=endpoint))
    await tick_at(thawed, clock, T0)
    await tick_at(other, clock, T0)
    clock.step(MINUTE)
    await thawed.dispatcher.tick()
    await asyncio.sleep(0)
    await watch_leases(clock, other)
    await thawed.leases.tick()
    await finish(thawed)  # the run ends although the endpoint never answers
    assert await house.statuses() == ["abandoned"]


async def test_run_is_delivered_again_however_many_processes_die(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    first = house.scheduler(job(target=endpoint))
    await tick_at(first, clock, T0)
    clock.step(MINUTE)
    await first.dispatcher.tick()
    await asyncio.sleep(0)
    others = [house.scheduler(job(target=endpoint)) for _ in range(5)]
    for other in others:
        await watch_leases(clock, other)
    assert await house.statuses() == ["running"]
    assert len(endpoint.runs) == 6
    assert endpoint.gate is not None
    endpoint.gate.set()
    for each in (first, *others):
        await finish(each)
    assert await house.statuses() == ["success"]
