"""Decides where a claim on PostgreSQL begins to search: at the beginning of the queue, or after the last item that the
previous claim returned.

An item leaves the index of waiting items when it is claimed, but its index entry remains until VACUUM removes it. While
a transaction of another session keeps an old snapshot, VACUUM removes no entry. A claim that begins at the beginning of
the queue then reads the entries of all items that were claimed before, so a busy queue becomes slower and slower.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from batuta.kernel.clock import Clock
from batuta.kernel.values import dataclass
from batuta.queue.item import Lease, QueueTable

# A claim at the beginning of the queue finds items that became due in the past, for example items of a failed process.
# Such a claim happens at least once in this number of seconds,
LONGEST = 1.0
# or, if it is slow, after this multiple of its duration. It then takes at most a thirtieth of the time.
PAUSE = 30


@dataclass(frozen=True, slots=True)
class Place:
    """The last item of a claim, in claim order: its priority, its due time in microseconds since 1970, and its id."""

    last_priority: int
    last_due: int
    last_id: str


class Continuation:
    """The place after which the next claim continues, or None if it begins at the beginning of the queue."""

    def __init__(self, table: QueueTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._place: Place | None = None
        self._until = 0.0  # the place is valid before this instant, in seconds of the monotonic clock
        self._not_before = 0.0  # no place is stored before this instant

    def now(self) -> float:
        return self._clock.monotonic()

    def parameters(self) -> Mapping[str, Any] | None:
        """Return the parameters of the statement that continues after the place, or None if there is no valid place."""
        if self._place is None or self.now() >= self._until:
            return None
        place = self._place
        found: dict[str, Any] = {"last_due": place.last_due, "last_id": place.last_id}
        return found | {"last_priority": place.last_priority} if self._table.priority else found

    def begin(self, rows: Sequence[Any], leases: Sequence[Lease], began: float) -> None:
        """Store the place after a claim that began at the beginning of the queue and returned as many items as it was
        allowed to claim. Items of several priorities give no place.
        """
        now = self.now()
        if self._table.given is None or now < self._not_before:
            return
        priorities = {row[-1] for row in rows} if self._table.priority else {0}
        if len(priorities) == 1:
            self._until = now + max(LONGEST, PAUSE * (now - began))
            self._place = _last(leases, priorities.pop())

    def move(self, leases: Sequence[Lease], limit: int) -> None:
        """Move the place after a claim that continued after it. If the claim found fewer items than ``limit``, remove
        the place, and store no other place for a second. A concurrent claim may have removed the place already.
        """
        if len(leases) < limit:
            self._place, self._not_before = None, self.now() + LONGEST
        elif self._place is not None:
            self._place = _last(leases, self._place.last_priority)


def _last(leases: Sequence[Lease], priority: int) -> Place:
    due, id = max((lease.due or 0, lease.id) for lease in leases)
    return Place(priority, int(due), id)
