"""Operators request that a process end, restart or show its stacks. The process handles each request once."""

import asyncio
import threading
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from batuta import Batuta
from batuta.engine.process import guard_process
from batuta.health.workers import FORGOTTEN_AFTER, Beat
from batuta.kernel.errors import Recycled
from batuta.kernel.ids import Ids
from batuta.processes.requests import RESTART_ASKED, RequestKind, RequestLoop
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import query_of
from batuta.stores.sql.tables.processes import SqlProcessRequests
from batuta.supervise.stacks import process_stacks, stack_of_task
from batuta.testing import FakeClock

AUDIT = query_of("audit", "SELECT actor, action, subject FROM audit_log ORDER BY at, id", writes=False)


@dataclass
class Process:
    done: list[str] = field(default_factory=list)

    def loop(self, store: SqlProcessRequests, clock: FakeClock, worker_id: str) -> RequestLoop:
        return RequestLoop(
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
