"""How the supervisor runs loops: ticks, failures, wake-ups and stops. The tests use a fake clock."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from batuta.kernel.errors import InvalidName, LoopGaveUp, StoreReadOnly, StoreTimeout, StoreUnavailable
from batuta.kernel.events import LoopAbandoned, LoopEnded, LoopFailed, LoopRecovered
from batuta.supervise.loop import Again, FunctionLoop, Idle, LoopPolicy, Pace, Wakeup, loop_of
from batuta.supervise.supervisor import Supervisor
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle

EVERY_TEN = LoopPolicy(every=timedelta(seconds=10), stuck_after=timedelta(minutes=1))
GRACE = timedelta(seconds=5)
Tick = Callable[[], Awaitable[Pace | None]]


class Ticker:
    """Loop whose ticks follow a script that the test provides. After the script it is idle."""

    def __init__(self, *script: Pace | Exception, name: str = "ticker") -> None:
        self.name = name
        self.wakeup = Wakeup()
        self.ticks = 0
        self.drained = False
        self._script = list(script)

    async def tick(self) -> Pace:
        self.ticks += 1
        step = self._script.pop(0) if self._script else Idle()
        if isinstance(step, Exception):
            raise step
        return step

    async def drain(self, grace: timedelta) -> None:
        self.drained = True


@asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    task = asyncio.create_task(supervisor.run(stop, GRACE))
    await settle()
    yield stop
    stop.set()
    await task


async def test_idle_waits_for_its_interval_and_again_does_not_wait(supervisor: Supervisor, clock: FakeClock) -> None:
    loop = Ticker(Again(), Again(), Idle())
    supervisor.add(loop, EVERY_TEN)
    async with running(supervisor):
        assert loop.ticks == 3
        await clock.advance(9.9)
        assert loop.ticks == 3
        await clock.advance(0.2)
        assert loop.ticks == 4


async def test_loops_that_started_apart_rest_until_the_same_instants(supervisor: Supervisor, clock: FakeClock) -> None:
    often, seldom = Ticker(name="often"), Ticker(name="seldom")
    supervisor.add(often, replace(EVERY_TEN, every=timedelta(seconds=2)))
    supervisor.add(seldom, EVERY_TEN)
    async with running(supervisor):
        await clock.advance(0.7)
        often.wakeup.set()
        await clock.advance(1.2)
        assert often.ticks == 2
        await clock.advance(0.1)  # two seconds after the start, not after the last tick
        assert (often.ticks, seldom.ticks) == (3, 1)
        await clock.advance(7.9)
        seldom.wakeup.set()
        await clock.advance(0.1)
        assert (often.ticks, seldom.ticks) == (7, 2)
        await clock.advance(9.7)
        assert seldom.ticks == 2  # the next instant was too close
        await clock.advance(0.2)
        assert seldom.ticks == 3


async def test_idle_until_wakes_at_that_instant(supervisor: Supervisor, clock: FakeClock) -> None:
    loop = Ticker(Idle(clock.now() + timedelta(seconds=3)))
    supervisor.add(loop, EVERY_TEN)
    async with running(supervisor):
        await clock.advance(2.9)
        assert loop.ticks == 1
        await clock.advance(0.2)
        assert loop.ticks == 2


async def test_wakeup_wakes_an_idle_loop_at_once(supervisor: Supervisor) -> None:
    loop = Ticker()
    supervisor.add(loop, EVERY_TEN)
    async with running(supervisor):
        loop.wakeup.set()
        await settle()
        assert loop.ticks == 2


async def test_wakeup_during_a_tick_is_kept(supervisor: Supervisor) -> None:
    ticks = 0

    async def rings_itself_once() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 1:
            loop.wakeup.set()

    loop = FunctionLoop("self-ringer", rings_itself_once)
    supervisor.add(loop, EVERY_TEN)
    async with running(supervisor):
        assert ticks == 2


async def test_failing_loop_backs_off_and_reports_its_recovery(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    loop = Ticker(ValueError(), ValueError(), ValueError(), Idle())
    supervisor.add(loop, EVERY_TEN)
    async with running(supervisor):
        await clock.advance(timedelta(seconds=1 + 2 + 4))
    waits = [failure.again_in.total_seconds() for failure in events.of(LoopFailed)]
    assert waits == [1, 2, 4]
    assert events.of(LoopRecovered) == [LoopRecovered("ticker", 3, timedelta(seconds=7))]


async def test_too_many_consecutive_failures_drain_the_others_and_end_the_process(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    broken, neighbour = Ticker(*[ValueError() for _ in range(5)], name="broken"), Ticker(name="neighbour")
    supervisor.add(broken, EVERY_TEN)
    supervisor.add(neighbour, EVERY_TEN)
    task = asyncio.create_task(supervisor.run(asyncio.Event(), GRACE))
    await clock.advance(60)
    with pytest.raises(LoopGaveUp, match="broken failed 5 times"):
        await task
    assert neighbour.drained
    assert {ended.loop for ended in events.of(LoopEnded)} == {"broken", "neighbour"}


@pytest.mark.parametrize("kind", [StoreUnavailable, StoreTimeout, StoreReadOnly])
async def test_loop_waits_for_an_unavailable_or_read_only_database_without_limit(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder, kind: type[StoreUnavailable]
) -> None:
    away = kind(where="db", why="down")
    loop = Ticker(*[away] * 20, Idle())
    supervisor.add(loop, EVERY_TEN)
    async with running(supervisor):
        await clock.advance(timedelta(hours=1))
    assert len(events.of(LoopFailed)) == 20
    assert len(events.of(LoopRecovered)) == 1


async def test_failures_that_are_not_consecutive_do_not_add_up(supervisor: Supervisor, clock: FakeClock) -> None:
    script: list[Pace | Exception] = [ValueError(), Again()] * 20
    loop = Ticker(*script)
    supervisor.add(loop, EVERY_TEN)
    async with running(supervisor):
        await clock.advance(60)
        assert loop.ticks > 40


async def test_loop_that_never_returns_does_not_block_the_others(supervisor: Supervisor, clock: FakeClock) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    healthy = Ticker()
    supervisor.add(FunctionLoop("stuck", never), EVERY_TEN)
    supervisor.add(healthy, EVERY_TEN)
    task = asyncio.create_task(supervisor.run(asyncio.Event(), GRACE))
    await clock.advance(35)
    assert healthy.ticks == 4
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_stop_wakes_idle_loops_and_drains_them_all(supervisor: Supervisor, events: EventRecorder) -> None:
    for name in ("first", "second", "third"):
        supervisor.add(Ticker(name=name), EVERY_TEN)
    async with running(supervisor):
        pass
    assert {ended.loop for ended in events.of(LoopEnded)} == {"first", "second", "third"}
    assert all(ended.drained for ended in events.of(LoopEnded))


async def test_drain_that_does_not_end_is_cancelled_after_the_grace_period(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    class Clinging(Ticker):
        async def drain(self, grace: timedelta) -> None:
            await asyncio.Event().wait()

    supervisor.add(Clinging(), EVERY_TEN)
    stop = asyncio.Event()
    task = asyncio.create_task(supervisor.run(stop, GRACE))
    await settle()
    stop.set()
    await clock.advance(GRACE)
    await task
    assert events.of(LoopEnded) == [LoopEnded("ticker", drained=False)]


def test_two_loops_with_the_same_name_are_refused(supervisor: Supervisor) -> None:
    supervisor.add(Ticker(), EVERY_TEN)
    with pytest.raises(InvalidName, match="another loop"):
        supervisor.add(Ticker(), EVERY_TEN)


@pytest.mark.parametrize("nothing", ["every", "stuck_after", "backoff"])
def test_policy_with_a_zero_duration_is_refused(nothing: str) -> None:
    times = {"every": timedelta(seconds=1), "stuck_after": timedelta(seconds=1), nothing: timedelta(0)}
    with pytest.raises(ValueError, match="must be positive"):
        LoopPolicy(**times)  # type: ignore[arg-type]


def test_policy_without_an_allowed_failure_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one failure"):
        LoopPolicy(every=timedelta(1), stuck_after=timedelta(1), max_failures=0)


async def test_stop_waits_for_a_tick_until_its_share_of_the_grace_period_ends(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    supervisor.add(FunctionLoop("stuck", never), replace(EVERY_TEN, finishes_tick=True))
    supervisor.add(Ticker(name="quiet"), EVERY_TEN)
    stop = asyncio.Event()
    task = asyncio.create_task(supervisor.run(stop, GRACE))
    await settle()
    stop.set()
    await clock.advance(GRACE - timedelta(seconds=1))
    assert not task.done()
    await clock.advance(1)
    await task
    assert {ended.loop: ended.drained for ended in events.of(LoopEnded)} == {"stuck": False, "quiet": True}


async def test_other_loops_finish_their_ticks_when_one_is_abandoned(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    finished = asyncio.Event()

    async def sends() -> None:
        await clock.sleep(18)
        finished.set()

    supervisor.add(Ticker(*[ValueError() for _ in range(5)], name="broken"), EVERY_TEN)
    supervisor.add(FunctionLoop("sender", sends), replace(EVERY_TEN, finishes_tick=True))
    task = asyncio.create_task(supervisor.run(asyncio.Event(), GRACE))
    await clock.advance(1 + 2 + 4 + 8)  # the fifth failure
    assert events.of(LoopAbandoned)[0].failures == 5
    assert not finished.is_set()
    await clock.advance(4)
    with pytest.raises(LoopGaveUp):
        await task
    assert finished.is_set()
    assert LoopEnded("sender", drained=True) in events.all


@pytest.mark.parametrize("garbage", [5, "soon", True])
async def test_loop_that_returns_an_invalid_value_fails_alone_and_by_name(
    supervisor: Supervisor, events: EventRecorder, garbage: object
) -> None:
    async def returns_nonsense() -> object:
        return garbage

    healthy = Ticker()
    supervisor.add(FunctionLoop("mine", returns_nonsense), EVERY_TEN)  # type: ignore[arg-type]
    supervisor.add(healthy, EVERY_TEN)
    async with running(supervisor):
        assert healthy.ticks == 1
    assert f"loop mine returned {type(garbage).__name__}" in str(events.of(LoopFailed)[0].error)


def test_instant_without_a_zone_and_unusable_function_are_refused() -> None:
    def pages() -> Iterator[int]:
        yield 1

    with pytest.raises(ValueError, match="with a time zone"):
        Idle(datetime(2026, 1, 5))
    with pytest.raises(InvalidName, match="must not yield"):
        loop_of("mine", pages)
    with pytest.raises(InvalidName, match="must take no arguments"):
        loop_of("mine", lambda page: None)


async def test_backoff_during_an_outage_never_exceeds_the_interval(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    loop = Ticker(*[StoreUnavailable(where="db", why="down")] * 30, Idle())
    supervisor.add(loop, EVERY_TEN)
    async with running(supervisor):
        await clock.advance(timedelta(minutes=10))
    assert max(failure.again_in for failure in events.of(LoopFailed)) <= timedelta(seconds=10)


async def test_loop_that_awaits_a_cancelled_task_fails_and_continues(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    ticks = 0

    async def awaits_a_cancelled_task() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 1:
            inner = asyncio.create_task(asyncio.Event().wait())
            inner.cancel()
            await inner

    supervisor.add(FunctionLoop("mine", awaits_a_cancelled_task), EVERY_TEN)
    async with running(supervisor):
        await clock.advance(2)
        assert ticks == 2
    assert isinstance(events.of(LoopFailed)[0].error, asyncio.CancelledError)


async def test_loop_that_raises_a_base_exception_stops_the_process(supervisor: Supervisor) -> None:
    class TheEnd(BaseException):
        pass

    async def ends() -> None:
        raise TheEnd

    neighbour = Ticker(name="neighbour")
    supervisor.add(FunctionLoop("mine", ends), EVERY_TEN)
    supervisor.add(neighbour, EVERY_TEN)
    with pytest.raises(TheEnd):
        await asyncio.wait_for(supervisor.run(asyncio.Event(), GRACE), 60)
    assert neighbour.drained


async def test_loop_that_raises_system_exit_fails_and_the_others_continue(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    async def exits() -> None:
        raise SystemExit(0)

    neighbour = Ticker(name="neighbour")
    supervisor.add(FunctionLoop("exiting", exits), replace(EVERY_TEN, max_failures=2))
    supervisor.add(neighbour, EVERY_TEN)
    ended = asyncio.create_task(supervisor.run(asyncio.Event(), GRACE))
    await settle()
    assert [str(failed.error.facts["raised"]) for failed in events.of(LoopFailed)] == ["SystemExit"]  # type: ignore[attr-defined]
    assert neighbour.ticks == 1
    assert not ended.done()
    await clock.advance(2)
    with pytest.raises(LoopGaveUp):
        await ended
    assert neighbour.drained


@pytest.mark.parametrize("error", [ValueError(), SystemExit(3)])
async def test_failing_drain_does_not_keep_the_others_from_draining(
    supervisor: Supervisor, events: EventRecorder, error: BaseException
) -> None:
    class Failing(Ticker):
        async def drain(self, grace: timedelta) -> None:
            raise error

    first = Ticker(name="first")
    supervisor.add(first, EVERY_TEN)
    supervisor.add(Failing(name="failing"), EVERY_TEN)
    async with running(supervisor):
        pass
    assert first.drained
    assert {ended.loop: ended.drained for ended in events.of(LoopEnded)} == {"failing": False, "first": True}
