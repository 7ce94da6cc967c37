"""Runs the handler of one claimed item and decides its settlement, without access to a store or a worker.

    handler ── Returned | Raised | Late ──▶ decide ──▶ Executed(settlement, error, took)

The worker writes the settlement later, in a batch or in one transaction with the item's effect. Errors in application
code never reach the worker: if the code raises SystemExit, leaves a cancellation pending or cancels its own asyncio
task, the item fails.
"""

from typing import NamedTuple, assert_never

from batuta.kernel.calls.usercode import Called, Late, Raised, Returned, name_of
from batuta.kernel.clock import Clock
from batuta.kernel.errors import BatchEnded, InvalidEffect, UnstorableValue, reason_of_error
from batuta.kernel.reasons import ReasonCode
from batuta.kernel.storage.storable import refuse_unstorable
from batuta.kernel.trace import read, recorder
from batuta.queue.outcome import (
    HANDLER_CRASHED,
    PLAIN_DONE,
    Failed,
    Settlement,
    TimedOut,
    after_seconds,
    refuse_wrong_effect,
)
from batuta.queue.retry import NoRetry, policy_for
from batuta.queue.running import Running

_NEVER = after_seconds([])


class Executed(NamedTuple):
    settlement: Settlement
    error: Exception | None  # an error of the handler, to be logged with its traceback
    took: float  # duration of the handler in seconds


async def execute(running: Running, clock: Clock, max_result: int, queue: str) -> Executed:
    if (tracing := recorder()) is None:
        return await _execute(running, clock, max_result)
    lease = running.lease
    name = lease.row.get("name") if isinstance(lease.row.get("name"), str) else queue
    facts: dict[str, str | int] = {"batuta.queue": queue, "batuta.item": lease.id, "batuta.attempt": lease.attempt}
    with tracing.span("item", f"run {name}", read(running.handler.traceparent(lease)), facts) as end:
        executed = await _execute(running, clock, max_result)
        word = executed.settlement.word
        end(word, executed.error is not None or word in ("retried", "dead"))
    return executed


async def _execute(running: Running, clock: Clock, max_result: int) -> Executed:
    called = await running.handle()
    settlement, error = decide(running, called, HANDLER_CRASHED, max_result)
    return Executed(settlement, error, clock.monotonic() - running.started_at)


def decide(running: Running, called: Called, crash: ReasonCode, max_result: int) -> tuple[Settlement, Exception | None]:
    """Decide how to settle an item whose handler or effect has ended. Return the settlement, and the error to log.
    ``crash`` is the reason to store if application code raised an error.
    """
    policy, attempt = running.handler, running.lease.attempt
    match called:
        case Returned(value=outcome) if outcome is PLAIN_DONE and policy.success is not None:
            return policy.success, None
        case Returned(value=outcome):
            return _settle_outcome(running, outcome, crash, max_result)
        case Raised(error=NoRetry() as refusal):
            return policy.settlement_of(attempt, refusal.outcome), None
        case Raised(error=BatchEnded() as ended):
            # No log entry: the stored error is sufficient. No retry: an ended batch stays ended.
            return policy.settlement_of(attempt, Failed(reason_of_error(ended), permanent=True)), None
        case Raised(error=error):
            retry = policy_for(policy.retry, error)
            return policy.settlement_of(attempt, Failed(crash(error=name_of(error))), retry), error
        case Late(error=why):
            return policy.settlement_of(attempt, TimedOut(why), None if policy.retry_timeout else _NEVER), None
        case _:
            assert_never(called)


def _settle_outcome(
    running: Running, outcome: object, crash: ReasonCode, max_result: int
) -> tuple[Settlement, Exception | None]:
    policy, attempt = running.handler, running.lease.attempt
    try:
        settlement = policy.settlement_of(attempt, outcome)
        refuse_unstorable(settlement.result, "task result", max_result)
        if settlement.effect is not None:
            refuse_wrong_effect(settlement.effect)
    except (UnstorableValue, InvalidEffect) as error:
        # No retry: the handler has already run, so a retry would return the same value and repeat the effects.
        return policy.settlement_of(attempt, Failed(reason_of_error(error), permanent=True)), error
    except Exception as error:  # noqa: BLE001 - an outcome that cannot be settled is a failure of its item
        return decide(running, Raised(error), crash, max_result)
    return settlement, None
