"""Chooses the timetable whose schedules fire while schedulers of several releases run on one database.

    first start ──▶ announced: a permanent position in the order of deployment
        │
        ├─ a more recent timetable has a living scheduler ──▶ [ stands by ] ── none lives any more ──┐
        │                                                          ▲                                 │
        └─ none has ──▶ [ active ] ◀─────────────────────────────────────────────────────────────────┘
                            └── a more recent one is activated ────┘

A timetable is identified by its fingerprint, so a restarted scheduler of an old release keeps its old position. Only
the active timetable registers jobs, decides about fires and deactivates jobs of other timetables. The database stores
the fingerprint of the active timetable, and the transaction that decides about fires reads it. A scheduler that stands
by finishes its runs and renews its timetable. A timetable is considered alive while the number of its renewals grows,
so the clocks of other machines do not matter.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TypeAlias

from batuta.kernel.clock import Clock
from batuta.kernel.leases import LeaseHolder, SilenceDetector
from batuta.kernel.values import dataclass
from batuta.runlog.log import ExecutionLog, OwnTimetable, Timetable

# A scheduler renews its timetable after every third of a lease. After two leases without a renewal the timetable is
# considered dead. Another release may use another lease length, so fixed bounds limit both times.
RENEWED_EVERY = timedelta(seconds=4)
SILENCE_LIMIT = timedelta(seconds=12)


@dataclass(frozen=True, slots=True)
class Active:
    """Result of the function ``standing``: this process's timetable is already active."""


@dataclass(frozen=True, slots=True)
class TakesOver:
    """Result of the function ``standing``: no newer timetable is alive, so this process's timetable becomes active.
    ``active`` is the fingerprint of the timetable that it replaces, or None.
    """

    active: str | None


@dataclass(frozen=True, slots=True)
class StandsBy:
    """Result of the function ``standing``: a newer timetable is alive, so this process waits. ``behind`` is the
    fingerprint of the newest timetable that is alive.
    """

    behind: str


Standing: TypeAlias = Active | TakesOver | StandsBy


def standing(own: str, seen: Sequence[Timetable], silent: Collection[str]) -> Standing:
    """Decide whether the timetable ``own`` is active, takes over or stands by.

    ``seen`` contains the timetable ``own``, all newer timetables, and the active timetable. ``silent`` contains the
    fingerprints of timetables that no living scheduler uses. A newer timetable that was never active is ignored,
    because its scheduler may be unable to register.
    """
    mine = next(each for each in seen if each.fingerprint == own)
    if mine.is_active:
        return Active()
    more_recent = [
        each
        for each in seen
        if (each.position, each.fingerprint) > (mine.position, own)
        and each.has_been_active
        and each.fingerprint not in silent
    ]
    if more_recent:
        return StandsBy(max(more_recent, key=lambda each: each.position).fingerprint)
    return TakesOver(next((each.fingerprint for each in seen if each.is_active), None))


class Activation:
    """Tracks whether this process's timetable (``own``) is active. The dispatcher calls ``look`` at every tick."""

    def __init__(self, own: OwnTimetable, log: ExecutionLog, clock: Clock, lease_holder: LeaseHolder) -> None:
        self.own = own
        self._log = log
        self._clock = clock
        self._lease_holder = lease_holder
        self._silence: SilenceDetector[tuple[str, int]] = SilenceDetector(lease_holder.lease / 3)
        self._every = min(lease_holder.lease / 3, RENEWED_EVERY)
        self._timeout = max(lease_holder.lease * 2, SILENCE_LIMIT)
        self._renews_at: float | None = None

    async def look(self) -> Standing:
        await self._renew()
        seen = await self._log.timetables(self.own.fingerprint)
        # the row of this process's timetable was deleted
        if all(each.fingerprint != self.own.fingerprint for each in seen):
            await self._log.announce(self.own, self._lease_holder)
            seen = await self._log.timetables(self.own.fingerprint)
        watched = self._silence.look([_key(each) for each in seen], self._clock.monotonic())
        silent = {fingerprint for (fingerprint, _), span in watched.items() if span >= self._timeout}
        return standing(self.own.fingerprint, seen, silent)

    async def _renew(self) -> None:
        now = self._clock.monotonic()
        if self._renews_at is None:
            await self._log.announce(self.own, self._lease_holder)
        elif now < self._renews_at:
            return
        await self._log.renew_timetable(self.own, self._lease_holder)
        self._renews_at = now + self._every.total_seconds()


def _key(timetable: Timetable) -> tuple[str, int]:
    return timetable.fingerprint, timetable.renewals
