"""Two job targets: one calls a function in this process, and the other wraps any target in a circuit breaker."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias, assert_never

from batuta.dispatch.job import Run, Target
from batuta.dispatch.runner import RUNS
from batuta.guard.base import Effect, EffectReport, Hold, effect_of_error, effect_of_status
from batuta.guard.circuits import Breaker
from batuta.kernel.calls.middleware import Around, Attempt
from batuta.kernel.calls.usercode import Called, Late, Raised, Returned, Threads, call_with_deadline
from batuta.kernel.clock import Clock
from batuta.kernel.errors import CancelIgnored
from batuta.kernel.storage.json import Json
from batuta.kernel.waiting import first_of
from batuta.queue.outcome import Cancelled, Done, Failed, Outcome, Partial, Skipped, Snooze, TimedOut
from batuta.queue.retry import NoRetry
from batuta.runlog import reasons
from batuta.runlog.execution import Ending, Status
from batuta.runlog.reasons import hold_reason
from batuta.supervise.running import CANCEL_GRACE, MOST_CANCELS
from batuta.supervise.stacks import task_stack

# A function without arguments, or with the run as its only argument. It returns an outcome, a number of items, or None.
JobFunction: TypeAlias = Callable[[], object] | Callable[[Run], object]
# The maximum number of threads of one function that may run past their deadline.
MOST_LEFT_BEHIND = 4
# Time within which a cancelled function must end.
STUBBORN = MOST_CANCELS * CANCEL_GRACE


class CallTarget:
    """Calls a function, with the run as its argument if the function takes one. A plain ``def`` runs in a thread, which
    cannot be stopped early.
    """

    repeatable = False

    def __init__(self, function: JobFunction, clock: Clock, around: Around | None = None) -> None:
        self._function = function
        self._around = Around() if around is None else around
        self._takes_run = bool(inspect.signature(function).parameters)
        self._clock = clock
        self._threads = Threads()

    @property
    def address(self) -> str:
        return f"{self._function.__module__}.{self._function.__qualname__}"

    async def deliver(self, run: Run) -> Ending:
        if (left := self._threads.left_behind) >= MOST_LEFT_BEHIND:
            return Ending(status=Status.SKIPPED, reason=reasons.OVERLAP_THREADS(count=left))
        match await self._attempt(run):
            case Returned(value=value):
                return ending_of(outcome_of(value))
            case Late(error=error):
                return Ending(status=Status.TIMEOUT, error=error)
            case Raised(error=NoRetry() as refusal):
                return Ending(status=Status.ERROR, error=refusal.reason)
            case Raised(error=error):
                raise error

    async def _attempt(self, run: Run) -> Called:
        """Run the function until the deadline. Raise CancelIgnored if the function keeps running after it was
        cancelled.
        """
        what, inside = f"job {run.execution.job}", list[asyncio.Task[Any] | None]()

        async def call() -> object:
            inside.append(asyncio.current_task())
            if not self._around:
                return await self._call(run)
            execution = run.execution
            attempt = Attempt(
                kind="job",
                name=execution.job,
                id=execution.id,
                number=execution.attempt,
                arguments=(run,) if self._takes_run else (),
            )
            return await self._around.call(attempt, lambda: self._call(run))

        going = asyncio.create_task(call_with_deadline(call, run.deadline, self._clock, what))
        limit = max(0.0, (run.deadline - self._clock.now()).total_seconds()) + STUBBORN.total_seconds()
        try:
            await first_of(asyncio.wait([going]), self._clock.sleep(limit))
        except asyncio.CancelledError:
            going.cancel()
            await first_of(asyncio.wait([going]), self._clock.sleep(STUBBORN.total_seconds()))
            raise
        if not going.done():
            raise CancelIgnored(loop=RUNS, what=what, stack="".join(task_stack(task) for task in inside if task))
        return going.result()

    async def _call(self, run: Run) -> object:
        arguments = (run,) if self._takes_run else ()
        if inspect.iscoroutinefunction(self._function):
            return await self._function(*arguments)
        returned = await self._threads.call(self._function, *arguments, name=f"job {run.execution.job}")
        return await returned if inspect.isawaitable(returned) else returned


def outcome_of(returned: object) -> Outcome:
    """Convert a function's return value to an outcome. False means failed, an integer is the number of processed items,
    and an outcome is returned unchanged. Any other value, such as None, means done.
    """
    match returned:
        case None:
            return Done()
        case bool():
            return Done() if returned else Failed(reasons.RETURNED_FALSE())
        case int():
            return Done(items=returned)
        case _:
            return returned if isinstance(returned, Outcome) else Done(result={"returned": type(returned).__name__})


def ending_of(outcome: Outcome) -> Ending:
    match outcome:
        case Done(items=items, result=result):
            return Ending(status=Status.SUCCESS, items=items, result=_mapping(result))
        case Partial(reason=reason, items=items, result=result):
            why = reasons.PARTIAL(why=reason)
            return Ending(status=Status.SUCCESS, reason=why, items=items, result=_mapping(result))
        case Skipped(reason=reason) | Snooze(reason=reason) | Cancelled(reason=reason):
            return Ending(status=Status.SKIPPED, reason=reason)
        case Failed(error=error):
            return Ending(status=Status.ERROR, error=error)
        case TimedOut(error=error):
            return Ending(status=Status.TIMEOUT, error=error)
        case _:
            assert_never(outcome)


def _mapping(result: Json) -> Mapping[str, Json] | None:
    if isinstance(result, Mapping):
        return dict(result) or None
    return None if result is None else {"result": result}


class BreakerTarget:
    def __init__(self, target: Target, breaker: Breaker, clock: Clock) -> None:
        self._target = target
        self._breaker = breaker
        self._clock = clock
        self.repeatable = target.repeatable

    @property
    def address(self) -> str:
        return self._target.address

    async def deliver(self, run: Run) -> Ending:
        verdict = await self._breaker.admit(self._clock.now())
        if isinstance(verdict, Hold):
            return _refusal(run, verdict)
        # The target stops retrying within a probe's time limit, so that no second probe starts while it is still
        # retrying.
        spare = max(timedelta(0), self._breaker.rule.probe_within - run.timeout)
        try:
            ending = await self._target.deliver(replace(run, grace=min(run.grace, spare)))
        except BaseException as error:
            await verdict.ticket.report(EffectReport(effect_of_error(error), type(error).__name__))
            raise
        report = report_of(ending)
        await (verdict.ticket.give_back() if report is None else verdict.ticket.report(report))
        return ending


def report_of(ending: Ending) -> EffectReport | None:
    """Convert a run's outcome to a report for the circuit breaker of the called service. Return None if the outcome
    does not show whether the service works.
    """
    code = ending.response_code
    match ending.status:
        case Status.SUCCESS:
            return EffectReport(Effect.WORKED)
        case Status.TIMEOUT:
            return EffectReport(Effect.TIMED_OUT, "timeout" if code is None else f"HTTP {code}")
        case Status.SKIPPED:
            return None if code is None else EffectReport(effect_of_status(code), f"HTTP {code}")
        case _ if code is None:
            return EffectReport(Effect.BROKE, "no answer")
        case _:
            effect = effect_of_status(code)
            # A response with status 200 is a failure if its body reports a failure.
            effect = Effect.BROKE if effect is Effect.WORKED else effect
            return EffectReport(effect, f"HTTP {code}", ending.retry_at)


def _refusal(run: Run, hold: Hold) -> Ending:
    """Return the outcome of a delivery that the circuit breaker held back: skipped or, if the run was taken over from
    another process, an error. A run that was taken over may already have been delivered, so it must not be recorded as
    skipped.
    """
    if run.execution.attempt > 1:
        return Ending(status=Status.ERROR, error=hold.reason)
    return Ending(status=Status.SKIPPED, reason=hold_reason(hold.reason))
