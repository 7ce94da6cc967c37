"""Health of processes, judged by their heartbeats and restarts. A process that misses three heartbeats is considered
dead. Repeated restarts of a role are reported as a crash loop.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from batuta.health.finding import BELOW_HEALTHY, Finding, Report, Severity, merge_reports
from batuta.kernel.clock import brief
from batuta.kernel.values import dataclass
from batuta.processes.heartbeat import HEARTBEAT_EVERY, ProcessStatus
from batuta.processes.restarts import Budget, Restart

BUDGET = Budget()
COUNTED = BUDGET.window
STUCK_OFTEN = 3


def cause_of(role: str) -> str:
    return f"workers.crashing.{role}"


def dead_cause_of(role: str) -> str:
    return f"workers.dead.{role}"


def judge_restarts(restarts: Sequence[Restart], now: datetime) -> Report:
    """Report crash loops of processes, and loops that the watchdog restarted often. ``restarts`` is sorted newest
    first. A crash loop ends when the role has run for the time COUNTED without a restart.
    """
    recent = [each for each in restarts if each.loop is None and now - each.at < COUNTED]
    newest = {each.worker_name: each for each in reversed(recent) if each.restarts_in_window >= BUDGET.most}
    stuck = Counter(each.loop for each in restarts if each.loop is not None and now - each.at < COUNTED)
    often = sorted((loop, count) for loop, count in stuck.items() if loop is not None and count >= STUCK_OFTEN)
    return merge_reports(
        [*(_report_crash_loop(newest[role], now) for role in sorted(newest)), *(_stuck_report(*each) for each in often)]
    )


def _stuck_report(loop: str, count: int) -> Report:
    """Report a loop that the watchdog has restarted several times: the restarts evidently do not fix the problem."""
    finding = Finding(
        severity=Severity.ERROR,
        source=SOURCE,
        cause=f"loop.stuck.{loop}",
        says="loop_stuck",
        facts={"loop": loop, "count": count, "window": brief(COUNTED)},
        value=count,
        threshold=STUCK_OFTEN,
    )
    return Report(findings=(finding,), lost=5)


def _report_crash_loop(last: Restart, now: datetime) -> Report:
    finding = Finding(
        severity=Severity.CRITICAL,
        source=SOURCE,
        cause=cause_of(last.worker_name),
        says="role_crashing",
        facts={
            "role": last.worker_name,
            "count": last.restarts_in_window,
            "window": brief(COUNTED),
            "detail": last.detail,
            "last": brief(now - last.at),
        },
        value=last.restarts_in_window,
        threshold=BUDGET.most,
    )
    return Report(findings=(finding,), lost=15)


# Three heartbeat intervals, plus the time to write a heartbeat.
DEAD_AFTER = 3 * HEARTBEAT_EVERY + timedelta(seconds=5)
# The scheduler's heartbeat may be one or two intervals late, although its dispatcher ticks every second.
SILENT_AFTER = timedelta(seconds=45)
# A dead process is reported for this long if other processes of its role are alive. An older one was probably removed
# on purpose.
REMEMBERED = timedelta(hours=1)
FORGOTTEN_AFTER = timedelta(hours=24)
FAILING_AFTER = 3
DISPATCHER = "dispatcher"
SCHEDULER_SILENT = "scheduler.silent"
SOURCE = "workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSeen:
    alive: bool = True
    pinged_at: datetime | None = None  # when the loop last reported progress
    worked_at: datetime | None = None  # when the last successful tick ended
    failures: int = 0
    restarts: int = 0
    concurrency: int | None = None  # maximum concurrent items, if the loop is the worker of a queue
    stuck_threads: int = 0  # number of threads that still run a function after its timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    worker_id: str
    role: str
    status: str  # a value of ``processes.heartbeat.Status``
    beat_at: datetime
    started_at: datetime
    loops: Mapping[str, LoopSeen]
    host: str | None = None
    pid: int | None = None
    version: str | None = None
    rss_bytes: int | None = None
    cpu_seconds: float | None = None

    @property
    def served(self) -> Mapping[str, int]:
        """The queues that the process serves, with the maximum number of concurrent items for each."""
        return {
            name.removeprefix("worker:"): loop.concurrency
            for name, loop in self.loops.items()
            if loop.concurrency is not None
        }

    @property
    def place(self) -> str:
        """Host and pid of the process, in the form that operators type."""
        return f"{self.host or '-'}:{self.pid or '-'}"

    @property
    def is_offline(self) -> bool:
        """Whether the process ended after a regular shutdown."""
        return self.status == ProcessStatus.OFFLINE

    def works(self, now: datetime) -> bool:
        """Return whether the process is alive and its event loop responds."""
        return self.lives(now) and self.status != ProcessStatus.STALLED

    def lives(self, now: datetime) -> bool:
        return not self.is_offline and now - self.beat_at <= DEAD_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """The heartbeats of all processes. ``now`` is the time at which the heartbeats were read, according to the clock
    that also produced the times in them.
    """

    now: datetime
    beats: tuple[Beat, ...]

    @property
    def living_loops(self) -> frozenset[str]:
        """The names of all loops that run in live processes with a responding event loop, except loops that fail
        repeatedly.
        """
        return frozenset(
            name
            for beat in self.beats
            if beat.works(self.now)
            for name, seen in beat.loops.items()
            if seen.failures < FAILING_AFTER
        )

    def slots(self, loops: Collection[str]) -> int:
        """Return how many items the given loops can run at the same time, in all live processes with a responding event
        loop.
        """
        working = (beat for beat in self.beats if beat.works(self.now))
        return sum(seen.concurrency or 0 for beat in working for name, seen in beat.loops.items() if name in loops)

    def causes_of_absence(self, loops: Collection[str]) -> tuple[str, ...]:
        """Return the causes of the findings about dead processes that ran any of the given loops."""
        roles = {
            beat.role for beat in self.beats if not beat.lives(self.now) and not beat.loops.keys().isdisjoint(loops)
        }
        return tuple(dead_cause_of(role) for role in sorted(roles))


class Beats(Protocol):
    """Interface of the heartbeat store."""

    async def read_signs(self, *, within: timedelta, now: datetime | None = None) -> Signs:
        """Read the latest heartbeat of every process whose heartbeat is not older than ``within``."""
        ...


def judge_workers(signs: Signs) -> Report:
    beats, now = signs.beats, signs.now
    roles = {beat.role for beat in beats}
    return merge_reports(
        [
            *(_role(role, signs) for role in sorted(roles)),
            *_failing_loops(beats, now),
            *_stalled_reports(beats, now),
            _stuck_threads(beats, now),
        ]
    )


def _role(role: str, signs: Signs) -> Report:
    now, beats = signs.now, [beat for beat in signs.beats if beat.role == role]
    missing = find_unreplaced(beats, now)
    if not missing:
        return Report()
    last = max(beat.beat_at for beat in missing)
    is_deserted = not any(beat.lives(now) for beat in beats)
    # A missing scheduler has a separate finding (``judge_scheduler``).
    if (is_deserted and role == "scheduler") or (not is_deserted and now - last > REMEMBERED):
        return Report()
    served = {name for beat in missing for name, loop in beat.loops.items() if loop.concurrency is not None}
    is_needed = is_deserted and not served <= signs.living_loops  # items of a queue can no longer run
    finding = Finding(
        severity=Severity.CRITICAL if is_needed else Severity.ERROR if is_deserted else Severity.WARNING,
        source=SOURCE,
        cause=dead_cause_of(role),
        says="role_deserted" if is_deserted else "worker_dead",
        facts={"role": role, "count": len(missing), "last": brief(now - last)},
        value=len(missing),
        threshold=0,
        since=last,
        because=(cause_of(role),),
    )
    return Report(findings=(finding,), lost=25 if is_needed else 10 if is_deserted else 3)


def find_unreplaced(beats: Iterable[Beat], now: datetime) -> list[Beat]:
    """Return the dead processes without a successor. A process that started after the last heartbeat of a dead process
    is its successor, but each process can be the successor of only one dead process.
    """
    ordered = sorted(beats, key=lambda beat: beat.started_at)
    dead = sorted((beat for beat in ordered if not beat.lives(now) and not beat.is_offline), key=lambda b: b.beat_at)
    successors = list(ordered)
    missing = []
    for beat in dead:
        successor = next((other for other in successors if other.started_at > beat.beat_at), None)
        if successor is None:
            missing.append(beat)
        else:
            successors.remove(successor)
    return missing


def _failing_loops(beats: Collection[Beat], now: datetime) -> Iterable[Report]:
    failing = {
        name: seen.failures
        for beat in beats
        if beat.lives(now)
        for name, seen in beat.loops.items()
        if seen.failures >= FAILING_AFTER
    }
    for name, failures in sorted(failing.items()):
        finding = Finding(
            severity=Severity.ERROR,
            source=SOURCE,
            cause=f"loop.failing.{name}",
            says="loop_failing",
            facts={"loop": name, "failures": failures},
            value=failures,
            threshold=FAILING_AFTER,
        )
        yield Report(findings=(finding,), lost=5)


def _stalled_reports(beats: Collection[Beat], now: datetime) -> Iterable[Report]:
    """Report processes whose event loop is blocked although they still send heartbeats."""
    stalled = [beat for beat in beats if beat.lives(now) and not beat.works(now)]
    for role in sorted({beat.role for beat in stalled}):
        count = sum(beat.role == role for beat in stalled)
        finding = Finding(
            severity=Severity.ERROR,
            source=SOURCE,
            cause=f"workers.stalled.{role}",
            says="worker_stalled",
            facts={"role": role, "count": count},
            value=count,
            threshold=0,
        )
        yield Report(findings=(finding,), lost=10)


def _stuck_threads(beats: Collection[Beat], now: datetime) -> Report:
    count = sum(seen.stuck_threads for beat in beats if beat.lives(now) for seen in beat.loops.values())
    if not count:
        return Report()
    finding = Finding(
        severity=Severity.WARNING,
        source=SOURCE,
        cause="threads.stuck",
        says="threads_stuck",
        facts={"count": count},
        value=count,
        threshold=0,
    )
    return Report(findings=(finding,), lost=5)


def judge_scheduler(signs: Signs, known_since: datetime | None) -> Report:
    """Report a scheduler that has been silent for too long, or a database on which no process has ever run.
    ``known_since`` is the instant from which runs are expected on this database; None means that no runs are expected
    yet.

    The silence begins with the last tick of a scheduler or, if that is later, with the start of the oldest living
    process. So starting the system in the morning raises no alert about the night. A scheduler that has just started
    gets twice the time, because it writes its first heartbeat before its first tick.
    """
    beats, now = signs.beats, signs.now
    ticked = max((tick for beat in beats if (tick := _tick(beat)) is not None), default=None)
    alive_since = min((beat.started_at for beat in beats if beat.lives(now)), default=None)
    seen = [instant for instant in (ticked, alive_since or known_since) if instant is not None]
    if not seen:
        return _never_started_report()
    if now - max(seen) <= SILENT_AFTER * (2 if any(_has_just_started(beat, now) for beat in beats) else 1):
        return Report()
    since = ticked or max(seen)
    age = now - since
    finding = Finding(
        severity=Severity.CRITICAL,
        source="jobs",
        cause=SCHEDULER_SILENT,
        says="scheduler_silent" if ticked else "scheduler_never",
        facts={"last": brief(age)},
        value=round(age.total_seconds()),
        threshold=SILENT_AFTER.total_seconds(),
        since=since,
        because=(cause_of("scheduler"),),
    )
    return Report(findings=(finding,), lost=25)


def _never_started_report() -> Report:
    """Report that no process has run on this database yet, so that a full score does not suggest a working system.

    The severity is INFO, because only a running process could send an alert.
    """
    finding = Finding(
        severity=Severity.INFO, source=SOURCE, cause="processes.never_started", says="processes_never_started"
    )
    return Report(findings=(finding,), lost=BELOW_HEALTHY)


def _has_just_started(beat: Beat, now: datetime) -> bool:
    return (
        beat.works(now) and DISPATCHER in beat.loops and _tick(beat) is None and now - beat.started_at <= SILENT_AFTER
    )


def _tick(beat: Beat) -> datetime | None:
    seen = beat.loops.get(DISPATCHER)
    return None if seen is None else seen.worked_at
