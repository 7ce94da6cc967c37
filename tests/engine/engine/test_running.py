"""Roles inside another program: they log through the program's handlers, raise errors in its ``async with`` block, and
finish the work that they have started.
"""

import asyncio
import logging
import multiprocessing
import signal

import pytest

from batuta import Batuta, TaskContext
from batuta.errors import LoopGaveUp, StoreNotOpen, UnknownWord
from batuta.events import ExecutionEnded, ItemsSettled, JobsRegistered
from batuta.testing import EventRecorder, FakeClock
from tests.pacing import PacedClock


def build(url: str, clock: FakeClock | None = None) -> tuple[Batuta, EventRecorder]:
    work, events = Batuta(url, clock=clock, timezone="UTC"), EventRecorder()
    work.events.subscribe(events.emit)
    return work, events


def giving_up(url: str) -> Batuta:
    work, _ = build(url)

    @work.loop(every=1, max_failures=1)
    async def poll() -> None:
        raise OSError("no route")

    return work


async def test_tasks_run_inside_the_block_and_the_database_closes_after_it(database_url: str) -> None:
    work, events = build(database_url)

    @work.task()
    async def double(context: TaskContext, number: int) -> int:
        return 2 * number

    async with work.running("worker") as running:
        id = await running.enqueue(double, 21)
        await events.wait_for(ItemsSettled)
        status = await work.status(id)
    assert status is not None
    assert status.result == 42
    assert not work.is_open


async def test_jobs_fire_inside_the_block(work_url: str) -> None:
    clock = PacedClock()
    work, events = build(work_url, clock)
    clock.watch(work)

    @work.job("* * * * *")
    async def ping() -> None: ...

    async with work.running("scheduler"):
        await events.wait_for(JobsRegistered)
        await clock.advance(60)
        assert (await events.wait_for(ExecutionEnded)).status == "success"


async def test_block_keeps_a_database_open_that_the_program_opened(work_url: str) -> None:
    work, _ = build(work_url)
    async with work:
        async with work.running("worker"):
            pass
        assert work.is_open


async def test_application_that_was_opened_twice_stays_open_until_the_last_user_closes_it(database_url: str) -> None:
    work, _ = build(database_url)
    async with work:
        async with work:
            pass
        assert work.is_open
        await work.check()
    assert not work.is_open
    async with work:
        await work.check()


async def test_handlers_of_the_program_get_the_log_without_the_message_of_an_exception(
    work_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    work, events = build(work_url)

    @work.task(retry=[])
    async def fail(context: TaskContext) -> None:
        raise ValueError("ana@example.com")

    with caplog.at_level(logging.INFO, "batuta"):
        async with work.running("worker"):
            await work.enqueue(fail)
            await events.wait_for(ItemsSettled)
    crashed = next(record for record in caplog.records if "Traceback" in record.getMessage())
    assert crashed.levelno == logging.ERROR
    assert "ana@example.com" not in caplog.text
    assert caplog.records[0].getMessage().startswith("process started")
    assert vars(caplog.records[0])["batuta"]["role"] == "worker"


async def test_program_that_a_child_process_starts_again_is_refused(
    work_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, _ = build(work_url)
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(RuntimeError, match="if __name__ == '__main__':"):
        async with work.running("worker"):
            pass


async def test_failure_in_work_once_is_logged_once(work_url: str, caplog: pytest.LogCaptureFixture) -> None:
    work, _ = build(work_url)

    @work.task(retry=[])
    async def fail() -> None:
        raise ValueError("ana@example.com")

    async with work:
        await fail.enqueue()
        assert await work.work_once("default", 10) == 1
    (failed,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert failed.getMessage().startswith("task failed")
    assert "task=fail" in failed.getMessage()
    assert "Traceback" in failed.getMessage()


async def test_log_goes_to_standard_error_if_the_program_has_no_handler(
    work_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger("batuta"), "propagate", False)
    work, _ = build(work_url)
    async with work.running("worker"):
        pass
    assert "INFO batuta: process started" in capsys.readouterr().err
    assert not logging.getLogger("batuta").handlers


async def test_loop_that_gives_up_ends_the_block_with_its_error(
    work_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(LoopGaveUp, match="poll"):
        async with giving_up(work_url).running("worker"):
            await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
    assert any("loop abandoned" in record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)


async def test_loop_that_gives_up_terminates_the_process_on_request(work_url: str) -> None:
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    try:
        with pytest.raises(LoopGaveUp):
            async with giving_up(work_url).running("worker", on_failure="terminate"):
                await asyncio.wait_for(terminated.wait(), 30)
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)


async def test_error_and_cancellation_of_the_block_reach_the_program(work_url: str) -> None:
    work, _ = build(work_url)
    with pytest.raises(KeyError):
        async with work.running("worker"):
            raise KeyError("of the program")

    async def wait_inside() -> None:
        async with work.running("worker"):
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait_inside())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not work.is_open


async def test_unknown_role_is_rejected_with_the_nearest_one(work_url: str) -> None:
    work, _ = build(work_url)
    with pytest.raises(UnknownWord, match="scheduler"):
        async with work.running("schedular"):
            pass


async def test_call_before_opening_names_the_block_to_write(database_url: str) -> None:
    work, _ = build(database_url)

    @work.task()
    async def send(context: TaskContext) -> None: ...

    with pytest.raises(StoreNotOpen, match="write `async with work:`"):
        await work.enqueue(send)


def test_program_runs_again_in_a_new_event_loop(database_url: str) -> None:
    """A program can start its roles again in a new event loop. Tests of a web application do so: each of them opens the
    application's lifespan.
    """
    work = Batuta(database_url, timezone="UTC")

    @work.task()
    async def double(number: int) -> int:
        return 2 * number

    @work.loop(every=60)
    async def poll() -> None: ...

    async def once(number: int) -> int:
        async with work.running("worker", "scheduler", "api"):
            await work.schedules.create(f"once-{number}", task=double, args={"number": number}, every=3600)
            await asyncio.gather(*(double.enqueue(each) for each in range(20)))
            return await (await double.enqueue(number)).result(timeout=30)

    assert [asyncio.run(once(number)) for number in (1, 2, 3)] == [2, 4, 6]
