"""Every path of a process to its database: one for handlers and pages, and one for each lease that must be kept alive.

What renews, settles and rescues never waits for handlers: on PostgreSQL it has connections of its own, whose timeouts follow
from the lease they protect. SQLite has one writer, and so one path.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Literal, NamedTuple, TypeAlias

from batuta.kernel.clock import SystemClock
from batuta.stores import connect, liveness_limits
from batuta.stores.observed import ObservedDatabase
from batuta.stores.sql.database import Database, Limits

# A file; a server; a server behind a transaction pooler, with a direct address for LISTEN or with polling.
Way: TypeAlias = Literal["file", "direct", "pooler_direct", "pooler_polled"]


class PoolSizes(NamedTuple):
    handlers: int = 5
    liveness: int = 2


class Connections:
    def __init__(
        self,
        url: str,
        sizes: PoolSizes,
        *,
        queue_lease: Callable[[], timedelta],
        run_lease: timedelta,
        direct_url: str | None = None,
    ) -> None:
        """``queue_lease`` is asked when the connections are opened. ``direct_url``: without a pooler, for LISTEN."""
        self._url = url
        self._first: Database | None = None
        self._direct_url = direct_url
        self.database = self._path(Limits(pool=sizes.handlers))
        self.liveness = self._own_path(lambda: liveness_limits(queue_lease(), sizes.liveness))
        self.run_liveness = self._own_path(lambda: liveness_limits(run_lease, sizes.liveness))

    def __iter__(self) -> Iterator[ObservedDatabase]:
        """Each path once."""
        yield from dict.fromkeys((self.database, self.liveness, self.run_liveness))

    async def open(self) -> None:
        """All of them, or none."""
        try:
            for path in self:
                await path.open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        for path in reversed([*self]):
            await path.close()

    @property
    def way(self) -> Way:
        """How the database is reached; known once it was opened."""
        server = getattr(self._first, "server", None)
        if server is None:
            return "file"
        if not server.is_pooled:
            return "direct"
        return "pooler_direct" if server.direct_url else "pooler_polled"

    def _own_path(self, limits: Callable[[], Limits]) -> ObservedDatabase:
        return self.database if self.database.dialect == "sqlite" else self._path(limits)

    def _path(self, limits: Limits | Callable[[], Limits]) -> ObservedDatabase:
        return ObservedDatabase(self.another(limits), SystemClock())

    def another(self, limits: Limits | Callable[[], Limits]) -> Database:
        """One more path, which is not opened with the others; it may be used on another event loop."""
        clock, first = SystemClock(), self._first
        made = connect(self._url, clock, limits, direct_url=self._direct_url, beside=first)
        self._first = first or made
        return made
