"""The watchdog restarts only the stuck loop. If a loop ignores its cancellation, its process shuts down in an orderly
manner.
"""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from batuta.kernel.errors import CancelIgnored, InvalidLoop, InvalidName, LoopGaveUp
from batuta.kernel.events import LoopAbandoned, LoopEnded, LoopRecovered, LoopRestarted, LoopStuck, TaskUncancellable
from batuta.stores.connections import ObservedDatabase
from batuta.stores.sql.queries import query_of
from batuta.supervise.loop import FunctionLoop, Idle, LoopPolicy, bind, loop_of, note_progress, policy_in_seconds
from batuta.supervise.supervisor import Supervisor
from batuta.testing import EventRecorder, FakeClock
from tests.engine.supervise.test_supervisor import GRACE, running

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
WATCHED = LoopPolicy(every=10 * SECOND, stuck_after=MINUTE)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a thread has made the condition true. The time limit is generous, because the machine may be busy."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0)


class Hanging:
    """Loop whose first ``times`` ticks never end."""

    def __init__(self, times: int) -> None:
        self.ticks = 0
        self._times = times

    async def tick(self) -> None:
        self.ticks += 1
        if self.ticks <= self._times:
            await self._wait_for_ever()

    async def _wait_for_ever(self) -> None:
        await asyncio.Event().wait()


async def test_stuck_loop_is_restarted_alone_and_its_stack_is_reported(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    hanging, neighbour = Hanging(times=1), Hanging(times=0)
    supervisor.add(FunctionLoop("hanging", hanging.tick), WATCHED)
    supervisor.add(FunctionLoop("neighbour", neighbour.tick), WATCHED)
    async with running(supervisor):
        await clock.advance(MINUTE - SECOND)
        assert hanging.ticks == 1
        await clock.advance(3 * SECOND)
        assert hanging.ticks == 2
        assert neighbour.ticks == 7
    (stuck,) = events.of(LoopStuck)
    assert (stuck.loop, stuck.silent_for, stuck.limit) == ("hanging", MINUTE, MINUTE)
    assert "in _wait_for_ever" in stuck.stack  # the innermost frame, not only the outermost
    assert [(each.loop, each.restarts) for each in events.of(LoopRestarted)] == [("hanging", 1)]
    assert len(events.of(LoopRecovered)) == 1


async def test_long_tick_that_notes_its_progress_is_not_stuck(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    async def reads_many_pages() -> None:
        for _ in range(10):
            await clock.sleep(50)
            note_progress()

    supervisor.add(FunctionLoop("reader", reads_many_pages), WATCHED)
    async with running(supervisor):
        await clock.advance(timedelta(seconds=505))
        assert supervisor.running[0].notes == 10
    assert events.of(LoopStuck) == []


async def test_progress_counts_from_code_that_a_tick_awaits_but_not_from_its_tasks(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    async def works_on_something_else() -> None:
        bind(None)
        for _ in range(10):
            await clock.sleep(10)
            note_progress()

    async def starts_and_hangs() -> None:
        started.append(asyncio.create_task(works_on_something_else()))
        await asyncio.Event().wait()

    started: list[asyncio.Task[None]] = []
    supervisor.add(FunctionLoop("starter", starts_and_hangs), WATCHED)
    async with running(supervisor):
        await clock.advance(MINUTE)
        assert len(events.of(LoopStuck)) == 1
    for each in started:
        each.cancel()
    note_progress()  # without effect outside a loop


async def test_loop_that_idles_longer_than_its_limit_is_not_stuck(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    resting = Hanging(times=0)
    supervisor.add(FunctionLoop("resting", resting.tick), LoopPolicy(every=10 * MINUTE, stuck_after=SECOND))
    async with running(supervisor):
        await clock.advance(25 * MINUTE)
        assert resting.ticks == 3
    assert events.of(LoopStuck) == []


async def test_repeatedly_stuck_loop_ends_the_process_after_its_budget(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    supervisor.add(
        FunctionLoop("hanging", Hanging(times=99).tick), LoopPolicy(every=SECOND, stuck_after=MINUTE, max_restarts=3)
    )
    task = asyncio.create_task(supervisor.run(asyncio.Event(), GRACE))
    await clock.advance(5 * MINUTE)
    with pytest.raises(LoopGaveUp, match="hanging failed 4 times"):
        await task
    assert [each.restarts for each in events.of(LoopRestarted)] == [1, 2, 3, 4]
    assert len(events.of(LoopAbandoned)) == 1


async def test_healthy_period_restores_the_restart_budget(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    ticks = 0

    async def hangs_every_twentieth_time() -> None:
        nonlocal ticks
        ticks += 1
        if ticks % 20 == 0:
            await asyncio.Event().wait()

    policy = LoopPolicy(every=MINUTE, stuck_after=MINUTE, max_restarts=1)
    supervisor.add(FunctionLoop("now and then", hangs_every_twentieth_time), policy)
    async with running(supervisor):
        await clock.advance(110 * MINUTE)
        assert supervisor.running[0].restarts == 5
    assert {each.restarts for each in events.of(LoopRestarted)} == {1}


async def test_ignored_cancellation_lets_the_others_drain_and_ends_the_process(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    release = asyncio.Event()

    async def swallows() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    neighbour = Hanging(times=0)
    supervisor.add(FunctionLoop("deaf", swallows), WATCHED)
    supervisor.add(FunctionLoop("neighbour", neighbour.tick), WATCHED)
    task = asyncio.create_task(supervisor.run(asyncio.Event(), GRACE))
    await clock.advance(MINUTE + 10 * SECOND)  # time for two cancellations
    assert [each.loop for each in events.of(TaskUncancellable)] == ["deaf"]
    assert "in swallows" in events.of(TaskUncancellable)[0].stack
    await clock.advance(2 * GRACE)
    with pytest.raises(CancelIgnored, match="deaf ignores its cancellation"):
        await task
    assert {each.loop: each.drained for each in events.of(LoopEnded)} == {"deaf": False, "neighbour": True}
    release.set()


async def test_tick_that_turns_its_cancellation_into_a_return_or_error_is_restarted(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    ticks = 0

    async def answers_in_its_own_way() -> None:
        nonlocal ticks
        ticks += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if ticks == 1:
                return
            raise ValueError from None

    supervisor.add(FunctionLoop("mine", answers_in_its_own_way), WATCHED)
    stop = asyncio.Event()
    task = asyncio.create_task(supervisor.run(stop, GRACE))
    await clock.advance(3 * MINUTE)
    assert [each.restarts for each in events.of(LoopRestarted)] == [1, 2]
    stop.set()
    await clock.advance(GRACE)
    await task


async def test_stop_during_a_restart_stops_the_loop(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    async def takes_its_time_to_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await clock.sleep(4)

    supervisor.add(FunctionLoop("slow", takes_its_time_to_end), WATCHED)
    stop = asyncio.Event()
    task = asyncio.create_task(supervisor.run(stop, GRACE))
    await clock.advance(MINUTE + SECOND)
    stop.set()
    await clock.advance(4 * SECOND)
    await task
    assert len(events.of(LoopRestarted)) == 1


def test_contradictory_limits_are_refused_with_the_correction() -> None:
    with pytest.raises(
        ValueError, match=r"stuck_after \(30 s\) must be longer than the longest call \(30 s\): raise it"
    ):
        LoopPolicy(every=SECOND, stuck_after=30 * SECOND, longest_call=30 * SECOND)
    with pytest.raises(ValueError, match="at least one restart"):
        LoopPolicy(every=SECOND, stuck_after=SECOND, max_restarts=0)


async def test_loop_is_a_function_or_a_class_and_its_limits_are_checked() -> None:
    class Outbound:
        ticks = 0

        async def tick(self) -> None:
            self.ticks += 1

    assert await loop_of("outbound", Outbound).tick() == Idle()
    assert loop_of("hanging", Hanging(times=0).tick).drain is None
    with pytest.raises(InvalidName, match="must have a method tick"):
        loop_of("nothing", object)
    with pytest.raises(InvalidLoop, match="loop outbound cannot run as it is declared: stuck_after"):
        policy_in_seconds("outbound", 2, 60, longest_call=120)


@pytest.mark.parametrize(
    "limit", [{"every": float("inf")}, {"every": float("nan")}, {"stuck_after": -1}, {"max_failures": float("inf")}]
)
def test_infinite_or_negative_limit_is_refused_with_the_name_of_the_loop(limit: dict[str, Any]) -> None:
    with pytest.raises(InvalidLoop, match="outbound"):
        policy_in_seconds("outbound", **{"every": 2, "stuck_after": 60, **limit})


async def test_class_with_a_drain_is_drained(supervisor: Supervisor) -> None:
    class Outbound:
        ticked = drained = False

        async def tick(self) -> None:
            Outbound.ticked = True

        async def drain(self, grace: timedelta) -> None:
            Outbound.drained = True

    supervisor.add(loop_of("outbound", Outbound), WATCHED)
    async with running(supervisor):
        pass
    assert Outbound.ticked
    assert Outbound.drained


class Blocked:
    """Loop whose tick is a plain ``def`` function that blocks until ``go`` is set."""

    def __init__(self) -> None:
        self.go, self.ticks, self.at_once, self.most = threading.Event(), 0, 0, 0

    def tick(self) -> None:
        self.ticks += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        self.go.wait(60)
        note_progress()
        self.at_once -= 1


async def test_plain_function_blocks_its_thread_alone(supervisor: Supervisor, clock: FakeClock) -> None:
    blocked, neighbour = Blocked(), Hanging(times=0)
    supervisor.add(loop_of("blocked", blocked.tick), WATCHED)
    supervisor.add(FunctionLoop("neighbour", neighbour.tick), WATCHED)
    async with running(supervisor):
        await until(lambda: blocked.ticks == 1)
        await clock.advance(30 * SECOND)
        assert (blocked.ticks, neighbour.ticks) == (1, 4)
        blocked.go.set()
        await until(lambda: not supervisor.running[0].is_ticking)
        assert supervisor.running[0].notes == 1  # the thread records the progress of its loop
        await clock.advance(10 * SECOND)
        await until(lambda: blocked.ticks == 2)


async def test_stuck_thread_that_ends_late_is_restarted_and_never_runs_twice(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    blocked = Blocked()
    supervisor.add(loop_of("blocked", blocked.tick), WATCHED)
    async with running(supervisor):
        await until(lambda: blocked.ticks == 1)
        await clock.advance(MINUTE + SECOND)
        (stuck,) = events.of(LoopStuck)
        assert "self.go.wait(60)" in stuck.stack  # the stack of the thread
        blocked.go.set()
        await until(lambda: events.of(LoopRestarted) != [])
        await clock.advance(10 * SECOND)
        await until(lambda: blocked.ticks >= 2)
    assert blocked.most == 1


async def test_thread_that_never_ends_ends_the_process(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    blocked = Blocked()
    supervisor.add(loop_of("blocked", blocked.tick), WATCHED)
    task = asyncio.create_task(supervisor.run(asyncio.Event(), GRACE))
    try:
        await until(lambda: blocked.ticks == 1)
        for _ in range(8):
            await clock.advance(20 * SECOND)
        with pytest.raises(CancelIgnored, match="blocked"):
            await task
        assert len(events.of(TaskUncancellable)) == 1
    finally:
        blocked.go.set()


async def test_slow_database_that_answers_makes_no_loop_stuck(
    supervisor: Supervisor, clock: FakeClock, events: EventRecorder
) -> None:
    class Slow:
        dialect = "sqlite"

        async def all(self, query: object, **values: object) -> list[object]:
            await clock.sleep(40)
            return []

    database = ObservedDatabase(Slow(), clock)  # type: ignore[arg-type]

    async def asks_three_times() -> None:
        for _ in range(3):
            await database.all(query_of("ask", "SELECT 1", writes=False))

    supervisor.add(FunctionLoop("asks", asks_three_times), WATCHED)
    async with running(supervisor):
        await clock.advance(121)
    assert events.of(LoopStuck) == []
