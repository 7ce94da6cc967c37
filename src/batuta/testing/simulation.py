"""Runs a whole application step by step on a real database, so that days of scheduled jobs and queued work take
seconds.

    clock = JumpClock(datetime(2026, 3, 2, 6, tzinfo=zone))
    work = Batuta("sqlite:///day.db", clock=clock)
    ...
    async with work, Simulation(work, clock) as simulation:
        await simulation.run_until(datetime(2026, 3, 3, 6, tzinfo=zone))

Each step moves the clock to the next minute, fires the jobs that are due, runs queue items until none is due, and ends
batches. If a process on this machine is killed, its work is recovered as in production. During a step, time passes at
normal speed, so a handler may sleep and may exceed its time limit.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from batuta.dispatch.dispatcher import Dispatcher
from batuta.dispatch.runner import Runner
from batuta.engine.batuta import Batuta
from batuta.kernel.waiting import insist
from batuta.processes.presence import Announcement, CrashWatch
from batuta.supervise.loop import Again, Loop
from batuta.testing.clock import JumpClock

MINUTE = timedelta(minutes=1)
BATCH = 500


class Simulation:
    """Fires an application's jobs and runs its queue items in this process, whenever the clock moves."""

    def __init__(self, work: Batuta, clock: JumpClock) -> None:
        self._work = work
        self._clock = clock
        loops = [loop for role in ("scheduler", "worker") for loop, _ in work._loops_of(role)]
        self._dispatcher = next(loop for loop in loops if isinstance(loop, Dispatcher))
        self._runner = next(loop for loop in loops if isinstance(loop, Runner))
        self._announcements = [loop for loop in loops if isinstance(loop, Announcement)]
        self._recovery: list[Loop] = [loop for loop in loops if isinstance(loop, CrashWatch)]

    async def __aenter__(self) -> Self:
        for each in self._announcements:
            await each.tick()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._announcements:
            await each.drain(MINUTE)

    async def run_until(self, instant: datetime, passed: Callable[[datetime], None] = lambda now: None) -> None:
        """Simulate the time up to ``instant`` minute by minute. When each minute's work is done, call ``passed`` with
        the clock's current time.
        """
        while (now := self._clock.now()) < instant:
            following = now.replace(second=0, microsecond=0) + MINUTE
            await self.step(min(following, instant))
            passed(self._clock.now())

    async def step(self, instant: datetime) -> None:
        """Move the clock to ``instant`` and do all work that is then due."""
        self._clock.jump_to(instant)
        await self.settle()

    async def settle(self) -> None:
        """Do all work that is due now, including new work that results from it.

        A call that fails because the database does not respond is repeated, as it would be under a supervisor.
        """
        for each in self._recovery:
            await insist(each.tick, self._clock)
        worked = 1
        while worked:
            while isinstance(await insist(self._dispatcher.tick, self._clock), Again):
                pass
            await self._runner.finish()
            worked = sum([await self._run_items(queue) for queue in await insist(self._due_queues, self._clock)])
            while isinstance(await insist(self._work.task_ends.tick, self._clock), Again):
                worked += 1  # batches ended, or tasks that waited for others are due

    async def _run_items(self, queue: str) -> int:
        return await insist(lambda: self._work.work_once(queue, BATCH), self._clock)

    async def _due_queues(self) -> list[str]:
        """Return the queues that have a due item. This query costs much less than a claim, and most queues have no due
        items.
        """
        queues = self._work.queues
        due = await asyncio.gather(*(store.next_at() for store in queues.values()))
        now = self._clock.now()
        return [name for name, at in zip(queues, due, strict=True) if at is not None and at <= now]
