"""Keys by which a task call is unique, some of them only for a limited time, and the effect of a second call with the
same key on the call that is waiting.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from batuta import Batuta, Limits
from batuta.kernel.errors import UnknownWord
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import ItemState
from batuta.queue.outcome import Settlement
from batuta.stores.sql.queries import query_of
from batuta.testing import FakeClock
from tests.engine.tasks.test_limits import HOUR, MINUTE

PERIODS = query_of("periods", "SELECT count(*) AS periods FROM task_periods", writes=False)
HOLDER = LeaseHolder(owner="p1", lease=MINUTE)


@pytest.fixture
async def work(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with Batuta(database_url, timezone="UTC", clock=clock) as made:
        yield made


async def run_due(work: Batuta) -> list[Any]:
    """Claim and settle the due task calls, and return their first arguments."""
    queue = work.queues["default"]
    leases = (await queue.settle_and_claim([], HOLDER, 100)).leases
    await queue.settle_and_claim([(lease, Settlement(state=ItemState.DONE)) for lease in leases], HOLDER, 0)
    return [lease.row["args"][0][0] for lease in leases]


async def test_a_key_is_unique_for_its_period_even_after_the_task_ended(work: Batuta, clock: FakeClock) -> None:
    @work.task()
    async def send(to: str) -> None: ...

    daily = send.options(key="welcome-7", unique_for=3600)
    first = await daily.enqueue("a")
    assert await run_due(work) == ["a"]
    clock.step(HOUR - MINUTE)
    assert (await daily.enqueue("b")).id == first.id
    assert (await send.options(key="other", unique_for=3600).enqueue("c")).id != first.id
    clock.step(MINUTE)
    assert (await daily.enqueue("d")).id != first.id
    assert sorted(await run_due(work)) == ["c", "d"]


async def test_one_of_several_simultaneous_calls_is_stored(work: Batuta) -> None:
    @work.task()
    async def send(to: str) -> None: ...

    handles = await asyncio.gather(*(send.options(key="k", unique_for=60).enqueue(str(n)) for n in range(5)))
    assert len({handle.id for handle in handles}) == 1
    assert len(await run_due(work)) == 1


async def test_a_cancelled_task_frees_its_key(work: Batuta) -> None:
    @work.task()
    async def send(to: str) -> None: ...

    once = send.options(key="k", unique_for=60)
    first = await once.enqueue("a")
    assert await work.tasks.cancel(first.id)
    assert (await once.enqueue("b")).id != first.id


async def test_replace_gives_the_waiting_task_the_new_arguments_and_keeps_its_time(
    work: Batuta, clock: FakeClock
) -> None:
    @work.task(per_key=Limits(by="to", concurrency=1))
    async def send(to: str) -> None: ...

    first = await send.options(key="k", delay=60).enqueue("old")
    clock.step(MINUTE / 2)
    again = await send.options(key="k", delay=60, on_conflict="replace").enqueue("new")
    clock.step(MINUTE / 2)
    assert again.id == first.id
    assert await run_due(work) == ["new"]


async def test_reschedule_starts_a_delay_after_the_last_call(work: Batuta, clock: FakeClock) -> None:
    @work.task()
    async def index(document: str) -> None: ...

    for version in ("v1", "v2", "v3"):
        await index.options(key="doc-1", delay=60, on_conflict="reschedule").enqueue(version)
        clock.step(MINUTE / 2)
    assert await run_due(work) == []
    clock.step(MINUTE / 2)
    assert await run_due(work) == ["v3"]


async def test_a_period_that_ended_is_deleted(work: Batuta, clock: FakeClock) -> None:
    @work.task()
    async def send(to: str) -> None: ...

    await send.options(key="k", unique_for=60).enqueue("a")
    clock.step(MINUTE)
    await work._task_store.prune(10)
    (row,) = await work.database.all(PERIODS)
    assert row["periods"] == 0


async def test_wrong_options_are_rejected_with_the_next_step(work: Batuta) -> None:
    @work.task()
    async def send(to: str) -> None: ...

    with pytest.raises(ValueError, match="give key="):
        send.options(unique_for=60)
    with pytest.raises(UnknownWord, match="did you mean replace"):
        send.options(key="k", on_conflict="replaced")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most a year"):
        send.options(key="k", unique_for=-1)
