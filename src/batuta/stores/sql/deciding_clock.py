"""How far the clock that decides is ahead of the machine's: on PostgreSQL the server's clock decides."""

from datetime import datetime, timedelta

from batuta.stores.sql.database import Dialect, Reading
from batuta.stores.sql.queries import query_of

CLOCK = query_of("clock", "SELECT clock_timestamp() AS now", writes=False)


class DecidingClock:
    def __init__(self, dialect: Dialect, *, own_time: bool) -> None:
        """``own_time``: the caller's clock decides. On SQLite it always does."""
        self._is_own = own_time or dialect == "sqlite"

    async def ahead(self, within: Reading, now: datetime) -> timedelta:
        """``now``: by the caller's clock."""
        if self._is_own:
            return timedelta(0)
        row = await within.one(CLOCK)
        assert row is not None
        there: datetime = row["now"]
        return there - now
