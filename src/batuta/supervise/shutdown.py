"""A process's shutdown. It has one deadline and four phases, and all loops go through the phases at the same time.

    stop ──▶ quiet ──▶ finish ──▶ cancel ──▶ hand back ──▶ deadline
             5 %, at most 1 s  to 90 %    to 95 %     to 100 % of the grace

    quiet      no new work is claimed; a loop without a drain is cancelled, a tick in progress may end
    finish     handlers and runs in progress may end; their leases are renewed
    cancel     work that still runs is cancelled
    hand back  unfinished work is released for other processes, without counting an attempt or a crash

If a loop's tick does not end in time, only that loop has less time to drain.
"""

from collections.abc import Awaitable
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol, Self

from batuta.kernel.clock import Clock
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import first_of

LONGEST_QUIET = timedelta(seconds=1)
# Time after the grace in which a process must end: it abandons drains that ignore the deadline, writes the last
# heartbeat, and closes connections and threads. A parent kills the process only after this time. The margin exceeds the
# sum of the limits of these steps, because a hanging database and a handler that ignores its cancellation can use all
# of them.
EXIT_MARGIN = timedelta(seconds=13)


class Phase(StrEnum):
    QUIET = "quiet"
    FINISH = "finish"
    CANCEL = "cancel"
    HAND_BACK = "hand back"


# The fraction of the grace at which each phase ends.
PHASE_ENDS = {Phase.QUIET: 0.05, Phase.FINISH: 0.9, Phase.CANCEL: 0.95, Phase.HAND_BACK: 1.0}


@dataclass(frozen=True, slots=True)
class Shutdown:
    """A shutdown in progress. ``began`` is its start time on the monotonic clock."""

    clock: Clock
    grace: timedelta
    began: float

    @classmethod
    def begin(cls, clock: Clock, grace: timedelta) -> Self:
        return cls(clock, grace, clock.monotonic())

    def length(self, phase: Phase) -> timedelta:
        """Return the time from the start of the shutdown to the end of ``phase``."""
        length = self.grace * PHASE_ENDS[phase]
        return min(length, LONGEST_QUIET) if phase is Phase.QUIET else length

    def time_left(self, phase: Phase = Phase.HAND_BACK) -> timedelta:
        """Return the time until ``phase`` ends, or zero if it has ended."""
        passed = timedelta(seconds=self.clock.monotonic() - self.began)
        return max(timedelta(0), self.length(phase) - passed)

    async def run_within(self, phase: Phase, work: Awaitable[Any]) -> bool:
        """Await ``work``, but cancel it when ``phase`` ends. Return whether ``work`` ended before that. An error that
        ``work`` raises propagates to the caller.
        """
        return await first_of(work, self.clock.sleep(self.time_left(phase).total_seconds())) == 0


class Draining(Protocol):
    """The interface of a component that has work in progress. A shutdown calls these methods, one in each phase, to end
    that work.
    """

    def quiet(self) -> None:
        """Stop starting new work."""

    async def finish(self) -> None:
        """Wait until all work in progress has ended."""

    def cancel(self) -> None:
        """Cancel all work in progress."""

    async def hand_back(self, shutdown: Shutdown) -> None:
        """Release unfinished work, so that other processes can take it over."""


async def pass_phases(work: Draining, shutdown: Shutdown) -> None:
    work.quiet()
    await shutdown.run_within(Phase.FINISH, work.finish())
    work.cancel()
    await shutdown.run_within(Phase.CANCEL, work.finish())
    await work.hand_back(shutdown)
