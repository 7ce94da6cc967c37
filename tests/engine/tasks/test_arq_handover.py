"""The relay to ARQ is stopped, crashes or is cancelled while tasks run on ARQ. Each task runs once, and a cancelled
task does not run.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from arq.connections import ArqRedis
from arq.constants import default_queue_name

from app.integrations.redis.arq import add_arq
from app.settings import Settings
from batuta import Batuta
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import ItemsSettled
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.storage.json import dumps
from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import Done, Settlement
from batuta.stores.arq import calls
from batuta.stores.arq.relay import ArqRelay
from batuta.stores.arq.runner import RunnerContext, functions
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.queue.tasks import SqlTasks
from batuta.tasks.task import Task, TaskContext
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle
from tests.engine.tasks.test_arq import START, a_lease, all_wanted, queued, redis_at
from tests.engine.tasks.test_tasks import arq_working, ended


def relaying(database_url: str, redis_url: str, events: EventRecorder) -> Batuta:
    work = Batuta(database_url, timezone="UTC")
    work.events.subscribe(events)
    add_arq(work, Settings.model_validate({"redis_url": redis_url}))
    return work


@asynccontextmanager
async def relay_process(work: Batuta, grace: timedelta) -> AsyncIterator[None]:
    stop = asyncio.Event()
    running = asyncio.create_task(work.supervisor().run(stop, grace))
    try:
        yield
    finally:
        stop.set()
        await running


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[ArqRedis]:
    async with redis_at(redis_url) as redis:
        await redis.flushdb()
        yield redis


class Line:
    """Twenty tasks that a relay sends to ARQ before it stops. The next relay takes the tasks over. The first ten tasks
    end when ``short`` is set, the other ten when ``long`` is set.
    """

    def __init__(self) -> None:
        self.runs: Counter[int] = Counter()
        self.short, self.long, self.all_run = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.cancelled: list[int] = []

    def add_to(self, work: Batuta) -> None:
        work.task(name="espera", retry=[])(self._run)

    async def _run(self, ctx: TaskContext, n: int) -> int:
        self.runs[n] += 1
        if len(self.runs) == 20:
            self.all_run.set()
        try:
            await (self.short if n < 10 else self.long).wait()
        except asyncio.CancelledError:
            self.cancelled.append(n)
            raise
        return n


async def test_orderly_stop_runs_no_task_twice(
    database_url: str, redis_url: str, redis: ArqRedis, events: EventRecorder
) -> None:
    line = Line()
    old, new = relaying(database_url, redis_url, events), relaying(database_url, redis_url, events)
    for work in (old, new):
        line.add_to(work)
    async with old, new, arq_working(new), asyncio.timeout(60):
        ids = await old.enqueue_many("espera", [(n,) for n in range(20)])
        async with relay_process(old, timedelta(seconds=3)):
            await line.all_run.wait()
            stopping = asyncio.get_running_loop().call_later(0.2, line.short.set)  # within the grace period
        stopping.cancel()
        after_stop = Counter([str((await new.status(id)).status) for id in ids])  # type: ignore[union-attr]
        async with relay_process(new, timedelta(seconds=2)):
            await settle()
            line.long.set()
            statuses = [await ended(new, events, id) for id in ids]
    assert after_stop == {"complete": 10, "queued": 10}
    assert [status.result for status in statuses] == list(range(20))
    assert {status.attempts for status in statuses} == {1}
    assert line.runs == dict.fromkeys(range(20), 1)


async def test_relay_that_takes_over_a_task_waits_for_the_call_in_progress(redis_url: str, redis: ArqRedis) -> None:
    clock, task = FakeClock(START), Task[..., Any](name="nada", function=lambda: None, timeout=timedelta(seconds=20))

    def relay() -> ArqRelay:
        return ArqRelay(lambda: ArqRedis.from_url(redis_url), clock, all_wanted)

    dead, heir = relay(), relay()
    first = asyncio.create_task(dead.run(task, a_lease()))
    sent = await queued(redis, set())
    second = asyncio.create_task(heir.run(task, a_lease()._replace(fence=3, attempt=2)))
    async with asyncio.timeout(30):
        while not heir._waiting:
            await asyncio.sleep(0)
        assert set(await redis.zrange(default_queue_name, 0, -1)) == sent
        await calls.answer(redis, f"{a_lease().id}:1", {"done": 42}, None)
        clock.step(timedelta(seconds=5))
        await dead.tick()  # the relay was only suspended: its settlement is refused and does not affect its successor
        await heir.tick()
        assert (await first, await second) == (Done(result=42), Done(result=42))
    for each in (dead, heir):
        await each.close()


@pytest.mark.parametrize(
    ("fence", "attempt", "runs_again"),
    [(3, 2, False), (2, 2, True), (2, 1, True), (3, 1, True)],
    ids=["its relay died before it settled", "settled as a retry", "settled as put off", "dead, and revived"],
)
async def test_outcome_counts_once_and_survives_the_relay_that_read_it(
    redis_url: str, redis: ArqRedis, fence: int, attempt: int, runs_again: bool
) -> None:
    clock, task = FakeClock(START), Task[..., Any](name="nada", function=lambda: None, timeout=timedelta(seconds=20))
    relay = ArqRelay(lambda: ArqRedis.from_url(redis_url), clock, all_wanted)
    first = asyncio.create_task(relay.run(task, a_lease()))
    sent = await queued(redis, set())
    await calls.answer(redis, f"{a_lease().id}:1", {"snooze": START.isoformat(), "reason": "later"}, None)
    async with asyncio.timeout(30):
        while not first.done():
            clock.step(timedelta(seconds=5))
            await relay.tick()
            await settle()
        await redis.zrem(default_queue_name, *sent)  # as if ARQ had run the task
        second = asyncio.create_task(relay.run(task, a_lease()._replace(fence=fence, attempt=attempt)))
        if runs_again:
            assert await queued(redis, set()) == {f"{a_lease().id}:{fence}".encode()}
            second.cancel()
        while not second.done():
            clock.step(timedelta(seconds=5))
            await relay.tick()
            await settle()
    assert second.cancelled() if runs_again else second.result() == first.result()
    await relay.close()


@asynccontextmanager
async def relay_to(redis_url: str, clock: FakeClock) -> AsyncIterator[ArqRelay]:
    relay = ArqRelay(lambda: ArqRedis.from_url(redis_url), clock, all_wanted)
    try:
        yield relay
    finally:
        await relay.close()


@pytest.mark.parametrize(
    ("fence", "attempt"), [(5, 3), (4, 2)], ids=["the second relay died too", "the second relay handed the task back"]
)
async def test_outcome_survives_two_relays_that_do_not_settle(
    redis_url: str, redis: ArqRedis, fence: int, attempt: int
) -> None:
    clock, task, first = FakeClock(START), Task[..., Any](name="nada", function=lambda: None), a_lease()
    await redis.set(f"batuta:call:{first.id}", f"{first.id}:1 1 1")  # taken by a relay that died
    await calls.answer(redis, f"{first.id}:1", {"done": 42}, None)
    assert await calls.current_call(redis, first._replace(fence=3, attempt=2)) == f"{first.id}:1"
    if attempt == 3:
        await calls.mark_taken(redis, [(f"{first.id}:1", first._replace(fence=3, attempt=2))])
        await calls.mark_taken(redis, [(f"{first.id}:1", first)])  # the first relay was only suspended
    async with relay_to(redis_url, clock) as relay, asyncio.timeout(60):
        third = asyncio.create_task(relay.run(task, first._replace(fence=fence, attempt=attempt)))
        while not relay._waiting:
            await asyncio.sleep(0)
        await relay.tick()  # the clock does not move, because an adopted call is read at once
        await settle()
        third.cancel()  # without effect, because the call has ended
        assert await third == Done(result=42)
    assert await redis.zcard(default_queue_name) == 0


async def test_outcome_that_was_taken_is_returned_despite_a_cancellation(
    redis_url: str, redis: ArqRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay returns an outcome that it has received, even if it is cancelled at that moment. If the outcome were
    lost, the shutdown would release the task and the next relay would run the task again.
    """
    clock, task, mark = FakeClock(START), Task[..., Any](name="nada", function=lambda: None), calls.mark_taken

    async def stop_meanwhile(*arguments: Any) -> None:
        running.cancel()
        await settle()
        await mark(*arguments)

    monkeypatch.setattr(calls, "mark_taken", stop_meanwhile)
    async with relay_to(redis_url, clock) as relay, asyncio.timeout(60):
        running = asyncio.create_task(relay.run(task, a_lease()))
        await queued(redis, set())
        while not relay._waiting:
            await asyncio.sleep(0)
        await calls.answer(redis, f"{a_lease().id}:1", {"done": 42}, None)
        clock.step(timedelta(seconds=5))
        await relay.tick()
        assert await running == Done(result=42)


async def test_superseded_call_does_not_run(redis: ArqRedis) -> None:
    ran: list[str] = []

    async def nota(ctx: TaskContext) -> None:
        ran.append(ctx.id)

    here = RunnerContext(no_progress, all_wanted, FakeClock(START), Batuta("sqlite:///unused.db").events)
    (made,) = functions([Task(name="nota", function=nota)], here)
    new = await calls.current_call(redis, a_lease())
    for job_id in ("old", new):
        ctx = {"job_id": job_id, "redis": redis}
        await made.coroutine(ctx, dumps(said_of(a_lease())))
    assert ran == [a_lease().id]
    assert await calls.outcomes(redis, ["old", new]) == [None, b'{"done":null}']


def said_of(lease: Lease) -> dict[str, Any]:
    return {
        "id": lease.id,
        "fence": 1,
        "attempt": 1,
        "args": [[], {}],
        "created_at": START.isoformat(),
        "is_current": True,
    }


async def no_progress(lease: Lease, progress: Any) -> None: ...


async def test_cancelled_tasks_that_wait_in_arqs_queue_do_not_run(
    database_url: str, redis_url: str, redis: ArqRedis, events: EventRecorder
) -> None:
    work, runs = relaying(database_url, redis_url, events), list[int]()

    @work.task(retry=[])
    async def conta(ctx: TaskContext, n: int) -> None:
        runs.append(n)

    async with work, asyncio.timeout(60):
        ids = await work.enqueue_many(conta, [(n,) for n in range(9)])
        async with relay_process(work, timedelta(seconds=2)):
            while await redis.zcard(default_queue_name) < 9:
                await asyncio.sleep(0)
            for id in ids[:8]:
                assert await work.tasks.cancel(id)
            # The ARQ worker reads the cancellation from the database before the relay learns of it.
            async with arq_working(work):
                await ended(work, events, ids[8])
                for id in ids[:8]:
                    await over(work, events, id)
    assert runs == [8]


async def test_call_of_a_cancelled_task_is_withdrawn_or_aborted(
    database_url: str, redis_url: str, redis: ArqRedis, events: EventRecorder
) -> None:
    line = Line()
    work = relaying(database_url, redis_url, events)
    work.queue_lease = timedelta(seconds=1.5)  # a cancellation reaches the relay with the next renewal
    line.add_to(work)
    async with work, asyncio.timeout(60):
        ids = await work.enqueue_many("espera", [(n,) for n in range(20)])
        async with relay_process(work, timedelta(seconds=2)):
            while await redis.zcard(default_queue_name) < 20:
                await asyncio.sleep(0)
            assert await work.tasks.cancel(ids[0])
            await over(work, events, ids[0])
            while await redis.zcard(default_queue_name) > 19:  # the call is withdrawn although no ARQ worker runs
                await asyncio.sleep(0)
            line.runs[0] = 0
            async with arq_working(work):
                await line.all_run.wait()
                assert await work.tasks.cancel(ids[1])
                await over(work, events, ids[1])
                while line.cancelled != [1]:
                    await asyncio.sleep(0)
                line.short.set()
                line.long.set()
                for id in ids[2:]:
                    assert (await ended(work, events, id)).status == "complete"
    assert line.runs == {0: 0, **dict.fromkeys(range(1, 20), 1)}


async def test_calls_stay_queued_while_the_database_cannot_confirm_them(redis_url: str, redis: ArqRedis) -> None:
    clock, away = FakeClock(START), [True]

    async def wanted(ids: Collection[str]) -> Collection[str]:
        if away[0]:
            raise StoreUnavailable(where="here", why="away")
        return ()

    relay = ArqRelay(lambda: ArqRedis.from_url(redis_url), clock, wanted)
    running = asyncio.create_task(relay.run(Task[..., Any](name="nada", function=lambda: None), a_lease()))
    await queued(redis, set())
    while not relay._waiting:
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await relay.tick()
    assert await redis.zcard(default_queue_name) == 1
    away[0] = False
    await relay.drain(timedelta(seconds=1))
    assert await redis.zcard(default_queue_name) == 0
    await relay.close()


async def over(work: Batuta, events: EventRecorder, id: str) -> None:
    await ended(work, events, id, lambda status: status.finish_time is not None)
    assert events.of(ItemsSettled)


async def test_death_of_a_relay_does_not_count_as_a_crash_of_its_tasks(
    database_url: str, redis_url: str, events: EventRecorder
) -> None:
    work = relaying(database_url, redis_url, events)
    line = Line()
    line.add_to(work)
    async with work:
        id = await work.enqueue("espera", 1)
        queue = work.queues["default"]
        for n in range(6):
            (lease,) = (await queue.settle_and_claim([], LeaseHolder(owner=f"relay {n}", lease=timedelta(0)), 1)).leases
            assert not lease.is_last_chance
            await rescued(queue)
        status = await work.status(id)
    assert status is not None
    assert (status.status, status.finish_time) == ("queued", None)


async def rescued(queue: SqlQueue) -> None:
    async with asyncio.timeout(30):
        while not await queue.rescue(10):
            await asyncio.sleep(0)


async def test_progress_is_stored_whichever_relay_holds_the_task(
    database_url: str, redis_url: str, events: EventRecorder
) -> None:
    work = relaying(database_url, redis_url, events)
    Line().add_to(work)
    async with work:
        id = await work.enqueue("espera", 1)
        store = SqlTasks(work.database, work.ids, work.clock, work.wakeups.wake)
        (lease,) = (
            await work.queues["default"].settle_and_claim([], LeaseHolder(owner="heir", lease=timedelta(hours=1)), 1)
        ).leases
        await store.report_of_call(lease._replace(fence=lease.fence - 1), {"done": 1})
        status = await work.status(id)
        assert status is not None
        assert status.progress == {"done": 1}
        await work.queues["default"].settle_and_claim(
            [(lease, Settlement(state=ItemState.DONE))], LeaseHolder(owner="heir", lease=timedelta(hours=1)), 0
        )
        await store.report_of_call(lease, {"done": 2})
        status = await work.status(id)
        assert status is not None
        assert status.progress == {"done": 1}
