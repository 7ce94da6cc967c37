"""Keeps facts that are newer than a backup when the backup replaces the database. The facts are read from the old
database and written into the restored database.

If the old database is readable and the backup was taken from it, its newer facts take precedence, for example about
finished runs, permissions and used rate limits. Otherwise the events since the backup are unknown, and work that may
have run since then is not repeated.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from batuta.kernel.ids import Ids
from batuta.kernel.reasons import encode
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.queue.item import QueueTable
from batuta.runlog.reasons import MISSED_RESTORED, RESTORED
from batuta.stores.sql.database import AsJson, Database, Dialect, Query, Reading, Row, Transaction
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import in_dialect, load_queries, query_of
from batuta.stores.sql.tables.audit import AuditLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A restore of this database from a backup. ``taken_at`` is when the backup was written; ``by`` is the operator who
    restored the database.
    """

    taken_at: datetime
    restored_at: datetime
    has_old: bool  # False if the old database was not readable, so that events after ``taken_at`` are unknown
    by: str


class Restoring(Protocol):
    """A component that owns rows that must survive a restore, such as rows about finished runs."""

    async def collect(self, old: Reading, since: datetime) -> object:
        """Read from the old database the component's facts that must survive the restore. ``since`` is when the backup
        was taken.
        """
        ...

    async def apply(self, new: Transaction, collected: Any, restored: Restored) -> Mapping[str, int]:
        """Write the collected facts into the restored database, in the restore's transaction, and return how many
        changes of each kind were made. ``collected`` is None if the old database was not readable.
        """
        ...


def as_values(rows: Iterable[Row], json: Sequence[str] = ()) -> list[dict[str, object]]:
    """Convert rows to values for an INSERT. ``json`` names the JSONB columns."""
    return [{name: AsJson(value) if name in json else value for name, value in dict(row).items()} for row in rows]


async def insert_rows(
    new: Transaction, dialect: Dialect, table: str, rows: Sequence[Mapping[str, object]], conflict: str = "DO NOTHING"
) -> int:
    """Insert rows unchanged and return how many were written. ``conflict`` is the ON CONFLICT action for rows that
    already exist.
    """
    if not rows:
        return 0
    columns = list(rows[0])
    text = (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{column}' for column in columns)})"
        f" ON CONFLICT {conflict}"
    )
    query = in_dialect(query_of(f"insert_{table}", text, writes=True), dialect)
    return sum([await new.run(query, **row) for row in rows])


DATABASE_ID = "database_id"
RESTORES = "restores"
# A run that started longer ago than this has ended, because no job may take longer.
LONGEST_RUN = timedelta(days=1)
# Larger than any possible number of claims. So fences held by processes from before the restore are outdated, and these
# processes cannot settle any item.
FENCE_STEP = 1_000_000


@dataclass(frozen=True, slots=True)
class EngineRestoreQueries:
    fact: Query
    settle: Query
    record: Query
    alive: Query
    executions: Query
    forget_executions: Query
    abandon: Query
    schedules: Query
    account: Query
    skip: Query
    switches: Query
    forget_switches: Query
    settings: Query
    tokens: Query
    rates: Query
    audit: Query
    tasks: Query
    end_task: Query
    forget_beats: Query
    forget_leases: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    executions: Sequence[Row]
    schedules: Sequence[Row]
    switches: Sequence[Row]
    settings: Sequence[Row]
    tokens: Sequence[Row]
    rates: Sequence[Row]
    audit: Sequence[Row]
    tasks: Sequence[Row]


def engine_restore_queries(dialect: Dialect) -> EngineRestoreQueries:
    return load_queries(EngineRestoreQueries, STATEMENTS / "restoring.sql", dialect)


class DatabaseId:
    """The id that a database shares with its backups. Two databases with the same id are copies of one database from
    different times.
    """

    def __init__(self, dialect: Dialect, ids: Ids | None = None) -> None:
        self._ids = ids
        self._queries = engine_restore_queries(dialect)

    async def read(self, reading: Reading) -> str | None:
        row = await reading.one(self._queries.fact, name=DATABASE_ID)
        return None if row is None else str(row["setting"])

    async def settle(self, transaction: Transaction, *, now: datetime) -> str:
        """Return the database's id. If the database has no id yet, create one."""
        found = await self.read(transaction)
        if found is not None or self._ids is None:
            return found or ""
        await transaction.run(self._queries.settle, name=DATABASE_ID, setting=AsJson(self._ids.new()), now=now)
        return await self.read(transaction) or ""


async def blind_restores(database: Database) -> list[Restored]:
    """Return the restores for which the old database was not readable, so that the events since the backup are unknown.
    The restore from the oldest backup comes first.
    """
    row = await database.one(engine_restore_queries(database.dialect).fact, name=RESTORES)
    found = [
        Restored(
            taken_at=datetime.fromisoformat(each["taken_at"]),
            restored_at=datetime.fromisoformat(each["restored_at"]),
            has_old=False,
            by="",
        )
        for each in ([] if row is None else row["setting"])
        if not each["has_old"]
    ]
    return sorted(found, key=lambda restored: restored.taken_at)


class EngineRestoring:
    """Preserves the engine's own facts across a restore: job runs, ended tasks, switches, settings, tokens and limits.
    Leases from the backup are released.
    """

    def __init__(self, dialect: Dialect, queues: Sequence[QueueTable], ids: Ids) -> None:
        self._dialect = dialect
        self._queues = queues
        self._ids = ids
        self._audit = AuditLog(dialect, ids)
        self._queries = engine_restore_queries(dialect)

    async def collect(self, old: Reading, since: datetime) -> EngineFacts:
        queries = self._queries
        return EngineFacts(
            executions=await old.all(queries.executions, since=since - LONGEST_RUN),
            schedules=await old.all(queries.schedules),
            switches=await old.all(queries.switches),
            settings=await old.all(queries.settings),
            tokens=await old.all(queries.tokens),
            rates=await old.all(queries.rates, since=since),
            audit=await old.all(queries.audit, since=since),
            tasks=await old.all(queries.tasks, since=since),
        )

    async def apply(self, new: Transaction, collected: EngineFacts | None, restored: Restored) -> Mapping[str, int]:
        await new.run(self._queries.forget_beats)
        await new.run(self._queries.forget_leases)
        counts = {"leases": sum([await self._release(new, table) for table in self._queues])}
        if collected is None:
            counts["jobs"] = await self._skip_fires(new, restored)
        else:
            counts |= await self._carry_over(new, collected, restored)
        await new.run(self._queries.abandon, reason=encode(RESTORED()), now=restored.restored_at)
        await self._remember(new, restored)
        return counts

    async def _release(self, new: Transaction, table: QueueTable) -> int:
        """Release the items that were leased in the backup, and return how many there were. Raise the fences (the
        numbers that every claim increments) far enough that processes from before the restore cannot settle any item.
        """
        state = table.state
        if table.running is not None:
            state = f"CASE {table.state} WHEN '{table.running}' THEN '{table.ready[0]}' ELSE {table.state} END"
        release = (
            f"UPDATE {table.name} SET {table.lease_until} = NULL, {table.owner} = NULL, {table.state} = {state}"
            f" WHERE {table.lease_until} IS NOT NULL"
        )
        released = await new.run(self._query("release", release))
        ended = ", ".join(f"'{state}'" for state in (table.done, table.dead, table.cancelled))
        step = (
            f"UPDATE {table.name} SET {table.fence} = {table.fence} + {FENCE_STEP} WHERE {table.state} NOT IN ({ended})"
        )
        await new.run(self._query("step_fence", step))
        return released

    async def _skip_fires(self, new: Transaction, restored: Restored) -> int:
        """Skip the fires that became due after the backup was taken, because it is unknown which of them ran. Insert
        one row per job that records the reason, and return the number of rows.
        """
        reason = encode(MISSED_RESTORED(taken_at=restored.taken_at))
        span = {"from": restored.taken_at.isoformat(), "to": restored.restored_at.isoformat()}
        schedules = [row for row in await new.all(self._queries.schedules) if row["active"]]
        for row in schedules:
            await new.run(self._queries.account, job=row["job_name"], until=restored.restored_at)
            await new.run(
                self._queries.skip,
                id=self._ids.new(),
                job=row["job_name"],
                category=row["categoria"],
                reason=reason,
                span=AsJson(span),
                now=restored.restored_at,
            )
        return len(schedules)

    async def _carry_over(self, new: Transaction, old: EngineFacts, restored: Restored) -> dict[str, int]:
        await new.run(self._queries.forget_executions, since=restored.taken_at - LONGEST_RUN)
        await insert_rows(new, self._dialect, "job_executions", as_values(old.executions, ("result", "params")))
        for row in old.schedules:
            await new.run(self._queries.account, job=row["job_name"], until=row["accounted_until"])
        await new.run(self._queries.forget_switches)
        await insert_rows(new, self._dialect, "feature_flags", as_values(old.switches, ("value",)))
        newer = "(name) DO UPDATE SET setting = excluded.setting, updated_at = excluded.updated_at"
        await insert_rows(new, self._dialect, "app_settings", as_values(old.settings, ("setting",)), newer)
        revoked = "(id) DO UPDATE SET revoked_at = excluded.revoked_at"
        await insert_rows(new, self._dialect, "api_tokens", as_values(old.tokens, ("scopes",)), revoked)
        await insert_rows(new, self._dialect, "rate_tokens", as_values(old.rates))
        await insert_rows(new, self._dialect, "audit_log", as_values(old.audit, ("before", "after")))
        ended = [await new.run(self._queries.end_task, **row) for row in as_values(old.tasks, ("result",))]
        return {"executions": len(old.executions), "tasks": sum(ended), "switches": len(old.switches)}

    async def _remember(self, new: Transaction, restored: Restored) -> None:
        row = await new.one(self._queries.fact, name=RESTORES)
        before = [] if row is None else row["setting"]
        entry: dict[str, Json] = {
            "taken_at": restored.taken_at.isoformat(),
            "restored_at": restored.restored_at.isoformat(),
            "has_old": restored.has_old,
        }
        await new.run(self._queries.record, name=RESTORES, setting=AsJson([*before, entry]), now=restored.restored_at)
        await self._audit.note(
            new,
            actor=restored.by,
            action="database.restore",
            subject=f"backup:{restored.taken_at.isoformat(timespec='seconds')}",
            before=None,
            after=entry,
            now=restored.restored_at,
        )

    def _query(self, name: str, text: str) -> Query:
        return in_dialect(query_of(name, text, writes=True), self._dialect)
