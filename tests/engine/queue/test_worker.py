"""A worker and a rescuer on both databases with a fake clock. No item blocks them, and no item stays stuck."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import ItemCrashed, ItemLost
from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import Done, Failed, Settlement, Snooze, after_seconds
from batuta.queue.store import ClaimResult
from batuta.queue.worker.rescuer import Rescuer
from batuta.queue.worker.worker import WorkerPolicy
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.supervise.loop import Wakeup
from batuta.testing.clock import settle
from tests.engine.queue.queue_bench import LEASE, SECOND, Bench, fine, for_ever, until


async def test_paused_queue_is_polled_at_the_usual_interval(bench: Bench) -> None:
    bench.handles("fine", fine)
    (id,) = await bench.put("fine")
    await bench.switches.set("pause.queue.default", True, by="test", reason="-", now=bench.clock.now())
    worker = bench.worker()
    assert until(await worker.tick(), bench.clock) == WorkerPolicy().look_every
    await bench.switches.set("pause.queue.default", False, by="test", reason="-", now=bench.clock.now())
    await bench.works(worker)
    assert (await bench.row(id))["status"] == "complete"


async def test_distant_item_does_not_lengthen_the_polling_interval(bench: Bench) -> None:
    worker = bench.worker()
    await bench.put("fine", available_at=bench.clock.now() + timedelta(days=3))
    assert until(await worker.tick(), bench.clock) == WorkerPolicy().look_every
    await bench.put("fine", available_at=bench.clock.now() + SECOND)
    assert until(await worker.tick(), bench.clock) == SECOND


async def test_poll_of_an_empty_queue_is_one_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    claims: list[int] = []
    claim = bench.store.settle_and_claim

    async def counted(*arguments: Any, **options: Any) -> Any:
        claims.append(1)
        return await claim(*arguments, **options)

    monkeypatch.setattr(bench.store, "settle_and_claim", counted)
    bench.handles("fine", fine)
    worker = bench.worker()
    await worker.tick()
    assert len(claims) == 1
    for _ in range(3):
        await bench.clock.advance(WorkerPolicy().look_every)
        assert until(await worker.tick(), bench.clock) == WorkerPolicy().look_every
    assert len(claims) == 1
    (id,) = await bench.put("fine")
    await bench.clock.advance(WorkerPolicy().look_every)  # the wake-up was lost
    await bench.works(worker)
    assert (await bench.row(id))["status"] == "complete"
    before = len(claims)
    await worker.tick()  # a wake-up before the next poll: claim at once
    assert len(claims) == before + 1


async def test_item_snoozed_until_now_is_claimed_at_once(bench: Bench) -> None:
    calls: list[int] = []

    async def twice(lease: Lease) -> object:
        calls.append(lease.attempt)
        return Snooze(bench.clock.now(), "not yet") if len(calls) == 1 else Done()

    bench.handles("twice", twice)
    (id,) = await bench.put("twice")
    await bench.works(bench.worker())
    assert (await bench.row(id))["status"] == "complete"
    assert calls == [1, 1]


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), ValueError("x")])
async def test_any_exception_of_a_handler_fails_its_item(bench: Bench, raised: BaseException) -> None:
    async def raises(lease: Lease) -> object:
        raise raised

    bench.handles("raises", raises)
    bench.handles("fine", fine)
    first, second = await bench.put("raises", "fine")
    worker = bench.worker()
    await bench.works(worker)
    row = await bench.row(first)
    error = f"{type(raised).__name__} in the handler; the log has the traceback"
    assert (row["status"], row["error"], row["lease_until"]) == ("queued", error, None)
    assert (await bench.row(second))["status"] == "complete"
    assert not worker._running
    assert len(bench.events.of(ItemCrashed)) == 1


ANSWERS: list[Any] = [
    Done(object()),  # type: ignore[arg-type]
    Done("a\x00b"),
    Done("half \ud800"),
    Done(float("nan")),
    Done({"a": object()}),  # type: ignore[dict-item]
    Failed(7),  # type: ignore[arg-type]
    "no outcome at all",
]


@pytest.mark.parametrize("said", ANSWERS, ids=["object", "nul", "surrogate", "nan", "inside", "number", "text"])
async def test_result_that_cannot_be_written_fails_only_its_own_item(bench: Bench, said: Any) -> None:
    async def answers(lease: Lease) -> object:
        return said

    bench.handles("odd", answers, retry=after_seconds([]))
    bench.handles("fine", fine)
    first, second = await bench.put("odd", "fine")
    await bench.works(bench.worker())
    assert (await bench.row(first))["status"] == "failed"
    assert (await bench.row(second))["status"] == "complete"


async def test_settlement_refused_by_the_table_fails_only_its_own_item(bench: Bench) -> None:
    def refused(*_: object) -> Settlement:
        return Settlement(state=ItemState.DONE, stage="no such state")

    bench.handles("odd", fine, settle=refused)
    bench.handles("fine", fine)
    first, *others = await bench.put("odd", "fine", "fine")
    await bench.works(bench.worker())
    row = await bench.row(first)
    assert (row["status"], row["error"]) == (
        "failed",
        "StoreConflict while the outcome was written; the log has the traceback",
    )
    assert [(await bench.row(id))["status"] for id in others] == ["complete", "complete"]


async def test_handler_that_swallows_its_cancellation_blocks_no_other(bench: Bench) -> None:
    cancelled, leave = asyncio.Event(), asyncio.Event()

    async def stubborn(lease: Lease) -> object:
        while not leave.is_set():
            try:
                await leave.wait()
            except asyncio.CancelledError:
                cancelled.set()
        return Done("too late")

    bench.handles("stubborn", stubborn)
    bench.handles("fine", fine)
    (first,) = await bench.put("stubborn")
    worker = bench.worker()
    await worker.tick()
    await settle()
    bench.clock.step(LEASE + SECOND)
    await bench.store.rescue(10)  # the worker has lost the item
    await bench.store.cancel(first, "-")
    (second,) = await bench.put("fine")
    await bench.keeper.tick()  # the renewal finds that the lease is lost
    await bench.works(worker)
    assert cancelled.is_set()
    assert (await bench.row(second))["status"] == "complete"
    leave.set()
    await settle()
    await bench.works(worker)
    assert (await bench.row(first))["status"] == "cancelled"
    assert [event.item for event in bench.events.of(ItemLost)] == [first]


async def test_item_lost_and_claimed_again_by_the_same_worker_is_renewed(bench: Bench) -> None:
    begun: list[int] = []

    async def slow(lease: Lease) -> object:
        begun.append(lease.fence)
        return await asyncio.Event().wait()

    bench.handles("slow", slow)
    (id,) = await bench.put("slow")
    worker = bench.worker()
    await worker.tick()
    await worker.tick()
    await settle()
    bench.clock.step(LEASE + SECOND)
    await bench.store.rescue(10)
    await worker.tick()  # the worker claims the item again before it notices the loss
    await settle()
    assert len(begun) == 2
    await bench.clock.advance(20)
    await bench.keeper.tick()
    assert (await bench.row(id))["lease_until"] == bench.clock.now() + LEASE
    assert list(worker._running) == [id]
    for each in worker._running.values():
        each.task.cancel()


async def test_cancellation_request_ends_the_handler_and_the_item(bench: Bench) -> None:
    bench.handles("slow", for_ever)
    (id,) = await bench.put("slow")
    worker = bench.worker()
    await worker.tick()
    await settle()
    await bench.store.cancel(id, "-")
    await bench.keeper.tick()
    await bench.works(worker)
    row = await bench.row(id)
    assert (row["status"], row["lease_until"]) == ("cancelled", None)


async def test_stop_does_not_release_items_that_ended(bench: Bench) -> None:
    async def careful(lease: Lease) -> object:
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Done("just in time")

    bench.handles("careful", careful)
    bench.handles("slow", for_ever)
    first, second = await bench.put("careful", "slow")
    worker = bench.worker()
    await worker.tick()
    await settle()
    draining = asyncio.create_task(worker.drain(timedelta(seconds=10)))
    await bench.clock.advance(10)
    await draining
    row = await bench.row(first)
    assert (row["status"], row["result"]) == ("complete", "just in time")
    row = await bench.row(second)
    assert (row["status"], row["attempts"], row["error"]) == ("queued", 0, "its worker stopped")


async def test_end_of_a_shutdown_phase_does_not_interrupt_a_settlement(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.handles("fine", fine)
    (id,) = await bench.put("fine")
    worker = bench.worker()
    await worker.tick()
    await settle()
    write, has_answered, turns = bench.store.settle_and_claim, asyncio.Event(), 0

    async def write_slowly(*arguments: Any, **named: Any) -> ClaimResult:
        nonlocal turns
        turns += 1
        await has_answered.wait()
        return await write(*arguments, **named)

    monkeypatch.setattr(bench.store, "settle_and_claim", write_slowly)
    draining = asyncio.create_task(worker.drain(timedelta(seconds=10)))
    await bench.clock.advance(9.8)  # the phases that finish and cancel have ended
    has_answered.set()
    await draining
    assert (turns, (await bench.row(id))["status"]) == (1, "complete")


async def test_drain_that_is_cancelled_leaves_no_settlement_behind(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.handles("fine", fine)
    await bench.put("fine")
    worker = bench.worker()
    await worker.tick()
    await settle()
    ended = asyncio.Event()

    async def hang(*arguments: Any, **named: Any) -> ClaimResult:
        try:
            return await asyncio.Event().wait()  # type: ignore[return-value]
        finally:
            ended.set()

    monkeypatch.setattr(bench.store, "settle_and_claim", hang)
    draining = asyncio.create_task(worker.drain(timedelta(seconds=10)))
    await bench.clock.advance(9.8)
    draining.cancel()
    await asyncio.wait([draining])
    assert ended.is_set()


async def test_suspects_with_one_crash_left_run_one_at_a_time(bench: Bench) -> None:
    going: list[str] = []
    go_on = asyncio.Event()

    async def suspect(lease: Lease) -> object:
        going.append(lease.id)
        await go_on.wait()
        return Done()

    bench.handles("suspect", suspect)
    ids = await bench.put("suspect", "suspect", "suspect")
    await bench.crash(ids[0], times=2)
    worker = bench.worker()
    await worker.tick()
    await worker.tick()
    await settle()
    assert len(going) == 1
    rows = [await bench.row(id) for id in ids if id not in going]
    assert [(row["status"], row["attempts"], row["lease_until"]) for row in rows] == [("queued", 2, None)] * 2
    go_on.set()
    for _ in range(3):
        await bench.clock.advance(SECOND)
        await bench.works(worker)
    assert sorted(going) == sorted(ids)
    assert {(await bench.row(id))["status"] for id in ids} == {"complete"}


async def test_second_suspect_does_not_start_beside_the_first(bench: Bench, database: Database) -> None:
    """A suspect is an item that two crashes interrupted. Two suspects never run at the same time, even if the second
    one is claimed later.
    """
    going: list[str] = []
    go_on = asyncio.Event()

    async def suspect(lease: Lease) -> object:
        going.append(lease.id)
        await go_on.wait()
        return Done()

    bench.handles("suspect", suspect)
    first, second = await bench.put("suspect", "suspect")
    await bench.crash(first, times=2)
    later = in_dialect(
        query_of("later", "UPDATE tasks SET available_at = :at WHERE id = :id", writes=True), database.dialect
    )
    await database.run(later, at=bench.clock.now() + SECOND, id=second)
    worker = bench.worker()
    await worker.tick()
    await settle()
    await bench.clock.advance(SECOND)
    await worker.tick()
    await settle()
    assert going == [first]
    row = await bench.row(second)
    assert (row["status"], row["attempts"], row["lease_until"]) == ("queued", 2, None)
    go_on.set()
    await settle()
    await bench.clock.advance(SECOND)
    await bench.works(worker)
    assert going == [first, second]


async def test_worker_settles_an_ended_item_after_failed_ticks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    async def once(lease: Lease) -> object:
        ran.append(lease.id)
        return Done()

    bench.handles("once", once)
    (id,) = await bench.put("once")
    worker = bench.worker()
    await worker.tick()
    await settle()

    async def away(*arguments: Any, **named: Any) -> Any:
        raise StoreUnavailable(where="-", why="it restarts")

    monkeypatch.setattr(bench.store, "settle_and_claim", away)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await worker.tick()
    monkeypatch.undo()
    await bench.works(worker)
    row = await bench.row(id)
    assert (row["status"], row["lease_until"], ran) == ("complete", None, [id])


async def test_rescuer_that_slept_lets_live_workers_renew_first(bench: Bench) -> None:
    bench.handles("slow", for_ever)
    (id,) = await bench.put("slow")
    worker, wakeup = bench.worker(), Wakeup()
    rescuer = Rescuer("default", bench.store, LEASE, bench.clock, bench.events, wakeup.set)
    await worker.tick()
    await rescuer.tick()
    bench.clock.step(timedelta(hours=1))  # the machine slept, or its clock was set
    await rescuer.tick()
    assert (await bench.row(id))["crashes"] == 0
    await bench.clock.advance(10)
    await bench.keeper.tick()
    for _ in range(5):
        await bench.clock.advance(10)
        await bench.keeper.tick()
        await rescuer.tick()
    assert (await bench.row(id))["crashes"] == 0
    for each in worker._running.values():
        each.task.cancel()
    for _ in range(5):
        await bench.clock.advance(10)
        await rescuer.tick()
    assert (await bench.row(id))["crashes"] == 1
    await asyncio.wait_for(wakeup.wait(), 30)


async def test_stop_between_claim_and_start_leaves_no_item_claimed(bench: Bench) -> None:
    bench.handles("fine", fine)
    ids = await bench.put(*["fine"] * 4)
    worker = bench.worker(limit=4, batch=2)
    await worker.tick()
    assert {(await bench.row(id))["status"] for id in ids} == {"in_progress", "queued"}
    await worker.drain(SECOND * 10)
    assert sorted([(await bench.row(id))["status"] for id in ids]) == ["complete", "complete", "queued", "queued"]


async def test_item_is_overdue_after_many_short_items_ended(bench: Bench) -> None:
    bench.handles("fine", fine, timeout=timedelta(hours=1))
    bench.handles("long", for_ever, timeout=timedelta(hours=1))
    worker = bench.worker(limit=3, batch=2)
    await bench.put("long")
    for _ in range(10):
        await bench.put("fine", "fine")
        await settle()
        await worker.tick()
        await settle()
    assert len(worker._running) == 1
    await bench.clock.advance(timedelta(hours=2))
    await worker.tick()
    await settle()
    assert not worker._running


async def test_item_being_settled_with_its_effect_is_not_taken_for_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a settlement has committed but the worker does not know that yet, a renewal finds no lease. The worker must
    not conclude that it has lost the item.
    """
    settled, answer = asyncio.Event(), asyncio.Event()
    conclude = bench.store.conclude

    async def slow_to_tell(lease: Lease, settlement: Settlement) -> bool:
        done = await conclude(lease, settlement)
        settled.set()
        await answer.wait()
        return done

    async def with_effect(lease: Lease) -> object:
        async def nothing_more(transaction: Any) -> None:
            return None

        return Done(effect=nothing_more)

    monkeypatch.setattr(bench.store, "conclude", slow_to_tell)
    bench.handles("careful", with_effect)
    (id,) = await bench.put("careful")
    worker = bench.worker()
    await worker.tick()
    await settled.wait()
    await bench.clock.advance(LEASE)  # so that a renewal is due
    await bench.keeper.tick()
    answer.set()
    await settle()
    await worker.tick()
    assert (await bench.row(id))["status"] == "complete"
    assert bench.events.of(ItemLost) == []
