"""Waiting for a task's result: callers are notified, in the same process and in another one."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from batuta import Batuta, Failed
from batuta.kernel.errors import StoreUnavailable, TaskCancelled, TaskFailed, TaskUnknown
from batuta.stores.sql.queries import query_of
from batuta.testing import FakeClock

TERMINATE_LISTENERS = query_of(
    "terminate",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = 'batuta-listener' AND datname = current_database()",
    writes=True,
)


def program(url: str) -> Batuta:
    work = Batuta(url, timezone="UTC")

    @work.task(name="double", retry=[])
    async def double(n: int) -> int | Failed:
        return 2 * n if n else Failed("nothing to double")

    return work


@pytest.fixture
async def caller(database_url: str) -> AsyncIterator[Batuta]:
    """An application that enqueues tasks and waits for them. A second application object on the same database runs
    them.
    """
    async with program(database_url) as work:
        yield work


@pytest.fixture
async def worker(database_url: str, caller: Batuta) -> AsyncIterator[Batuta]:
    async with program(database_url) as work:
        yield work


async def begin(caller: Batuta, *waits: "asyncio.Task[object]") -> None:
    """Wait until every waiter is registered and is listening for notifications."""
    endings = caller._task_store.endings
    while sum(len(each) for each in endings._waiters.values()) < len(waits) or endings._listening is None:
        await asyncio.sleep(0)
    await endings._listening


async def test_waiters_of_another_process_get_the_results(caller: Batuta, worker: Batuta) -> None:
    handles = [caller.handle(id) for id in await caller.enqueue_many("double", [[1], [2], [3]])]
    waits = [asyncio.create_task(handle.result(timeout=60)) for handle in (*handles, handles[0])]
    await begin(caller, *waits)
    await worker.work_once("default", 10)
    assert await asyncio.gather(*waits) == [2, 4, 6, 2]
    assert await handles[0].result() == 2  # returns at once, because the call has ended


async def test_failed_and_cancelled_calls_raise_their_reason(caller: Batuta, worker: Batuta) -> None:
    failing, waiting = (
        caller.handle(await caller.enqueue("double", 0)),
        caller.handle(await caller.enqueue("double", 1)),
    )
    waits = [asyncio.create_task(handle.result(timeout=60)) for handle in (failing, waiting)]
    await begin(caller, *waits)
    assert await worker.handle(waiting.id).cancel("not needed")
    await worker.work_once("default", 10)
    with pytest.raises(TaskFailed, match="nothing to double"):
        await waits[0]
    with pytest.raises(TaskCancelled, match="not needed"):
        await waits[1]
    status = await waiting.status()
    assert status is not None
    assert status.status == "cancelled"
    assert not await waiting.cancel()


async def test_waiters_share_one_query(caller: Batuta, worker: Batuta) -> None:
    """Callers that wait for tasks share one database query per change, instead of one query each. In addition, each
    caller checks its task once and reads one result.
    """
    handles = [caller.handle(id) for id in await caller.enqueue_many("double", [[n] for n in range(1, 31)])]
    statements: list[str] = []
    caller.database.observe(lambda call, seconds, error: statements.append(call))
    waits = [asyncio.create_task(handle.result(timeout=60)) for handle in handles]
    await begin(caller, *waits)
    await worker.work_once("default", 30)
    await asyncio.gather(*waits)
    assert len(statements) <= 2 * len(handles) + 10


async def test_unknown_task_and_time_limit_are_clear_errors(work_url: str, clock: FakeClock) -> None:
    async with Batuta(work_url, timezone="UTC", clock=clock) as work:

        @work.task()
        async def never() -> None: ...

        with pytest.raises(TaskUnknown, match="no task has the id"):
            await work.handle("0196b0a8-0000-7000-8000-000000000000").result(timeout=5)
        with pytest.raises(TaskUnknown):
            await work.handle("not an id").result()
        handle = await never.enqueue()
        waiting = asyncio.create_task(handle.result(timeout=5))
        await clock.settle()
        await clock.advance(6)
        with pytest.raises(TimeoutError, match="has not ended after 5 s: `batuta workers` shows"):
            await waiting


async def test_worker_in_the_same_process_wakes_the_waiter_without_a_poll(work_url: str, clock: FakeClock) -> None:
    async with Batuta(work_url, timezone="UTC", clock=clock) as work:

        @work.task()
        async def double(n: int) -> int:
            return 2 * n

        handle = await double.enqueue(4)
        waiting = asyncio.create_task(handle.result(timeout=5))
        await clock.settle()
        await work.work_once("default", 1)
        assert await waiting == 8  # the fake clock did not move, so no poll took place


async def test_lost_listener_is_opened_again_and_no_end_is_missed(caller: Batuta, worker: Batuta) -> None:
    if caller.connections.way != "direct":
        pytest.skip("SQLite and a polled pooler have no connection that could be lost")
    waiting = asyncio.create_task(caller.handle(await caller.enqueue("double", 5)).result(timeout=60))
    await begin(caller, waiting)
    await worker.database.all(TERMINATE_LISTENERS)
    await worker.work_once("default", 10)
    assert await waiting == 10


async def test_closing_ends_the_wait(work_url: str) -> None:
    async with Batuta(work_url, timezone="UTC") as work:

        @work.task()
        async def never() -> None: ...

        handle = await never.enqueue()
        waiting = asyncio.create_task(handle.result())
        await begin(work, waiting)
    with pytest.raises(StoreUnavailable, match="open"):
        await waiting


async def test_calls_are_found_by_tag_and_key(caller: Batuta) -> None:
    double = caller.task_registry.get("double")
    mail = await double.options(tags=["mail", "vip"], key="k-1").enqueue(1)
    other = await double.options(tags=["mail"]).enqueue(2)
    await double.enqueue(3)
    newest_first = [str(row["id"]) for row in await caller.find_tasks("default", tag="mail")]
    assert newest_first == [other.id, mail.id]
    assert [row["id"] for row in await caller.find_tasks("default", key="k-1", tag="vip")] == [mail.id]
    assert await caller.find_tasks("default", key="k-1", tag="none") == []
    status = await mail.status()
    assert status is not None
    assert (status.key, status.tags) == ("k-1", ("mail", "vip"))
    for wrong in ("mail", ["with space"], [""], [7]):
        with pytest.raises(ValueError, match=r'write tags=\["mail"\]'):
            double.options(tags=wrong)  # type: ignore[arg-type]


async def test_a_handle_of_another_task_is_refused(caller: Batuta, worker: Batuta) -> None:
    @caller.task(name="other")
    async def other() -> str:
        return "other"

    call = caller.handle(await caller.enqueue("double", 5))
    await worker.work_once("default", 10)
    wrong = other.handle(call.id)
    for read in (wrong.status, wrong.result):
        with pytest.raises(TypeError, match=r"belongs to task double, not to other: write double\.handle"):
            await read()
    assert await call.result(timeout=60) == 10
