"""Loops in your own tests: one tick, a tick that hangs or fails, and a supervisor on a clock that is moved by hand.

outbound = Puppet(*loops_of(work)["outbound"])
async with kept(outbound, clock=clock, events=events):
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
from batuta.kernel.options import unknown
from batuta.supervise.loop import Loop, LoopPolicy, Pace, Wakeup, drain_of
from batuta.supervise.supervisor import Supervisor
from batuta.testing.clock import FakeClock, settle

E = TypeVar("E")
WAIT_TIMEOUT = 10.0


class EventRecorder:
    """An Events, and a subscriber for a Fanout as well."""

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
        """The first such fact, already announced or yet to come. Real time, bounded: a test that waits in vain fails."""
        async with asyncio.timeout(WAIT_TIMEOUT):
            while not (found := [event for event in self.of(kind) if where(event)]):
                self._more.clear()
                await self._more.wait()
        return found[0]


GRACE = timedelta(seconds=1)
# Times the grace that a shutdown may take: its deadline, cancelled ticks that do not end, and the loops that outlive the others.
TURNS = 20


def loops_of(work: Batuta, role: str = "worker") -> dict[str, tuple[Loop, LoopPolicy]]:
    """Every loop of a role by its name, with its limits: those that were registered, and the engine's own."""
    return {each.loop.name: (each.loop, each.policy) for each in work.supervisor(role).running}


async def tick(work: Batuta, name: str, role: str = "worker") -> Pace:
    """One tick of a registered loop, as the supervisor would make it; what it raises is raised."""
    loops = loops_of(work, role)
    if name not in loops:
        raise unknown("loop", name, loops)
    return await loops[name][0].tick()


class Puppet:
    """A loop around another: its next ticks do what the test says, and then what they would have done."""

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
        """The next ticks wait for what never comes, and notice when they are cancelled."""
        self._hangs += times
        self.wakeup.set()

    def fail(self, *errors: Exception) -> None:
        """The next ticks raise these."""
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
    """Under supervision while the block runs. What hangs at its end is cut off; time passes for that too.

    Rests after a failure are as long as they can be: nothing is left to chance.
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
