"""Crashes, attempts and the reason why an item died are recorded correctly, on both databases."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from batuta.kernel.errors import StoreTimeout, StoreUnavailable
from batuta.kernel.events import ItemLost
from batuta.kernel.leases import LeaseHolder, Renewed
from batuta.queue.item import Lease
from batuta.queue.outcome import Done, Failed, Snooze, after_seconds
from batuta.queue.store import ClaimResult
from batuta.queue.worker.isolation import FIRST_WAIT, Isolation
from batuta.queue.worker.rescuer import Rescuer
from batuta.queue.worker.worker import Worker
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.testing.clock import settle
from tests.engine.queue.queue_bench import LEASE, SECOND, Bench, fine

MINUTE = timedelta(minutes=1)


class Gate:
    """Handler that records the running items and blocks them until the test opens the gate."""

    def __init__(self) -> None:
        self.going: list[str] = []
        self.ended: list[str] = []
        self.go_on = asyncio.Event()

    async def __call__(self, lease: Lease) -> object:
        self.going.append(lease.id)
        try:
            await self.go_on.wait()
        finally:
            self.going.remove(lease.id)
            self.ended.append(lease.id)
        return Done()


async def age(database: Database, id: str, **columns: Any) -> None:
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    query = in_dialect(query_of("age", f"UPDATE tasks SET {sets} WHERE id = :id", writes=True), database.dialect)
    await database.run(query, id=id, **columns)


# Crashes


async def test_orderly_end_of_an_attempt_resets_earlier_crashes(bench: Bench) -> None:
    outcomes = [Snooze(SECOND, "later"), Failed("again"), Snooze(SECOND, "later"), Failed("again"), Done()]

    async def next_outcome(lease: Lease) -> object:
        return outcomes.pop(0)

    bench.handles("agenda", next_outcome, retry=after_seconds([1] * 10))
    (id,) = await bench.put("agenda")
    worker = bench.worker()
    while outcomes:
        await bench.crash(id, times=1)  # another process dies before each run
        await bench.works(worker)
        assert (await bench.row(id))["crashes"] == 0
        bench.clock.step(2 * SECOND)
    assert (await bench.row(id))["status"] == "complete"


async def test_item_put_off_before_its_start_keeps_its_crashes(bench: Bench) -> None:
    gate = Gate()
    bench.handles("suspeita", gate)
    ids = await bench.put("suspeita", "suspeita")
    await bench.crash(ids[0], times=2)
    worker = bench.worker()
    await worker.tick()
    await worker.tick()
    await settle()
    assert len(gate.going) == 1
    (other,) = [id for id in ids if id not in gate.going]
    assert ((await bench.row(other))["crashes"], (await bench.row(other))["attempts"]) == (2, 2)
    gate.go_on.set()
    await settle()


class BrokenPolicy:
    """An application's retry policy that raises an exception."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def wait_after(self, attempt: int, chance: Callable[[], float]) -> Any:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "named"), [(ZeroDivisionError(), "ZeroDivisionError"), (SystemExit(1), "SystemExit"), (60, "TypeError")]
)
async def test_failing_retry_policy_does_not_count_as_a_crash(bench: Bench, answer: object, named: str) -> None:
    async def fail(lease: Lease) -> object:
        return Failed("no answer")

    bench.handles("agenda", fail, retry=BrokenPolicy(answer))
    (id,) = await bench.put("agenda")
    await bench.works(bench.worker())
    row = await bench.row(id)
    assert (row["status"], row["attempts"], row["crashes"]) == ("failed", 1, 0)
    assert row["error"] == f"{named} in its retry policy, after: no answer"


async def test_claim_whose_answer_was_lost_counts_neither_crash_nor_attempt(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    async def note(lease: Lease) -> object:
        ran.append(lease.attempt)
        return Done()

    bench.handles("conta", note)
    ids = await bench.put(*["conta"] * 5)
    worker = bench.worker()
    settle_and_claim = bench.store.settle_and_claim

    async def lose_the_answer(*arguments: Any, **named: Any) -> Any:
        await settle_and_claim(*arguments, **named)
        raise StoreUnavailable(where="-", why="the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "settle_and_claim", lose_the_answer)
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await worker.tick()
            assert {(await bench.row(id))["status"] for id in ids} == {"in_progress"}
            await bench.clock.advance(SECOND)
    rescuer = Rescuer("default", bench.store, LEASE, bench.clock, bench.events)
    for _ in range(10):
        await bench.works(worker)
        await rescuer.tick()
        await bench.clock.advance(10)
    rows = [await bench.row(id) for id in ids]
    assert {(row["status"], row["crashes"], row["attempts"]) for row in rows} == {("complete", 0, 1)}
    assert ran == [1] * 5


async def test_claim_committed_after_its_error_is_released(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.handles("conta", fine)
    (id,) = await bench.put("conta")
    worker = bench.worker()
    settle_and_claim = bench.store.settle_and_claim

    async def fail(*arguments: Any, **named: Any) -> Any:
        raise StoreUnavailable(where="-", why="the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "settle_and_claim", fail)
        with pytest.raises(StoreUnavailable):
            await worker.tick()
    await worker._settler.release_strays(worker.list_leases)
    assert len((await settle_and_claim([], worker._lease_holder, 5)).leases) == 1  # the server commits this claim late
    await bench.clock.advance(11)
    await bench.works(worker)
    row = await bench.row(id)
    assert (row["status"], row["crashes"], row["attempts"]) == ("complete", 0, 1)


@pytest.mark.parametrize("error", [StoreUnavailable, StoreTimeout])
async def test_claim_whose_reply_is_lost_beside_written_settlements_is_released(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: type[StoreUnavailable]
) -> None:
    bench.handles("conta", fine)
    (first,) = await bench.put("conta")
    worker = bench.worker()
    await worker.tick()
    await settle()
    (second,) = await bench.put("conta")
    settle_and_claim = bench.store.settle_and_claim

    async def lose_the_claim(*arguments: Any, **named: Any) -> ClaimResult:
        found = await settle_and_claim(*arguments, **named)
        return replace(found, leases=(), claim_error=error(where="-", why="the connection was lost"))

    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "settle_and_claim", lose_the_claim)
        with pytest.raises(error):
            await worker.tick()
    assert (await bench.row(first))["status"] == "complete"
    assert not worker.list_leases()
    assert (await bench.row(second))["status"] == "in_progress"
    await bench.works(worker)
    row = await bench.row(second)
    assert (row["status"], row["crashes"], row["attempts"]) == ("complete", 0, 1)
    assert not bench.events.of(ItemLost)


# Items with one crash left (suspects)


async def two_workers(bench: Bench) -> tuple[Worker, Worker]:
    isolation = Isolation(bench.clock)
    return bench.worker(isolation=isolation), bench.worker("outra", isolation=isolation)


async def ticks(*workers: Worker, times: int = 3) -> None:
    for _ in range(times):
        for worker in workers:
            await worker.tick()
        await settle()


async def test_suspect_waits_for_running_items_of_all_queues_and_runs_alone(bench: Bench) -> None:
    suspects, neighbours = Gate(), Gate()
    bench.handles("suspeita", suspects)
    bench.handles("vizinha", neighbours)
    (suspect,) = await bench.put("suspeita")
    await bench.crash(suspect, times=2)
    (fresh,) = await bench.put("vizinha")
    (elsewhere,) = await bench.put("vizinha", queue="outra")
    first, second = await two_workers(bench)
    await second.tick()
    await ticks(first, second)
    assert sorted(neighbours.going) == sorted([fresh, elsewhere])
    assert suspects.going == []
    late = await bench.put("vizinha")
    late += await bench.put("vizinha", queue="outra")
    await ticks(first, second)
    assert not set(late) & set(neighbours.going)  # no claim while the suspect waits
    neighbours.go_on.set()
    await settle()
    await ticks(first, second)
    assert suspects.going == [suspect]
    assert sorted(neighbours.ended) == sorted([fresh, elsewhere])
    await ticks(first, second)
    assert {(await bench.row(id))["status"] for id in late} == {"queued"}  # no other item runs next to the suspect
    suspects.go_on.set()
    await settle()
    await ticks(first, second)
    await ticks(first, second)
    assert {(await bench.row(id))["status"] for id in (suspect, *late)} == {"complete"}


async def test_suspect_that_waits_too_long_is_put_off_and_waits_longer_next_time(bench: Bench) -> None:
    suspects, neighbours = Gate(), Gate()
    bench.handles("suspeita", suspects)
    bench.handles("longa", neighbours, timeout=timedelta(hours=1))
    (suspect,) = await bench.put("suspeita")
    await bench.crash(suspect, times=2)
    (busy,) = await bench.put("longa", queue="outra")
    first, second = await two_workers(bench)
    await ticks(second)
    await ticks(first, second)
    await bench.clock.advance(FIRST_WAIT)
    await ticks(first, second)
    row = await bench.row(suspect)
    assert (row["status"], row["attempts"], row["crashes"]) == ("queued", 2, 2)
    assert row["available_at"] == bench.clock.now() + FIRST_WAIT
    (later,) = await bench.put("longa", queue="outra")
    await ticks(first, second)
    assert neighbours.going == [busy, later]  # the process claims again
    await bench.clock.advance(FIRST_WAIT)
    await ticks(first, second)
    await bench.clock.advance(FIRST_WAIT * 2 - SECOND)
    await ticks(first, second)
    assert (await bench.row(suspect))["status"] == "in_progress"  # the wait doubles
    neighbours.go_on.set()
    suspects.go_on.set()
    await settle()
    await ticks(first, second)
    await ticks(first, second)
    assert (await bench.row(suspect))["status"] == "complete"


@pytest.mark.parametrize("is_proven", [True, False])
async def test_waiting_suspect_counts_no_crash_when_another_item_kills_the_process(
    bench: Bench, is_proven: bool
) -> None:
    suspects, neighbours = Gate(), Gate()
    bench.handles("suspeita", suspects)
    bench.handles("mortal", neighbours)
    (suspect,) = await bench.put("suspeita")
    await bench.crash(suspect, times=2)
    (killer,) = await bench.put("mortal", queue="outra")
    first, second = await two_workers(bench)
    await ticks(second)
    await ticks(first, second)
    assert (neighbours.going, suspects.going) == ([killer], [])
    if is_proven:
        await bench.store.rescue_owned(await bench.store.owners(), 100)
    else:
        bench.clock.step(LEASE + SECOND)
        await bench.store.rescue(100)
    waited, ran = await bench.row(suspect), await bench.row(killer)
    assert (waited["status"], waited["attempts"], waited["crashes"]) == ("queued", 2, 2)
    assert (ran["status"], ran["crashes"]) == ("queued", 1)
    neighbours.go_on.set()
    await settle()


@pytest.mark.parametrize("waits_first", [True, False])
async def test_suspect_that_runs_when_its_process_dies_is_dead(bench: Bench, waits_first: bool) -> None:
    suspects, neighbours = Gate(), Gate()
    bench.handles("suspeita", suspects)
    bench.handles("vizinha", neighbours)
    (suspect,) = await bench.put("suspeita")
    await bench.crash(suspect, times=2)
    if waits_first:
        await bench.put("vizinha", queue="outra")
    first, second = await two_workers(bench)
    await ticks(second)
    await ticks(first, second)
    neighbours.go_on.set()
    await settle()
    await ticks(first, second)
    assert suspects.going == [suspect]
    await bench.store.rescue_owned(await bench.store.owners(), 100)
    row = await bench.row(suspect)
    assert (row["status"], row["error"]) == ("failed", "its worker died 3 times while running it")
    suspects.go_on.set()
    await settle()


async def test_suspect_whose_row_is_locked_is_put_off_at_last(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    suspects = Gate()
    bench.handles("suspeita", suspects)
    (suspect,) = await bench.put("suspeita")
    await bench.crash(suspect, times=2)
    worker = bench.worker()

    async def skip(lease: Lease, error: str | None) -> bool:
        return False

    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "note", skip)
        await ticks(worker)
        assert (suspects.going, (await bench.row(suspect))["status"]) == ([], "in_progress")
        await bench.clock.advance(FIRST_WAIT)
        await ticks(worker, worker)
    row = await bench.row(suspect)
    assert (row["status"], row["attempts"], row["crashes"]) == ("queued", 2, 2)


async def test_stop_releases_a_waiting_suspect(bench: Bench) -> None:
    suspects, neighbours = Gate(), Gate()
    bench.handles("suspeita", suspects)
    bench.handles("vizinha", neighbours)
    (suspect,) = await bench.put("suspeita")
    await bench.crash(suspect, times=2)
    await bench.put("vizinha", queue="outra")
    first, second = await two_workers(bench)
    await ticks(second)
    await ticks(first)
    await first.drain(10 * SECOND)
    row = await bench.row(suspect)
    assert (row["status"], row["attempts"], row["crashes"], row["lease_until"]) == ("queued", 2, 2, None)
    neighbours.go_on.set()
    await settle()


async def test_scheduled_run_runs_a_suspect_after_the_others(bench: Bench) -> None:
    order: list[str] = []

    async def note(lease: Lease) -> object:
        order.append(lease.row["name"])
        return Done()

    bench.handles("suspeita", note)
    bench.handles("vizinha", note)
    (suspect,) = await bench.put("suspeita")
    await bench.crash(suspect, times=2)
    await bench.put("vizinha", "vizinha")
    assert await bench.worker().once(10) == 3
    assert order == ["vizinha", "vizinha", "suspeita"]


# Tasks unknown to this version


async def bounces(bench: Bench, id: str) -> list[timedelta]:
    """Run newly started workers, each of which hands the item back, until the item is no longer queued. Return the wait
    before each attempt.
    """
    waits: list[timedelta] = []
    for _ in range(100):
        await bench.works(bench.worker())
        row = await bench.row(id)
        if row["status"] != "queued":
            break
        waits.append(row["available_at"] - bench.clock.now())
        bench.clock.step(max(waits[-1], SECOND))
    return waits


async def test_bounces_off_workers_without_the_task_cost_no_attempt(bench: Bench) -> None:
    (id,) = await bench.put("nova")
    for _ in range(3):
        await bench.works(bench.worker())
        row = await bench.row(id)
        assert (row["status"], row["attempts"]) == ("queued", 0)
        bench.clock.step(row["available_at"] - bench.clock.now())
    runs: list[int] = []

    async def fail(lease: Lease) -> object:
        runs.append(lease.attempt)
        return Failed("not yet")

    bench.handles("nova", fail, retry=after_seconds([60, 120]))
    for _ in range(10):
        await bench.works(bench.worker())
        bench.clock.step(MINUTE)
    assert runs == [1, 2, 3]
    assert (await bench.row(id))["status"] == "failed"


async def test_task_late_in_its_retries_survives_a_worker_without_the_task(bench: Bench) -> None:
    (id,) = await bench.put("nova")
    long_ago = bench.clock.now() - timedelta(days=3)
    await age(bench.database, id, attempts=6, created_at=long_ago, error="the sixth failure")
    await bench.works(bench.worker())
    row = await bench.row(id)
    assert (row["status"], row["attempts"]) == ("queued", 6)
    bench.handles("nova", fine)
    bench.clock.step(15 * SECOND)
    await bench.works(bench.worker())
    assert (await bench.row(id))["status"] == "complete"


async def test_unknown_task_waits_longer_each_time_and_is_dead_after_20_minutes(
    bench: Bench,
) -> None:
    (id,) = await bench.put("de_amanha")
    began = bench.clock.now()
    waits = await bounces(bench, id)
    row = await bench.row(id)
    assert row["status"] == "failed"
    assert row["error"].startswith("no worker has known this task since ")
    assert (row["attempts"], row["crashes"]) == (1, 0)
    assert timedelta(minutes=20) <= bench.clock.now() - began <= timedelta(minutes=26)
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (timedelta(seconds=15), timedelta(minutes=5))


async def test_unknown_suspect_does_not_end_the_isolation_of_another(bench: Bench) -> None:
    suspects, neighbours = Gate(), Gate()
    bench.handles("suspeita", suspects)
    bench.handles("vizinha", neighbours)
    ids = await bench.put("suspeita", "de_amanha")
    for _ in range(2):
        await bench.crash(ids[0], times=1)
    worker = bench.worker()
    async with asyncio.timeout(20):
        while not suspects.going:
            await ticks(worker)
            await bench.row(ids[1])  # meanwhile the worker queries how long it has not known the other task
    assert suspects.going == ids[:1]
    await bench.put("vizinha")
    await ticks(worker, worker)
    assert neighbours.going == []
    suspects.go_on.set()
    await settle()


async def test_unknown_suspect_is_dead_after_twenty_minutes(bench: Bench) -> None:
    (id,) = await bench.put("de_amanha")
    await bench.crash(id, times=2)
    await bounces(bench, id)
    row = await bench.row(id)
    assert (row["status"], row["crashes"]) == ("failed", 2)
    assert row["error"].startswith("no worker has known this task since ")


# Rescuers and live workers


async def rescue_for(bench: Bench, rescuer: Rescuer, leases: float) -> None:
    for _ in range(int(leases * 12)):
        await bench.clock.advance(LEASE / 12)
        await rescuer.tick()


async def test_rescuer_started_after_a_clock_step_takes_nothing_from_live_workers(
    bench: Bench,
) -> None:
    gate = Gate()
    bench.handles("longa", gate, timeout=timedelta(days=1))
    (id,) = await bench.put("longa")
    worker = bench.worker()
    await ticks(worker)
    bench.clock.step(timedelta(hours=1))
    rescuer = Rescuer("default", bench.store, LEASE, bench.clock, bench.events)
    await rescuer.tick()
    for _ in range(9):  # in each interval of the lease keeper, the rescuer ticks before the lease is renewed
        for _ in range(4):
            await bench.clock.advance(LEASE / 12)
            await rescuer.tick()
        await bench.keeper.tick()
    row = await bench.row(id)
    assert (row["status"], row["crashes"]) == ("in_progress", 0)
    await rescue_for(bench, rescuer, 1.5)  # from now on the lease keeper renews nothing
    assert (await bench.row(id))["crashes"] == 1
    gate.go_on.set()
    await settle()


async def test_items_of_a_dead_worker_are_released_soon_after_their_lease(bench: Bench) -> None:
    bench.handles("conta", fine)
    (id,) = await bench.put("conta")
    assert len((await bench.store.settle_and_claim([], bench.worker()._lease_holder, 1)).leases) == 1
    rescuer = Rescuer("default", bench.store, LEASE, bench.clock, bench.events)
    await rescue_for(bench, rescuer, 0.95)
    assert (await bench.row(id))["crashes"] == 0
    await rescue_for(bench, rescuer, 0.2)
    assert ((await bench.row(id))["status"], (await bench.row(id))["crashes"]) == ("queued", 1)


async def test_rescuer_measures_writes_only_while_a_lease_may_expire(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured, plain = list[timedelta](), bench.store.renew

    async def recorded(leases: Collection[Lease], lease_holder: LeaseHolder) -> Renewed:
        measured.append(lease_holder.lease)
        return await plain(leases, lease_holder)

    monkeypatch.setattr(bench.store, "renew", recorded)
    bench.handles("conta", fine)
    await bench.put("conta")
    rescuer = Rescuer("default", bench.store, LEASE, bench.clock, bench.events)
    await rescuer.tick()
    assert measured == []
    assert len((await bench.store.settle_and_claim([], bench.worker()._lease_holder, 1)).leases) == 1
    await bench.clock.advance(LEASE * 0.9)
    await rescuer.tick()
    assert measured == [LEASE]


async def test_slow_write_makes_the_rescuer_observe_a_lease_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = bench.store.renew

    async def slow(leases: Collection[Lease], lease_holder: LeaseHolder) -> Renewed:
        await bench.clock.advance(lease_holder.lease / 2)
        return await plain(leases, lease_holder)

    bench.handles("conta", fine)
    (id,) = await bench.put("conta")
    assert len((await bench.store.settle_and_claim([], bench.worker()._lease_holder, 1)).leases) == 1
    rescuer = Rescuer("default", bench.store, LEASE, bench.clock, bench.events)
    monkeypatch.setattr(bench.store, "renew", slow)
    await rescue_for(bench, rescuer, 3)
    assert (await bench.row(id))["crashes"] == 0


async def test_lease_renewed_between_two_looks_is_not_released(bench: Bench) -> None:
    gate = Gate()
    bench.handles("longa", gate, timeout=timedelta(days=1))
    (id,) = await bench.put("longa")
    worker = bench.worker()
    await ticks(worker)
    rescuer = Rescuer("default", bench.store, LEASE, bench.clock, bench.events)
    await bench.clock.advance(LEASE * 0.95)
    await rescuer.tick()
    await bench.keeper.tick()
    await rescue_for(bench, rescuer, 0.9)
    assert (await bench.row(id))["crashes"] == 0
    gate.go_on.set()
    await settle()
