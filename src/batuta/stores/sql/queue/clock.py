"""Corrects a queue on SQLite after its machine's clock was set back.

Every instant in the table comes from the machine's clock. If the clock is set back by an hour, due items wait for an
hour, and the leases of dead workers last an hour longer. ``clock_marks`` holds the latest instant that any process
recorded, so that any process detects a backward step of the clock, even a process that starts afterwards. The
correction subtracts the step from every wait that the step made longer:

- an item that was due before the step is due now;
- a wait that began in the clock's future (the row was created or last claimed after the current time) is moved back by
  the step. A wait that began earlier is kept, because the clock may have been set forward since. At worst such a wait
  ends late, never early;
- an item whose instant was chosen by the application keeps that instant (``fixed_times``), unless the item was both
  created and due in the clock's future.

Every lease is shortened to end one normal lease length from now. A living worker renews its lease; the lease of a dead
worker expires in time.
"""

from datetime import datetime, timedelta

from batuta.kernel.clock import in_microseconds
from batuta.kernel.values import dataclass
from batuta.queue.item import QueueTable
from batuta.stores.sql.database import Database, Query
from batuta.stores.sql.queue.statements import more_queries

# Smaller differences come from NTP adjustments or delays between processes, and are ignored.
TOLERANCE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class ClockQueries:
    advance: Query
    mark: Query
    set_mark: Query
    move_waiting: Query
    cut_leases: Query


class QueueClock:
    def __init__(self, table: QueueTable) -> None:
        self._queries = more_queries("queue_clock.sql", table, "sqlite", ClockQueries, both=False)

    async def follow(self, database: Database, now: datetime, lease: timedelta) -> timedelta:
        """Record the current time. If the clock was set back since the last record, correct the due times and leases in
        the table. Return how far the clock was set back.
        """
        if await database.run(self._queries.advance, now=now, tolerance=TOLERANCE):
            return timedelta(0)
        async with database.transaction() as transaction:
            # Another process may already have corrected the table.
            row = await transaction.one(self._queries.mark)
            seen = None if row is None else row["seen_at"]
            step = timedelta(0) if seen is None else seen - now
            is_back = step > TOLERANCE
            if is_back or seen is None:
                moved = in_microseconds(max(step, timedelta(0)))
                await transaction.run(self._queries.move_waiting, now=now, step=moved, seen=seen or now)
                await transaction.run(self._queries.cut_leases, now=now, lease=in_microseconds(lease))
            await transaction.run(self._queries.set_mark, now=now)
        return step if is_back else timedelta(0)
