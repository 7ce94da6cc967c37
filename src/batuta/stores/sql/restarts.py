"""Restarts in ``worker_restarts``."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from batuta.kernel.ids import Ids
from batuta.stores.sql.database import Database, Query, Row
from batuta.stores.sql.engine_schema import BOOKS
from batuta.stores.sql.queries import load
from batuta.supervise.restarts import NewRestart, Restart

# A stack without end says no more than its beginning and its end, and no row should be a megabyte.
LONGEST_STACK = 16_000
NUL = "\x00"


@dataclass(frozen=True, slots=True)
class RestartBook:
    add: Query
    since: Query
    prune: Query


class SqlRestarts:
    def __init__(self, database: Database, ids: Ids) -> None:
        self._database = database
        self._ids = ids
        self._book = load(RestartBook, BOOKS / "restarts.sql", database.dialect)

    async def add(self, restart: NewRestart, *, now: datetime | None = None) -> str:
        id = self._ids.new()
        await self._database.run(
            self._book.add,
            id=id,
            now=now,
            worker_id=restart.worker_id,
            otherwise=f"{restart.host}:{restart.pid}",
            worker_name=restart.worker_name,
            loop=restart.loop,
            reason=restart.reason.value,
            detail=_storable(restart.detail),
            stack=None if restart.stack is None else _shortened(_storable(restart.stack)),
            exit_code=restart.exit_code,
            restarts_in_window=restart.restarts_in_window,
            host=restart.host,
            pid=restart.pid,
        )
        return id

    async def since(self, since: datetime, *, limit: int = 100) -> Sequence[Restart]:
        return [_restart(row) for row in await self._database.all(self._book.since, since=since, limit=limit)]

    async def prune(self, *, before: datetime) -> int:
        return await self._database.run(self._book.prune, before=before)


def _storable(text: str) -> str:
    """PostgreSQL keeps no NUL and no half of a character."""
    return text.replace(NUL, "").encode(errors="replace").decode()


def _shortened(stack: str) -> str:
    if len(stack) <= LONGEST_STACK:
        return stack
    half = LONGEST_STACK // 2
    return f"{stack[:half]}\n…\n{stack[-half:]}"


def _restart(row: Row) -> Restart:
    return Restart(**dict(row))
