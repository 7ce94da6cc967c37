"""A pause begins, or the jobs' time window ends, in the middle of a batch. Runs that are still waiting for a slot do
not begin.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta

import pytest

from batuta.dispatch.job import Run
from batuta.dispatch.registry import JobRegistry
from batuta.dispatch.scheduler import Scheduler
from batuta.kernel.reasons import code_of
from batuta.runlog.execution import Ending, Execution, Status, Trigger
from batuta.schedule.window import Window
from batuta.targets.http import HttpCaller, HttpTarget
from batuta.testing import FakeClock, FastClock
from tests.engine.dispatch.scheduling import Endpoint, House, job, watch_leases
from tests.faults.figures import LONG, Figures, kind
from tests.faults.simulated import DAY, HOUR, MINUTE, SECOND, UTC_ZONE, RecordingEndpoint, decide, declared, judged
from tests.judges.evidence import Receipt, Rules, Span, Target
from tests.servers import free_port

T0 = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # start of the fake clock: a Monday
PLACES = 4
COUNT = 2000 if LONG else 150


class Slow(RecordingEndpoint):
    """An endpoint whose runs end when the test requests it."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.going: list[asyncio.Event] = []

    async def deliver(self, run: Run) -> Ending:
        start, execution, over = self._clock.now(), run.execution, asyncio.Event()
        self.going.append(over)
        await over.wait()
        self.receipts[execution.id] = Receipt(
            execution.job, execution.id, execution.scheduled_for, execution.attempt, start, self._clock.now()
        )
        return Ending(status=Status.SUCCESS)

    def end_all(self) -> None:
        for over in self.going:
            over.set()
        self.going.clear()


@pytest.fixture
def endpoint(clock: FakeClock) -> Slow:
    return Slow(clock)


async def test_pause_lets_no_waiting_run_of_the_batch_begin(
    house: House, clock: FakeClock, endpoint: Slow, database_url: str
) -> None:
    figures = Figures(
        "T22", kind(database_url), f"a pause of all jobs begins while {COUNT} jobs wait for {PLACES} slots"
    )
    scheduler = house.scheduler(*(declared(endpoint, f"job_{n}", "*/30 * * * *") for n in range(COUNT)))
    await _open_batch(scheduler, clock, T0 + 30 * MINUTE)
    await _work_off(endpoint, clock, rounds=10)
    await house.pause("pause.all")
    paused = clock.now()
    await clock.advance(SECOND)
    await _finish(scheduler, endpoint)
    before = len(endpoint.receipts)
    resumed = clock.now()
    await house.pause("pause.all", on=False)
    await _open_batch(scheduler, clock, T0 + 60 * MINUTE)
    await _finish(scheduler, endpoint)
    batches = [(T0 + 30 * MINUTE, False), (T0 + 60 * MINUTE, True)]
    targets = [Target(f"job_{n}", at, at + 29 * MINUTE, must_run) for at, must_run in batches for n in range(COUNT)]
    rules = Rules(read_at=clock.now() + DAY, epsilon=MINUTE, paused=(Span(paused, resumed),))
    verdict = await judged(house, endpoint, targets, rules)
    figures.record(
        verdict, f"{before} jobs had started before; the other {verdict.explained} jobs were skipped with a reason"
    )
    assert before == 11 * PLACES
    assert verdict.explained == COUNT - before
    assert len(endpoint.receipts) == before + COUNT


async def test_end_of_the_window_lets_no_waiting_run_of_the_batch_begin(
    house: House, clock: FakeClock, endpoint: Slow, database_url: str
) -> None:
    figures = Figures(
        "T22", kind(database_url), f"the time window of {COUNT} jobs ends while they wait for {PLACES} slots"
    )
    window = Window(opens=time(12, 30), lasts=timedelta(minutes=10))
    registry = JobRegistry(windows={"batch": window})
    for n in range(COUNT):
        registry.add(declared(endpoint, f"job_{n}", "0 0 * * *", window="batch"))
    scheduler = house.scheduler(registry=registry)
    opens = T0 + 30 * MINUTE
    await _open_batch(scheduler, clock, opens)
    await _work_off(endpoint, clock, rounds=10)
    closes = window.closes(clock.now(), UTC_ZONE)
    assert closes == T0 + 40 * MINUTE
    await clock.advance(closes - clock.now())
    await _finish(scheduler, endpoint)
    before = len(endpoint.receipts)
    await _open_batch(scheduler, clock, opens + DAY)
    await _finish(scheduler, endpoint)
    targets = [
        Target(f"job_{n}", at, at + 9 * MINUTE, must_run) for at, must_run in ((opens, False), (opens + DAY, True))
        for n in range(COUNT)
    ]  # fmt: skip
    rules = Rules(read_at=clock.now() + DAY, epsilon=MINUTE, closed=(Span(closes, opens + DAY),))
    verdict = await judged(house, endpoint, targets, rules)
    figures.record(
        verdict, f"{before} jobs had started before; the other {verdict.explained} jobs were skipped with a reason"
    )
    assert before == 11 * PLACES
    assert len(endpoint.receipts) == before + COUNT


async def test_run_of_a_dead_process_is_not_delivered_again_during_a_pause(house: House, clock: FakeClock) -> None:
    """If a scheduler dies while it is delivering a run, it is impossible to know whether the run was delivered. The
    run's row therefore says neither that the run took place nor that it did not.
    """
    endpoint = Endpoint(gate=asyncio.Event())
    dead, alive = (house.scheduler(job(target=endpoint)) for _ in range(2))
    for each in (dead, alive):
        clock.step(T0 - clock.now())
        await each.dispatcher.tick()
    clock.step(MINUTE)
    await dead.dispatcher.tick()
    await house.pause("pause.all")
    await watch_leases(clock, alive)
    (row,) = await house.rows()
    assert row["status"] == "abandoned"
    assert (code_of(row["reason"]), code_of(row["reason"].facts["why"])) == ("held_now", "silent")
    assert [run.execution.attempt for run in endpoint.runs] == [1]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await dead.runner.finish()
    await alive.runner.finish()


async def test_pause_stops_a_run_that_waits_for_its_endpoint_to_come_back(house: House, clock: FakeClock) -> None:
    said: list[str | None] = []

    class Restarting(Endpoint):
        async def deliver(self, run: Run) -> Ending:
            said.append(await run.why_not())
            await house.pause("pause.job.pulse")
            said.append(await run.why_not())
            return Ending(status=Status.SUCCESS)

    scheduler = house.scheduler(job(target=Restarting()))
    await _open_batch(scheduler, clock, T0 + MINUTE)
    await scheduler.runner.finish()
    assert said[0] is None
    assert code_of(said[1]) == "paused_job"


async def test_refused_delivery_asks_before_every_retry() -> None:
    clock = FastClock.start(T0, rate=50)
    caller = HttpCaller(clock)
    answers = iter([None, None, "switch pause.all is on"])

    async def why_not() -> str | None:
        return next(answers)

    execution = Execution(
        id="key", job="pulse", category="default", scheduled_for=T0, trigger=Trigger.SCHEDULE, attempt=1, started_at=T0
    )
    run = Run(execution=execution, deadline=T0, timeout=MINUTE, grace=HOUR, why_not=why_not)
    ending = await HttpTarget(f"http://127.0.0.1:{free_port()}/pulse", caller).deliver(run)
    await caller.close()
    assert (ending.status, ending.reason) == (Status.SKIPPED, "held: switch pause.all is on")


async def _open_batch(scheduler: Scheduler, clock: FakeClock, at: datetime) -> None:
    clock.step(at - HOUR / 4 - clock.now())
    await decide(scheduler)
    clock.step(at - clock.now())
    await decide(scheduler)


async def _work_off(endpoint: Slow, clock: FakeClock, rounds: int) -> None:
    for _ in range(rounds):
        await _until(lambda: len(endpoint.going) == PLACES)
        await clock.advance(SECOND)
        endpoint.end_all()
    await _until(lambda: len(endpoint.going) == PLACES)


async def _finish(scheduler: Scheduler, endpoint: Slow) -> None:
    finishing = asyncio.create_task(scheduler.runner.finish())
    while not finishing.done():
        endpoint.end_all()
        await asyncio.sleep(0.001)
    await finishing


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.001)
