"""Isolation: an item whose next crash makes it dead runs alone in its process, across all queues of the process.

    free ── reserve ──▶ [ reserved: no worker claims ] ── all other handlers end ──▶ [ runs alone ] ── it ends ──▶ free
                              └── the wait times out ──▶ the item is postponed, free; its next wait is twice as long

If the isolated item kills the process, no crash is counted for other items. If another item kills the process while the
isolated item waits, no crash is counted for the isolated item: its row records that it has not started.

The wait for other handlers is bounded, so a long handler stops the claims only briefly. The wait doubles with each
try until it exceeds the time limits of the handlers, so the item starts eventually.
"""

from collections import OrderedDict
from datetime import timedelta
from typing import Protocol

from batuta.kernel.clock import Clock
from batuta.supervise.loop import Wakeup

FIRST_WAIT = timedelta(seconds=15)
MOST_DOUBLINGS = 10
MOST_REMEMBERED = 1_000


class Member(Protocol):
    @property
    def wakeup(self) -> Wakeup: ...

    def is_busy(self) -> bool:
        """Return whether this worker has a handler that is running or waiting to start, or a claim in progress."""


class Isolation:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._members: list[Member] = []
        self._holder: Member | None = None
        self._item = ""
        self._until = 0.0  # monotonic time at which the item is postponed
        self._tries: OrderedDict[str, int] = OrderedDict()

    def join(self, member: Member) -> None:
        if member not in self._members:
            self._members.append(member)

    def leave(self, member: Member) -> None:
        self._members = [each for each in self._members if each is not member]

    @property
    def may_claim(self) -> bool:
        return self._holder is None

    @property
    def gives_up_at(self) -> float:
        return self._until

    def reserve(self, member: Member, item: str) -> bool:
        """Reserve the process for ``item``. Return False if another item holds the reservation."""
        if self._holder is not None:
            return False
        self._holder, self._item = member, item
        self._until = self._clock.monotonic() + self._wait().total_seconds()
        return True

    @property
    def is_alone(self) -> bool:
        """Whether the reserved item may start, because no handler and no claim is active in the process."""
        return not any(each.is_busy() for each in self._members)

    def release(self, item: str, *, has_run: bool = True) -> timedelta:
        """Release the reservation if ``item`` holds it. If the item did not run, return how long to postpone it."""
        if self._holder is None or self._item != item:
            return timedelta(0)
        wait = self._wait()
        if has_run:
            self._tries.pop(self._item, None)
        else:
            self._tries[self._item] = self._tries.pop(self._item, 0) + 1
            if len(self._tries) > MOST_REMEMBERED:
                self._tries.popitem(last=False)
        self._holder = None
        for each in self._members:
            each.wakeup.set()
        return wait

    def note_change(self) -> None:
        """Wake the worker that holds the reservation. Call this method after other work has ended, because the reserved
        item may be able to start now.
        """
        if self._holder is not None:
            self._holder.wakeup.set()

    def _wait(self) -> timedelta:
        doublings = min(self._tries.get(self._item, 0), MOST_DOUBLINGS)
        return FIRST_WAIT * (1 << doublings)
