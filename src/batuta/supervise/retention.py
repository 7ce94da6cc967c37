"""Deletes rows whose retention has ended, either in a loop or in one call with a deadline."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from batuta.kernel.clock import Clock
from batuta.kernel.values import dataclass
from batuta.supervise.loop import FOR_EVER, Again, Idle, LoopPolicy, Pace, Wakeup

PRUNE_BATCH = 1000
PRUNER_POLICY = LoopPolicy(every=timedelta(minutes=5), stuck_after=timedelta(minutes=2), max_failures=FOR_EVER)


@dataclass(frozen=True, slots=True)
class Retention:
    """A table whose expired rows the pruner deletes."""

    table: str
    # called with the maximum number of rows to delete; returns the number of deleted rows
    prune: Callable[[int], Awaitable[int]]


class PrunesByAge(Protocol):
    async def prune(self, *, before: datetime, limit: int) -> int: ...


def keep_for(age: timedelta, table: str, store: PrunesByAge, clock: Clock) -> Retention:
    """Return a retention rule that deletes the rows of a table that are older than ``age``."""
    return Retention(table, lambda limit: store.prune(before=clock.now() - age, limit=limit))


class Pruner:
    """A loop that deletes one batch of expired rows per table in each tick. If the deletion fails for a table, the next
    tick starts with the table that follows it.
    """

    name = "pruner"

    def __init__(self, retentions: Iterable[Retention]) -> None:
        self.wakeup = Wakeup()
        self._retentions = deque(retentions)

    async def tick(self) -> Pace:
        is_more = False
        for _ in range(len(self._retentions)):
            retention = self._retentions[0]
            self._retentions.rotate(-1)
            is_more |= await retention.prune(PRUNE_BATCH) >= PRUNE_BATCH
        return Again() if is_more else Idle()


@dataclass(frozen=True, slots=True)
class Pruned:
    """The number of deleted rows per table. Tables without deleted rows are omitted."""

    by_table: Mapping[str, int]
    is_all: bool  # False if the time ran out before every expired row was deleted

    @property
    def rows(self) -> int:
        return sum(self.by_table.values())


async def prune_all(retentions: Iterable[Retention], has_time: Callable[[], bool]) -> Pruned:
    """Delete expired rows in batches until none remain or the time has run out. At least one batch is always
    deleted.
    """
    pruned: dict[str, int] = {}
    for retention in retentions:
        batch = PRUNE_BATCH
        while batch >= PRUNE_BATCH:
            if pruned and not has_time():
                return Pruned(pruned, is_all=False)
            batch = await retention.prune(PRUNE_BATCH)
            if batch:
                pruned[retention.table] = pruned.get(retention.table, 0) + batch
    return Pruned(pruned, is_all=True)
