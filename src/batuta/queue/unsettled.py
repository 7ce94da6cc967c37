"""Endings that are not written yet.

    add ──▶ [ waiting ] ── take ──▶ [ in flight ] ── written, or the lease was lost ──▶ gone
                ▲                       │ the store is away ──▶ waiting again
                │                       │ the turn timed out ──▶ waiting again, behind the others, in halves
                └──── when it is time ── [ deferred ] ◀── its row is locked, or its turn times out alone

A turn that times out is repeated with half as many endings, until the one that blocks the others is alone. That one is deferred
and retried alone, so that one bad row never delays the rest.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from batuta.kernel.clock import Clock
from batuta.queue.item import ItemState, Lease
from batuta.queue.settle import Settlement
from batuta.queue.store import Endings

Ending: TypeAlias = tuple[Lease, Settlement]
Key: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class Deferred:
    ending: Ending
    due_at: float  # of the monotonic clock
    timeouts: int = 0


class Unsettled:
    def __init__(self, clock: Clock, recheck: timedelta, longest: timedelta) -> None:
        """``recheck``: the pause before a deferred ending is tried again; after each timeout it doubles, up to ``longest``."""
        self._clock = clock
        self._recheck = recheck.total_seconds()
        self._longest = longest.total_seconds()
        self._waiting: list[Ending] = []
        self._in_flight: dict[Key, Ending] = {}
        self._deferred: dict[Key, Deferred] = {}
        self._at_most: int | None = None  # endings in one turn after a timeout; None: all of them

    def add(self, lease: Lease, settlement: Settlement) -> None:
        self._waiting.append((lease, settlement))

    @property
    def is_ready(self) -> bool:
        """Some ending can be written now."""
        return bool(self._waiting) or bool(self._due())

    @property
    def is_careful(self) -> bool:
        """The next turn may time out again, so it should claim nothing."""
        return bool(self._due()) or (self._at_most is not None and bool(self._waiting))

    @property
    def recheck_at(self) -> float | None:
        return min((each.due_at for each in self._deferred.values()), default=None)

    @property
    def returns_soon(self) -> bool:
        """An ending puts its item back into the queue."""
        return any(settlement.state is ItemState.READY for _, settlement in self._waiting)

    def __bool__(self) -> bool:
        return bool(self._waiting or self._in_flight or self._deferred)

    def __iter__(self) -> Iterator[Ending]:
        yield from self._waiting
        yield from self._in_flight.values()
        yield from (each.ending for each in self._deferred.values())

    def take(self) -> Endings:
        """The endings of the next turn: deferred ones first, and each that has timed out alone."""
        if due := self._due():
            together = [each.ending for each in due if not each.timeouts]
            taken = together or [due[0].ending]
        else:
            size = len(self._waiting) if self._at_most is None else self._at_most
            taken, self._waiting = self._waiting[:size], self._waiting[size:]
        self._in_flight = {_key(lease): (lease, settlement) for lease, settlement in taken}
        return taken

    def written(self, leases: Collection[Lease]) -> None:
        """These are settled, or another process owns them."""
        for lease in leases:
            self._in_flight.pop(_key(lease), None)
            self._deferred.pop(_key(lease), None)

    def defer(self, leases: Sequence[Lease]) -> None:
        """Their rows are locked: nothing is known about them."""
        for lease in leases:
            if (ending := self._in_flight.pop(_key(lease), None)) is not None:
                self._defer(ending, 0)

    def put_back(self) -> None:
        """The store is away: what was in flight is tried again as it is."""
        back, self._in_flight = self._in_flight, {}
        self._waiting = [ending for key, ending in back.items() if key not in self._deferred] + self._waiting
        for key, ending in back.items():
            if (before := self._deferred.get(key)) is not None:
                self._defer(ending, before.timeouts)

    def time_out(self) -> int:
        """Split what was in flight. Returns how often a single ending has timed out alone; 0: there were several."""
        back, self._in_flight = self._in_flight, {}
        if len(back) == 1:
            ((key, ending),) = back.items()
            before = self._deferred.get(key)
            return self._defer(ending, 1 if before is None else before.timeouts + 1)
        self._at_most = max(1, len(back) // 2)
        self._waiting += [self._deferred.pop(key).ending if key in self._deferred else back[key] for key in back]
        return 0

    def progress(self) -> None:
        """A turn was written: the next may settle twice as many."""
        if self._at_most is not None:
            self._at_most = self._at_most * 2 if self._waiting else None

    def _defer(self, ending: Ending, timeouts: int) -> int:
        pause = min(self._recheck * 2**timeouts, self._longest)
        self._deferred[_key(ending[0])] = Deferred(ending, self._clock.monotonic() + pause, timeouts)
        return timeouts

    def _due(self) -> list[Deferred]:
        if not self._deferred:
            return []
        now = self._clock.monotonic()
        return [each for each in self._deferred.values() if each.due_at <= now]


def _key(lease: Lease) -> Key:
    return lease.id, lease.fence
