"""Health checks that every application has: connections, open transactions, jobs, scheduler, queues, circuits and
processes.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Protocol, TypeAlias

from batuta.guard.breaker import Circuit, CircuitState
from batuta.guard.circuits import Circuits
from batuta.health.aggregator import PROBE_TIMEOUT, Part, Probes, State, look
from batuta.health.finding import (
    BELOW_HEALTHY,
    CIRCUITS,
    CONNECTIVITY,
    JOBS_AND_WORKERS,
    QUEUES,
    Check,
    Finding,
    Report,
    Severity,
    merge_reports,
)
from batuta.health.jobs import (
    LOOKED_AT,
    JobHealth,
    JobHealthQuery,
    JobState,
    Timetables,
    judge_timetables,
    nothing_works,
)
from batuta.health.queues import WatchedQueue, judge_queue
from batuta.health.workers import (
    COUNTED,
    FORGOTTEN_AFTER,
    SCHEDULER_SILENT,
    Beats,
    judge_restarts,
    judge_scheduler,
    judge_workers,
)
from batuta.kernel.clock import Clock, brief
from batuta.kernel.reasons import define
from batuta.kernel.values import dataclass
from batuta.processes.restarts import RestartStore
from batuta.runlog.history import ENOUGH_FAILURES, Reports

MOST_NAMES = 5
NAMES_AND_MORE = define("names_and_more", "{names} and {more} more")
# causes that the finding "no job works" explains, so that they cause no separate alert
EXPLAINED = ("jobs.stale", "jobs.not_succeeding")
MOST_RESTARTS = 200


def connectivity(probes: Probes, clock: Clock) -> Check:
    async def ask() -> Report:
        parts = await look(probes, clock)
        return merge_reports(_part(name, part, probes[name].needed) for name, part in parts.items())

    return Check(name="connectivity", section=CONNECTIVITY, ask=ask, timeout=2 * PROBE_TIMEOUT)


def _part(name: str, part: Part, needed: bool) -> Report:
    """Return the findings about one component that the process needs. Findings are sent to other hosts, so they omit
    ``part.why``, which may contain network addresses.
    """
    if part.state not in (State.ERROR, State.DEGRADED):
        return Report()
    is_down = part.state is State.ERROR
    finding = Finding(
        severity=Severity.WARNING if not is_down else Severity.CRITICAL if needed else Severity.ERROR,
        source=CONNECTIVITY,
        cause=f"connectivity.{name}",
        says="part_down" if is_down else "part_degraded",
        facts={"part": name},
        because=(f"circuit.{name}",),  # if the circuit is open, it explains the finding
    )
    return Report(findings=(finding,), lost=20 if is_down and needed else 8 if is_down else 4)


def jobs(watch: JobHealthQuery, jobs: Sized) -> Check:
    async def ask() -> Report:
        if not len(jobs):
            return Report()
        seen = await watch.look()
        return judge_jobs(seen.jobs)

    return Check(name="jobs", section=JOBS_AND_WORKERS, ask=ask, timeout=2 * PROBE_TIMEOUT)


def judge_jobs(healths: Collection[JobHealth]) -> Report:
    stale = [health for health in healths if health.is_stale]
    critical = [health for health in stale if health.job.critical]
    broken = [health for health in healths if health.does_not_succeed and health not in critical]
    critical_and_broken = [health for health in broken if health.job.critical]
    broken = [health for health in broken if not health.job.critical]
    others = [health for health in stale if not health.job.critical and health not in broken]
    reported = (*broken, *critical_and_broken)
    failing = [health for health in healths if health.state is JobState.FAILING and health not in reported]
    partly = [health for health in healths if health.state is JobState.DEGRADED]
    reports = [
        *(_critical(health, "stale", health.job.sla.total_seconds()) for health in critical),
        *(_critical(health, "not_succeeding", ENOUGH_FAILURES) for health in critical_and_broken),
    ]
    if nothing_works(healths):
        says = "jobs_nothing_works" if any(health.does_not_succeed for health in stale) else "jobs_none_ran"
        reports.append(_group_report(Severity.CRITICAL, "jobs.nothing_works", says, stale, 25))
    lost = BELOW_HEALTHY + 2 * (len(broken) - 1)
    reports.append(_group_report(Severity.ERROR, "jobs.not_succeeding", "jobs_not_succeeding", broken, lost))
    reports.append(_group_report(Severity.ERROR, "jobs.stale", "jobs_stale", others, min(15, 5 * len(others))))
    reports.append(_group_report(Severity.WARNING, "jobs.failing", "jobs_failing", failing, min(10, 3 * len(failing))))
    reports.append(_group_report(Severity.INFO, "jobs.partial", "jobs_partial", partly, 0))
    unfinished = [health for health in healths if health.state is JobState.UNFINISHED]
    reports.append(_group_report(Severity.INFO, "jobs.unfinished", "jobs_unfinished", unfinished, 1))
    return merge_reports(reports)


def _critical(health: JobHealth, kind: str, threshold: float) -> Report:
    finding = Finding(
        severity=Severity.CRITICAL,
        source="jobs",
        cause=f"job.{kind}.{health.job.name}",
        says=f"job_{kind}",
        facts={"job": health.job.name},
        threshold=threshold,
        since=_overdue_since(health),
        because=(SCHEDULER_SILENT, "jobs.nothing_works"),
    )
    return Report(findings=(finding,), lost=25)


def join_names(names: Sequence[str]) -> str:
    """Join names into one text. If the list is long, drop its end and append the number of dropped names."""
    shown = ", ".join(names[:MOST_NAMES])
    return NAMES_AND_MORE(names=shown, more=len(names) - MOST_NAMES) if len(names) > MOST_NAMES else shown


def _group_report(severity: Severity, cause: str, says: str, healths: Sequence[JobHealth], lost: int) -> Report:
    """Return a single finding for all the given jobs, so that a problem that affects many jobs causes one alert."""
    if not healths:
        return Report()
    names = [health.job.name for health in healths]
    finding = Finding(
        severity=severity,
        source="jobs",
        cause=cause,
        says=says,
        facts={"count": len(names), "jobs": join_names(names)},
        value=len(names),
        threshold=0,
        since=min((since for health in healths if (since := _overdue_since(health))), default=None),
        because=(SCHEDULER_SILENT, "jobs.nothing_works") if cause in EXPLAINED else (SCHEDULER_SILENT,),
    )
    return Report(findings=(finding,), lost=lost)


def _overdue_since(health: JobHealth) -> datetime | None:
    return None if health.expected_at is None or not health.is_stale else health.expected_at + health.job.sla


Now: TypeAlias = Callable[[], datetime | None]  # Returns None if the database's clock applies.


def scheduler(beats: Beats, reports: Reports, timetables: Timetables, jobs: Sized, now: Now) -> Check:
    async def ask() -> Report:
        if not len(jobs):
            return Report()
        signs = await beats.read_signs(within=FORGOTTEN_AFTER, now=now())
        versions = judge_timetables(await timetables.newest(LOOKED_AT), signs.now)
        return merge_reports([judge_scheduler(signs, await reports.find_first_use()), versions])

    return Check(name="scheduler", section=JOBS_AND_WORKERS, ask=ask)


def workers(beats: Beats, restarts: RestartStore, now: Now) -> Check:
    async def ask() -> Report:
        signs = await beats.read_signs(within=FORGOTTEN_AFTER, now=now())
        ended = await restarts.since(signs.now - COUNTED, limit=MOST_RESTARTS)
        return merge_reports([judge_workers(signs), judge_restarts(ended, signs.now)])

    return Check(name="workers", section=JOBS_AND_WORKERS, ask=ask)


def queues(watched: Callable[[], Iterable[WatchedQueue]], beats: Beats, now: Now) -> Check:
    async def ask() -> Report:
        if not (asked := list(watched())):
            return Report()
        signs = await beats.read_signs(within=FORGOTTEN_AFTER, now=now())
        living = signs.living_loops
        # An empty queue has no findings. One statement answers for all queues of the task table.
        empty = await asyncio.gather(*(queue.is_empty() for queue in asked))
        return merge_reports(
            [
                judge_queue(
                    queue,
                    await queue.pulse(),
                    has_worker=not living.isdisjoint(queue.loops),
                    because=signs.causes_of_absence(queue.loops),
                )
                for queue, is_empty in zip(asked, empty, strict=True)
                if not is_empty
            ]
        )

    return Check(name="queues", section=QUEUES, ask=ask, timeout=2 * PROBE_TIMEOUT)


def circuits(watched: Circuits, behind: Mapping[str, str]) -> Check:
    """Return the check for the circuit breakers. ``behind`` maps a family of circuits (the part of their names before
    the colon) to the circuit that they depend on, for example ``printer`` to ``network``.
    """

    async def ask() -> Report:
        return judge_circuits(await watched.look(), behind)

    return Check(name="circuits", section=CIRCUITS, ask=ask)


def judge_circuits(seen: Iterable[Circuit], behind: Mapping[str, str] = MappingProxyType({})) -> Report:
    return merge_reports(_circuit(circuit, behind) for circuit in seen if circuit.state is not CircuitState.CLOSED)


def _circuit(circuit: Circuit, behind: Mapping[str, str]) -> Report:
    """Return the finding about one circuit. If the circuit belongs to a family, such as ``printer:1``, an open state is
    only a warning, because other circuits in the family may still work.
    """
    is_open = circuit.state is CircuitState.OPEN
    family, colon, _ = circuit.name.partition(":")
    finding = Finding(
        severity=Severity.CRITICAL if is_open and not colon else Severity.WARNING,
        source="circuit_breaker",
        cause=f"circuit.{circuit.name}",
        says="circuit_half_open" if not is_open else "circuit_open" if circuit.failures else "circuit_opened",
        facts={"circuit": circuit.name, "failures": circuit.failures},
        value=circuit.failures,
        since=circuit.opened_at,
        because=(f"circuit.{behind.get(family, family)}",) if colon else (),
    )
    return Report(findings=(finding,), lost=3 if colon or not is_open else 8)


# If fewer transactions than this began after the oldest one, few dead rows accumulate, so the finding is only a
# warning.
BUSY = 10_000
# A transaction that is this many times older than the limit slows a busy queue, so the finding is critical.
MUCH_TOO_OLD = 10
CAUSE = "database.old_transaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    pid: int | None  # None for a prepared transaction, which belongs to no process
    name: str  # application_name of the connection, or the id of the prepared transaction
    lasts: timedelta
    transactions_since: int


class Transactions(Protocol):
    """Interface that reads the database's open transactions.

    While a transaction holds the oldest snapshot (its xmin), VACUUM removes no row that died after that snapshot. Queue
    tables are updated constantly, so dead rows accumulate and every claim reads them.
    """

    async def oldest(self) -> OpenTransaction | None:
        """Return the oldest transaction that prevents the removal of dead rows, or None. On SQLite the result is always
        None.
        """
        ...


def transactions(store: Transactions, old: timedelta) -> Check:
    async def ask() -> Report:
        return judge_transaction(await store.oldest(), old)

    return Check(name="transactions", section=CONNECTIVITY, ask=ask)


def judge_transaction(oldest: OpenTransaction | None, old: timedelta) -> Report:
    if oldest is None or oldest.lasts <= old:
        return Report()
    severity, lost = _weight(oldest, old)
    finding = Finding(
        severity=severity,
        source=CONNECTIVITY,
        cause=CAUSE,
        says="old_transaction" if oldest.pid is not None else "old_prepared",
        facts={
            "pid": oldest.pid,
            "name": oldest.name,
            "lasts": brief(oldest.lasts),
            "count": oldest.transactions_since,
        },
        value=oldest.lasts.total_seconds(),
        threshold=old.total_seconds(),
    )
    return Report(findings=(finding,), lost=lost)


def _weight(oldest: OpenTransaction, old: timedelta) -> tuple[Severity, int]:
    if oldest.transactions_since < BUSY:
        return Severity.WARNING, 4
    if oldest.lasts < MUCH_TOO_OLD * old:
        return Severity.ERROR, 8
    return Severity.CRITICAL, 20
