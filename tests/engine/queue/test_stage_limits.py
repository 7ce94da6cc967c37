"""Stage limits on both databases. They hold across all processes, for each value of a field, and no matter how an item
reaches the stage.
"""

import warnings
from datetime import timedelta
from typing import Any

import pytest

from batuta import Batuta, Failed, Limits
from batuta.errors import InvalidName
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.storage.json import Json
from batuta.pipelines import FanOut, ItemPipeline, Jump, Next, step
from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import Settlement, Writes
from batuta.queues import NewItem
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.tasks.service import TaskRehomer
from batuta.testing import FakeClock

HOLDER = LeaseHolder(owner="p1", lease=timedelta(seconds=30))
DONE = Settlement(state=ItemState.DONE)


@pytest.fixture
def work(database_url: str, clock: FakeClock) -> Batuta:
    return Batuta(database_url, timezone="UTC", clock=clock)


async def fetch(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "fetched": True}


def parse(item: Any) -> Any: ...


def shop(work: Batuta, *stages: Any) -> ItemPipeline:
    return work.pipeline("shop", stages)


async def claim(work: Batuta, stage: str, limit: int = 10, ended: list[Lease] | None = None) -> list[Lease]:
    """Claim items of a stage as another process would. In the same step, settle the leases in ``ended`` as done."""
    found = await work.queues[f"shop.{stage}"].settle_and_claim([(each, DONE) for each in ended or []], HOLDER, limit)
    return list(found.leases)


def numbers(leases: list[Lease]) -> list[int]:
    return [lease.row["item"]["n"] for lease in leases]


async def test_concurrency_of_a_stage_holds_over_all_processes(work: Batuta) -> None:
    orders = shop(work, step(fetch, concurrency=2), parse)
    async with work:
        await orders.put_many([{"n": n} for n in range(5)])
        running = await claim(work, "fetch")
        assert numbers(running) == [0, 1]
        assert await claim(work, "fetch") == []
        assert numbers(await claim(work, "fetch", ended=running[:1])) == [2]


@pytest.mark.filterwarnings("ignore:an item of stage")
async def test_customers_take_turns_and_each_has_its_own_limits(work: Batuta, clock: FakeClock) -> None:
    each = Limits(by="customer", concurrency=1, rate="2/hour")
    orders = shop(work, step(fetch, per_key=each), parse)
    async with work:
        many: list[Json] = [{"n": n, "customer": "ana"} for n in range(30)]
        await orders.put_many([*many, {"n": 90, "customer": "rui"}, {"n": 91}, {"n": 92}])
        running = await claim(work, "fetch")
        # the limits of a key do not apply to an item without the field
        assert sorted(numbers(running)) == [0, 90, 91, 92]
        assert numbers(await claim(work, "fetch", ended=running)) == [1]
        first = (await work.queues["shop.fetch"].list_items("ready", 1))[0]
        why = await work.explain_waits(work.queues["shop.fetch"], [first])
        assert (
            str(next(iter(why.values())))
            == "limit of shop.fetch: at most 2 with the same value of customer start in 1 h"
        )
        assert (await work.queues["shop.fetch"].depth()).limited == 28
        await clock.advance(timedelta(hours=1, seconds=1))
        assert numbers(await claim(work, "fetch")) == []  # one of ana's items still runs


async def test_item_has_the_key_of_the_stage_to_which_it_moves(work: Batuta) -> None:
    """An item that moves to the stage ``parse`` gets the limit key of this stage. Items reach the stage in six ways: by
    a jump, by a fan-out, together with statements, together with an effect function, with unchanged values, and with
    new values.
    """
    text = "UPDATE pipeline_items SET priority = 7 WHERE id = :id"
    note = in_dialect(query_of("note", text, writes=True), work.database.dialect)

    async def fetch(item: dict[str, Any]) -> object:
        async def own(transaction: Any) -> None:
            await transaction.run(note, id=item["id"])

        match item["do"]:
            case "jump":
                return Jump("parse")
            case "effect":
                return Next(effect=Writes(((note, {"id": item["id"]}),)))
            case "function":
                return Next(effect=own)
            case "fan":
                return FanOut((NewItem(key="part", values={**item, "do": "part"}),))
            case "same":
                return None
            case _:
                return {**item, "do": "new"}

    orders = shop(work, step(fetch, rate="100/day"), step(parse, per_key=Limits(by="customer", concurrency=1)), store)
    kinds = ("jump", "effect", "function", "fan", "same", "new")
    async with work:
        for kind in kinds:
            await orders.put({"do": kind, "customer": kind, "id": "01a1ec8d-4352-7000-97d0-7500798380c5"})
        await orders.put({"do": "new", "customer": "new", "id": "01a1ec8d-4352-7000-97d0-7500798380c5"})
        assert await work.work_once("shop.fetch", 10) == 7
        running = await claim(work, "parse")
        assert sorted(lease.row["item"]["customer"] for lease in running) == sorted(kinds)
        assert [lease.row["item"]["do"] for lease in await claim(work, "parse", ended=running)] == ["new"]


async def store(item: Any) -> None: ...


async def test_item_leaves_a_limited_stage_for_one_without_limits(work: Batuta) -> None:
    orders = shop(work, step(fetch, concurrency=1), parse, step(store, rate="1/hour"))
    async with work:
        for n in range(2):
            await orders.put({"n": n})
        for _ in range(2):
            await work.work_once("shop.fetch", 10)
        assert await work.work_once("shop.parse", 10) == 2
        assert await work.work_once("shop.store", 10) == 1


async def test_slot_returns_with_the_lease_and_a_retry_stays_in_its_line(work: Batuta, clock: FakeClock) -> None:
    def fetch(item: dict[str, Any]) -> object:
        return Failed("busy")

    orders = shop(work, step(fetch, retry=[60], per_key=Limits(by="n", concurrency=1)))
    async with work:
        await orders.put_many([{"n": 1}, {"n": 1}])
        await claim(work, "fetch")
        await clock.advance(timedelta(seconds=31))
        await work.queues["shop.fetch"].rescue(10)
        assert await work.work_once("shop.fetch", 10) == 2  # one after the other
        await clock.advance(timedelta(seconds=61))
        assert len(await claim(work, "fetch")) == 1


async def test_limits_apply_to_older_items_and_end_with_a_release(
    work: Batuta, clock: FakeClock, database_url: str
) -> None:
    orders = shop(work, fetch, parse)
    async with work:
        await orders.put_many([{"n": n} for n in range(3)])
    limited = Batuta(database_url, timezone="UTC", clock=clock)
    shop(limited, step(fetch, concurrency=1), parse)
    async with limited:
        assert await claim(limited, "fetch") == []  # the claim gives the items their keys
        assert numbers(await claim(limited, "fetch")) == [0]
    async with work:
        assert await claim(work, "fetch") == []
        await TaskRehomer(work._task_store, work.task_registry, work._items).tick()
        assert numbers(await claim(work, "fetch")) == [1, 2]


async def test_wrong_limits_are_refused_at_the_declaration(work: Batuta) -> None:
    for wrong in (
        lambda: step(fetch, concurrency=0),
        lambda: step(fetch, rate="3/hours"),
        lambda: shop(work, step(fetch, per_key=Limits(concurrency=1))),
        lambda: shop(work, step(fetch, per_key=Limits(by="customer"))),
    ):
        with pytest.raises(InvalidName):
            wrong()


async def test_item_without_the_field_of_a_limit_is_reported_once(work_url: str) -> None:
    work = Batuta(work_url, timezone="UTC")

    async def fetch(item: dict[str, str]) -> None: ...

    orders = work.pipeline("orders", [step(fetch, per_key=Limits(by="custmer", concurrency=1))])
    async with work:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            await orders.put_many([{"customer": "ana"}, {"customer": "bia"}])
            await orders.put({"customer": "ana"})
        (warning,) = found
        assert "stage orders.fetch has no field 'custmer'" in str(warning.message)
