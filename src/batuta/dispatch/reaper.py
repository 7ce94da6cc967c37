"""Looks after the runs whose process fell silent: delivered again where that is harmless, closed as abandoned where not."""

from collections.abc import Callable
from datetime import datetime

from batuta.dispatch.book import JobBook
from batuta.dispatch.job import Job
from batuta.dispatch.plan import hold
from batuta.dispatch.runner import Runner
from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import Events, ExecutionTakenOver
from batuta.queue.lease import Tenure
from batuta.runlog.execution import Ending, Execution, Status, Trigger
from batuta.runlog.log import ExecutionLog, Ledger
from batuta.supervise.loop import Again, Doorbell, Idle, Pace

AT_ONCE = 100
MOST_ATTEMPTS = 3


class Reaper:
    name = "reaper"

    def __init__(
        self,
        log: ExecutionLog,
        runner: Runner,
        job_of: Callable[[str], Job | None],
        clock: Clock,
        events: Events,
        tenure: Tenure,
        book: JobBook,
    ) -> None:
        """``job_of`` gives a job by its name, or None if this code does not know it."""
        self.doorbell = Doorbell()
        self._log = log
        self._runner = runner
        self._job_of = job_of
        self._clock = clock
        self._events = events
        self._tenure = tenure
        self._book = book
        self._looked_at: datetime | None = None
        self._patient_until = 0.0

    async def tick(self) -> Pace:
        self._notice_gaps()
        if self._clock.monotonic() < self._patient_until:
            return Idle()
        try:
            if await self._is_kept_waiting():
                self._let_the_living_speak()
                return Idle()
            # What holds them is asked before anything is taken: whoever took a run must be able to decide about it.
            ledger = await self._log.look()
            taken = await self._log.take_over(self._tenure, self._book.names, AT_ONCE)
        except StoreUnavailable:
            self._let_the_living_speak()
            raise
        for execution in taken:
            await self._look_after(execution, ledger)
        return Again() if len(taken) == AT_ONCE else Idle()

    def _notice_gaps(self) -> None:
        """A clock put forward, a machine that slept, a file somebody kept locked: leases are over, and nobody died."""
        now = self._clock.now()
        if self._looked_at is not None and now - self._looked_at > self._tenure.lease:
            self._let_the_living_speak()
        self._looked_at = now

    async def _is_kept_waiting(self) -> bool:
        """A write that changes nothing: where it has to wait, so had the signs of life of the others."""
        knocked = self._clock.monotonic()
        await self._log.renew([], self._tenure)
        return self._clock.monotonic() - knocked > self._tenure.lease.total_seconds() / 3

    def _let_the_living_speak(self) -> None:
        """For a while nobody could show a sign of life: before anything is taken, they may."""
        self._patient_until = self._clock.monotonic() + 2 * self._tenure.lease.total_seconds()

    async def _look_after(self, execution: Execution, ledger: Ledger) -> None:
        job = self._job_of(execution.job)
        windows = self._book.windows_now(ledger.controls)
        held = None if job is None else hold(job, ledger.switches, windows, ledger.now)
        # Whoever asked for a run by hand is gone: nobody repeats it behind his back.
        may_repeat = job is not None and job.target.repeatable and execution.trigger is not Trigger.MANUAL
        again = held is None and job is not None and may_repeat and not _is_enough(execution, job, ledger.now)
        self._events.emit(ExecutionTakenOver(execution.job, execution.id, execution.attempt, again))
        if job is not None and again:
            self._runner.start(execution, job, execution.params)
            return
        reason = (
            "its process ended before it did" if execution.attempt <= MOST_ATTEMPTS else "its process ended each time"
        )
        if held is not None:
            reason = f"{reason}, and now it is {held}"
        await self._log.close(execution, Ending(status=Status.ABANDONED, reason=reason))


def _is_enough(execution: Execution, job: Job, now: datetime) -> bool:
    """Asking again with the same key is harmless, and giving up while the other side may still work invites an overlap."""
    return execution.attempt > MOST_ATTEMPTS and now > execution.started_at + job.grace + job.timeout
