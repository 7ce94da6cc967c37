"""Finds processes of this host that ended while they held leases, and has their work taken up at once.

    presence file of a dead process ──▶ recover its leases, now and after 0.5, 1.5, 3.5 and 7.5 s ──▶ a minute later remove the file

Recovered more than once: a statement that the process had sent may be executed after its end, and a locked row is skipped. The file
stays for a minute because the processes of each role recover their own kind of leases. A look costs no statement.
"""

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeAlias

from batuta.kernel.clock import Clock
from batuta.supervise.loop import FOR_EVER, Doorbell, Idle, Loop, LoopPolicy, Pace
from batuta.supervise.presence import ANNOUNCING, Announcement, PresenceFolder

LOOK_EVERY = timedelta(milliseconds=500)
CRASH_WATCHING = LoopPolicy(
    every=LOOK_EVERY,
    stuck_after=timedelta(minutes=1),
    max_failures=FOR_EVER,
    max_restarts=FOR_EVER,
    backoff=LOOK_EVERY,
    backoff_cap=timedelta(seconds=2),
)
WAITS = (0.5, 1.0, 2.0, 4.0)  # seconds between two recoveries of one owner
KEPT = 60.0  # seconds from the discovery of a crash to the removal of the file

# Takes up the work of these owners and returns how many items or runs that were.
Recover: TypeAlias = Callable[[Collection[str]], Awaitable[int]]


@dataclass(slots=True)
class Crash:
    found_at: float
    due_at: float
    recoveries: int = 0

    def recovered(self, now: float) -> None:
        self.due_at = now + WAITS[self.recoveries] if self.recoveries < len(WAITS) else math.inf
        self.recoveries += 1


class CrashWatch:
    name = "crash-watch"

    def __init__(self, presence: PresenceFolder, recover: Iterable[Recover], clock: Clock) -> None:
        self.doorbell = Doorbell()
        self._presence = presence
        self._recover = tuple(recover)
        self._clock = clock
        self._crashes: dict[str, Crash] = {}

    async def tick(self) -> Pace:
        now = self._clock.monotonic()
        self._crashes = {owner: self._crashes.get(owner) or Crash(now, now) for owner in self._presence.dead()}
        due = [owner for owner, crash in self._crashes.items() if crash.due_at <= now]
        if due:
            for recover in self._recover:
                await recover(due)
            for owner in due:
                self._crashes[owner].recovered(self._clock.monotonic())
        for owner, crash in self._crashes.items():
            if crash.recoveries > len(WAITS) and now - crash.found_at >= KEPT:
                self._presence.forget(owner)
        return Idle()


def crash_loops(
    presence: PresenceFolder, owner: str, recover: Iterable[Recover], clock: Clock, *, starts_work: bool = False
) -> Iterator[tuple[Loop, LoopPolicy]]:
    """Of a process that holds leases as ``owner``: other processes see its crash, and it sees theirs.

    ``starts_work``: a recovery starts what it took up in this process, so that at a shutdown the tick in flight must end.
    """
    yield Announcement(presence, owner), ANNOUNCING
    yield CrashWatch(presence, recover, clock), replace(CRASH_WATCHING, finishes_tick=starts_work)
