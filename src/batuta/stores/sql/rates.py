"""Rate limits in ``rate_tokens``: counted and taken in one transaction, under a lock on the keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from batuta.guard.base import Hold
from batuta.guard.rate import USE_WITHIN, Limit, Reservation, Reserved, full_until, verdict
from batuta.kernel.clock import Clock
from batuta.kernel.ids import Ids
from batuta.stores.sql.database import AsJson, Database, Query, Reading, Transaction
from batuta.stores.sql.engine_schema import BOOKS
from batuta.stores.sql.queries import load

# Kept for so long after it counts for nobody: who confirmed late is still within it.
MARGIN = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class RateBook:
    lock: Query
    clock: Query
    blocking: Query
    take: Query
    confirm: Query
    release: Query
    used: Query
    prune: Query


class SqlRates:
    """``own_time``: the clock decides. Otherwise PostgreSQL's does, as it should where several machines share it."""

    def __init__(self, database: Database, ids: Ids, clock: Clock, *, own_time: bool = False) -> None:
        self._database = database
        self._ids = ids
        self._clock = clock
        self._own_time = own_time or database.dialect == "sqlite"
        self._book = load(RateBook, BOOKS / "rates.sql", database.dialect)

    async def reserve(
        self, limits: Sequence[Limit], *, use_within: timedelta = USE_WITHIN, within: Any | None = None
    ) -> Reservation:
        if within is not None:
            return await self._reserve(within, limits, use_within)
        # Most who ask are held: they are told so beside the writers, and only who may pass waits for the lock.
        async with self._database.snapshot() as snapshot:
            held = await self._held(snapshot, limits, await self._now(snapshot))
        if held is not None:
            return held
        async with self._database.transaction() as transaction:
            return await self._reserve(transaction, limits, use_within)

    async def confirm(self, id: str, *, within: Any | None = None) -> None:
        now = self._clock.now() if self._own_time else None
        await (within or self._database).run(self._book.confirm, id=id, now=now)

    async def release(self, id: str, *, within: Any | None = None) -> None:
        await (within or self._database).run(self._book.release, id=id)

    async def used(self, limits: Sequence[Limit]) -> Mapping[str, int]:
        async with self._database.snapshot() as snapshot:
            now = await self._now(snapshot)
            counts = {}
            for limit in limits:
                row = await snapshot.one(self._book.used, key=limit.key, since=now - limit.per)
                counts[limit.name] = 0 if row is None else int(row["used"])
        return counts

    async def prune(self, *, spare: timedelta = timedelta(0), limit: int) -> int:
        """What was to be kept until longer ago than ``spare``."""
        async with self._database.snapshot() as snapshot:
            now = await self._now(snapshot)
        return await self._database.run(self._book.prune, before=now - spare, limit=limit)

    async def _reserve(self, transaction: Transaction, limits: Sequence[Limit], use_within: timedelta) -> Reservation:
        keys = sorted({limit.key for limit in limits})
        await transaction.all(self._book.lock, keys=AsJson(keys))
        # Asked after the keys are ours: whoever waited for them must not decide with an old time.
        now = await self._now(transaction)
        if (held := await self._held(transaction, limits, now)) is not None:
            return held
        reserved = Reserved(self._ids.new(), now + use_within)
        longest = max((limit.per for limit in limits), default=timedelta(0))
        kept_until = reserved.act_by + longest + MARGIN
        await transaction.run_many(
            self._book.take,
            [{"id": reserved.id, "key": key, "counts_at": reserved.act_by, "kept_until": kept_until} for key in keys],
        )
        return reserved

    async def _held(self, reading: Reading, limits: Sequence[Limit], now: datetime) -> Hold | None:
        full = {}
        for limit in limits:
            row = await reading.one(self._book.blocking, key=limit.key, since=now - limit.per, others=limit.most - 1)
            until = full_until(limit, None if row is None else row["counts_at"], now)
            if until is not None:
                full[limit] = until
        return verdict(full)

    async def _now(self, within: Reading) -> datetime:
        if self._own_time:
            return self._clock.now()
        row = await within.one(self._book.clock)
        assert row is not None
        now: datetime = row["now"]
        return now
