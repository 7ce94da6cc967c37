"""The log lines of an attempt are stored, masked, limited in size, and deleted together with their item."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from batuta import Batuta
from batuta.config import EngineSettings
from batuta.errors import TaskFailed
from batuta.events import ExecutionEnded, JobsRegistered
from batuta.runlog.lines import CUT, MOST_LINES, LogLine
from batuta.testing import EventRecorder, FakeClock
from batuta.web import create_api
from tests.pacing import PacedClock

LOG = logging.getLogger("shop")


@pytest.fixture(autouse=True)
def _level() -> None:
    LOG.setLevel(logging.INFO)


@asynccontextmanager
async def program(url: str, **options: Any) -> AsyncIterator[Batuta]:
    """A program with two tasks and a stage. When the block that runs its worker ends, all log lines have been
    stored.
    """
    work = Batuta(url, timezone="UTC", **options)

    @work.task(name="greet", retry=[], keep_result=86_400)
    async def greet(to: str) -> None:
        LOG.info("greeting %s at %s", 7, to)
        LOG.debug("not logged")
        await asyncio.to_thread(LOG.warning, "from a thread")
        if to == "fail@example.com":
            raise ValueError(to)

    @work.task(name="talk")
    def talk(count: int) -> None:
        for number in range(count):
            LOG.info("line %d", number)

    work.pipeline("orders", [stage])
    async with work:
        yield work


def stage(item: int) -> None:
    LOG.info("stage of %d", item)


def texts(lines: list[LogLine]) -> list[tuple[int, str, str, str]]:
    return [(each.attempt, each.level, each.logger, each.line) for each in lines]


async def test_lines_of_tasks_and_stages_are_kept_masked_with_their_traceback(database_url: str) -> None:
    async with program(database_url) as work:
        orders = work.pipeline("letters", [stage])
        async with work.running("worker"):
            item = await orders.put(3)
            done, failed = [await work.enqueue("greet", to) for to in ("ana@example.com", "fail@example.com")]
            await work.handle(done).result(timeout=60)
            with pytest.raises(TaskFailed):
                await work.handle(failed).result(timeout=60)
        assert texts(await work.log_lines.of_item(done)) == [
            (1, "info", "shop", "greeting 7 at [email]"),
            (1, "warning", "shop", "from a thread"),
        ]
        assert texts(await work.log_lines.of_item(item)) == [(1, "info", "shop", "stage of 3")]
        *_, crash = await work.log_lines.of_item(failed)
        assert (crash.level, crash.logger) == ("error", "batuta")
        assert "Traceback" in crash.line
        assert "fail@example.com" not in crash.line
        assert await work.log_lines.of_item(done, after=(await work.log_lines.of_item(done))[0].id, limit=5) == [
            (await work.log_lines.of_item(done))[1]
        ]


async def test_lines_of_a_job_are_kept(work_url: str, events: EventRecorder) -> None:
    clock = PacedClock()
    async with program(work_url, clock=clock) as work:
        clock.watch(work)
        work.events.subscribe(events)

        @work.job("* * * * *")
        def report() -> None:
            LOG.info("reporting")

        async with work.running("scheduler"):
            await events.wait_for(JobsRegistered)
            await clock.advance(60)
            run = await events.wait_for(ExecutionEnded)
        assert texts(await work.log_lines.of_item(run.execution)) == [(1, "info", "shop", "reporting")]


async def test_lines_of_an_attempt_are_bounded_and_its_end_says_so(work_url: str) -> None:
    async with program(work_url) as work:
        async with work.running("worker"):
            id = await work.enqueue("talk", MOST_LINES + 50)
            await work.handle(id).result(timeout=60)
        lines = await work.log_lines.of_item(id)
        assert len(lines) == MOST_LINES + 1
        assert (lines[-2].line, lines[-1].level, lines[-1].line) == (f"line {MOST_LINES - 1}", CUT, "")


async def test_nothing_is_kept_if_the_setting_is_off_or_no_work_runs(work_url: str) -> None:
    before = logging.getLogRecordFactory()
    async with program(work_url, settings=EngineSettings(batuta_keep_logs=False)) as work:
        async with work.running("worker"):
            id = await work.enqueue("talk", 1)
            await work.handle(id).result(timeout=60)
            assert logging.getLogRecordFactory() == before
        assert await work.log_lines.of_item(id) == []
    async with program(work_url) as work:
        async with work.running("worker"):
            LOG.info("of no attempt")
        assert await work.log_lines.of_item(id) == []
    assert logging.getLogRecordFactory() == before


async def test_lines_are_deleted_with_their_item(database_url: str, clock: FakeClock) -> None:
    def line(item: str, ago: float) -> LogLine:
        at = clock.now() - timedelta(days=ago)
        return LogLine(id=work.ids.new(), item_id=item, attempt=1, at=at, level="info", logger="shop", line="x")

    async with program(database_url, clock=clock) as work:
        kept = await work.enqueue("talk", 1)
        gone = work.ids.new()
        await work.log_lines.add([line(kept, 2), line(kept, 40), line(gone, 2), line(gone, 0.5), line("7", 0)])
        (lines,) = (each for each in work.retentions() if each.table == "log_lines")
        assert await lines.prune(10) == 2
        assert len(await work.log_lines.of_item(kept)) == len(await work.log_lines.of_item(gone)) == 1


async def test_lines_are_read_over_http_and_on_the_page_of_the_item(work_url: str) -> None:
    async with program(work_url) as work:
        async with work.running("worker"):
            id = await work.enqueue("talk", 3)
            await work.handle(id).result(timeout=60)
        transport = httpx2.ASGITransport(app=create_api(work, work.settings), client=("127.0.0.1", 1234))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            first = (await client.get(f"/logs/{id}", params={"limit": 2})).json()
            assert [each["line"] for each in first["lines"]] == ["line 0", "line 1"]
            rest = (await client.get(f"/logs/{id}", params={"after": first["after"]})).json()
            assert [each["line"] for each in rest["lines"]] == ["line 2"]
            assert (await client.get("/logs/nothing")).json() == {"lines": [], "after": None}
            assert "line 2" in (await client.get(f"/painel/filas/default/{id}")).text
