"""Messages in Redis between the relay, which sends tasks to ARQ, and the runner, which runs them in an ARQ worker.

    batuta:call:TASK      the task's current call: at most one, no matter which process holds the lease
    batuta:outcome:CALL   the outcome of a call
    batuta:ended:RELAY    ids of ended calls, for the relay that sent them

A call is current until a relay takes its outcome. The entry ``batuta:call:TASK`` then records the lease of that relay.
This entry determines what a relay does with a task that it claims:

- If a call is in progress, the relay waits for that call instead of sending another call.
- If the previous relay took the outcome but died before it settled the task, the relay uses the outcome of that call.
  The recorded lease reveals this case, because a rescue raises the fence by two and the attempt by one. The relay makes
  the call current again, so that a third relay can adopt the call too.

Therefore a task does not run twice when a relay shuts down or dies.
"""

import asyncio
from collections.abc import Awaitable, Collection, Iterable
from datetime import datetime, timedelta
from types import NoneType
from typing import Any, Final, TypeAlias, assert_never, cast

from arq.connections import ArqRedis
from arq.constants import abort_jobs_ss, default_queue_name, in_progress_key_prefix, job_key_prefix, retry_key_prefix
from arq.utils import timestamp_ms
from redis.exceptions import RedisError

from batuta.kernel.calls.usercode import Late, Raised, Returned, name_of
from batuta.kernel.errors import UnstorableValue, reason_of_error
from batuta.kernel.reasons import decode, define, encode
from batuta.kernel.storage.json import Json, dumps, loads
from batuta.kernel.storage.storable import refuse_unstorable
from batuta.queue.item import Lease
from batuta.queue.outcome import (
    HANDLER_CRASHED,
    TIMED_OUT,
    Cancelled,
    Done,
    Failed,
    Outcome,
    Partial,
    Skipped,
    Snooze,
    TimedOut,
)
from batuta.queue.retry import NoRetry
from batuta.tasks.task import AnyTask, outcome_of

CallId: TypeAlias = str
TaskId: TypeAlias = str
REDIS_ERRORS: Final = (RedisError, OSError)
ANSWERS_WITHIN: Final = timedelta(seconds=5)
NO_EFFECTS = define("arq_no_effects", "a task that ARQ runs cannot emit items or have an effect")
# ARQ drops a call that has waited for a day, so a call's entry must live longer than a day.
CURRENT_FOR: Final = timedelta(days=2)
# An outcome that no relay has taken is kept for a day. Once a relay has taken an outcome, another relay needs it only
# if the first relay dies before it settles the task.
UNTAKEN_FOR: Final = timedelta(days=1)
TAKEN_FOR: Final = timedelta(hours=1)
_DELETE: Final = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
# A relay that lost its lease may take the outcome later than its successor, so the entry keeps the later lease.
_MARK: Final = """
local call, fence = string.match(redis.call('GET', KEYS[1]) or '', '^(%S*) ?(%d*)')
if call == ARGV[1] and (fence == '' or tonumber(fence) < tonumber(ARGV[2])) then
  return redis.call('SET', KEYS[1], table.concat({ARGV[1], ARGV[2], ARGV[3]}, ' '), 'EX', ARGV[4])
end
return 0
"""


def redis_timeout() -> asyncio.Timeout:
    """Return the timeout for a Redis command. Without a timeout, a network that drops packets would block the command
    and raise no error.
    """
    return asyncio.timeout(ANSWERS_WITHIN.total_seconds())


async def current_call(redis: ArqRedis, lease: Lease) -> CallId:
    """Return the task's current call, which is in progress or has an outcome that is not settled yet. If the task has
    no current call, create one and return it.
    """
    key, call = _call_key(lease.id), call_of(lease)
    if await redis.set(key, call, nx=True, ex=CURRENT_FOR):
        return call
    match str(await redis.get(key) or b"", "ascii").split():
        case [under_way]:
            return under_way
        case [unsettled, fence, attempt] if (int(fence) + 2, int(attempt) + 1) == (lease.fence, lease.attempt):
            await redis.set(key, unsettled, ex=CURRENT_FOR)
            return unsettled
    await redis.set(key, call, ex=CURRENT_FOR)
    return call


async def is_current(redis: ArqRedis, task: TaskId, call: CallId) -> bool:
    return bool(await redis.get(_call_key(task)) == call.encode())


async def mark_taken(redis: ArqRedis, calls: Iterable[tuple[CallId, Lease]]) -> None:
    """Record that a relay has taken the outcomes of the given calls, and which lease the relay held for each task."""
    kept = int(TAKEN_FOR.total_seconds())
    async with redis.pipeline(transaction=False) as together:
        for call, lease in calls:
            together.eval(_MARK, 1, _call_key(lease.id), call, str(lease.fence), str(lease.attempt), str(kept))
            together.expire(outcome_key(call), kept)
        await together.execute()


async def forget(redis: ArqRedis, calls: Iterable[tuple[TaskId, CallId]]) -> None:
    """Delete the Redis entries of calls that were lost or withdrawn, because such calls never get an outcome."""
    async with redis.pipeline(transaction=False) as together:
        for task, call in calls:
            together.eval(_DELETE, 1, _call_key(task), call)
        await together.execute()


async def withdraw(redis: ArqRedis, calls: Collection[tuple[TaskId, CallId]]) -> None:
    """Remove calls from ARQ's queue, and ask the ARQ workers to cancel the calls in progress."""
    ids = [call for _, call in calls]
    marks = await redis.mget([in_progress_key_prefix + id for id in ids])
    running = [id for id, mark in zip(ids, marks, strict=True) if mark is not None]
    async with redis.pipeline(transaction=True) as together:
        together.zrem(default_queue_name, *ids)
        together.delete(*(prefix + id for id in ids for prefix in (job_key_prefix, retry_key_prefix)))
        if running:
            together.zadd(abort_jobs_ss, dict.fromkeys(running, timestamp_ms()))
        await together.execute()
    await forget(redis, calls)


async def answer(redis: ArqRedis, call: CallId, encoded: Json, reply_list: str | None) -> None:
    async with redis.pipeline(transaction=False) as together:
        together.set(outcome_key(call), dumps(encoded), ex=UNTAKEN_FOR)
        if reply_list is not None:
            together.rpush(reply_list, call)
            together.expire(reply_list, TAKEN_FOR)
        await together.execute()


async def outcomes(redis: ArqRedis, calls: Collection[CallId]) -> list[bytes | None]:
    return (
        await cast("Awaitable[list[bytes | None]]", redis.mget([outcome_key(call) for call in calls])) if calls else []
    )


# The fields of a call: function, arguments, named arguments, attempt, and the time at which it was enqueued.
_FIELDS: dict[str, tuple[type, ...]] = {"f": (str,), "a": (list,), "k": (dict,), "t": (int, NoneType), "et": (int,)}


def encode_call(call: dict[str, Any]) -> bytes:
    """Encode an ARQ call or result as JSON instead of pickle, because unpickling can execute code.

    An error in a result is replaced by the name of its type.
    """
    return dumps(
        {key: type(each).__name__ if isinstance(each, BaseException) else each for key, each in call.items()}
    ).encode()


def decode_call(data: bytes) -> dict[str, Any]:
    """Decode an ARQ call or result. Raises ValueError or TypeError if the value is not JSON or has the wrong structure.

    ARQ does not check the types itself, and a wrong type would end its worker.
    """
    decoded = loads(data)
    if not isinstance(decoded, dict) or any(type(decoded.get(key)) not in types for key, types in _FIELDS.items()):
        raise TypeError("a value in Redis is not a call")
    return decoded


def encode_result(ran: Returned | Raised | Late, task: AnyTask, max_result: int) -> dict[str, Json]:
    match ran:
        case Raised(error=NoRetry() as refusal):
            return {"failed": encode(refusal.reason), "permanent": True}
        case Raised(error=error):
            return {"failed": encode(HANDLER_CRASHED(error=name_of(error)))}
        case Late():
            return {"failed": encode(TIMED_OUT()), "permanent": not task.retry_timeout}
    match outcome_of(ran.value):
        case Done(emit=emit, effect=effect) if emit or effect is not None:
            return {"failed": encode(NO_EFFECTS()), "permanent": True}
        case Skipped(effect=effect) if effect is not None:
            return {"failed": encode(NO_EFFECTS()), "permanent": True}
        case Done(result=result) | Partial(result=result) as ended:
            try:
                refuse_unstorable(result, "task result", max_result)
            except UnstorableValue as unstorable:
                return {"failed": encode(reason_of_error(unstorable)), "permanent": True}
            return {"done": result, **({"partial": encode(ended.reason)} if isinstance(ended, Partial) else {})}
        case Skipped(reason=reason):
            return {"skipped": encode(reason)}
        case Snooze(until=until, reason=reason):
            if isinstance(until, timedelta):
                return {"snooze_seconds": until.total_seconds(), "reason": encode(reason)}
            return {"snooze": until.isoformat(), "reason": encode(reason)}
        case TimedOut(error=why):
            return {"failed": encode(why), "permanent": False}
        case Failed(error=why, permanent=permanent):
            return {"failed": encode(why), "permanent": permanent}
        case Cancelled(reason=reason):
            return {"cancelled": encode(reason)}
        case other:
            assert_never(other)


def decode_result(encoded: Any) -> Outcome:
    if "failed" in encoded:
        return Failed(decode(encoded["failed"]) or "", permanent=encoded.get("permanent", False))
    if "snooze_seconds" in encoded:
        return Snooze(timedelta(seconds=encoded["snooze_seconds"]), decode(encoded["reason"]) or "")
    if "snooze" in encoded:
        return Snooze(datetime.fromisoformat(encoded["snooze"]), decode(encoded["reason"]) or "")
    if "cancelled" in encoded:
        return Cancelled(decode(encoded["cancelled"]) or "")
    if "skipped" in encoded:
        return Skipped(decode(encoded["skipped"]) or "")
    if "partial" in encoded:
        return Partial(decode(encoded["partial"]) or "", result=encoded["done"])
    return Done(result=encoded["done"])


def outcome_key(call: CallId) -> str:
    return f"batuta:outcome:{call}"


def call_of(lease: Lease) -> CallId:
    return f"{lease.id}:{lease.fence}"


def _call_key(task: TaskId) -> str:
    return f"batuta:call:{task}"
