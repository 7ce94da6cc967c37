"""Every task option either works with ARQ or is rejected when the program starts."""

import asyncio
import inspect
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from arq.connections import RedisSettings, create_pool

from app.integrations.redis.arq import add_arq
from app.settings import Settings
from batuta import Batuta, Limits, NoRetry, TaskContext, never
from batuta.errors import InvalidTask, TaskFailed
from batuta.middleware import Attempt, NewCalls, Proceed
from tests.engine.tasks import heavy
from tests.engine.tasks.test_tasks import working

REFUSED: dict[str, dict[str, Any]] = {
    "concurrency": {"concurrency": 1},
    "rate": {"rate": "1/minute"},
    "per_key": {"per_key": Limits(by="to", concurrency=1)},
    "retry rules": {"retry": {OSError: never}},
}


WORKING = {"retry", "timeout", "keep_result", "queue", "name", "retry_timeout", "process", "memory"}


def test_every_option_of_a_task_is_tried() -> None:
    declared = set(inspect.signature(Batuta.task).parameters) - {"self", "bare"}
    assert declared == WORKING | (set(REFUSED) - {"retry rules"})


@pytest.fixture
async def work(work_url: str, redis_url: str) -> Batuta:
    pool = await create_pool(RedisSettings.from_dsn(redis_url))
    await pool.flushdb()
    await pool.aclose(close_connection_pool=True)
    work = Batuta(work_url, timezone="UTC")
    add_arq(work, Settings.model_validate({"redis_url": redis_url}))
    return work


@pytest.mark.parametrize("option", REFUSED)
def test_option_that_needs_a_worker_of_the_engine_is_refused_at_the_start(work_url: str, option: str) -> None:
    """A task option that does not work with ARQ is rejected, whether the task is declared before or after the program
    chooses ARQ.
    """

    async def send(to: str) -> None: ...

    async def elsewhere(*_: Any) -> Any: ...

    after, before = Batuta(work_url, timezone="UTC"), Batuta(work_url, timezone="UTC")
    after.relay_tasks(elsewhere)
    with pytest.raises(InvalidTask, match="TASKS_BACKEND=sql"):
        after.task(**REFUSED[option])(send)
    before.task(**REFUSED[option])(send)
    with pytest.raises(InvalidTask, match="TASKS_BACKEND=sql"):
        before.relay_tasks(elsewhere)


async def test_every_other_option_works(work: Batuta) -> None:
    seen: list[Any] = []

    @work.around_execution
    async def note(attempt: Attempt, proceed: Proceed) -> object:
        seen.append(attempt.name)
        return await proceed()

    @work.around_enqueue
    def tag(new: NewCalls) -> Iterator[NewCalls]:
        yield new.with_tags("tenant")

    @work.provide
    def prices() -> Iterator[dict[str, int]]:
        yield {"tea": 3}

    @work.task(retry=[0], timeout=30, keep_result=600, queue="default", name="price", retry_timeout=True)
    async def price(context: TaskContext, of: str) -> int:
        if context.attempt == 1:
            raise OSError
        await context.report({"of": of})
        return prices.value[of]

    @work.task()
    def refuse() -> None:
        raise NoRetry("no such order")

    square = work.task(process=True, memory="256MB")(heavy.square)
    now = work.clock.now()
    async with work, work.resources.started(), working(work):
        unique = price.options(key="k", unique_for=60, on_conflict="keep")
        first = await unique.enqueue("tea")
        handles = {
            "key and unique_for": first,
            "delay": await price.options(delay=0.01).enqueue("tea"),
            "at": await price.options(at=now - timedelta(seconds=1)).enqueue("tea"),
            "priority and tags": await price.options(priority=3, tags=["mail"]).enqueue("tea"),
            "enqueue_sync": await asyncio.to_thread(price.enqueue_sync, "tea"),
        }
        for option, handle in handles.items():
            assert await handle.result(timeout=60) == 3, option
        assert await unique.enqueue("tea") == first
        status = await handles["priority and tags"].status()
        assert status is not None
        assert (status.tags, status.attempts, status.progress) == (("mail", "tenant"), 2, {"of": "tea"})
        with pytest.raises(TaskFailed, match="no such order"):
            await (await refuse.enqueue()).result(timeout=60)
        assert (await (await square.enqueue(4)).result(timeout=60))[0] == 16
        await work.schedules.create(
            "soon", at=work.clock.now() + timedelta(milliseconds=50), task=price, args={"of": "tea"}
        )
        async with asyncio.timeout(60):
            while not await work._schedules.fire(10):
                await asyncio.sleep(0)
            (row,) = await work.find_tasks("default", 1, tag="tenant")
            assert await work.handle(str(row["id"])).result() == 3
    assert set(seen) == {"price", "refuse", "square"}
