"""The dead man's switch sends pings only while the dispatcher is working."""

import asyncio
from datetime import timedelta

from batuta.health.alert_hub import FRESH, PINGING, DeadMansSwitch
from batuta.kernel.events import PingFailed
from batuta.supervise.loop import FunctionLoop, Idle, LoopPolicy
from batuta.supervise.running import LoopState
from batuta.supervise.supervisor import Supervisor
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle

POLICY = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1))


class SwitchSetup:
    def __init__(self, clock: FakeClock, events: EventRecorder) -> None:
        self.clock = clock
        self.dispatcher = LoopState(FunctionLoop("dispatcher", self._do_nothing), POLICY)
        self.other = LoopState(FunctionLoop("reaper", self._do_nothing), POLICY, worked_at=clock.monotonic())
        self.pings = 0
        self.is_away = False
        self.switch = DeadMansSwitch(self._ping, lambda: [self.other, self.dispatcher], clock, events)

    async def _do_nothing(self) -> None: ...

    async def _ping(self) -> None:
        if self.is_away:
            raise ConnectionError
        self.pings += 1


async def test_switch_pings_while_the_dispatcher_works(clock: FakeClock, events: EventRecorder) -> None:
    setup = SwitchSetup(clock, events)
    setup.dispatcher.worked_at = clock.monotonic()
    assert await setup.switch.tick() == Idle()
    assert setup.pings == 1


async def test_switch_sends_no_ping_while_only_other_loops_work(clock: FakeClock, events: EventRecorder) -> None:
    setup = SwitchSetup(clock, events)
    await setup.switch.tick()
    assert setup.pings == 0
    setup.dispatcher.worked_at = clock.monotonic()
    await clock.advance(FRESH + timedelta(seconds=1))
    setup.other.worked_at = clock.monotonic()
    await setup.switch.tick()
    assert setup.pings == 0


async def test_hanging_ping_does_not_delay_shutdown(clock: FakeClock, events: EventRecorder) -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    setup, stop = SwitchSetup(clock, events), asyncio.Event()
    setup.dispatcher.worked_at = clock.monotonic()
    supervisor = Supervisor(clock, events)
    supervisor.add(DeadMansSwitch(hangs, lambda: [setup.dispatcher], clock, events), PINGING)
    running = asyncio.create_task(supervisor.run(stop, timedelta(seconds=30)))
    await settle()
    assert supervisor.running[0].is_ticking
    stop.set()
    await running  # the clock does not move


async def test_refused_ping_is_reported_and_stops_nothing(clock: FakeClock, events: EventRecorder) -> None:
    setup = SwitchSetup(clock, events)
    setup.dispatcher.worked_at = clock.monotonic()
    setup.is_away = True
    await setup.switch.tick()
    assert [event.why for event in events.of(PingFailed)] == ["ConnectionError"]
    setup.is_away = False
    await setup.switch.tick()
    assert setup.pings == 1
