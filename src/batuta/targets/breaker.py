"""A target behind a circuit breaker: while that is open nothing is delivered, and the fire says why."""

from dataclasses import replace
from datetime import timedelta

from batuta.dispatch.job import Run, Target
from batuta.guard.base import Effect, EffectReport, Hold, effect_of_error, effect_of_status
from batuta.guard.circuits import Breaker
from batuta.kernel.clock import Clock
from batuta.runlog.execution import Ending, Status
from batuta.runlog.reasons import held


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
            return _refused(run, verdict)
        # Over before a probe is taken for dead, so that there is never a second one.
        spare = max(timedelta(0), self._breaker.rule.probe_within - run.timeout)
        try:
            ending = await self._target.deliver(replace(run, grace=min(run.grace, spare)))
        except BaseException as error:
            await verdict.ticket.used(EffectReport(effect_of_error(error), type(error).__name__))
            raise
        report = report_of(ending)
        await (verdict.ticket.unused() if report is None else verdict.ticket.used(report))
        return ending


def report_of(ending: Ending) -> EffectReport | None:
    """What an ending says about the other side; None: nothing."""
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
            # A 200 that says it failed has failed.
            effect = Effect.BROKE if effect is Effect.WORKED else effect
            return EffectReport(effect, f"HTTP {code}", ending.retry_at)


def _refused(run: Run, hold: Hold) -> Ending:
    """A run that was delivered before and taken over may have happened: then nobody may say that it was skipped."""
    if run.execution.attempt > 1:
        return Ending(status=Status.ERROR, error=hold.reason)
    return Ending(status=Status.SKIPPED, reason=held(hold.reason))
