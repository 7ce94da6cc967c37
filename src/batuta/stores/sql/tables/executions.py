"""Stores the execution log in ``job_executions`` and ``job_schedules``, and the timetables in ``job_timetables``."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from batuta.kernel.clock import Clock, in_microseconds, microseconds
from batuta.kernel.errors import InvalidCron
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder, Renewed
from batuta.kernel.reasons import encode
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.runlog.execution import Ending, Execution, Opening, Registration, Status, Trigger
from batuta.runlog.log import (
    Closing,
    Controls,
    Decisions,
    Expected,
    Ledger,
    Opened,
    OwnTimetable,
    SilentRun,
    Timetable,
)
from batuta.runlog.reasons import MISSED_CHANGED, REPLACED, SILENT
from batuta.schedule.due import CatchUp, due
from batuta.schedule.kinds import parse_schedule
from batuta.stores.sql.database import (
    AsJson,
    Database,
    Query,
    Reading,
    Row,
    Transaction,
    from_row,
    read_clock,
    to_values,
)
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries
from batuta.stores.sql.tables.controls import SqlControls, SqlSwitches

# Number of timetables kept. If a release runs again after its timetable was deleted, it is treated as new.
TIMETABLES_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class TimetableQueries:
    announce: Query
    renew: Query
    forget: Query
    rivals: Query
    newest: Query
    active: Query
    hold: Query
    activate: Query


class SqlTimetables:
    def __init__(self, database: Database, now: Callable[[], datetime | None]) -> None:
        """Create the store of timetables. ``now`` returns the current time for the statements, or None if they must use
        the database's clock.
        """
        self._database = database
        self._now = now
        self._queries = load_queries(TimetableQueries, STATEMENTS / "timetables.sql", database.dialect)

    async def announce(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        if await self._database.run(
            self._queries.announce, **to_values(own, owner=lease_holder.owner, now=self._now())
        ):
            await self._database.run(self._queries.forget, kept=TIMETABLES_KEPT)

    async def renew(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        await self._database.run(
            self._queries.renew, fingerprint=own.fingerprint, owner=lease_holder.owner, now=self._now()
        )

    async def rivals(self, fingerprint: str) -> Sequence[Timetable]:
        """Return the timetable with this fingerprint, all newer timetables, and the active timetable."""
        return [_timetable(row) for row in await self._database.all(self._queries.rivals, fingerprint=fingerprint)]

    async def newest(self, limit: int) -> Sequence[Timetable]:
        return [_timetable(row) for row in await self._database.all(self._queries.newest, limit=limit)]

    async def active(self, within: Reading) -> str | None:
        row = await within.one(self._queries.active)
        return None if row is None else str(row["fingerprint"])

    async def hold(self, transaction: Transaction) -> Sequence[str]:
        """Lock all timetables until the transaction ends, and return their fingerprints in deployment order."""
        return [row["fingerprint"] for row in await transaction.all(self._queries.hold)]

    async def activate(self, transaction: Transaction, fingerprint: str) -> None:
        await transaction.run(self._queries.activate, fingerprint=fingerprint)


def _timetable(row: Row) -> Timetable:
    return from_row(Timetable, row, release=row["release_name"], has_been_active=row["activation"] > 0)


# Runs of unknown jobs are left to schedulers whose release defines the job. If such a run has not been renewed for this
# long, no such scheduler is alive.
LONG_SILENCE = timedelta(hours=1)
# A lease is renewed whenever a third of its length has passed, so a renewal is overdue if less than this fraction of
# the lease remains.
OVERDUE = 0.6
# A lease that ends later than one lease length plus this time from now was written before the clock was set back.
STEP = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class ExecutionQueries:
    schedules: Query
    register: Query
    silence: Query
    known: Query
    hold: Query
    hold_firmly: Query
    running: Query
    open: Query
    account: Query
    renew: Query
    close: Query
    hand_back: Query
    silent: Query
    end_replaced: Query
    take_over: Query
    expire: Query
    prune: Query


class SqlExecutionLog:
    """Stores the execution log. With ``own_time`` the store uses this process's clock; otherwise it uses PostgreSQL's
    clock, which all machines share.
    """

    def __init__(
        self,
        database: Database,
        switches: SqlSwitches,
        controls: SqlControls,
        ids: Ids,
        clock: Clock,
        *,
        own_time: bool = False,
        liveness: Database | None = None,
    ) -> None:
        """Create the execution log. ``liveness`` is a separate set of connections with short timeouts, which job
        functions cannot occupy. Without it, all calls use ``database``.
        """
        self._database = liveness or database
        self._background = database  # connections for pruning and registering, which may take longer
        self._switches = switches
        self._controls = controls
        self._ids = ids
        self._clock = clock
        self._own_time = own_time or database.dialect == "sqlite"
        self._timetables = SqlTimetables(self._database, self._own_now)
        self._ahead = timedelta(0)
        self._queries = load_queries(ExecutionQueries, STATEMENTS / "executions.sql", database.dialect)

    async def announce(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        await self._timetables.announce(own, lease_holder)

    async def renew_timetable(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        await self._timetables.renew(own, lease_holder)

    async def timetables(self, fingerprint: str) -> Sequence[Timetable]:
        return await self._timetables.rivals(fingerprint)

    async def register(
        self, jobs: Collection[Registration], lease_holder: LeaseHolder, expected: Expected
    ) -> frozenset[str] | None:
        async with self._background.transaction() as transaction:
            deployed = await self._timetables.hold(transaction)
            active = await self._timetables.active(transaction)
            if (active, await self._controls.read(transaction)) != (expected.active, expected.controls):
                return None
            if active != expected.timetable:
                await self._timetables.activate(transaction, expected.timetable)
            silences = deployed[-1:] == [expected.timetable]
            return await self._record(transaction, jobs, lease_holder, silences=silences)

    async def _record(
        self, transaction: Transaction, jobs: Collection[Registration], lease_holder: LeaseHolder, *, silences: bool
    ) -> frozenset[str]:
        now = await self._now(transaction)
        known = {row["job_name"]: row for row in await transaction.all(self._queries.schedules)}
        changed = sorted((job for job in jobs if _is_changed(job, known.get(job.job))), key=lambda job: job.job)
        named = {job.job for job in jobs}
        gone = {name for name, row in known.items() if row["active"] and name not in named} if silences else set()
        left = sorted(gone | {job.job for job in changed})
        # Every process locks the rows in this order, so that two processes that lock the same rows do not deadlock.
        await transaction.all(self._queries.hold_firmly, jobs=AsJson(left))
        since = _effective_since(await self._controls.find_last_change(transaction), known, now)
        missed = [row for name in left if name in known for row in _leftover_openings(known[name], since)]
        await self._open(transaction, missed, lease_holder, now)
        await transaction.run_many(self._queries.register, [to_values(job, since=since) for job in changed])
        await transaction.run_many(self._queries.silence, [{"job": name} for name in sorted(gone)])
        return frozenset(job.job for job in changed)

    async def controls(self) -> Controls:
        return await self._controls.read(self._database)

    async def open_due(
        self, jobs: Collection[str], lease_holder: LeaseHolder, decide: Callable[[Ledger], Decisions]
    ) -> Opened:
        return await self._open_held(self._queries.hold, jobs, lease_holder, decide)

    async def _open_held(
        self, hold: Query, jobs: Collection[str], lease_holder: LeaseHolder, decide: Callable[[Ledger], Decisions]
    ) -> Opened:
        async with self._database.transaction() as transaction:
            ledger = await self._ledger(transaction, hold, jobs)
            decisions = decide(ledger)
            replaced = await self._end_replaced(transaction, decisions.replaced, ledger.now)
            opened = await self._open(transaction, decisions.openings, lease_holder, ledger.now)
            if decisions.accounted:
                accounted = {job: microseconds(until) for job, until in decisions.accounted.items()}
                await transaction.run(self._queries.account, accounted=AsJson(accounted))
        return replace(opened, replaced=replaced) if replaced else opened

    async def _end_replaced(self, transaction: Transaction, jobs: Collection[str], now: datetime) -> frozenset[str]:
        """Close the execution-log rows of the current runs of the given jobs, because new runs replace them. The
        process that is executing such a run cancels it at the next lease renewal.
        """
        if not jobs:
            return frozenset()
        rows = await transaction.all(
            self._queries.end_replaced, jobs=AsJson(sorted(jobs)), reason=encode(REPLACED()), now=now
        )
        return frozenset(row["id"] for row in rows)

    async def open_manual(
        self, job: Registration, lease_holder: LeaseHolder, decide: Callable[[Ledger], Decisions]
    ) -> Opened:
        """Open a run that an operator requested. If no scheduler has registered the job yet, register it first."""
        now = await self._now(self._database)
        await self._database.run(self._queries.known, **to_values(job, now=now))
        await self._database.run(
            self._queries.expire,
            job=job.job,
            reason=encode(SILENT()),
            lease=in_microseconds(lease_holder.lease),
            now=self._own_now(),
        )
        return await self._open_held(self._queries.hold_firmly, [job.job], lease_holder, decide)

    async def renew(self, executions: Collection[Execution], lease_holder: LeaseHolder) -> Renewed:
        if not executions:
            return Renewed()
        held = {execution.id: execution.attempt for execution in executions}
        rows = await self._database.all(
            self._queries.renew,
            held=AsJson(held),
            owner=lease_holder.owner,
            lease=in_microseconds(lease_holder.lease),
            now=self._own_now(),
        )
        return Renewed(
            lost=frozenset(held) - {row["id"] for row in rows},
            unchecked=frozenset(row["id"] for row in rows if not row["is_renewed"]),
        )

    async def close(self, execution: Execution, ending: Ending) -> Closing:
        row = await self._database.one(
            self._queries.close,
            id=execution.id,
            attempt=execution.attempt,
            status=ending.status.value,
            now=self._own_now(),
            response_code=ending.response_code,
            error=encode(ending.error),
            reason=encode(ending.reason),
            items=ending.items,
            result=AsJson(ending.result),
        )
        if row is None:
            return Closing.LOST
        return Closing.WRITTEN if row["is_closed"] else Closing.UNCHECKED

    async def hand_back(self, executions: Collection[Execution], lease_holder: LeaseHolder) -> None:
        ids = AsJson([execution.id for execution in executions])
        await self._database.run(self._queries.hand_back, ids=ids, owner=lease_holder.owner, now=self._own_now())

    async def silent(
        self, lease_holder: LeaseHolder, known: Collection[str], limit: int, owners: Collection[str] = ()
    ) -> Sequence[SilentRun]:
        rows = await self._database.all(
            self._queries.silent,
            within=in_microseconds(lease_holder.lease * OVERDUE),
            longest=in_microseconds(lease_holder.lease + STEP),
            long_silence=in_microseconds(LONG_SILENCE),
            known=AsJson(sorted(known)),
            owners=AsJson(sorted(owners)),
            limit=limit,
            now=self._own_now(),
        )
        return [from_row(SilentRun, row, job=row["job_name"], left=row["lease_until"] - row["now"]) for row in rows]

    async def take_over(self, runs: Collection[SilentRun], lease_holder: LeaseHolder) -> Sequence[Execution]:
        seen = [{"id": run.id, "attempt": run.attempt, "lease_until": microseconds(run.lease_until)} for run in runs]
        rows = await self._database.all(
            self._queries.take_over,
            runs=AsJson(seen),
            owner=lease_holder.owner,
            lease=in_microseconds(lease_holder.lease),
            now=self._own_now(),
        )
        return [_execution(row) for row in rows]

    async def look(self) -> Ledger:
        """Return the data that decides whether a run may start (time, switches, profile and windows), without locking
        rows.
        """
        async with self._database.snapshot() as snapshot:
            return Ledger(
                now=await self._now(snapshot),
                controls=await self._controls.read(snapshot),
                accounted={},
                running=frozenset(),
                switches=await self._switches.all(snapshot),
            )

    async def prune(self, *, before: datetime, limit: int) -> int:
        return await self._background.run(self._queries.prune, before=before, limit=limit)

    async def _ledger(self, transaction: Transaction, hold: Query, jobs: Collection[str]) -> Ledger:
        names = AsJson(sorted(jobs))
        held = await transaction.all(hold, jobs=names)
        running = await transaction.all(self._queries.running, jobs=names)
        return Ledger(
            # Read the time after locking the rows, so that a caller that had to wait for the locks does not decide with
            # an outdated time.
            now=await self._now(transaction),
            controls=await self._controls.read(transaction),
            accounted={row["job_name"]: row["accounted_until"] for row in held if row["active"]},
            silenced=frozenset(row["job_name"] for row in held if not row["active"]),
            running=frozenset(row["job_name"] for row in running),
            switches=await self._switches.all(transaction),
            timetable=await self._timetables.active(transaction),
        )

    async def _open(
        self, transaction: Transaction, openings: Sequence[Opening], lease_holder: LeaseHolder, now: datetime
    ) -> Opened:
        rows = {self._ids.new(): opening for opening in openings}
        if not rows:
            return Opened(now=now, ahead=self._ahead, started=(), explained=())
        written = await transaction.all(
            self._queries.open,
            rows=AsJson([_describe(id, opening) for id, opening in rows.items()]),
            owner=lease_holder.owner,
            lease_until=now + lease_holder.lease,
            now=now,
        )
        taken = {row["id"] for row in written}
        won = {id: opening for id, opening in rows.items() if id in taken}
        return Opened(
            now=now,
            ahead=self._ahead,
            started=[_execution_of(id, each, now) for id, each in won.items() if each.status is Status.RUNNING],
            explained=[each for each in won.values() if each.status is not Status.RUNNING],
        )

    def _own_now(self) -> datetime | None:
        """Return this process's time, or None if the statement must use the database's clock."""
        return self._clock.now() if self._own_time else None

    async def _now(self, within: Reading) -> datetime:
        if self._own_time:
            return self._clock.now()
        now = await read_clock(within)
        self._ahead = now - self._clock.now()
        return now


def _is_changed(job: Registration, known: Row | None) -> bool:
    if known is None or not known["active"]:
        return True
    return (known["schedule"], known["timezone"]) != (job.schedule, job.zone)


def _effective_since(changed_at: datetime | None, known: Mapping[str, Row], now: datetime) -> datetime:
    """Return the instant from which a new timetable is in effect. If an operator has changed the profile or a window
    since the last registration, return the instant of that change, even if no scheduler was running then. Otherwise
    return the current time.
    """
    registered = max((row["expected_since"] for row in known.values()), default=None)
    is_newer = changed_at is not None and registered is not None and registered < changed_at < now
    return changed_at if is_newer and changed_at is not None else now


def _leftover_openings(row: Row, until: datetime) -> list[Opening]:
    """Return rows for fires that were due under a job's old schedule and are still undecided. The rows record these
    fires as missed, because they will not run.
    """
    if not row["active"]:
        return []
    try:
        cron, zone = parse_schedule(row["schedule"]), ZoneInfo(row["timezone"])
    except (InvalidCron, ZoneInfoNotFoundError):
        return []
    owed = due(cron, zone, since=row["accounted_until"], until=until, policy=CatchUp.SKIP, max_age=timedelta(seconds=1))
    openings = [_make_missed_opening(row, fire) for fire in (*owed.missed, *owed.run)]
    if (gap := owed.gap) is not None:
        covers: dict[str, Json] = {"from": gap.first.isoformat(), "to": gap.last.isoformat(), "count": gap.count}
        openings.insert(0, replace(_make_missed_opening(row, gap.last), covers=covers))
    return openings


def _make_missed_opening(row: Row, fire: datetime) -> Opening:
    return Opening(
        job=row["job_name"],
        category=row["categoria"],
        scheduled_for=fire,
        trigger=Trigger.CATCH_UP,
        status=Status.MISSED,
        reason=MISSED_CHANGED(),
    )


def _describe(id: str, opening: Opening) -> dict[str, Json]:
    return {
        "id": id,
        "job": opening.job,
        "category": opening.category,
        "scheduled_for": None if opening.scheduled_for is None else microseconds(opening.scheduled_for),
        "trigger": opening.trigger.value,
        "status": opening.status.value,
        "reason": encode(opening.reason),
        "covers": None if opening.covers is None else dict(opening.covers),
        "params": None if opening.params is None else dict(opening.params),
    }


def _execution_of(id: str, opening: Opening, now: datetime) -> Execution:
    return Execution(
        id=id,
        job=opening.job,
        category=opening.category,
        scheduled_for=opening.scheduled_for,
        trigger=opening.trigger,
        attempt=1,
        started_at=now,
        params=opening.params or {},
    )


def _execution(row: Row) -> Execution:
    named = {"job": row["job_name"], "category": row["categoria"], "trigger": Trigger(row["trigger"])}
    return from_row(Execution, row, **named, params=row["params"] or {})
