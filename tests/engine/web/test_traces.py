"""One trace connects a scheduler's run, which calls an endpoint over a real socket, with the task that the endpoint
enqueues. The tests run on both databases.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from batuta import Batuta
from batuta.config import EngineSettings, load_settings
from batuta.kernel import trace
from batuta.kernel.events import ExecutionEnded, ItemsSettled
from batuta.logs import LogSubscriber
from batuta.processes.address import listen
from batuta.queue.outcome import Done, Outcome
from batuta.receive.endpoints import JobCall
from batuta.tasks.task import TaskContext
from batuta.testing import EventRecorder
from batuta.web import create_api
from batuta.web.api import serve
from tests.engine.logs.log_lines import json_lines, logging_to

GRACE = timedelta(seconds=5)
GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class System:
    """An api, a scheduler and a worker on one database. ``seen`` records the trace that each step belongs to."""

    def __init__(self, database_url: str) -> None:
        self.api, self.work = Batuta(database_url, timezone="UTC"), Batuta(database_url, timezone="UTC")
        self.events, self.seen = EventRecorder(), dict[str, list[trace.Trace | None]]()
        self.listening = listen("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        for side in (self.api, self.work):
            side.events.subscribe(LogSubscriber())
            side.events.subscribe(self.events)
            side.task(name="normaliza", retry=[0.01])(self._task)
        self.api.endpoints.add("agenda", self._handler, manual=True)
        self.work.http_job("agenda", "0 0 1 1 *", f"{self.url}/jobs/agenda")

    def note(self, step: str) -> None:
        self.seen.setdefault(step, []).append(trace.current())

    async def _handler(self, call: JobCall) -> Outcome:
        self.note("handler")
        await self.api.enqueue("normaliza")
        return Done(items=1)

    async def _task(self, ctx: TaskContext) -> None:
        self.note("task")
        if ctx.attempt == 1:
            raise ValueError

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        async with self.api, self.work:
            serving = serve(create_api(self.api, load_settings(EngineSettings, {})), self.listening, stop, GRACE)
            roles = [asyncio.create_task(each) for each in (serving, self.work.supervisor().run(stop, GRACE))]
            try:
                yield
            finally:
                stop.set()
                await asyncio.gather(*roles)

    async def until_done(self) -> None:
        await self.events.wait_for(ItemsSettled, lambda event: "done" in event.counts)


@pytest.fixture
def system(database_url: str) -> Iterator[System]:
    made = System(database_url)
    yield made
    made.listening.close()


def lines_of(lines: list[dict[str, Any]], trace_id: str) -> set[str]:
    return {line["event"] for line in lines if line.get("trace_id") == trace_id}


async def test_trace_of_a_run_reaches_its_task_and_every_log_line(system: System) -> None:
    (job,) = system.work.registry
    with logging_to(stream := io.StringIO(), "json"):
        async with system.running():
            execution = await system.work.scheduler().run_by_hand(job)
            await system.until_done()
        lines = json_lines(stream)
    trace_id = execution.id.replace("-", "")
    steps = [found for step in ("handler", "task") for found in system.seen[step]]
    assert [step.trace_id for step in steps if step] == [trace_id] * 3  # the second attempt has the same trace
    assert len({step.span_id for step in steps if step}) == 3
    assert lines_of(lines, trace_id) >= {
        "job started",  # the scheduler
        "job answered",  # the api
        "request answered",
        "task failed",  # the worker
        "job ended: success",
    }
    assert system.events.of(ExecutionEnded)[0].execution == execution.id


@pytest.mark.parametrize(("given", "is_kept"), [(GIVEN, True), (GIVEN + "x", False), ("", False)])
async def test_valid_trace_of_a_caller_is_continued(system: System, given: str, is_kept: bool) -> None:
    async with system.running(), httpx2.AsyncClient() as client:
        await client.post(f"{system.url}/jobs/agenda", headers={"traceparent": given})
        refused = await client.post(f"{system.url}/jobs/nada", headers={"traceparent": given})
        await system.until_done()
    (handler,), (task, _) = system.seen["handler"], system.seen["task"]
    assert handler is not None
    assert task is not None
    assert handler.trace_id == task.trace_id
    assert (handler.trace_id == GIVEN[3:35]) == is_kept
    assert (refused.json()["trace_id"] == GIVEN[3:35]) == is_kept


@pytest.mark.parametrize("args", ["[[], {}]", "[[], {}, null]", '[[], {}, {"traceparent": 7}]', "[[], {}, {}, 1]"])
async def test_task_without_a_trace_begins_one(system: System, args: str) -> None:
    from batuta.stores.sql.queries import in_dialect, query_of

    async with system.work as work:
        id = await work.enqueue("normaliza")
        as_json = ":args" if work.database.dialect == "sqlite" else ":args::text::jsonb"
        text = f"UPDATE tasks SET args = {as_json} WHERE id = :id"
        await work.database.run(
            in_dialect(query_of("spoil", text, writes=True), work.database.dialect), args=args, id=id
        )
        stop = asyncio.Event()
        running = asyncio.create_task(work.supervisor().run(stop, GRACE))
        await system.until_done()
        stop.set()
        await running
    first, second = system.seen["task"]
    assert first is not None
    assert second is not None
    assert trace.read(first.traceparent) == first
