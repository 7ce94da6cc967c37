"""Limits on tasks, on both databases: which items a claim takes, and which it leaves for later."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from batuta import Batuta, Limits, TaskContext
from batuta.kernel.errors import InvalidName, InvalidTask, UnknownWord
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.storage.json import Json
from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import Settlement
from batuta.stores.sql.queries import query_of
from batuta.stores.sql.queue.limits import FILED_AT_ONCE
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.service import TaskRehomer
from batuta.testing import FakeClock

HOLDER = LeaseHolder(owner="p1", lease=timedelta(seconds=30))
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
DONE = Settlement(state=ItemState.DONE)


@pytest.fixture
async def work(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    made = Batuta(database_url, timezone="UTC", clock=clock)
    async with made:
        yield made


class Queue:
    """Claims items from one queue, as a worker process does."""

    def __init__(self, work: Batuta) -> None:
        self.store = SqlQueue(
            work.database,
            work.queues["default"].table,
            work.ids,
            work.clock,
            queue="default",
            own_time=True,
            limits=work.task_registry.limits_in("default"),
        )

    async def claim(self, limit: int = 100, *, ended: Sequence[Lease] = (), by: Settlement = DONE) -> list[Lease]:
        result = await self.store.settle_and_claim([(lease, by) for lease in ended], HOLDER, limit)
        assert not result.lost
        return list(result.leases)


def first(lease: Lease) -> Any:
    return lease.row["args"][0][0]


def send_task(work: Batuta, **limits: Any) -> None:
    @work.task(**limits)
    async def send(ctx: TaskContext, to: str | int | None, *, tenant: str = "") -> None: ...


async def send_all(work: Batuta, *to: Json, **options: Any) -> list[str]:
    return await work.enqueue_many("send", [[each] for each in to], **options)


async def test_no_more_items_of_a_task_run_than_its_concurrency_over_all_processes(work: Batuta) -> None:
    send_task(work, concurrency=3)
    await send_all(work, *range(10))
    one, other = Queue(work), Queue(work)
    running = [*await one.claim(2), *await other.claim()]
    assert len(running) == 3
    assert await one.claim() == []
    assert len(await other.claim(ended=running[:2])) == 2


async def test_a_slot_returns_with_the_lease_of_a_dead_worker(work: Batuta, clock: FakeClock) -> None:
    send_task(work, concurrency=1)
    await send_all(work, "a", "b")
    queue = Queue(work)
    assert len(await queue.claim()) == 1
    clock.step(HOLDER.lease * 2)
    assert await queue.claim() == []  # the lease expired, but the item still counts until it is released
    assert len(await queue.store.rescue(10)) == 1
    assert len(await queue.claim()) == 1


async def test_no_window_has_more_starts_than_the_rate_and_a_retry_is_a_start(work: Batuta, clock: FakeClock) -> None:
    send_task(work, rate="3/minute")
    await send_all(work, *range(5))
    queue = Queue(work)
    (once,) = await queue.claim(1)
    clock.step(MINUTE / 2)
    again = Settlement(state=ItemState.READY, wait=timedelta(0))
    # together with the first start, the window then contains three
    assert len(await queue.claim(ended=[once], by=again)) == 2
    assert await queue.claim() == []
    assert await queue.store.next_at() == clock.now() + MINUTE / 2
    clock.step(MINUTE / 2)
    assert len(await queue.claim()) == 1
    clock.step(MINUTE / 2)
    assert len(await queue.claim()) == 2


async def test_each_key_has_its_own_limits_and_none_has_only_those_of_the_task(work: Batuta, clock: FakeClock) -> None:
    send_task(work, concurrency=8, per_key=Limits(by="to", concurrency=2, rate="3/hour"))
    await send_all(work, *"aaaaa", *"bbbb", None, None, None, None)
    queue = Queue(work)
    running = await queue.claim()
    assert Counter(map(first, running)) == {"a": 2, "b": 2, None: 4}
    running = await queue.claim(ended=running)
    assert Counter(map(first, running)) == {"a": 1, "b": 1}  # the third start of the hour
    assert await queue.claim(ended=running) == []
    clock.step(HOUR)
    assert Counter(map(first, await queue.claim())) == {"a": 2, "b": 1}


async def test_the_key_may_be_given_by_name(work: Batuta) -> None:
    send_task(work, per_key=Limits(by="tenant", concurrency=1))
    for _ in range(2):
        await work.enqueue("send", "x", tenant="a")
        await work.enqueue("send", "x", tenant="b")
    assert len(await Queue(work).claim()) == 2


async def test_keys_take_turns_however_many_items_one_of_them_has(work: Batuta, clock: FakeClock) -> None:
    send_task(work, per_key=Limits(by="to", concurrency=50))
    await send_all(work, *["big"] * 30, *["small"] * 3)
    queue = Queue(work)
    assert Counter(map(first, await queue.claim(4))) == {"big": 2, "small": 2}
    clock.step(MINUTE)
    one = await queue.claim(1)
    clock.step(MINUTE)
    assert {first(lease) for lease in [*one, *await queue.claim(1)]} == {"big", "small"}


async def test_other_tasks_do_not_wait_behind_a_full_limit_and_get_half_of_the_places(work: Batuta) -> None:
    send_task(work, concurrency=1)

    @work.task()
    async def plain(ctx: TaskContext, n: int) -> None: ...

    await send_all(work, *range(20))
    await work.enqueue_many("plain", [[n] for n in range(20)])
    queue = Queue(work)
    names = Counter(lease.row["name"] for lease in await queue.claim(5))
    names += Counter(lease.row["name"] for lease in await queue.claim(5))
    assert names == {"send": 1, "plain": 9}
    assert {lease.row["name"] for lease in await queue.claim(5)} == {"plain"}


async def test_limited_items_do_not_starve_behind_unlimited_ones(work: Batuta) -> None:
    send_task(work, concurrency=50)

    @work.task()
    async def plain(ctx: TaskContext, n: int) -> None: ...

    await work.enqueue_many("plain", [[n] for n in range(20)])
    await send_all(work, *range(20))
    queue = Queue(work)
    names = Counter(lease.row["name"] for lease in [*await queue.claim(5), *await queue.claim(5)])
    assert names == {"send": 5, "plain": 5}


async def test_a_delayed_item_starts_at_its_time_and_urgent_items_of_a_key_first(
    work: Batuta, clock: FakeClock
) -> None:
    send_task(work, concurrency=1)
    await send_all(work, "later", delay=60, priority=-5)
    await send_all(work, "second", priority=7)
    await send_all(work, "first", priority=3)
    queue = Queue(work)
    running = await queue.claim()
    assert [first(lease) for lease in running] == ["first"]
    clock.step(MINUTE)
    running = await queue.claim(ended=running)
    assert [first(lease) for lease in running] == ["later"]
    assert [first(lease) for lease in await queue.claim(ended=running)] == ["second"]


async def test_a_paused_queue_starts_no_limited_item(work: Batuta, clock: FakeClock) -> None:
    send_task(work, concurrency=1)
    await send_all(work, "a")
    await work.switches.set("pause.queue.default", True, by="test", reason="test", now=clock.now())
    assert await Queue(work).claim() == []


async def test_items_from_before_a_limit_was_declared_obey_it(work: Batuta) -> None:
    send_task(work, per_key=Limits(by="to", concurrency=1))
    values = [["a"], ["a"], ["b"]]
    await work.enqueue_many("send", values)
    await work.database.script("UPDATE tasks SET limit_key = NULL")
    queue = Queue(work)
    assert await queue.claim() == []  # the claim labels the items, and no attempt is counted
    running = await queue.claim()
    assert sorted(map(first, running)) == ["a", "b"]
    assert {lease.attempt for lease in running} == {1}


async def test_items_of_a_task_whose_limits_were_removed_are_claimed(work: Batuta) -> None:
    send_task(work, per_key=Limits(by="to", concurrency=1))
    await send_all(work, "a", "a", "b")
    (running, *_) = await Queue(work).claim(1)
    work.task_registry.limits_in("default").clear()
    object.__setattr__(work.task_registry.get("send"), "limits", None)
    await TaskRehomer(work._task_store, work.task_registry).tick()
    assert len(await Queue(work).claim(ended=[running])) == 2


async def test_a_large_backlog_is_put_in_line_step_by_step(work: Batuta, clock: FakeClock) -> None:
    send_task(work, per_key=Limits(by="to", concurrency=1))
    await send_all(work, *["big"] * (FILED_AT_ONCE + 5), "small")
    queue = Queue(work)
    running = await queue.claim()
    assert [first(lease) for lease in running] == ["big"]
    at = await queue.store.next_at()
    assert at is not None
    assert at - clock.now() < timedelta(seconds=1)  # the backlog is larger than one step, so the next step is due soon
    assert [first(lease) for lease in await queue.claim()] == ["small"]


async def test_depth_counts_items_that_wait_for_a_limit_and_health_does_not(work: Batuta) -> None:
    send_task(work, concurrency=1)
    await send_all(work, *range(4))
    queue = Queue(work)
    assert ((await queue.store.depth()).due, (await queue.store.pulse()).due) == (4, 4)
    await queue.claim()
    depth, pulse = await queue.store.depth(), await queue.store.pulse()
    assert (depth.due, depth.limited, depth.running, pulse.due, pulse.oldest_due_at) == (3, 3, 1, 0, None)


async def test_a_waiting_item_in_line_is_cancelled(work: Batuta) -> None:
    send_task(work, concurrency=1)
    _, second = await send_all(work, "a", "b")
    queue = Queue(work)
    running = await queue.claim()
    assert await work.tasks.cancel(second)
    assert await queue.claim(ended=running) == []


async def test_a_line_leaves_no_row_when_its_items_have_ended(work: Batuta) -> None:
    send_task(work, per_key=Limits(by="to", concurrency=1))
    await send_all(work, *range(5), *range(5))
    queue = Queue(work)
    running = await queue.claim()
    assert await queue.claim(ended=await queue.claim(ended=running)) == []
    assert await work.database.all(query_of("lines", "SELECT * FROM task_lines", writes=False)) == []


async def test_wrong_limits_are_rejected_when_the_task_is_registered(work: Batuta) -> None:
    with pytest.raises(InvalidName, match='write "100/minute"'):
        send_task(work, rate="100/minutes")
    with pytest.raises(UnknownWord, match="did you mean tenant"):
        send_task(work, per_key=Limits(by="tenannt", concurrency=1))


async def test_limits_are_refused_if_another_backend_runs_the_tasks(work: Batuta) -> None:
    async def runner(task: object, lease: Lease) -> Any: ...

    send_task(work, concurrency=1)
    with pytest.raises(InvalidTask, match="TASKS_BACKEND=sql"):
        work.relay_tasks(runner)


async def test_a_waiting_item_names_the_limit_it_waits_for(work: Batuta) -> None:
    send_task(work, concurrency=2, per_key=Limits(by="to", concurrency=1))
    await send_all(work, "a", "a")
    queue = Queue(work)
    (running,) = await queue.claim()
    waiting = await queue.store.list_items("ready", 10)
    assert [why.code for why in (await queue.store.why_limited(waiting)).values()] == ["limit_key_concurrency"]
    await send_all(work, "b", "c")
    assert [first(lease) for lease in await queue.claim()] == ["b"]
    waiting = await queue.store.list_items("ready", 10)
    assert {why.code for why in (await queue.store.why_limited(waiting)).values()} == {"limit_task_concurrency"}
    assert await queue.store.why_limited([dict(await queue.store.item(running.id) or {})]) == {}
