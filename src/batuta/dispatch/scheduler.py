"""The scheduler of one process (dispatcher, runner and reaper), and manual runs of a single job."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType

from batuta.dispatch.dispatcher import Dispatcher, gate, registration
from batuta.dispatch.job import Job
from batuta.dispatch.plan import plan_manual
from batuta.dispatch.reaper import Reaper
from batuta.dispatch.registry import JobRegistry
from batuta.dispatch.runner import Lanes, Runner
from batuta.kernel.clock import Clock
from batuta.kernel.events import Events
from batuta.kernel.identity import make_owner
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder, renew_until_cancelled
from batuta.kernel.waiting import cancel_and_wait, first_of
from batuta.runlog import reasons
from batuta.runlog.execution import Ending, Execution, Status
from batuta.runlog.log import Decisions, ExecutionLog, Ledger
from batuta.supervise.lease_keeper import LeaseKeeper
from batuta.supervise.loop import Loop, LoopPolicy

# Another scheduler takes over a run that was not renewed for this long. The time is short, so that a dead process
# delays few fires.
RUN_LEASE = timedelta(seconds=6)
# How long a manual run retries while the API refuses the connection.
MANUAL_RUN_GRACE = timedelta(seconds=5)


class Scheduler:
    def __init__(
        self,
        registry: JobRegistry,
        log: ExecutionLog,
        clock: Clock,
        ids: Ids,
        events: Events,
        *,
        lanes: Lanes | None = None,
        lease: timedelta = RUN_LEASE,
        release: str | None = None,
    ) -> None:
        """Create the scheduler. A new deployment name (``release``) creates a new timetable, even if the jobs are
        unchanged.
        """
        self._registry = registry
        self._log = log
        self._clock = clock
        self.lease_holder = LeaseHolder(owner=make_owner(ids), lease=lease)
        why_not = gate(registry, log)
        lanes = lanes or Lanes()
        self.runner = Runner(log, lanes, clock, events, self.lease_holder, why_not)
        # The lease of a run is short, so the time limit of a renewal is the whole lease.
        self.leases = LeaseKeeper(lease, clock, "run-leases", timeout=lease)
        self.leases.add(self.runner)
        self.dispatcher = Dispatcher(registry, log, self.runner, clock, events, self.lease_holder, release, lanes)
        self.reaper = Reaper(log, self.runner, self.dispatcher.job, clock, events, self.lease_holder, registry)

    def loops(self) -> list[tuple[Loop, LoopPolicy]]:
        beat = self.lease_holder.lease / 3
        # A shutdown lets the current tick end, because a run that the tick opened or took over must reach the runner.
        often = LoopPolicy(
            every=beat, stuck_after=timedelta(minutes=1), backoff=beat, max_failures=20, finishes_tick=True
        )
        return [(self.leases, self.leases.policy), (self.runner, often), (self.reaper, often), (self.dispatcher, often)]

    async def run_by_hand(
        self, job: Job, params: Mapping[str, str] = MappingProxyType({}), *, even_if_held: bool = False
    ) -> Execution:
        """Start a job now and wait until it ends. Like a scheduled run, the run is recorded and follows the overlap
        rule.
        """

        def decide(ledger: Ledger) -> Decisions:
            windows = self._registry.windows_now(ledger.controls)
            return plan_manual(job, ledger, windows, params, even_if_held=even_if_held)

        opened = await self._log.open_manual(registration(job), self.lease_holder, decide)
        (execution,) = opened.started
        running = self.runner.start(execution, job, min(job.grace, MANUAL_RUN_GRACE))
        try:
            await first_of(
                self.runner.finish(), renew_until_cancelled(self.leases.tick, self.lease_holder.lease, self._clock)
            )
        except BaseException:
            await cancel_and_wait(running)
            ending = Ending(status=Status.ABANDONED, reason=reasons.INTERRUPTED())
            await self._log.close(execution, ending)
            raise
        return execution
