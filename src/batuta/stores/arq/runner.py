"""ArqRunner: runs a relay's calls in an ARQ worker and stores their outcomes in Redis."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, Final

from arq.connections import ArqRedis
from arq.worker import Function, func

from batuta.kernel.calls.usercode import Raised, Returned, call_with_deadline
from batuta.kernel.clock import Clock, microseconds
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import CallRejected, Events, ItemCrashed
from batuta.kernel.reasons import define
from batuta.kernel.storage.json import Json, loads
from batuta.kernel.storage.storable import MAX_PAYLOAD
from batuta.kernel.trace import HEADER, bind_after
from batuta.kernel.values import dataclass
from batuta.queue.item import Lease
from batuta.queue.outcome import Cancelled, Snooze
from batuta.queue.retry import NoRetry
from batuta.stores.arq import ARQ_RUNNER, calls
from batuta.stores.arq.relay import Wanted
from batuta.supervise.loop import Idle, Pace, Wakeup
from batuta.tasks.task import AnyTask, read_carried

RESULT_RETENTION: Final = timedelta(hours=1)
# ARQ cancels a call this long after the task's time limit, so that the runner can still store the outcome.
CALL_MARGIN: Final = timedelta(seconds=10)
# How long to wait before retrying a call that failed because the database was unavailable.
AWAY_FOR: Final = timedelta(seconds=2)
DATABASE_AWAY = define("database_away", "the database does not answer")


class ArqRunner:
    """A supervised loop that runs beside an ARQ worker and pings Redis. While Redis is unavailable, the loop's tick
    fails, so its heartbeat shows the failure.
    """

    name = ARQ_RUNNER

    def __init__(self, redis: ArqRedis) -> None:
        self.wakeup = Wakeup()
        self._redis = redis

    async def tick(self) -> Pace:
        async with calls.redis_timeout():
            await self._redis.ping()
        return Idle()


@dataclass(frozen=True, slots=True)
class RunnerContext:
    """The objects that an ARQ worker needs to run calls. ``report`` stores a call's progress. ``wanted`` returns those
    of the given tasks that have neither ended nor been cancelled.
    """

    report: Callable[[Lease, Json], Awaitable[None]]
    wanted: Wanted
    clock: Clock
    events: Events
    under_way: set[str] = field(default_factory=set)
    max_result: int = MAX_PAYLOAD

    def decode_call(self, data: bytes) -> dict[str, Any]:
        """Decode a call. If the data is invalid, emit CallRejected and raise the error again."""
        try:
            return calls.decode_call(data)
        except (ValueError, TypeError):
            self.events.emit(CallRejected(len(data)))
            raise

    def hide_running(self, redis: ArqRedis) -> None:
        """Hide the calls that this process is already running from ARQ's poll for new calls. Otherwise ARQ would send
        three Redis commands for each of these calls.
        """
        listed = redis.zrangebyscore

        async def others(*arguments: Any, **named: Any) -> list[bytes]:
            return [id for id in await listed(*arguments, **named) if id.decode() not in self.under_way]

        vars(redis)["zrangebyscore"] = others


def functions(
    tasks: Iterable[AnyTask], here: RunnerContext, *, keep_result: timedelta = RESULT_RETENTION
) -> list[Function]:
    def make_function(task: AnyTask) -> Function:
        async def run(ctx: dict[Any, Any], call: str) -> Json:
            here.under_way.add(ctx["job_id"])
            try:
                return await _run(task, ctx["redis"], ctx["job_id"], loads(call), here)
            finally:
                here.under_way.discard(ctx["job_id"])

        timeout = (task.timeout + CALL_MARGIN).total_seconds()
        return func(run, name=task.name, timeout=timeout, keep_result=keep_result.total_seconds(), max_tries=1000)

    return [make_function(task) for task in tasks]


async def _run(task: AnyTask, redis: ArqRedis, call: calls.CallId, call_data: Any, here: RunnerContext) -> Json:
    if call_data.get("is_current") and not await calls.is_current(redis, call_data["id"], call):
        return None  # the call was withdrawn, or replaced by another call
    row = {"args": call_data["args"], "name": task.name}
    created = microseconds(datetime.fromisoformat(call_data["created_at"]))
    lease = Lease(call_data["id"], call_data["fence"], call_data["attempt"], row, created=created)
    bind_after(lambda lease: read_carried(lease.row["args"]).get(HEADER), lease)
    clock = here.clock
    ran = await _outcome_without_run(lease, here) or await call_with_deadline(
        lambda: task.run(lease, here.report), clock.now() + task.timeout, clock, f"task {task.name}"
    )
    if isinstance(ran, Raised) and not isinstance(ran.error, NoRetry):
        here.events.emit(ItemCrashed(task.queue, lease.id, ran.error, task.name))
    encoded = calls.encode_result(ran, task, here.max_result)
    await calls.answer(redis, call, encoded, call_data.get("told_in"))
    return encoded


async def _outcome_without_run(lease: Lease, here: RunnerContext) -> Returned | None:
    """Return the outcome of a call that must not run: a cancellation if its task was cancelled or ended while the call
    was waiting, or a snooze if the database is unavailable. Return None if the task must run.
    """
    try:
        wanted = await here.wanted([lease.id])
    except StoreUnavailable:
        return Returned(Snooze(AWAY_FOR, DATABASE_AWAY()))
    return None if lease.id in wanted else Returned(Cancelled())
