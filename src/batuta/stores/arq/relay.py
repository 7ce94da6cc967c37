"""Tasks that ARQ runs. The table of tasks is the outbox and the record; Redis is only the way.

    enqueue ─▶ tasks (SQL) ─▶ a worker of ours claims the row, sends the call to Redis and keeps the lease while it waits
                                        │                                     ▲
                                        ▼                                     │ the outcome, under a key of its own
                                 ARQ's queue ─▶ an ARQ worker runs it ────────┘ and its name in the sender's list

So nothing is lost with Redis: a call that is no longer there is sent again, and one whose sender died is taken over when its lease
ends. Retries, time limits and what a status says are decided where they always are. Waiting for somebody who runs it costs
nothing: only the time for which ARQ says that it is under way counts. A call may run twice if a process dies at the wrong moment,
as with any queue; what its second run says is not heard if the first one was.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, assert_never, cast

from arq.connections import ArqRedis
from arq.constants import default_queue_name, in_progress_key_prefix, job_key_prefix, retry_key_prefix
from arq.worker import Function, func
from redis.exceptions import RedisError

from batuta.guard.foreign import Late, Raised, Returned, attempt, name_of
from batuta.kernel.clock import Clock
from batuta.kernel.errors import StatementRefused, UnstorableValue
from batuta.kernel.events import Events, ItemCrashed
from batuta.kernel.json import Json, dumps, loads
from batuta.queue.item import Lease
from batuta.queue.outcome import Cancelled, Done, Failed, Outcome, Snooze
from batuta.queue.storable import MAX_PAYLOAD, refuse_unstorable
from batuta.supervise.loop import Doorbell, Idle, Pace
from batuta.tasks.registry import Task, outcome_of

LOOK: Final = timedelta(milliseconds=20)
MOST_HEARD: Final = 1000  # outcomes at a time
# A call that Redis does not know any more, or whose end nobody told, is looked for this often.
LOST_AFTER: Final = timedelta(seconds=2)
AWAY_FOR: Final = timedelta(seconds=2)
ANSWERS_WITHIN: Final = timedelta(seconds=5)
KEPT: Final = timedelta(hours=1)
# ARQ stops a call a little later than we do, so that what it says of itself is heard.
LATER: Final = timedelta(seconds=10)
GONE: Final = (RedisError, OSError)
TIMED_OUT: Final = "Job timeout exceeded"
# For a call that is under way: twice as long as it may take, and then it is sent again.
SPARE: Final = timedelta(seconds=60)
# The loop that lives where calls are run: by it others know that somebody does.
RUNNER: Final = "arq-runner"


class Report(Protocol):
    def __call__(self, lease: Lease, progress: Json) -> Awaitable[None]: ...


@dataclass(slots=True)
class _Sent:
    """A call whose outcome is waited for. ``ran``: how long it has been under way; ``seen_at``: when it was seen to be, last."""

    limit: timedelta
    heard: "asyncio.Future[Outcome]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    ran: timedelta = timedelta(0)
    seen_at: datetime | None = None

    def see(self, under_way: bool, now: datetime) -> bool:
        """Whether it has taken too long."""
        if under_way and self.seen_at is not None:
            self.ran += now - self.seen_at
        self.seen_at = now if under_way else None
        return self.ran > self.limit


class ArqRelay:
    """A TaskRunner, and the loop that hears what became of what it sent."""

    name = "arq"

    def __init__(self, connect: Callable[[], Awaitable[ArqRedis]], clock: Clock) -> None:
        self.doorbell = Doorbell()
        self._connect = connect
        self._clock = clock
        self._redis: ArqRedis | None = None
        self._opening = asyncio.Lock()
        self._waiting: dict[str, _Sent] = {}
        self._ended: set[str] = set()  # told, and not waited for yet
        self._list = f"batuta:ended:{secrets.token_hex(8)}"
        self._looked_at = clock.now()

    async def run(self, task: Task, lease: Lease) -> Outcome:
        """Returns when somebody ran it. A Redis that is away costs no attempt, and what may be there is not sent again."""
        id = f"{lease.id}:{lease.fence}"
        call = {
            "id": lease.id,
            "fence": lease.fence,
            "attempt": lease.attempt,
            "args": lease.row["args"],
            "created_at": lease.row["created_at"].isoformat(),
            "told_in": self._list,
        }
        try:
            redis = await self._opened()
        except GONE as error:
            # Held meanwhile, or all else that waits would be tried as well, again and again. It stays as old as it is.
            await self._clock.sleep(AWAY_FOR.total_seconds())
            return Snooze(lease.due_at or self._clock.now(), f"Redis does not answer: {type(error).__name__}")
        with suppress(*GONE):  # it may have arrived all the same: it is looked for when Redis is back
            async with _in_time():
                await redis.enqueue_job(task.name, dumps(call), _job_id=id)
        sent = self._waiting[id] = _Sent(2 * task.timeout + SPARE)
        self.doorbell.ring()
        try:
            return await sent.heard
        finally:
            self._waiting.pop(id, None)

    async def tick(self) -> Pace:
        if not self._waiting:
            return Idle()
        try:
            redis = await self._opened()
            async with _in_time():
                await self._hear(redis)
        except GONE:
            # Away, and maybe only for us: what was sent may be under way. When it is back, what it lost is sent again.
            self._looked_at = datetime.min.replace(tzinfo=UTC)
            await self._hang_up()
            return Idle(self._clock.now() + AWAY_FOR)
        return Idle(self._clock.now() + LOOK)

    async def close(self) -> None:
        if self._redis is not None:
            await self._redis.aclose(close_connection_pool=True)

    async def _opened(self) -> ArqRedis:
        async with _in_time(), self._opening:
            if self._redis is None:
                self._redis = await _limited(await self._connect())
        return self._redis

    async def _hang_up(self) -> None:
        """Connections that nobody uses now may be dead without a word: each would be waited for in its turn."""
        if self._redis is None:
            return
        pool: Any = self._redis.connection_pool
        for idle in [pool.get_available_connection() for _ in [*pool._available_connections]]:
            await idle.disconnect(nowait=True)
            await pool.release(idle)

    async def _hear(self, redis: ArqRedis) -> None:
        """Those that are said to have ended; now and then all, for a word can be lost."""
        is_all = self._clock.now() - self._looked_at > LOST_AFTER
        ids = list(self._waiting) if is_all else await self._said_to_have_ended(redis)
        answers = await redis.mget([_key(id) for id in ids]) if ids else []
        for id, answer in zip(ids, answers, strict=True):
            if answer is not None:
                self._tell(id, _outcome(loads(answer)))
        if is_all:
            self._looked_at = self._clock.now()
            self._ended.clear()
            unheard = [id for id, answer in zip(ids, answers, strict=True) if answer is None]
            await self._look_for(unheard, redis)
            await self._give_up([id for id in unheard if id in self._waiting], redis)

    async def _said_to_have_ended(self, redis: ArqRedis) -> list[str]:
        said = await cast("Awaitable[list[bytes] | None]", redis.lpop(self._list, MOST_HEARD))
        self._ended.update(each.decode() for each in said or ())
        ids = [id for id in self._ended if id in self._waiting]
        self._ended.difference_update(ids)
        return ids

    async def _look_for(self, ids: list[str], redis: ArqRedis) -> None:
        """ARQ keeps a call in its queue until it has run. One that is neither there nor has answered is sent again."""
        if not ids:
            return
        places = await redis.zmscore(default_queue_name, ids)
        gone = [id for id, place in zip(ids, places, strict=True) if place is None]
        answers = await redis.mget([_key(id) for id in gone]) if gone else []
        for id, answer in zip(gone, answers, strict=True):
            lost: Outcome = Snooze(self._clock.now(), "Redis lost it")
            self._tell(id, lost if answer is None else _outcome(loads(answer)))

    async def _give_up(self, ids: list[str], redis: ArqRedis) -> None:
        """Those that have been under way for too long. They are taken out of ARQ's queue, so that nobody runs them for nothing."""
        marks = await redis.mget([in_progress_key_prefix + id for id in ids]) if ids else []
        for id, mark in zip(ids, marks, strict=True):
            sent = self._waiting.get(id)
            if sent is not None and sent.see(mark is not None, self._clock.now()):
                await redis.zrem(default_queue_name, id)
                await redis.delete(job_key_prefix + id, retry_key_prefix + id)
                self._tell(id, Failed(TIMED_OUT))

    def _tell(self, id: str, outcome: Outcome) -> None:
        sent = self._waiting.pop(id, None)
        if sent is not None and not sent.heard.done():
            sent.heard.set_result(outcome)


def _in_time() -> asyncio.Timeout:
    """A network that swallows what it is given refuses nothing. Who waited too long for it knows as much as one who was refused."""
    return asyncio.timeout(ANSWERS_WITHIN.total_seconds())


async def _limited(redis: ArqRedis) -> ArqRedis:
    """A call that is stopped tidies up behind itself, and asks Redis once more to do so: that ends in time as well."""
    pool: Any = redis.connection_pool
    await pool.disconnect()
    pool.reset()
    pool.connection_kwargs["socket_timeout"] = ANSWERS_WITHIN.total_seconds()
    return redis


class ArqRunner:
    """A loop beside a plain ARQ worker: it lives where calls are run, and fails while their Redis is away."""

    name = RUNNER

    def __init__(self, redis: ArqRedis) -> None:
        self.doorbell = Doorbell()
        self._redis = redis

    async def tick(self) -> Pace:
        async with _in_time():
            await self._redis.ping()
        return Idle()


@dataclass(frozen=True, slots=True)
class Here:
    """Where a call is run: how progress is kept, by whose clock, and who is told that it crashed."""

    report: Report
    clock: Clock
    events: Events
    under_way: set[str] = field(default_factory=set)
    max_result: int = MAX_PAYLOAD

    def look_past(self, redis: ArqRedis) -> None:
        """Whenever ARQ looks for new calls it asks Redis three things about each in its queue, those it runs itself among them.

        With hundreds under way that is most of its work. It is not shown those.
        """
        listed = redis.zrangebyscore

        async def others(*arguments: Any, **named: Any) -> list[bytes]:
            return [id for id in await listed(*arguments, **named) if id.decode() not in self.under_way]

        vars(redis)["zrangebyscore"] = others


def functions(tasks: Iterable[Task], here: Here, *, keep_result: timedelta = KEPT) -> list[Function]:
    """What an ARQ worker runs: every task under its own name."""

    def made(task: Task) -> Function:
        async def run(ctx: dict[Any, Any], call: str) -> Json:
            here.under_way.add(ctx["job_id"])
            try:
                return await _run(task, ctx["redis"], call, here)
            finally:
                here.under_way.discard(ctx["job_id"])

        timeout = (task.timeout + LATER).total_seconds()
        return func(run, name=task.name, timeout=timeout, keep_result=keep_result.total_seconds(), max_tries=1000)

    return [made(task) for task in tasks]


async def _run(task: Task, redis: ArqRedis, call: str, here: Here) -> Json:
    said: Any = loads(call)
    clock = here.clock
    row = {"args": said["args"], "created_at": datetime.fromisoformat(said["created_at"]), "name": task.name}
    lease = Lease(said["id"], said["fence"], said["attempt"], row)
    ran = await attempt(
        lambda: task.run(lease, here.report, clock), clock.now() + task.timeout, clock, f"task {task.name}"
    )
    if isinstance(ran, Raised):
        here.events.emit(ItemCrashed(task.queue, lease.id, ran.error))
    told = _told(ran, here.max_result)
    await _answer(redis, f"{lease.id}:{lease.fence}", told, said.get("told_in"))
    return told


async def _answer(redis: ArqRedis, id: str, told: Json, told_in: str | None) -> None:
    async with redis.pipeline(transaction=False) as together:
        together.set(_key(id), dumps(told), ex=KEPT)
        if told_in is not None:
            together.rpush(told_in, id)
            together.expire(told_in, KEPT)
        await together.execute()


def _told(ran: Returned | Raised | Late, max_result: int) -> dict[str, Json]:
    """An outcome as it is carried."""
    match ran:
        case Raised(error=error):
            return {"failed": f"{name_of(error)} in the handler; the log has the traceback"}
        case Late():
            return {"failed": TIMED_OUT, "permanent": True}
    match outcome_of(ran.value):
        case Done(emit=emit, effect=effect) if emit or effect is not None:
            raise StatementRefused(why="a task that ARQ runs cannot emit or have an effect of its own")
        case Done(result=result):
            try:
                refuse_unstorable(result, "task result", max_result)
            except UnstorableValue as unstorable:
                return {"failed": str(unstorable), "permanent": True}
            return {"done": result}
        case Snooze(until=until, reason=reason):
            return {"snooze": until.isoformat(), "reason": reason}
        case Failed(error=why, permanent=permanent):
            return {"failed": why, "permanent": permanent}
        case Cancelled(reason=reason):
            return {"cancelled": reason}
        case other:
            assert_never(other)


def _outcome(told: Any) -> Outcome:
    if "failed" in told:
        return Failed(told["failed"], permanent=told.get("permanent", False))
    if "snooze" in told:
        return Snooze(datetime.fromisoformat(told["snooze"]), told["reason"])
    if "cancelled" in told:
        return Cancelled(told["cancelled"])
    return Done(result=told["done"])


def _key(id: str) -> str:
    return f"batuta:outcome:{id}"
