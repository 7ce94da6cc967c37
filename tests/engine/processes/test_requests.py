"""Operators request that a process end, restart or show its stacks. The process handles each request once."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from batuta import Batuta
from batuta.engine.process import guard_process
from batuta.health.workers import FORGOTTEN_AFTER, Beat
from batuta.kernel.errors import Recycled
from batuta.kernel.ids import Ids
from batuta.processes.requests import REQUESTS, RESTART_ASKED, ProcessRequest, RequestKind, RequestLoop, RequestStore
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import query_of
from batuta.stores.sql.tables.processes import SqlProcessRequests
from batuta.supervise.loop import Idle
from batuta.supervise.stacks import process_stacks, stack_of_task
from batuta.testing import FakeClock
from batuta.testing.clock import settle

AUDIT = query_of("audit", "SELECT actor, action, subject FROM audit_log ORDER BY at, id", writes=False)


@dataclass
class Process:
    done: list[str] = field(default_factory=list)

    def loop(
        self, store: RequestStore, clock: FakeClock, worker_id: str, hears: Callable[[], bool] = lambda: False
    ) -> RequestLoop:
        return RequestLoop(
            hears=hears,
            worker_id=worker_id,
            store=store,
            clock=clock,
            drain_process=lambda: self.done.append("drain"),
            restart_process=self.done.append,
            stacks=lambda: "main thread:\n  File x",
        )


async def test_a_process_takes_its_own_requests_once(database: Database, ids: Ids, clock: FakeClock) -> None:
    store, process = SqlProcessRequests(database, ids), Process()
    beat = Beat(
        worker_id="w:1", role="worker", status="online", beat_at=clock.now(), started_at=clock.now(), loops={},
        host="web1", pid=7,
    )  # fmt: skip
    for kind in RequestKind:
        await store.ask(beat, kind, by="ana", now=clock.now())
        await clock.advance(1)
    await process.loop(store, clock, "w:2").tick()
    assert process.done == []
    for _ in range(2):
        await process.loop(store, clock, "w:1").tick()
    assert process.done == ["drain", RESTART_ASKED(by="ana")]
    newest = (await store.since(clock.now() - timedelta(minutes=1)))[0]
    assert (newest.request, newest.stack, newest.taken_at) == ("stack", "main thread:\n  File x", clock.now())
    audited = [(row["actor"], row["action"], row["subject"]) for row in await database.all(AUDIT)]
    assert audited == [("ana", f"process.{kind}", "worker web1:7") for kind in RequestKind]
    assert await store.prune(before=clock.now() + timedelta(days=1), limit=10) == 3


class CountedRequests:
    def __init__(self) -> None:
        self.reads = 0

    async def open_requests(self, worker_id: str) -> Sequence[ProcessRequest]:
        self.reads += 1
        return []

    async def take(self, id: str, *, now: datetime, stack: str | None = None) -> bool:
        return False


async def reads_within(loop: RequestLoop, store: CountedRequests, clock: FakeClock, seconds: int) -> int:
    before = store.reads
    for _ in range(seconds // 5):
        await clock.advance(5)
        await loop.tick()
    return store.reads - before


async def test_process_that_hears_notifications_reads_its_requests_rarely(clock: FakeClock) -> None:
    store, hearing = CountedRequests(), [True]
    loop = Process().loop(store, clock, "w:1", lambda: hearing[0])
    assert await reads_within(loop, store, clock, 60) == 2
    hearing[0] = False  # the event loop is blocked, or the listener is lost
    assert await reads_within(loop, store, clock, 60) == 12


async def test_notified_process_reads_its_requests_at_once_but_not_more_often_than_without(clock: FakeClock) -> None:
    store = CountedRequests()
    loop = Process().loop(store, clock, "w:1", lambda: True)
    await loop.tick()
    await clock.advance(6)
    loop.call()
    await settle()
    assert loop.wakeup.is_set()
    await loop.tick()
    assert store.reads == 2
    loop.call()
    rest = await loop.tick()
    assert (store.reads, rest) == (2, Idle(clock.now() + timedelta(seconds=5)))
    await clock.advance(5)
    await loop.tick()
    assert store.reads == 3


async def test_request_notifies_the_process_that_listens(work_of_two: tuple[Batuta, Batuta]) -> None:
    asking, asked = work_of_two
    called = asyncio.Event()
    asked.wakeups.call(REQUESTS, called.set)
    await asked.wakeups.tick()
    assert asked.wakeups.is_listening
    called.clear()
    now = asking.clock.now()
    beat = Beat(
        worker_id="w:1", role="worker", status="online", beat_at=now, started_at=now, loops={}, host="web1", pid=7
    )
    await asking.process_requests.ask(beat, RequestKind.DRAIN, by="ana", now=now)
    await asyncio.wait_for(called.wait(), 60)
    await asked.wakeups.drain(timedelta(seconds=1))


@pytest.fixture
async def work_of_two(database_url: str) -> AsyncIterator[tuple[Batuta, Batuta]]:
    async with Batuta(database_url) as one, Batuta(database_url) as other:
        yield one, other


async def test_stacks_name_the_task_of_each_item() -> None:
    async def wait_for_the_printer() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(wait_for_the_printer(), name="item 42")
    await asyncio.sleep(0)
    dump = process_stacks(asyncio.get_running_loop(), threading.get_ident())
    task.cancel()
    own = stack_of_task(dump, "item 42")
    assert own is not None
    assert "wait_for_the_printer" in own
    assert own.count("task ") == 1
    assert stack_of_task(dump, "item 4") is None


async def test_a_guarded_process_restarts_on_request(work_url: str) -> None:
    work, stop = Batuta(work_url), asyncio.Event()
    async with work:
        with pytest.raises(Recycled, match="got a restart request from ana"):
            async with guard_process(work, "worker", stop) as supervisor:
                running = asyncio.create_task(supervisor.run(stop, timedelta(seconds=5)))
                beats: list[Beat] = []
                while not beats:  # the first heartbeat of the process
                    beats = list((await work.beats.read_signs(within=FORGOTTEN_AFTER)).beats)
                await work.process_requests.ask(beats[0], RequestKind.RESTART, by="ana", now=work.clock.now())
                await asyncio.wait_for(stop.wait(), 60)
                await running
