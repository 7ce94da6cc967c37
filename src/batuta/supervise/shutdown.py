"""The shutdown of a process: one deadline, and four phases that all of its loops pass at the same time.

    stop ──▶ quiet ──▶ finish ──▶ cancel ──▶ hand back ──▶ deadline
             5 %, at most 1 s  to 90 %    to 95 %     to 100 % of the grace

quiet      nothing new is claimed; a loop that has nothing to drain is cancelled, a tick in flight may end
finish     handlers and runs in flight may end; their leases are renewed
cancel     work that still runs is cancelled
hand back  unfinished work is released for other processes, without counting an attempt or a crash

A loop whose tick does not end in time loses its own share of the deadline, and no other loop's.
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol, Self

from batuta.kernel.clock import Clock
from batuta.kernel.waiting import first_of

LONGEST_QUIET = timedelta(seconds=1)
# Time beyond the grace in which a process that follows its deadline has ended: drains that ignore the deadline are
# abandoned, the last heartbeat is written, connections and threads are closed. A parent kills only after that. It is longer
# than the limits of these steps together: a database that hangs and a handler that ignores its cancellation use each of them up.
MARGIN = timedelta(seconds=13)


class Phase(StrEnum):
    QUIET = "quiet"
    FINISH = "finish"
    CANCEL = "cancel"
    HAND_BACK = "hand back"


# The share of the grace at which each phase ends.
ENDS = {Phase.QUIET: 0.05, Phase.FINISH: 0.9, Phase.CANCEL: 0.95, Phase.HAND_BACK: 1.0}


@dataclass(frozen=True, slots=True)
class Shutdown:
    """``began``: an instant of the monotonic clock."""

    clock: Clock
    grace: timedelta
    began: float

    @classmethod
    def begin(cls, clock: Clock, grace: timedelta) -> Self:
        return cls(clock, grace, clock.monotonic())

    def length(self, phase: Phase) -> timedelta:
        """Return the time from the beginning of the shutdown to the end of ``phase``."""
        length = self.grace * ENDS[phase]
        return min(length, LONGEST_QUIET) if phase is Phase.QUIET else length

    def time_left(self, phase: Phase = Phase.HAND_BACK) -> timedelta:
        """Return the time until ``phase`` ends; zero once it has ended."""
        passed = timedelta(seconds=self.clock.monotonic() - self.began)
        return max(timedelta(0), self.length(phase) - passed)

    async def run_within(self, phase: Phase, work: Awaitable[Any]) -> bool:
        """Await ``work`` until ``phase`` ends at the latest, and cancel it then. Return whether it ended by itself.

        An error of ``work`` is raised.
        """
        return await first_of(work, self.clock.sleep(self.time_left(phase).total_seconds())) == 0


class Draining(Protocol):
    """Work that a shutdown ends, phase by phase."""

    def quiet(self) -> None:
        """Take on nothing new."""
        ...

    async def finish(self) -> None:
        """Wait until everything in flight has ended."""
        ...

    def cancel(self) -> None:
        """Cancel everything in flight."""
        ...

    async def hand_back(self, shutdown: Shutdown) -> None:
        """Release what has not ended for other processes."""
        ...


async def pass_phases(work: Draining, shutdown: Shutdown) -> None:
    work.quiet()
    await shutdown.run_within(Phase.FINISH, work.finish())
    work.cancel()
    await shutdown.run_within(Phase.CANCEL, work.finish())
    await work.hand_back(shutdown)
