"""Stores rate limits in ``rate_tokens``: one row (token) for each limit that an admitted effect uses. Tokens are
counted and taken in one transaction, which locks the keys of the limits.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from batuta.guard.base import Hold
from batuta.guard.rate import USE_WITHIN, Limit, Reservation, Reserved, full_until, verdict
from batuta.kernel.clock import Clock
from batuta.kernel.ids import Ids
from batuta.kernel.values import dataclass
from batuta.stores.sql.database import AsJson, Database, Query, Reading, Transaction, read_clock
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries

# A token is kept for this long after its window has passed, so that a late confirmation still finds it.
MARGIN = timedelta(hours=1)
MOST_FULL = 1000  # maximum number of exhausted sets of limits that are cached


@dataclass(frozen=True, slots=True)
class RateQueries:
    lock: Query
    blocking: Query
    take: Query
    take_if: Query
    confirm: Query
    release: Query
    used: Query
    prune: Query


class SqlRates:
    """Enforces rate limits across processes. With ``own_time`` the store uses this process's clock; otherwise it uses
    PostgreSQL's clock, which all machines share.
    """

    def __init__(self, database: Database, ids: Ids, clock: Clock, *, own_time: bool = False) -> None:
        self._database = database
        self._ids = ids
        self._clock = clock
        self._own_time = own_time or database.dialect == "sqlite"
        self._full: set[tuple[Limit, ...]] = set()
        self._queries = load_queries(RateQueries, STATEMENTS / "rates.sql", database.dialect)

    async def reserve(
        self, limits: Sequence[Limit], *, use_within: timedelta = USE_WITHIN, within: Any | None = None
    ) -> Reservation:
        if within is not None:
            return await self._reserve(within, limits, use_within)
        asked = tuple(limits)
        # A limit that was exhausted is probably still exhausted, so check it without the lock first. Only a caller that
        # is likely to get a token waits for the lock.
        if asked in self._full and (held := await self._find_hold_unlocked(limits)) is not None:
            return held
        self._full.discard(asked)
        reserved: Reservation | None = await self._reserve_one(limits, use_within)
        if reserved is None:
            async with self._database.transaction() as transaction:
                reserved = await self._reserve(transaction, limits, use_within)
        if isinstance(reserved, Hold):
            self._full = {asked} if len(self._full) > MOST_FULL else self._full | {asked}
        return reserved

    async def confirm(self, id: str, *, within: Any | None = None) -> None:
        now = self._clock.now() if self._own_time else None
        await (within or self._database).run(self._queries.confirm, id=id, now=now)

    async def release(self, id: str, *, within: Any | None = None) -> None:
        await (within or self._database).run(self._queries.release, id=id)

    async def count_used(self, limits: Sequence[Limit]) -> Mapping[str, int]:
        async with self._database.snapshot() as snapshot:
            now = await self._now(snapshot)
            counts = {}
            for limit in limits:
                row = await snapshot.one(self._queries.used, key=limit.key, since=now - limit.per)
                counts[limit.name] = 0 if row is None else int(row["used"])
        return counts

    async def prune(self, *, spare: timedelta = timedelta(0), limit: int) -> int:
        """Delete at most ``limit`` tokens whose retention ended longer ago than the duration ``spare``, and return how
        many were deleted.
        """
        async with self._database.snapshot() as snapshot:
            now = await self._now(snapshot)
        return await self._database.run(self._queries.prune, before=now - spare, limit=limit)

    async def _find_hold_unlocked(self, limits: Sequence[Limit]) -> Hold | None:
        async with self._database.snapshot() as snapshot:
            return await self._find_hold(snapshot, limits, await self._now(snapshot))

    async def _reserve_one(self, limits: Sequence[Limit], use_within: timedelta) -> Reserved | None:
        """Check a single limit and take its token in one statement, which is possible only on SQLite. Return None if
        the limit is exhausted, or if the caller must use the general transaction (several limits, or PostgreSQL).
        """
        if self._database.dialect != "sqlite" or len(limits) != 1:
            return None
        (limit,), now = limits, self._clock.now()
        reserved = Reserved(self._ids.new(), now + use_within)
        taken = await self._database.run(
            self._queries.take_if,
            id=reserved.id,
            key=limit.key,
            counts_at=reserved.act_by,
            kept_until=reserved.act_by + limit.per + MARGIN,
            since=now - limit.per,
            others=limit.most - 1,
        )
        return reserved if taken else None

    async def _reserve(self, transaction: Transaction, limits: Sequence[Limit], use_within: timedelta) -> Reservation:
        keys = sorted({limit.key for limit in limits})
        await transaction.all(self._queries.lock, keys=AsJson(keys))
        # Read the time after locking the keys, so that a caller that had to wait for the locks does not decide with an
        # outdated time.
        now = await self._now(transaction)
        if (held := await self._find_hold(transaction, limits, now)) is not None:
            return held
        reserved = Reserved(self._ids.new(), now + use_within)
        longest = max((limit.per for limit in limits), default=timedelta(0))
        kept_until = reserved.act_by + longest + MARGIN
        await transaction.run_many(
            self._queries.take,
            [{"id": reserved.id, "key": key, "counts_at": reserved.act_by, "kept_until": kept_until} for key in keys],
        )
        return reserved

    async def _find_hold(self, reading: Reading, limits: Sequence[Limit], now: datetime) -> Hold | None:
        full = {}
        for limit in limits:
            row = await reading.one(self._queries.blocking, key=limit.key, since=now - limit.per, others=limit.most - 1)
            until = full_until(limit, None if row is None else row["counts_at"], now)
            if until is not None:
                full[limit] = until
        return verdict(full)

    async def _now(self, within: Reading) -> datetime:
        return self._clock.now() if self._own_time else await read_clock(within)
