"""Runs executions: waits for free capacity in the job's category, delivers the run to its target and records the
outcome.

A ``LeaseKeeper`` renews the runs' leases. At shutdown, a run that does not end in time is cancelled and handed back.
The scheduler that takes over the run delivers it again with the same idempotency key.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from types import MappingProxyType

from batuta.dispatch.job import Job, Run
from batuta.kernel.calls.usercode import Raised, Returned, call, name_of
from batuta.kernel.clock import Clock
from batuta.kernel.errors import (
    CancelIgnored,
    StatementRefused,
    StoreConflict,
    StoreTimeout,
    StoreUnavailable,
    reason_of_error,
)
from batuta.kernel.events import Events, ExecutionCrashed, ExecutionEnded, ExecutionLost, ExecutionStarted
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.reasons import Reason
from batuta.kernel.trace import bind, recorder, trace_of_run
from batuta.kernel.waiting import insist
from batuta.runlog import reasons
from batuta.runlog.execution import Ending, Execution, Status, storable, without_details
from batuta.runlog.log import Closing, ExecutionLog
from batuta.supervise.loop import Idle, Pace, Wakeup
from batuta.supervise.loop import bind as bind_progress
from batuta.supervise.shutdown import Shutdown, pass_phases

DEFAULT_PLACES = 4


class Lanes:
    """Limits on concurrent runs per category. Each category in ``reserved`` has a limit of its own and is dispatched
    first.
    """

    def __init__(self, places: int = DEFAULT_PLACES, reserved: Mapping[str, int] = MappingProxyType({})) -> None:
        self._places = places
        self._reserved = dict(reserved)
        self._lanes: dict[str, asyncio.Semaphore] = {}

    def lane(self, category: str) -> asyncio.Semaphore:
        if category not in self._lanes:
            self._lanes[category] = asyncio.Semaphore(self._reserved.get(category, self._places))
        return self._lanes[category]

    def is_reserved(self, category: str) -> bool:
        return category in self._reserved


# A run that waited longer than this for a place calls its gate again, so that a pause also stops waiting runs.
RECHECK_GATE_AFTER = timedelta(milliseconds=500)

RUNS = "runs"
Gate = Callable[[Job], Awaitable[str | None]]


class Runner:
    name = RUNS

    def __init__(
        self, log: ExecutionLog, lanes: Lanes, clock: Clock, events: Events, lease_holder: LeaseHolder, gate: Gate
    ) -> None:
        """Create a runner. ``gate`` returns the reason why a job may not run now, or None if it may run."""
        self.wakeup = Wakeup()
        self._log = log
        self._lanes = lanes
        self._clock = clock
        self._events = events
        self._lease_holder = lease_holder
        self._gate = gate
        self._runs: dict[asyncio.Task[None], Execution] = {}
        self._closing: set[asyncio.Task[None]] = set()  # runs whose outcome is being stored
        self._cancelled: list[Execution] = []
        self._uncancellable: CancelIgnored | None = None
        self._expected = 0
        self._none_expected = asyncio.Event()
        self._none_expected.set()

    @contextmanager
    def expecting(self) -> Iterator[None]:
        """Context manager around code that records and starts runs. At a shutdown, the runner first waits until such
        code has ended, and then waits for the runs that the code started.
        """
        self._expected += 1
        self._none_expected.clear()
        try:
            yield
        finally:
            self._expected -= 1
            if not self._expected:
                self._none_expected.set()

    def start(self, execution: Execution, job: Job, grace: timedelta | None = None) -> "asyncio.Task[None]":
        """Start a run in a new asyncio task. If ``grace`` is given, the target retries for this long while its
        connection attempts are refused.
        """
        task = asyncio.create_task(
            self._run(execution, job, job.grace if grace is None else grace), name=f"run {execution.id}"
        )
        self._runs[task] = execution
        task.add_done_callback(self._discard)
        return task

    def _discard(self, task: "asyncio.Task[None]") -> None:
        execution = self._runs.pop(task)
        self._closing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._events.emit(ExecutionCrashed(execution.job, error))

    async def tick(self) -> Pace:
        if self._uncancellable is not None:
            raise self._uncancellable
        return Idle()

    def running_executions(self) -> list[Execution]:
        """Return every run of this process, including runs that have ended but whose outcome is not stored yet."""
        return list(self._runs.values())

    async def renew_leases(self) -> bool:
        """Renew the lease of every run, and cancel the runs that another scheduler has taken over. A run whose outcome
        is being stored is not cancelled: it detects the take-over itself. Return whether a locked row prevented a
        renewal.
        """
        renewed = await self._log.renew(self.running_executions(), self._lease_holder)
        for task, execution in self._runs.items():
            if execution.id in renewed.lost and task not in self._closing:
                self._events.emit(ExecutionLost(execution.job, execution.id, "running"))
                task.cancel()
        return bool(renewed.unchecked)

    def cancel_replaced(self, ids: Collection[str]) -> None:
        """Cancel the runs that a later fire replaced. Their rows in the database are already closed."""
        for task, execution in self._runs.items():
            if execution.id in ids and task not in self._closing:
                task.cancel()

    async def drain(self, grace: timedelta) -> None:
        await pass_phases(self, Shutdown.begin(self._clock, grace))

    def quiet(self) -> None:
        """First phase of a shutdown, in which no new work may start. There is nothing to do here: only the dispatcher
        and the reaper start runs, and both have already stopped.
        """

    async def finish(self) -> None:
        """Wait until every run has ended and no code that starts runs (an ``expecting`` block) is in progress."""
        while self._runs or self._expected:
            await self._none_expected.wait()
            if self._runs:
                await asyncio.wait(list(self._runs))

    def cancel(self) -> None:
        self._cancelled = list(self._runs.values())
        for task in self._runs:
            task.cancel()

    async def hand_back(self, shutdown: Shutdown) -> None:
        """Release the cancelled runs, so that other schedulers can take them over. A run that ignores its cancellation
        keeps running until the process exits.
        """
        if self._cancelled:
            await self._log.hand_back(self._cancelled, self._lease_holder)

    async def _run(self, execution: Execution, job: Job, grace: timedelta) -> None:
        bind(trace_of_run(execution.id), execution)
        bind_progress(None)  # a run records its own progress, separate from the runner's progress
        ending = await self._record(execution, job, grace)
        self._closing |= {task for task, running in self._runs.items() if running is execution}
        await self._close(execution, ending)

    async def _record(self, execution: Execution, job: Job, grace: timedelta) -> Ending:
        """Execute a run and return its outcome. If tracing is enabled, record the execution as a span."""
        if (tracing := recorder()) is None:
            return await self._execute(execution, job, grace)
        facts = {"batuta.job": job.name, "batuta.execution": execution.id, "batuta.trigger": execution.trigger.value}
        with tracing.span("run", f"job {job.name}", None, facts) as end:
            ending = await self._execute(execution, job, grace)
            end(ending.status.value, ending.status in (Status.ERROR, Status.TIMEOUT))
        return ending

    async def _execute(self, execution: Execution, job: Job, grace: timedelta) -> Ending:
        """Wait for free capacity in the job's category, deliver the run to its target, and return the outcome."""
        asked = self._clock.monotonic()
        async with self._lanes.lane(job.category):
            waited = timedelta(seconds=self._clock.monotonic() - asked)
            if waited >= RECHECK_GATE_AFTER and (held := await self._why_not(job)) is not None:
                return storable(Ending(status=Status.SKIPPED, reason=reasons.hold_reason(held)))
            called = await call(lambda: self._deliver(execution, job, grace))
        match called:
            case Returned(value=Ending() as ending):
                return ending
            case Raised(error=CancelIgnored() as uncancellable):
                self._uncancellable = uncancellable
                self.wakeup.set()
                return storable(Ending(status=Status.TIMEOUT, error=reason_of_error(uncancellable)))
            case Raised(error=error):
                self._events.emit(ExecutionCrashed(job.name, error))
                return storable(Ending(status=Status.ERROR, error=reasons.CRASHED(error=name_of(error))))
            case Returned():
                raise AssertionError("_deliver returns an ending")

    async def _why_not(self, job: Job) -> str | None:
        try:
            return await self._gate(job)
        except StoreUnavailable:
            return reasons.SWITCHES_UNREADABLE()

    async def _deliver(self, execution: Execution, job: Job, grace: timedelta) -> Ending:
        now = self._clock.now()
        late = timedelta(0) if execution.scheduled_for is None else now - execution.scheduled_for
        self._events.emit(
            ExecutionStarted(
                execution.job,
                execution.category,
                execution.id,
                execution.trigger.value,
                execution.scheduled_for,
                execution.attempt,
                late,
            )
        )
        run = Run(
            execution=execution,
            deadline=now + job.timeout,
            timeout=job.timeout,
            grace=grace,
            # If the switches cannot be read, wait: the run is waiting anyway, to retry its endpoint.
            why_not=lambda: insist(lambda: self._gate(job), self._clock),
        )
        return storable(await job.target.deliver(run))

    async def _close(self, execution: Execution, ending: Ending) -> None:
        try:
            is_written = await self._write_ending(execution, ending)
        except (StatementRefused, StoreConflict) as refused:
            # Store the outcome without the details that the database refused, because a run without an outcome would be
            # repeated.
            self._events.emit(ExecutionCrashed(execution.job, refused))
            is_written = await self._write_ending(execution, without_details(ending))
        if not is_written:
            self._events.emit(ExecutionLost(execution.job, execution.id, ending.status.value))
            return
        self._events.emit(
            ExecutionEnded(
                execution.job,
                execution.category,
                execution.id,
                ending.status.value,
                ending.error,
                ending.reason,
                ending.items,
                self._clock.now() - execution.started_at,
            )
        )

    async def _write_ending(self, execution: Execution, ending: Ending) -> bool:
        """Store the outcome, and retry while the row is locked. Return False if another scheduler has taken over the
        run.
        """

        async def close() -> bool:
            closing = await self._log.close(execution, ending)
            if closing is Closing.UNCHECKED:
                raise StoreTimeout(
                    where="job_executions", why=Reason("row_locked", "another transaction has locked the row")
                )
            return closing is Closing.WRITTEN

        return await insist(close, self._clock)
