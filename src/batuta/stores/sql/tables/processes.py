"""Stores heartbeats in ``worker_heartbeats`` and restarts in ``worker_restarts``, and reads the server's oldest open
transaction.
"""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from batuta.health.checks import OpenTransaction
from batuta.health.workers import Beat, LoopSeen, Signs
from batuta.kernel.batcher import BatchLoader
from batuta.kernel.clock import in_microseconds
from batuta.kernel.ids import Ids
from batuta.kernel.reasons import decode, encode
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.processes.heartbeat import LoopStatuses
from batuta.processes.requests import REQUESTS, ProcessRequest, RequestKind
from batuta.processes.restarts import NewRestart, Restart
from batuta.stores.sql.database import AsJson, Database, Query, Row, from_row, to_values
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries
from batuta.stores.sql.tables.audit import AuditLog


@dataclass(frozen=True, slots=True)
class BeatQueries:
    beat: Query
    put_back: Query
    stall: Query
    seen: Query
    prune: Query


SignsKey: TypeAlias = tuple[timedelta, datetime | None]


class SqlBeats:
    def __init__(self, database: Database, version: str, *, liveness: Database | None = None) -> None:
        """Create the store of heartbeats. ``liveness`` is a separate set of connections for writing heartbeats. Without
        it, heartbeats are written through ``database``.
        """
        self._database = database
        self._liveness = liveness or database
        self._version = version
        self._queries = load_queries(BeatQueries, STATEMENTS / "beats.sql", database.dialect)
        # Several health checks read the signs at the same instant, so one statement reads for all of them.
        self._signs: BatchLoader[SignsKey, Signs] = BatchLoader(self._load_signs)

    async def beat(
        self,
        worker_id: str,
        worker_name: str,
        loops: LoopStatuses | Mapping[str, Json],
        *,
        now: datetime | None = None,
        status: str = "online",
        rss_bytes: int | None = None,
        cpu_seconds: float | None = None,
        host: str | None = None,
        pid: int | None = None,
    ) -> None:
        written = await self._liveness.one(
            self._queries.beat,
            worker_id=worker_id,
            worker_name=worker_name,
            status=status,
            now=now,
            loops=AsJson(loops),
            host=host or socket.gethostname(),
            pid=pid or os.getpid(),
            version=self._version,
            rss_bytes=rss_bytes,
            cpu_seconds=cpu_seconds,
        )
        if written is not None and written["is_ahead"]:
            await self._liveness.run(self._queries.put_back, now=now)

    async def record_stall(self, *, host: str, pid: int) -> bool:
        """Record that a process is not responding, as its parent has detected. Return False if the process is unknown
        or has ended.
        """
        return bool(await self._database.run(self._queries.stall, host=host, pid=pid))

    async def read_signs(self, *, within: timedelta, now: datetime | None = None) -> Signs:
        signs = await self._signs.get((within, now))
        assert signs is not None  # _load_signs returns signs for every key
        return signs

    async def _load_signs(self, asked: Sequence[SignsKey]) -> Mapping[SignsKey, Signs]:
        return {(within, now): await self._read_signs(within, now) for within, now in asked}

    async def _read_signs(self, within: timedelta, now: datetime | None) -> Signs:
        rows = await self._database.all(self._queries.seen, within=in_microseconds(within), now=now)
        return Signs(now=rows[0]["now"], beats=tuple(_beat(row) for row in rows if _is_process(row)))

    async def prune(self, *, before: datetime, limit: int) -> int:
        return await self._database.run(self._queries.prune, before=before, limit=limit)


def _is_process(row: Row) -> bool:
    """Return whether a heartbeat row belongs to a process. Other rows are heartbeats of jobs, which list no loops."""
    status = row["loops_status"]
    return isinstance(status, dict) and any(isinstance(loop, dict) for loop in status.values())


def _beat(row: Row) -> Beat:
    beat_at = row["last_heartbeat_at"]
    status = {name: loop for name, loop in row["loops_status"].items() if isinstance(loop, dict)}
    loops = {name: _loop(loop, beat_at) for name, loop in status.items()}
    return from_row(Beat, row, role=row["worker_name"], beat_at=beat_at, loops=loops)


def _loop(status: Mapping[str, Json], beat_at: datetime) -> LoopSeen:
    return LoopSeen(
        alive=status.get("alive") is not False,
        pinged_at=_instant(status.get("last_ping_ago"), beat_at),
        worked_at=_instant(status.get("last_progress_ago"), beat_at),
        failures=_count(status.get("failures")),
        restarts=_count(status.get("restarts")),
        concurrency=concurrency if isinstance(concurrency := status.get("concurrency"), int) else None,
        stuck_threads=_count(status.get("stuck_threads")),
    )


def _instant(ago: Json, beat_at: datetime) -> datetime | None:
    return beat_at - timedelta(seconds=ago) if isinstance(ago, int | float) else None


def _count(status: Json) -> int:
    return status if isinstance(status, int) else 0


# Maximum characters of a stack trace. The middle of a longer trace is dropped, because its two ends are the most
# useful.
LONGEST_STACK = 16_000
LONGEST_DUMP = 100_000  # maximum characters in a dump, which contains the stacks of all tasks in a process
NUL = "\x00"


@dataclass(frozen=True, slots=True)
class RestartQueries:
    add: Query
    since: Query
    prune: Query


class SqlRestarts:
    def __init__(self, database: Database, ids: Ids) -> None:
        self._database = database
        self._ids = ids
        self._queries = load_queries(RestartQueries, STATEMENTS / "restarts.sql", database.dialect)

    async def add(self, restart: NewRestart, *, now: datetime | None = None) -> str:
        id = self._ids.new()
        said = {
            "reason": str(restart.reason),
            "detail": _storable(encode(restart.detail) or ""),
            "stack": None if restart.stack is None else _shorten(_storable(restart.stack)),
        }
        values = to_values(restart, id=id, now=now, otherwise=f"{restart.host}:{restart.pid}", **said)
        await self._database.run(self._queries.add, **values)
        return id

    async def since(self, since: datetime, *, limit: int = 100) -> Sequence[Restart]:
        return [_restart(row) for row in await self._database.all(self._queries.since, since=since, limit=limit)]

    async def prune(self, *, before: datetime, limit: int) -> int:
        return await self._database.run(self._queries.prune, before=before, limit=limit)


def _storable(text: str) -> str:
    """Return the text without NUL characters and lone surrogates, which PostgreSQL cannot store."""
    return text.replace(NUL, "").encode(errors="replace").decode()


def _shorten(stack: str, most: int = LONGEST_STACK) -> str:
    if len(stack) <= most:
        return stack
    half = most // 2
    return f"{stack[:half]}\n…\n{stack[-half:]}"


def _restart(row: Row) -> Restart:
    return from_row(Restart, row, detail=decode(row["detail"]) or "")


@dataclass(frozen=True, slots=True)
class RequestQueries:
    add: Query
    open: Query
    take: Query
    since: Query
    prune: Query


class SqlProcessRequests:
    def __init__(self, database: Database, ids: Ids, wake: Callable[[str], None] = lambda name: None) -> None:
        """Create the store of requests. ``wake`` receives REQUESTS after a request was stored, to notify the loop in
        this process.
        """
        self._database = database
        self._wake = wake
        self._ids = ids
        self._audit = AuditLog(database.dialect, ids)
        self._queries = load_queries(RequestQueries, STATEMENTS / "process_requests.sql", database.dialect)

    async def ask(self, beat: Beat, request: RequestKind, *, by: str, now: datetime) -> str:
        """Store a request to a process, with an audit entry, and return the request's id."""
        id, subject = self._ids.new(), f"{beat.role} {beat.host}:{beat.pid}"
        async with self._database.transaction() as transaction:
            await transaction.run(
                self._queries.add, id=id, worker_id=beat.worker_id, request=request.value, by=by, now=now
            )
            await self._audit.note(
                transaction, actor=by, action=f"process.{request}", subject=subject, after={"id": id}, now=now
            )
            transaction.notify(REQUESTS)  # on PostgreSQL the statement has notified the processes
        self._wake(REQUESTS)
        return id

    async def open_requests(self, worker_id: str) -> Sequence[ProcessRequest]:
        return [_request(row) for row in await self._database.all(self._queries.open, worker_id=worker_id)]

    async def take(self, id: str, *, now: datetime, stack: str | None = None) -> bool:
        stored = None if stack is None else _shorten(_storable(stack), LONGEST_DUMP)
        return bool(await self._database.run(self._queries.take, id=id, now=now, stack=stored))

    async def since(self, since: datetime, *, limit: int = 100) -> Sequence[ProcessRequest]:
        return [_request(row) for row in await self._database.all(self._queries.since, since=since, limit=limit)]

    async def prune(self, *, before: datetime, limit: int) -> int:
        return await self._database.run(self._queries.prune, before=before, limit=limit)


def _request(row: Row) -> ProcessRequest:
    return from_row(ProcessRequest, row, id=str(row["id"]))


@dataclass(frozen=True, slots=True)
class TransactionQueries:
    oldest: Query


class SqlTransactions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = load_queries(TransactionQueries, STATEMENTS / "transactions.sql", database.dialect)

    async def oldest(self) -> OpenTransaction | None:
        if self._database.dialect == "sqlite":  # it has one writer and short reads
            return None
        row = await self._database.one(self._queries.oldest)
        if row is None:
            return None
        lasts = timedelta(seconds=max(0.0, row["seconds"]))
        return from_row(OpenTransaction, row, lasts=lasts, transactions_since=row["transactions"])
