"""Stores calls to job endpoints in ``job_calls``, so that a repeated request gets the same response as the first."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from batuta.kernel.clock import in_microseconds
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.receive.receiver import Answered, Busy, CallOpened, CallOpening, KeyReused, NewCall
from batuta.stores.sql.database import AsJson, Database, Query, Row, to_values
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries


@dataclass(frozen=True, slots=True)
class CallQueries:
    expire: Query
    open: Query
    call: Query
    close: Query
    renew: Query
    forget: Query
    prune: Query


class SqlJobCalls:
    def __init__(
        self, database: Database, now: Callable[[], datetime | None] = lambda: None, *, liveness: Database | None = None
    ) -> None:
        """Create the store of calls to job endpoints. ``now`` returns the current time for the statements, or None if
        they must use the database's clock. ``liveness`` is a separate set of connections, so that handlers cannot delay
        these writes.
        """
        self._background = database
        self._database = liveness or database
        self._now = now
        self._queries = load_queries(CallQueries, STATEMENTS / "calls.sql", database.dialect)

    async def open(self, call: NewCall) -> CallOpening:
        async with self._database.transaction() as transaction:
            await transaction.run(self._queries.expire, subject=call.subject, key=call.key, now=self._now())
            values = to_values(call, lease=in_microseconds(call.lease), now=self._now())
            taken = await transaction.one(self._queries.open, **values)
            if taken is not None:
                return CallOpened(taken["started_at"])
            known = await transaction.one(self._queries.call, key=call.key)
        return Busy() if known is None else _find_known_outcome(known, call)

    async def close(self, key: str, response_code: int, response: Mapping[str, Json], *, opened_at: datetime) -> None:
        await self._database.run(
            self._queries.close,
            key=key,
            response_code=response_code,
            response=AsJson(response),
            opened_at=opened_at,
            now=self._now(),
        )

    async def renew(self, key: str, *, opened_at: datetime, lease: timedelta) -> None:
        await self._database.run(
            self._queries.renew, key=key, opened_at=opened_at, lease=in_microseconds(lease), now=self._now()
        )

    async def forget(self, key: str, *, opened_at: datetime) -> None:
        await self._database.run(self._queries.forget, key=key, opened_at=opened_at)

    async def prune(self, *, keep: timedelta, limit: int) -> int:
        return await self._background.run(self._queries.prune, keep=in_microseconds(keep), limit=limit, now=self._now())


def _find_known_outcome(known: Row, call: NewCall) -> CallOpening:
    if known["fingerprint"] != call.fingerprint:
        return KeyReused()
    if known["finished_at"] is None:
        return Busy(same_key=True)
    return Answered(known["response_code"], known["response"])
