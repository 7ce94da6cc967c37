"""All loops share one shutdown deadline, and a slow loop does not delay the others. The tests use a fake clock."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from batuta.kernel.errors import CancelIgnored
from batuta.kernel.events import LoopEnded, LoopFailed, ShutdownPhase
from batuta.processes.heartbeat import ProcessStatus, status_of
from batuta.supervise.loop import FunctionLoop, Idle, LoopPolicy, Pace, Wakeup, loop_of
from batuta.supervise.shutdown import EXIT_MARGIN, Phase, Shutdown
from batuta.supervise.supervisor import Supervisor
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle

SECOND = timedelta(seconds=1)
GRACE = 30 * SECOND
EVERY_TEN = LoopPolicy(every=10 * SECOND, stuck_after=timedelta(minutes=5))
OUTLIVING = replace(EVERY_TEN, every=SECOND, outlives=True)


class Draining:
    """Loop that records when its drain begins and ends, and the length of its grace period."""

    def __init__(self, name: str, clock: FakeClock, *, tick: float = 0, drain: float = 0) -> None:
        self.name = name
        self.wakeup = Wakeup()
        self.ticks = 0
        self.began_at: float | None = None
        self.ended_at: float | None = None
        self.grace: timedelta | None = None
        self._clock = clock
        self._tick, self._drain = tick, drain

    async def tick(self) -> Pace:
        self.ticks += 1
        if self._tick:
            await self._clock.sleep(self._tick)
        return Idle()

    async def drain(self, grace: timedelta) -> None:
        self.began_at, self.grace = self._clock.monotonic(), grace
        if self._drain:
            await self._clock.sleep(self._drain)
        self.ended_at = self._clock.monotonic()


class Stopped:
    """A supervisor that received its stop request at ``at``."""

    def __init__(self, supervisor: Supervisor, clock: FakeClock) -> None:
        self._clock = clock
        self._stop = asyncio.Event()
        self.task = asyncio.create_task(supervisor.run(self._stop, GRACE))
        self.at = 0.0

    async def ask(self) -> None:
        await settle()
        self._stop.set()
        self.at = self._clock.monotonic()
        await settle()

    async def took(self) -> float:
        """Return the seconds from the stop request to the end, rounded to a tenth."""
        for _ in range(2_000):
            if self.task.done():
                break
            await self._clock.advance(0.1)
        await self.task
        return round(self._clock.monotonic() - self.at, 1)


async def test_long_poll_without_a_drain_is_cancelled_at_once(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    async def polls() -> None:
        await clock.sleep(28)

    worker = Draining("worker", clock, drain=2)
    supervisor.add(FunctionLoop("telegram", polls), EVERY_TEN)
    supervisor.add(worker, EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    assert worker.began_at == stopped.at
    assert await stopped.took() == 2
    assert {ended.loop: ended.drained for ended in events.of(LoopEnded)} == {"telegram": True, "worker": True}


async def test_process_with_nothing_to_drain_ends_at_once(supervisor: Supervisor, clock: FakeClock) -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    for name in ("ping", "alerts", "pruner"):
        supervisor.add(FunctionLoop(name, hangs), EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    assert await stopped.took() == 0


async def test_two_loops_drain_concurrently_with_the_whole_grace_period_each(
    supervisor: Supervisor, clock: FakeClock
) -> None:
    loops = [Draining("worker:a", clock, drain=20), Draining("worker:b", clock, drain=25)]
    for loop in loops:
        supervisor.add(loop, EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    assert [(loop.began_at, loop.grace) for loop in loops] == [(stopped.at, GRACE), (stopped.at, GRACE)]
    assert await stopped.took() == 25
    assert [loop.ended_at for loop in loops] == [stopped.at + 20, stopped.at + 25]


async def test_slow_tick_delays_only_its_own_loop(supervisor: Supervisor, clock: FakeClock) -> None:
    slow, quick = Draining("slow", clock, tick=50), Draining("quick", clock)
    supervisor.add(slow, EVERY_TEN)
    supervisor.add(quick, EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    await clock.advance(2)
    assert quick.ended_at is not None
    assert quick.ended_at <= stopped.at + 1
    assert await stopped.took() <= GRACE.total_seconds()
    # The tick was cancelled when the phase for finishing work ended, so that enough time remains to release the tick's
    # work.
    assert slow.began_at == stopped.at + 27
    assert slow.grace == 3 * SECOND


async def test_running_tick_ends_before_the_drain_begins(supervisor: Supervisor, clock: FakeClock) -> None:
    claiming, other = Draining("claiming", clock, tick=0.5), Draining("other", clock)
    supervisor.add(claiming, EVERY_TEN)
    supervisor.add(other, EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    assert await stopped.took() == 0.5
    assert claiming.ticks == 1
    # The other loop's drain waits a short time for this tick. In the product, a dispatcher's tick may still start a run
    # in the runner.
    assert claiming.began_at == other.began_at == stopped.at + 0.5


async def test_loop_that_claims_for_another_finishes_its_tick_without_a_drain(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    started: list[float] = []

    async def dispatches() -> None:
        await clock.sleep(0.5)
        started.append(clock.monotonic())

    supervisor.add(FunctionLoop("dispatcher", dispatches), replace(EVERY_TEN, finishes_tick=True))
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    assert await stopped.took() == 0.5
    assert len(started) == 1
    assert events.of(LoopEnded) == [LoopEnded("dispatcher", drained=True)]


async def test_loop_that_outlives_the_others_ticks_until_they_have_drained(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    keeper, worker = Draining("lease-keeper", clock), Draining("worker", clock, drain=20)
    supervisor.add(keeper, OUTLIVING)
    supervisor.add(worker, EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    before = keeper.ticks
    assert await stopped.took() == 20
    assert keeper.ticks >= before + 19
    assert keeper.began_at == worker.ended_at
    assert [ended.loop for ended in events.of(LoopEnded)] == ["worker", "lease-keeper"]


async def test_loop_that_outlives_the_others_is_restarted_while_they_drain(
    supervisor: Supervisor, clock: FakeClock
) -> None:
    ticks = 0

    async def renews() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 1:
            await asyncio.Event().wait()

    supervisor.add(FunctionLoop("lease-keeper", renews), replace(OUTLIVING, stuck_after=10 * SECOND))
    supervisor.add(Draining("worker", clock, drain=25), EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    assert await stopped.took() == 25
    assert ticks > 1


async def test_endless_ticks_and_drains_take_the_grace_period_and_a_small_margin(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    for n in range(3):
        supervisor.add(Draining(f"stuck-{n}", clock, tick=500, drain=500), EVERY_TEN)
    supervisor.add(Draining("heartbeat", clock, drain=500), OUTLIVING)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    took = await stopped.took()
    assert GRACE.total_seconds() <= took <= (GRACE + EXIT_MARGIN / 2).total_seconds()
    assert not any(ended.drained for ended in events.of(LoopEnded))


async def test_loop_that_ignores_its_cancellation_is_reported_and_blocks_no_other(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    release = asyncio.Event()

    async def ignores() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    worker = Draining("worker", clock, drain=1)
    supervisor.add(FunctionLoop("deaf", ignores), EVERY_TEN)
    supervisor.add(worker, EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    assert worker.began_at == stopped.at
    with pytest.raises(CancelIgnored, match="deaf"):
        await stopped.took()
    assert clock.monotonic() - stopped.at <= 5.2
    assert {ended.loop: ended.drained for ended in events.of(LoopEnded)} == {"deaf": False, "worker": True}
    release.set()


async def test_failing_drain_is_reported_once_and_blocks_no_other(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    class Failing(Draining):
        async def drain(self, grace: timedelta) -> None:
            raise ValueError

    other = Draining("other", clock, drain=3)
    supervisor.add(Failing("failing", clock), EVERY_TEN)
    supervisor.add(other, EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    assert await stopped.took() == 3
    assert [failed.loop for failed in events.of(LoopFailed)] == ["failing"]
    assert {ended.loop: ended.drained for ended in events.of(LoopEnded)} == {"failing": False, "other": True}


async def test_error_of_a_cancelled_tick_does_not_count_as_a_failure(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    async def translates() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("cut off") from None

    supervisor.add(FunctionLoop("ping", translates), replace(EVERY_TEN, max_failures=1))
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    assert await stopped.took() == 0
    assert events.of(LoopFailed) == []


async def test_cancelled_shutdown_leaves_no_drain_behind(supervisor: Supervisor, clock: FakeClock) -> None:
    worker = Draining("worker", clock, drain=20)
    supervisor.add(worker, EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    stopped.task.cancel()
    await asyncio.gather(stopped.task, return_exceptions=True)
    await clock.advance(60)
    assert worker.began_at is not None
    assert worker.ended_at is None


async def test_process_in_shutdown_is_draining_and_not_degraded(supervisor: Supervisor, clock: FakeClock) -> None:
    supervisor.add(Draining("worker", clock, drain=20), EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await settle()
    assert status_of(supervisor.running, clock.monotonic()) is ProcessStatus.ONLINE
    await stopped.ask()
    assert status_of(supervisor.running, clock.monotonic()) is ProcessStatus.DRAINING
    assert await stopped.took() == 20


async def test_class_without_a_drain_has_nothing_to_drain(supervisor: Supervisor, clock: FakeClock) -> None:
    class Polling:
        async def tick(self) -> None:
            await clock.sleep(28)

    supervisor.add(loop_of("polling", Polling), EVERY_TEN)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    assert await stopped.took() == 0


async def test_each_phase_emits_an_event_with_its_loops(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    supervisor.add(Draining("slow", clock, tick=0.7, drain=500), EVERY_TEN)
    supervisor.add(Draining("long", clock, drain=10), EVERY_TEN)
    supervisor.add(Draining("quick", clock), EVERY_TEN)
    supervisor.add(Draining("heartbeat", clock), OUTLIVING)
    stopped = Stopped(supervisor, clock)
    await stopped.ask()
    await stopped.took()
    assert [(each.phase, each.loops) for each in events.of(ShutdownPhase)] == [
        ("quiet", ("slow",)),
        ("finish", ("slow", "long")),
        ("cancel", ("slow",)),
        ("hand back", ("slow",)),
    ]


def test_phases_share_one_deadline(clock: FakeClock) -> None:
    shutdown = Shutdown.begin(clock, 20 * SECOND)
    assert [shutdown.time_left(phase) for phase in Phase] == [SECOND, 18 * SECOND, 19 * SECOND, 20 * SECOND]
    clock._pass(18.5)
    assert [shutdown.time_left(phase) for phase in Phase] == [0 * SECOND, 0 * SECOND, SECOND / 2, 3 * SECOND / 2]
    assert Shutdown.begin(clock, SECOND).time_left(Phase.QUIET) == SECOND / 20


async def test_work_within_a_phase_ends_by_itself_or_is_cancelled_with_the_phase(clock: FakeClock) -> None:
    shutdown = Shutdown.begin(clock, 10 * SECOND)
    quick = asyncio.create_task(shutdown.run_within(Phase.FINISH, clock.sleep(8)))
    slow = asyncio.create_task(shutdown.run_within(Phase.FINISH, clock.sleep(9.5)))
    await clock.advance(9)
    assert (await quick, await slow) == (True, False)
