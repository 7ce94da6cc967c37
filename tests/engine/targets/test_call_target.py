"""A function as a job target: whatever the function raises, returns or leaves running, its run ends and the process
continues.
"""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from batuta.dispatch.job import Run
from batuta.kernel.calls.usercode import name_of
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import CancelIgnored, DeadlineExceeded, ExitRefused
from batuta.kernel.reasons import code_of
from batuta.kernel.waiting import with_timeout
from batuta.queue.outcome import Done
from batuta.runlog.execution import Ending, Execution, Status, Trigger
from batuta.targets.call import MOST_LEFT_BEHIND, STUBBORN, CallTarget
from batuta.testing import FakeClock
from batuta.testing.clock import settle

MINUTE = timedelta(minutes=1)


def a_run(clock: FakeClock | SystemClock) -> Run:
    now = clock.now()
    execution = Execution(
        id="e-1", job="teste", category="c", scheduled_for=now, trigger=Trigger.SCHEDULE, attempt=1, started_at=now
    )
    return Run(execution=execution, deadline=now + MINUTE, timeout=MINUTE, grace=timedelta(0), why_not=nothing_holds)


async def delivered(function: Callable[..., Any], clock: FakeClock | None = None) -> Ending:
    clock = clock or FakeClock()
    return await CallTarget(function, clock).deliver(a_run(clock))


class OwnKind(BaseException):
    pass


def leaves(kind: type[BaseException]) -> list[Callable[[], object]]:
    def plain() -> None:
        raise kind

    async def waits() -> None:
        raise kind

    return [plain, waits]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, OwnKind])
async def test_job_that_raises_system_exit_only_fails(kind: type[BaseException]) -> None:
    for function in leaves(kind):
        with pytest.raises(ExitRefused) as failed:
            await delivered(function)
        assert name_of(failed.value) == kind.__name__


async def nothing_holds() -> None:
    return None


async def test_job_that_cancels_its_own_task_only_fails() -> None:
    async def cancels_itself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    with pytest.raises(ExitRefused):
        await delivered(cancels_itself)


async def test_job_cancelled_from_outside_is_cancelled() -> None:
    async def waits() -> None:
        await asyncio.Event().wait()

    running = asyncio.create_task(delivered(waits))
    await settle()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("kind", [ValueError, StopIteration, DeadlineExceeded])
async def test_ordinary_failure_is_raised_unchanged(kind: type[Exception]) -> None:
    def fails() -> None:
        raise kind(what="x", deadline="y") if kind is DeadlineExceeded else kind("x")

    with pytest.raises(RuntimeError if kind is StopIteration else kind):
        await delivered(fails)


async def test_only_the_deadline_of_the_job_is_its_timeout(clock: FakeClock) -> None:
    async def waits_with_timeout() -> None:
        await with_timeout(timedelta(seconds=1), asyncio.Event().wait(), clock, "envio a 5511987654321")

    async def waits() -> None:
        await asyncio.Event().wait()

    inner = asyncio.create_task(delivered(waits_with_timeout, clock))
    own = asyncio.create_task(delivered(waits, clock))
    await clock.advance(1)
    with pytest.raises(DeadlineExceeded):
        await inner
    await clock.advance(60)
    ending = await own
    assert ending.status is Status.TIMEOUT
    assert (ending.error or "").startswith("job teste did not end by ")


async def test_plain_functions_run_concurrently() -> None:
    together = threading.Barrier(64)

    def meets_the_others() -> int:
        return together.wait(timeout=60)

    endings = await asyncio.gather(*(delivered(meets_the_others) for _ in range(together.parties)))
    assert sorted(ending.items or 0 for ending in endings) == list(range(64))


async def test_plain_function_past_its_deadline_is_abandoned_and_its_result_ignored(
    clock: FakeClock,
) -> None:
    gate, threads = threading.Event(), list[threading.Thread]()

    def never_ends() -> int:
        threads.append(threading.current_thread())
        gate.wait(60)
        return 7

    running = asyncio.create_task(delivered(never_ends, clock))
    while not threads:
        await asyncio.sleep(0)
    await clock.advance(61)
    assert (await running).status is Status.TIMEOUT
    assert [thread.daemon for thread in threads] == [True]  # a daemon thread does not delay the end of the process
    gate.set()
    threads[0].join(60)
    await settle()


async def test_function_that_never_ends_takes_a_bounded_number_of_threads(clock: FakeClock) -> None:
    gate, threads = threading.Event(), list[threading.Thread]()

    def never_ends() -> None:
        threads.append(threading.current_thread())
        gate.wait(60)

    target = CallTarget(never_ends, clock)
    for number in range(MOST_LEFT_BEHIND):
        running = asyncio.create_task(target.deliver(a_run(clock)))
        while len(threads) == number:
            await asyncio.sleep(0)
        await clock.advance(61)
        assert (await running).status is Status.TIMEOUT
    held = await target.deliver(a_run(clock))
    assert held.status is Status.SKIPPED
    assert code_of(held.reason) == "overlap_threads"
    assert [thread.is_alive() for thread in threads] == [True] * MOST_LEFT_BEHIND
    gate.set()
    for thread in [*threads]:
        thread.join(60)
    assert (await target.deliver(a_run(clock))).status is Status.SUCCESS


async def test_awaitable_returned_by_a_plain_callable_is_awaited() -> None:
    class Answers:
        __module__, __qualname__ = "x", "Answers"

        async def __call__(self) -> Done:
            await asyncio.sleep(0)
            return Done(items=3)

    assert (await delivered(Answers())).items == 3


async def test_function_that_outlives_its_event_loop_raises_no_error() -> None:
    gate, threads, heard = threading.Event(), list[threading.Thread](), list[object]()

    def ends_late() -> None:
        threads.append(threading.current_thread())
        gate.wait(60)

    def another_loop() -> None:
        async def begins() -> None:
            running = asyncio.create_task(delivered(ends_late))
            while not threads:
                await asyncio.sleep(0)
            running.cancel()

        asyncio.run(begins())

    before, threading.excepthook = threading.excepthook, heard.append
    try:
        await asyncio.to_thread(another_loop)
        gate.set()
        threads[0].join(60)
    finally:
        threading.excepthook = before
    assert heard == []


async def test_job_that_ignores_its_cancellation_is_reported_and_abandoned() -> None:
    clock, release = FakeClock(), asyncio.Event()

    async def deaf() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    going = asyncio.create_task(delivered(deaf, clock))
    await clock.advance(MINUTE + STUBBORN - timedelta(seconds=1))
    assert not going.done()
    await clock.advance(2)
    with pytest.raises(CancelIgnored, match="job teste in loop runs ignores its cancellation") as ignored:
        await going
    assert "in deaf" in str(ignored.value.facts["stack"])
    release.set()
    await settle()
