"""Takes over the runs of schedulers that stopped renewing their leases. A repeatable run is delivered again; any other
run is closed.

An expired lease alone does not prove that its process died. A clock set forward, a locked row, a locked file or an
unavailable database also lets the leases of healthy processes expire. The reaper therefore watches a lease before it
takes over the run. In several checks, spread over time by the monotonic clock of this process, the lease must be
unlocked and unchanged. A lease that ends in the far future, because the clock was set back, is watched longer. A run
that was handed back, or whose process is proven dead, is taken over immediately.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from datetime import datetime, timedelta

from batuta.dispatch.job import Job
from batuta.dispatch.plan import hold
from batuta.dispatch.registry import JobRegistry
from batuta.dispatch.runner import Runner
from batuta.kernel.clock import Clock
from batuta.kernel.events import Events, ExecutionTakenOver
from batuta.kernel.leases import LeaseHolder, SilenceDetector
from batuta.kernel.values import dataclass
from batuta.runlog import reasons
from batuta.runlog.execution import Ending, Execution, Status, Trigger
from batuta.runlog.log import ExecutionLog, Ledger, SilentRun
from batuta.supervise.loop import Again, Idle, Pace, Wakeup

REAP_BATCH = 100
MOST_ATTEMPTS = 3
# A lease that ends too far in the future is watched for at least this long. Either the clock was set back, or the owner
# uses longer leases and renews them less often.
LONGER_THAN_RENEWALS = timedelta(seconds=90)


def may_take_over(run: SilentRun, watched: timedelta, lease: timedelta) -> bool:
    """Return whether another scheduler may take over the run. ``watched`` is how long its lease was observed unlocked
    and unchanged.
    """
    if run.owner is None:
        return True
    if run.left > lease:
        return watched >= max(lease * 3 / 2, LONGER_THAN_RENEWALS)
    return run.left <= timedelta(0) and watched >= lease / 2


def _key(run: SilentRun) -> tuple[str, int, datetime]:
    return run.id, run.attempt, run.lease_until


@dataclass(eq=False)
class Reaper:
    name = "reaper"

    log: ExecutionLog
    runner: Runner
    job_of: Callable[[str], Job | None]  # returns None for a job that this release does not declare
    clock: Clock
    events: Events
    lease_holder: LeaseHolder
    registry: JobRegistry
    wakeup: Wakeup = field(default_factory=Wakeup, init=False)

    def __post_init__(self) -> None:
        self._silence: SilenceDetector[tuple[str, int, datetime]] = SilenceDetector(self.lease_holder.lease / 3)

    async def tick(self) -> Pace:
        silent = await self._find_silent()
        watched = self._silence.look([_key(run) for run in silent], self.clock.monotonic())
        ripe = [run for run in silent if may_take_over(run, watched[_key(run)], self.lease_holder.lease)]
        await self._take_over(ripe, lambda run: reasons.HANDED_BACK() if run.owner is None else reasons.SILENT())
        return Again() if len(ripe) == REAP_BATCH else Idle()

    async def recover(self, owners: Collection[str]) -> int:
        """Take over at most REAP_BATCH runs of the given owners immediately, because their processes are dead. Return
        the number of runs taken over.
        """
        found = [run for run in await self._find_silent(owners) if run.owner in owners]
        return await self._take_over(found, lambda run: reasons.DEAD())

    async def _find_silent(self, owners: Collection[str] = ()) -> Sequence[SilentRun]:
        found = await self.log.silent(self.lease_holder, self.registry.names, REAP_BATCH, owners)
        held = {execution.id for execution in self.runner.running_executions()}
        return [run for run in found if run.id not in held]

    async def _take_over(self, runs: Sequence[SilentRun], why: Callable[[SilentRun], str]) -> int:
        if not runs:
            return 0
        # Read the switches before taking over a run, because a scheduler that cannot read them cannot decide about the
        # run.
        ledger = await self.log.look()
        causes = {run.id: why(run) for run in runs}
        with self.runner.expecting():
            taken = await self.log.take_over(runs, self.lease_holder)
            for execution in taken:
                await self._look_after(execution, ledger, causes[execution.id])
        return len(taken)

    async def _look_after(self, execution: Execution, ledger: Ledger, reason: str) -> None:
        job = self.job_of(execution.job)
        windows = self.registry.windows_now(ledger.controls)
        held = None if job is None else hold(job, ledger.switches, windows, ledger.now)
        # A manual run is not repeated, because the operator no longer waits for it.
        may_repeat = job is not None and job.target.repeatable and execution.trigger is not Trigger.MANUAL
        again = held is None and job is not None and may_repeat and not _is_enough(execution, job, ledger.now)
        reason = reason if again else _why_abandoned(reason, execution, job, held)
        self.events.emit(ExecutionTakenOver(execution.job, execution.id, execution.attempt, again, reason))
        if job is not None and again:
            self.runner.start(execution, job)
            return
        await self.log.close(execution, Ending(status=Status.ABANDONED, reason=reason))


def _why_abandoned(reason: str, execution: Execution, job: Job | None, held: str | None) -> str:
    if execution.attempt > MOST_ATTEMPTS:
        reason = reasons.EACH_ATTEMPT(why=reason, attempts=execution.attempt - 1)
    if job is None:
        return reasons.UNKNOWN_JOB(why=reason)
    return reason if held is None else reasons.HELD_NOW(why=reason, held=reasons.hold_reason(held))


def _is_enough(execution: Execution, job: Job, now: datetime) -> bool:
    """Return whether the reaper may close a run of a dead scheduler instead of delivering it again. The run must have
    used all its attempts and the whole time of its last attempt. Before that, the run may still be in progress in
    another process. If the reaper closed it then, the job's next run could start and overlap with it. A second delivery
    has no such risk, because it has the same idempotency key.
    """
    return execution.attempt > MOST_ATTEMPTS and now > execution.started_at + job.grace + job.timeout
