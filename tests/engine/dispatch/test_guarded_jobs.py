"""Jobs with a circuit breaker: which outcomes of a run count as failures, and how fires are recorded while the circuit
is open.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from batuta import Batuta
from batuta.dispatch.job import Run
from batuta.guard.base import Effect, EffectReport
from batuta.guard.breaker import CircuitState
from batuta.kernel.errors import InvalidJob, UnknownWord
from batuta.queue.outcome import Failed
from batuta.runlog.execution import Ending, Execution, Status, Trigger
from batuta.targets.call import report_of
from batuta.testing import FakeClock


@asynccontextmanager
async def working(url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    work = Batuta(url, clock=clock)
    work.circuit("gateway", failures=3, reset=60)
    async with work:
        yield work


def a_run(clock: FakeClock, attempt: int = 1) -> Run:
    now, limit = clock.now(), timedelta(seconds=5)
    execution = Execution(
        id="e-1",
        job="envia",
        category="c",
        scheduled_for=now,
        trigger=Trigger.SCHEDULE,
        attempt=attempt,
        started_at=now,
    )
    return Run(execution=execution, deadline=now + limit, timeout=limit, grace=timedelta(0), why_not=nothing_holds)


async def deliver(work: Batuta, clock: FakeClock, attempt: int = 1) -> Ending:
    job = work.registry.find_declared("envia")
    assert job is not None
    return await job.target.deliver(a_run(clock, attempt))


async def nothing_holds() -> None:
    return None


async def test_failing_job_opens_its_circuit_and_its_fires_record_it(database_url: str, clock: FakeClock) -> None:
    runs: list[int] = []
    async with working(database_url, clock) as work:

        @work.job("* * * * *", circuit="gateway")
        async def envia() -> Failed | None:
            runs.append(1)
            return Failed("no chip") if len(runs) <= 3 else None

        assert [(await deliver(work, clock)).status for _ in range(3)] == [Status.ERROR] * 3
        ending = await deliver(work, clock)
        assert (ending.status, ending.reason) == (
            Status.SKIPPED,
            "held: circuit open: gateway, 3 failures in a row; the last: no answer",
        )
        taken_over = await deliver(work, clock, attempt=2)
        assert (taken_over.status, (taken_over.error or "")[:12]) == (Status.ERROR, "circuit open")
        assert len(runs) == 3
        await clock.advance(60)
        assert (await deliver(work, clock)).status is Status.SUCCESS
        (circuit,) = await work.circuits.look()
        assert circuit.state is CircuitState.CLOSED


async def test_job_that_raises_counts_and_a_cancelled_one_does_not(database_url: str, clock: FakeClock) -> None:
    async with working(database_url, clock) as work:

        @work.job("* * * * *", circuit="gateway")
        async def envia(run: Run) -> None:
            if run.execution.attempt > 1:
                await asyncio.Event().wait()
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await deliver(work, clock)
        cut_off = asyncio.create_task(deliver(work, clock, attempt=2))
        for _ in range(50):
            await asyncio.sleep(0)
        cut_off.cancel()
        await asyncio.gather(cut_off, return_exceptions=True)
        (circuit,) = await work.circuits.look()
        assert (circuit.failures, circuit.last_error) == (1, "ZeroDivisionError")


async def test_unknown_or_too_short_circuit_is_refused_at_declaration(database_url: str, clock: FakeClock) -> None:
    work = Batuta(database_url, clock=clock)
    work.circuit("gateway", probe_within=30)
    with pytest.raises(UnknownWord, match="did you mean gateway"):
        work.http_job("envia", "* * * * *", "http://127.0.0.1:1/x", circuit="gatewya")
    with pytest.raises(InvalidJob, match="longer than a probe"):
        work.http_job("envia", "* * * * *", "http://127.0.0.1:1/x", circuit="gateway")


@pytest.mark.parametrize(
    ("ending", "report"),
    [
        (Ending(status=Status.SUCCESS, response_code=200), EffectReport(Effect.WORKED)),
        (Ending(status=Status.ERROR, response_code=404), EffectReport(Effect.MISTAKE, "HTTP 404")),
        (Ending(status=Status.ERROR, response_code=503), EffectReport(Effect.BROKE, "HTTP 503")),
        (Ending(status=Status.ERROR, response_code=200), EffectReport(Effect.BROKE, "HTTP 200")),
        (Ending(status=Status.ERROR, error="refused"), EffectReport(Effect.BROKE, "no answer")),
        (Ending(status=Status.TIMEOUT), EffectReport(Effect.TIMED_OUT, "timeout")),
        (Ending(status=Status.SKIPPED, response_code=409), EffectReport(Effect.MISTAKE, "HTTP 409")),
        (Ending(status=Status.SKIPPED, response_code=200), EffectReport(Effect.WORKED, "HTTP 200")),
        (Ending(status=Status.SKIPPED, reason="held"), None),
    ],
)
def test_each_ending_maps_to_a_report_for_the_circuit(ending: Ending, report: EffectReport | None) -> None:
    assert report_of(ending) == report
