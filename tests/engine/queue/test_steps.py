"""Pipelines made of functions: they need no application table, accept any JSON item, and support every stage
outcome.
"""

from datetime import timedelta
from typing import Any

import pytest

from batuta import BatchProgress, Batuta, Failed, Skipped
from batuta.errors import BatchEnded, InvalidName, UnstorableValue
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.reasons import decode
from batuta.pipelines import FanOut, Jump, step
from batuta.queue.item import ItemState
from batuta.queue.outcome import Settlement
from batuta.queues import NewItem
from batuta.tasks.ends import Advance
from batuta.testing import FakeClock


def build(url: str, clock: FakeClock, stages: list[Any]) -> tuple[Batuta, Any]:
    work = Batuta(url, clock=clock, timezone="UTC")
    return work, work.pipeline("orders", stages)


async def run(work: Batuta, *stages: str) -> list[int]:
    return [await work.work_once(f"orders.{stage}", 10) for stage in stages]


async def stored(work: Batuta, id: str) -> Any:
    row = await work.queues["orders.fetch"].item(id)
    assert row is not None
    return row["stage"], row["item"]


async def fetch(item: dict[str, int]) -> dict[str, int]:
    return {**item, "fetched": 1}


def parse(item: dict[str, int]) -> dict[str, int]:
    return {**item, "parsed": 1}


async def store(item: dict[str, int]) -> None: ...


async def test_item_passes_through_async_and_sync_functions(database_url: str, clock: FakeClock) -> None:
    work, orders = build(database_url, clock, [fetch, parse, store])
    async with work:
        id = await orders.put({"n": 1})
        assert await run(work, "fetch", "parse", "store") == [1, 1, 1]
        assert await stored(work, id) == ("done", {"n": 1, "fetched": 1, "parsed": 1})


async def test_dead_item_is_listed_at_its_stage_and_retried_there(database_url: str, clock: FakeClock) -> None:
    is_broken = True

    def parse(item: dict[str, int]) -> dict[str, int] | Failed:
        return Failed("not readable", permanent=True) if is_broken else item

    work, orders = build(database_url, clock, [fetch, parse, store])
    async with work:
        id = await orders.put({"n": 1})
        await run(work, "fetch", "parse")
        queues = work.queues
        assert [each["id"] for each in await queues["orders.parse"].list_items("dead", 10)] == [id]
        assert await queues["orders.fetch"].list_items("dead", 10) == []
        assert [queue.dead for queue in [await queues[f"orders.{each}"].pulse() for each in ("fetch", "parse")]] == [
            0,
            1,
        ]
        is_broken = False
        assert await queues["orders.parse"].revive(id)
        assert await run(work, "fetch", "parse", "store") == [0, 1, 1]


async def test_program_finds_and_retries_dead_items(database_url: str, clock: FakeClock) -> None:
    is_broken = True

    def parse(item: dict[str, int]) -> dict[str, int] | Failed:
        return Failed("not readable", permanent=True) if is_broken else item

    work, orders = build(database_url, clock, [fetch, parse, store])
    pages = work.pipeline("pages", [parse])
    async with work:
        id = await orders.put({"n": 1}, key="order-1")
        other = await pages.put({"n": 2})
        await run(work, "fetch", "parse")
        await work.work_once("pages.parse", 10)
        (dead,) = await orders.dead()
        assert (dead.id, dead.stage, dead.item) == (id, "parse", {"n": 1, "fetched": 1})
        assert (dead.error, dead.attempts, dead.failed_at, dead.key) == ("not readable", 1, clock.now(), "order-1")
        assert [each.id for each in await pages.dead()] == [other]
        is_broken = False
        assert not await work.queues["orders.fetch"].revive(other)
        assert not await orders.retry(other)
        assert not await orders.retry("no id")
        assert await orders.retry(id)
        assert not await orders.retry(id)
        assert await run(work, "fetch", "parse", "store") == [0, 1, 1]
        assert await orders.dead() == []


async def test_stage_returns_any_outcome(database_url: str, clock: FakeClock) -> None:
    async def fetch(item: dict[str, Any]) -> object:
        match item["do"]:
            case "drop":
                return Skipped("not needed")
            case "jump":
                return Jump("store")
            case _:
                return FanOut(tuple(NewItem(key=f"part-{n}", values={"do": "part", "n": n}) for n in range(3)))

    work, orders = build(database_url, clock, [fetch, parse, store])
    async with work:
        dropped, jumped, split = await orders.put_many([{"do": each} for each in ("drop", "jump", "split")])
        assert await run(work, "fetch", "parse", "store") == [3, 3, 4]
        assert [(await stored(work, id))[0] for id in (dropped, jumped, split)] == ["dropped", "done", "done"]


async def test_key_and_delay_and_retention(database_url: str, clock: FakeClock) -> None:
    work, orders = build(database_url, clock, [fetch])
    async with work:
        first = await orders.put({"n": 1}, key="7", delay=60)
        assert await orders.put({"n": 2}, key="7") == first
        assert await run(work, "fetch") == [0]
        await clock.advance(60)
        assert await run(work, "fetch") == [1]
        assert await orders.put({"n": 3}, key="7") != first
        await clock.advance(24 * 3600)
        (items,) = (each for each in work.retentions() if each.table == "pipeline_items")
        assert await items.prune(10) == 1


async def test_failed_stage_is_retried_with_its_item(database_url: str, clock: FakeClock) -> None:
    tries = []

    def parse(item: dict[str, int]) -> dict[str, int]:
        tries.append(item)
        if len(tries) == 1:
            raise OSError("no route")
        return item

    work, orders = build(database_url, clock, [fetch, step(parse, retry=[60], concurrency=1)])
    async with work:
        id = await orders.put({"n": 1})
        assert await run(work, "fetch", "parse", "parse") == [1, 1, 0]
        await clock.advance(60)
        assert await run(work, "parse") == [1]
        assert tries[0] == tries[1] == {"n": 1, "fetched": 1}
        assert (await stored(work, id))[0] == "done"


async def test_two_pipelines_share_the_table_and_know_each_others_stages(work_url: str, clock: FakeClock) -> None:
    work, orders = build(work_url, clock, [fetch])
    letters = work.pipeline("letters", [fetch, store])
    async with work:
        await orders.put({"n": 1})
        await letters.put({"n": 2})
        assert await work.unserved.of_stages() == []
        assert await work.work_once("letters.fetch", 10) == 1
        assert await run(work, "fetch") == [1]


async def test_item_that_json_would_change_is_rejected(work_url: str, clock: FakeClock) -> None:
    work, orders = build(work_url, clock, [fetch])
    async with work:
        for item in (None, {1, 2}, {1: 2}):
            with pytest.raises(UnstorableValue):
                await orders.put(item)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([], "no stages"),
        ([fetch, fetch], "another stage has this name"),
        ([lambda item: item], "lowercase letters"),
        ([step(fetch), store, lambda: None], "lowercase letters"),
    ],
)
def test_mistake_in_a_pipeline_is_reported_at_its_registration(
    stages: list[Any], message: str, clock: FakeClock
) -> None:
    with pytest.raises(InvalidName, match=message):
        build("sqlite:///never.db", clock, stages)


def test_stage_must_take_the_item() -> None:
    def forget() -> None: ...

    with pytest.raises(InvalidName, match="must take one argument"):
        step(forget)  # type: ignore[arg-type]


class Batched:
    """A program with a pipeline whose second stage fails for odd numbers, and a task that receives the batch's
    counts.
    """

    def __init__(self, url: str, clock: FakeClock) -> None:
        self.work = work = Batuta(url, clock=clock, timezone="UTC")
        self.reports: list[BatchProgress] = []

        def store(item: dict[str, int]) -> Failed | None:
            return Failed("odd", permanent=True) if item["n"] % 2 else None

        self.orders = work.pipeline("orders", [fetch, store])

        @work.task(retry=[])
        async def report(progress: BatchProgress) -> None:
            self.reports.append(progress)

        self.report = report

    async def run(self, *queues: str) -> None:
        """Run the due items of these queues, then end the batches and run the tasks that were waiting for them."""
        for queue in queues:
            await self.work.work_once(queue, 100)
        while await self.work.batch_store.advance() is Advance.SOME:
            await self.work.work_once("default", 100)


def counts(progress: BatchProgress) -> tuple[int, int, int, int, int]:
    return progress.waiting, progress.running, progress.succeeded, progress.failed, progress.cancelled


async def test_batch_ends_after_the_last_stage_of_its_items(database_url: str, clock: FakeClock) -> None:
    program = Batched(database_url, clock)
    work = program.work
    async with work:
        async with work.batch("import 7", on_end=program.report) as batch:
            ids = await batch.add(program.orders, [{"n": n} for n in range(5)])
            await program.orders.put({"n": 6}, batch=batch)
            await program.orders.put({"n": 8})  # belongs to no batch
        assert len(set(ids)) == 5
        await program.run("orders.fetch")
        assert counts(await batch.progress()) == (6, 0, 0, 0, 0)
        assert program.reports == []
        await program.run("orders.store")
        assert [(counts(each), each.state) for each in program.reports] == [((0, 0, 4, 2, 0), "ended")]
        with pytest.raises(BatchEnded):
            await batch.add(program.orders, [{"n": 9}])


async def test_items_that_a_stage_creates_belong_to_its_batch(database_url: str, clock: FakeClock) -> None:
    work, reports = Batuta(database_url, clock=clock, timezone="UTC"), []

    def split(item: dict[str, int]) -> FanOut:
        return FanOut(items=tuple(NewItem(values={"n": n}, key=f"part-{n}") for n in range(item["n"])))

    orders = work.pipeline("orders", [split, store])

    @work.task(retry=[])
    async def report(progress: BatchProgress) -> None:
        reports.append(counts(progress))

    async with work:
        async with work.batch("parts", on_end=report) as batch:
            await batch.add(orders, [{"n": 3}])
        await work.work_once("orders.split", 10)
        await work.batch_store.advance()
        assert not (await batch.progress()).has_ended
        await work.work_once("orders.store", 10)
        while await work.batch_store.advance() is Advance.SOME:
            pass
        await work.work_once("default", 10)
    assert reports == [(0, 0, 4, 0, 0)]


async def test_cancelled_batch_cancels_waiting_running_and_later_items(database_url: str, clock: FakeClock) -> None:
    program = Batched(database_url, clock)
    work, holder = program.work, LeaseHolder(owner="p1", lease=timedelta(minutes=1))
    async with work:
        async with work.batch("import 7", on_end=program.report) as batch:
            await batch.add(program.orders, [{"n": n} for n in range(4)])
        queue = work.queues["orders.fetch"]
        (lease,) = (await queue.settle_and_claim([], holder, 1)).leases
        assert await batch.cancel("wrong file")
        assert counts(await batch.progress()) == (0, 1, 0, 0, 3)
        assert (await queue.renew([lease], holder)).cancelled == {lease.id}
        # The stage ends before it notices the request. Its item does not move to the next stage.
        moved = Settlement(state=ItemState.READY, stage="orders.store", wait=timedelta(0))
        await queue.settle_and_claim([(lease, moved)], holder, 0)
        await program.run()
        assert [(counts(each), each.state) for each in program.reports] == [((0, 0, 0, 0, 4), "cancelled")]
        row = await queue.item(lease.id)
        assert row is not None
        assert (row["stage"], decode(row["error"])) == ("cancelled", "its batch was cancelled: wrong file")


async def test_item_that_was_added_before_the_lock_keeps_its_batch_open(database_url: str, clock: FakeClock) -> None:
    program = Batched(database_url, clock)
    work = program.work
    async with work:
        batch = await work.batches.create("late")
        await program.orders.put({"n": 2}, batch=batch)
        await program.run("orders.fetch", "orders.store")
        await batch.close()
        find, calls = work._items.batch_members.find_unfinished, 0

        async def add_then_find(reading: Any, ids: Any) -> Any:
            nonlocal calls
            calls += 1
            found = await find(reading, ids)
            if calls == 1:
                await program.orders.put({"n": 4}, batch=batch)
            return found

        work._items.batch_members.find_unfinished = add_then_find  # type: ignore[method-assign]
        await work.batch_store.advance()
        assert not (await batch.progress()).has_ended
        await program.run("orders.fetch", "orders.store")
        assert counts(await batch.progress()) == (0, 0, 2, 0, 0)
        assert (await batch.progress()).has_ended


async def test_items_are_kept_until_their_batch_has_ended(database_url: str, clock: FakeClock) -> None:
    program = Batched(database_url, clock)
    work = program.work
    async with work:
        batch = await work.batches.create("slow")
        await program.orders.put({"n": 2}, batch=batch)
        await program.run("orders.fetch", "orders.store")
        assert await work.batch_store.find_abandoned(timedelta(hours=1)) == []
        clock.step(timedelta(days=400))
        assert await work._items.prune(10) == 0
        assert [each["name"] for each in await work.batch_store.find_abandoned(timedelta(hours=1))] == ["slow"]
        await batch.close()
        await program.run()
        assert await work._items.prune(10) == 1
        assert counts(await batch.progress()) == (0, 0, 1, 0, 0)
