"""Runs loops in tests: a single tick, a tick that hangs or fails, and a supervisor on a clock that the test moves.

outbound = Puppet(*loops_of(work)["outbound"])
async with supervise(outbound, clock=clock, events=events):
    outbound.hang()
    await clock.advance(70)
    assert (await events.wait_for(LoopRestarted)).loop == "outbound"
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TypeVar

from batuta.engine.batuta import Batuta
from batuta.kernel.events import Event, Events
from batuta.kernel.suggestions import unknown
from batuta.supervise.loop import Loop, LoopPolicy, Pace, Wakeup, drain_of
from batuta.supervise.supervisor import Supervisor
from batuta.testing.clock import FakeClock, settle

E = TypeVar("E")
WAIT_TIMEOUT = 10.0


class EventRecorder:
    """Records events, so that a test can check them. It serves as a program's receiver of events, or as a subscriber to
    a Fanout.
    """

    def __init__(self) -> None:
        self.all: list[Event] = []
        self._more = asyncio.Event()

    def emit(self, event: Event) -> None:
        self.all.append(event)
        self._more.set()

    __call__ = emit

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.all if isinstance(event, kind)]

    async def wait_for(self, kind: type[E], where: Callable[[E], bool] = lambda event: True) -> E:
        """Return the first event of this kind, past or future. If no such event occurs within WAIT_TIMEOUT of real
        time, the wait raises TimeoutError and the test fails.
        """
        async with asyncio.timeout(WAIT_TIMEOUT):
            while not (found := [event for event in self.of(kind) if where(event)]):
                self._more.clear()
                await self._more.wait()
        return found[0]


GRACE = timedelta(seconds=1)
# A shutdown takes at most this multiple of the grace, even if cancelled ticks do not end and some loops outlive the
# others.
TURNS = 20


def loops_of(work: Batuta, role: str = "worker") -> dict[str, tuple[Loop, LoopPolicy]]:
    """Return all loops of a process role such as ``worker``, as a mapping from the loop's name to the loop and its
    policy. The result contains both the registered loops and the engine's own loops.
    """
    return {each.loop.name: (each.loop, each.policy) for each in work.supervisor(role).running}


async def tick(work: Batuta, name: str, role: str = "worker") -> Pace:
    """Run one tick of a registered loop as the supervisor would. An error in the tick is raised to the caller."""
    loops = loops_of(work, role)
    if name not in loops:
        raise unknown("loop", name, loops)
    return await loops[name][0].tick()


class Puppet:
    """Wraps a loop so that its next ticks hang or fail as the test requests. The ticks after those work normally."""

    def __init__(self, loop: Loop, policy: LoopPolicy) -> None:
        self.name = loop.name
        self.policy = policy
        self.ticks = 0
        self.drain = drain_of(loop)
        self._loop = loop
        self._errors: list[Exception] = []
        self._hangs = 0

    @property
    def wakeup(self) -> Wakeup:
        return self._loop.wakeup

    def hang(self, times: int = 1) -> None:
        """Make the loop's next ticks hang until they are cancelled."""
        self._hangs += times
        self.wakeup.set()

    def fail(self, *errors: Exception) -> None:
        """Make the loop's next ticks raise these errors, one error per tick."""
        self._errors += errors
        self.wakeup.set()

    async def tick(self) -> Pace:
        self.ticks += 1
        if self._errors:
            raise self._errors.pop(0)
        if self._hangs:
            self._hangs -= 1
            await asyncio.Event().wait()
        return await self._loop.tick()


@asynccontextmanager
async def supervise(*puppets: Puppet, clock: FakeClock, events: Events) -> AsyncIterator[Supervisor]:
    """Supervise loops while the block is running. When the block ends, the clock advances until the loops have ended,
    even if a tick hangs.

    The supervisor's waits after a failure have no random part, so that tests can predict them.
    """
    supervisor = Supervisor(clock, events, chance=lambda: 1.0)
    for puppet in puppets:
        supervisor.add(puppet, puppet.policy)
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor.run(stop, GRACE))
    await settle()
    try:
        yield supervisor
    finally:
        stop.set()
        for _ in range(TURNS):
            if not running.done():
                await clock.advance(GRACE)
    await running
