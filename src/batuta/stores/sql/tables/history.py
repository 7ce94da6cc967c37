"""Queries on ``job_executions``, and the expansion of abbreviated ids that operators type. Each query uses an index, so
it is fast at any table size.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from batuta.kernel.clock import in_microseconds, microseconds
from batuta.kernel.errors import AmbiguousId
from batuta.kernel.reasons import decode
from batuta.kernel.values import dataclass
from batuta.runlog.history import BEFORE_ANY, ENOUGH_FAILURES, Counts, Facts, LastRun, Recorded, Slice
from batuta.stores.sql.database import AsJson, Database, Query, Row, from_row
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import in_dialect, load_queries, query_of

_RAN = ("success", "error", "timeout")
_ID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


@dataclass(frozen=True, slots=True)
class ReportQueries:
    known_since: Query
    expect: Query
    schedules: Query
    last_runs: Query
    last_errors: Query
    failures: Query
    counts: Query
    slow: Query
    answered: Query
    activity: Query
    running: Query
    recent: Query
    recent_of_job: Query
    recent_in_status: Query
    recent_of_job_in_status: Query
    execution: Query


# Statistics over more runs than this are cached, because computing them takes noticeable database time.
MANY_RUNS = 5_000
KEPT_FOR = timedelta(seconds=15)


class KeptRows(NamedTuple):
    at: datetime
    rows: Sequence[Row]


class SqlReports:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = load_queries(ReportQueries, STATEMENTS / "reports.sql", database.dialect)
        self._kept: dict[str, KeptRows] = {}

    async def expect(self, *, now: datetime) -> None:
        """Record the instant at which a process first uses this database. From then on, health checks expect the jobs
        to run, even if no scheduler has ever run.
        """
        await self._database.run(self._queries.expect, since=AsJson(now.isoformat()), now=now)

    async def find_first_use(self) -> datetime | None:
        row = await self._database.one(self._queries.known_since)
        return None if row is None else datetime.fromisoformat(row["since"])

    async def facts(self, *, since: datetime, now: datetime) -> Mapping[str, Facts]:
        queries = self._queries
        async with self._database.snapshot() as snapshot:
            schedules = await snapshot.all(queries.schedules)
            last = {row["job_name"]: _last(row) for row in await snapshot.all(queries.last_runs)}
            errors = {row["job_name"]: decode(row["error"]) for row in await snapshot.all(queries.last_errors)}
            failures = await snapshot.all(queries.failures, enough=ENOUGH_FAILURES)
            running = {row["job_name"]: row["runs"] for row in await snapshot.all(queries.running, now=now)}
            counted = await self._keep("counts", now, lambda: snapshot.all(queries.counts, since=since))
            is_large = _runs(counted) > MANY_RUNS
            ranked = await self._keep("slow", now, lambda: snapshot.all(queries.slow, since=since), is_large=is_large)
        counts = _counts(counted, {row["job_name"]: row["duration_ms"] for row in ranked})
        failed = {row["job_name"]: row["failures"] for row in failures}
        return {
            name: Facts(
                expected_since=row["expected_since"] if row["active"] else None,
                last=last.get(name),
                last_error=errors.get(name),
                failures_in_a_row=failed.get(name, 0),
                running=running.get(name, 0),
                counts=counts.get(name, Counts()),
            )
            for row in schedules
            if (name := row["job_name"])
        }

    async def find_answered(self, expected: Mapping[str, datetime], now: datetime) -> frozenset[str]:
        instants = AsJson({job: microseconds(instant) for job, instant in expected.items()})
        rows = await self._database.all(self._queries.answered, expected=instants, now=now)
        return frozenset(row["job_name"] for row in rows)

    async def activity(self, *, since: datetime, length: timedelta, now: datetime) -> Sequence[Slice]:
        values = {"since": since, "length": in_microseconds(length)}
        rows = await self._keep(f"activity {since}", now, lambda: self._database.all(self._queries.activity, **values))
        return [
            Slice(category=row["categoria"], status=row["status"], place=row["slice"], runs=row["runs"]) for row in rows
        ]

    async def _keep(
        self, name: str, now: datetime, read: Callable[[], Awaitable[Sequence[Row]]], *, is_large: bool = False
    ) -> Sequence[Row]:
        """Return one day's statistics, either from the cache or from ``read``. Statistics that cover many runs are
        cached for KEPT_FOR.
        """
        kept = self._kept.get(name)
        if kept is not None and timedelta(0) <= now - kept.at < KEPT_FOR:
            return kept.rows
        rows = await read()
        self._kept = {each: old for each, old in self._kept.items() if timedelta(0) <= now - old.at < KEPT_FOR}
        if is_large or _runs(rows) > MANY_RUNS:
            self._kept[name] = KeptRows(now, rows)
        return rows

    async def recent(
        self,
        *,
        job: str | None = None,
        status: str | None = None,
        before: datetime,
        before_id: str = BEFORE_ANY,
        limit: int,
    ) -> Sequence[Recorded]:
        queries = self._queries
        asked = {"before": before, "before_id": before_id, "limit": limit}
        match job, status:
            case None, None:
                rows = await self._database.all(queries.recent, **asked)
            case str(), None:
                rows = await self._database.all(queries.recent_of_job, job=job, **asked)
            case None, str():
                rows = await self._database.all(queries.recent_in_status, status=status, **asked)
            case _:
                rows = await self._database.all(queries.recent_of_job_in_status, job=job, status=status, **asked)
        return [_record_of(row) for row in rows]

    async def execution(self, id: str) -> Recorded | None:
        if not is_uuid(id):
            return None  # PostgreSQL would raise an error for an invalid UUID
        row = await self._database.one(self._queries.execution, id=id)
        return None if row is None else _record_of(row)


def _runs(rows: Sequence[Row]) -> int:
    return sum(int(dict(row).get("runs") or 0) for row in rows)


def is_uuid(text: str) -> bool:
    """Return whether a string is a UUID in lower case with hyphens."""
    return _ID.match(text) is not None


def _counts(rows: Sequence[Row], slow: Mapping[str, int]) -> dict[str, Counts]:
    by_job: dict[str, list[Row]] = {}
    for row in rows:
        by_job.setdefault(row["job_name"], []).append(row)
    return {job: _counts_of(of_job, slow.get(job)) for job, of_job in by_job.items()}


def _counts_of(rows: Sequence[Row], p95: int | None) -> Counts:
    ran = [row for row in rows if row["status"] in _RAN]
    runs = sum(row["runs"] for row in ran)
    return Counts(
        by_status={row["status"]: row["runs"] for row in rows},
        mean_ms=round(sum(int(row["total_ms"] or 0) for row in ran) / runs) if runs else None,
        p95_ms=p95,
        items=sum(int(row["items"] or 0) for row in rows),
    )


def _last(row: Row) -> LastRun:
    said = {"error": decode(row["error"]), "reason": decode(row["reason"])}
    return from_row(LastRun, row, items=row["items_processed"], **said)


def _record_of(row: Row) -> Recorded:
    named = {"job": row["job_name"], "category": row["categoria"], "items": row["items_processed"]}
    return from_row(Recorded, row, **named, error=decode(row["error"]), reason=decode(row["reason"]))


SHORTEST = 4
SHOWN = 5
_HEXADECIMAL = re.compile(r"[0-9a-f]+")


def id_range(written: str) -> tuple[str, str] | None:
    """Return the smallest and the largest id that begin with ``written``, or None if no id can begin with it."""
    digits = written.strip().lower().replace("-", "")
    if not SHORTEST <= len(digits) <= 32 or not _HEXADECIMAL.fullmatch(digits):
        return None
    return str(UUID(digits.ljust(32, "0"))), str(UUID(digits.ljust(32, "f")))


async def full_id(database: Database, table: str, written: str, *, column: str = "id") -> str | None:
    """Return the only id that begins with ``written``, or None if there is none. Raise AmbiguousId if several ids begin
    with ``written``.
    """
    if (ids := id_range(written)) is None:
        return None
    between = f"SELECT {column} AS id FROM {table} WHERE {column} >= :least AND {column} <= :most"
    query = in_dialect(
        query_of("full_id", f"{between} ORDER BY {column} LIMIT {SHOWN + 1}", writes=False), database.dialect
    )
    rows = await database.all(query, least=ids[0], most=ids[1])
    found = [str(row["id"]) for row in rows]
    if len(found) > 1:
        more = ", …" if len(found) > SHOWN else ""
        raise AmbiguousId(id=written, candidates=", ".join(found[:SHOWN]) + more)
    return found[0] if found else None
