"""ArqRelay: sends tasks to ARQ and receives their outcomes. The task table is both the outbox and the permanent record;
Redis only transports the calls.

    enqueue ─▶ tasks (SQL) ─▶ a worker claims the row and renews its lease; the relay sends the call
                                        │                                     ▲
                                        ▼                                     │ the outcome under its own key, and the
                                 ARQ's queue ─▶ an ARQ worker runs it ────────┘ call's id in the list of the relay

If Redis loses its data, no task is lost, because the relay sends lost calls again. Retries, time limits and states work
as for any other task. The time limit covers only the time during which ARQ reports the call as in progress, not the
wait for an ARQ worker.

A task has one current call (see ``calls``). The relay receives outcomes until the worker has drained. After that, the
next relay that claims the task waits for the call in progress. If a task is cancelled, the relay withdraws its call,
and aborts the call if it is already running.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from arq.connections import ArqRedis
from arq.constants import default_queue_name, in_progress_key_prefix

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.reasons import define
from batuta.kernel.storage.json import dumps, loads
from batuta.kernel.values import dataclass
from batuta.queue.item import Lease
from batuta.queue.outcome import TIMED_OUT, Failed, Outcome, Snooze
from batuta.stores.arq import calls
from batuta.stores.arq.calls import REDIS_ERRORS, CallId, TaskId, redis_timeout
from batuta.supervise.loop import Idle, Pace, Wakeup
from batuta.tasks.task import AnyTask

LOOK: Final = timedelta(milliseconds=20)
MAX_OUTCOMES: Final = 1000  # maximum outcomes per read
# How often the relay checks all its calls, in case a message was lost.
LOST_AFTER: Final = timedelta(seconds=2)
AWAY_FOR: Final = timedelta(seconds=2)
# A call is withdrawn when it has been in progress for twice its time limit plus this time.
SPARE: Final = timedelta(seconds=60)
REDIS_AWAY = define("redis_away", "Redis does not answer: {error}")
REDIS_LOST = define("redis_lost", "Redis lost the call")

# Returns the given tasks that have neither ended nor been cancelled.
Wanted = Callable[[Collection[TaskId]], Awaitable[Collection[TaskId]]]


@dataclass(slots=True)
class _Sent:
    """A call whose outcome the relay is awaiting. ``ran`` is the time that the call has been in progress so far;
    ``seen_at`` is when it was last observed in progress.

    ``is_taken`` is true once this relay has read the outcome. From then on, only this relay may settle the task.
    """

    lease: Lease
    limit: timedelta
    outcome: "asyncio.Future[Outcome]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    ran: timedelta = timedelta(0)
    seen_at: datetime | None = None
    is_taken: bool = False

    def resolve(self, outcome: Outcome) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)

    def is_overdue(self, in_progress: bool, now: datetime) -> bool:
        if in_progress and self.seen_at is not None:
            self.ran += now - self.seen_at
        self.seen_at = now if in_progress else None
        return self.ran > self.limit


class ArqRelay:
    """Runs tasks through ARQ. The relay is also the supervised loop that receives the outcomes."""

    name = "arq"

    def __init__(self, make_client: Callable[[], ArqRedis], clock: Clock, wanted: Wanted) -> None:
        self.wakeup = Wakeup()
        self._make_client = make_client
        self._clock = clock
        self._wanted = wanted
        self._redis: ArqRedis | None = None
        self._waiting: dict[CallId, _Sent] = {}
        # Calls that this relay no longer awaits: the task was handed back or cancelled, or its lease was lost.
        self._dropped: dict[CallId, TaskId] = {}
        self._ended: set[CallId] = set()  # ended calls whose report arrived before this relay began to await them
        self._list = f"batuta:ended:{secrets.token_hex(8)}"
        self._looked_at = clock.now()

    async def run(self, task: AnyTask, lease: Lease) -> Outcome:
        """Run a task through ARQ and return its outcome. If the outcome of an earlier call is not settled, wait for
        that call. An attempt made while Redis is unavailable is not counted.
        """
        try:
            redis = self._client()
            async with redis_timeout():
                call = await calls.current_call(redis, lease)
        except REDIS_ERRORS as error:
            # Keep the lease while Redis is unavailable. Otherwise the worker would claim and postpone its whole
            # backlog.
            await self._clock.sleep(AWAY_FOR.total_seconds())
            return Snooze(lease.due_at or self._clock.now(), REDIS_AWAY(error=type(error).__name__))
        if call == calls.call_of(lease):
            await self._send(redis, task, lease, call)
        else:
            # an adopted call may have ended already, and its end may have been reported to another relay
            self._ended.add(call)
        sent = self._waiting[call] = _Sent(lease, 2 * task.timeout + SPARE)
        self._dropped.pop(call, None)
        self.wakeup.set()
        try:
            _raise_lost_cancellation()
            return await asyncio.shield(sent.outcome)
        except asyncio.CancelledError:
            # Redis records the outcome as taken, so no other relay waits for it. If this relay handed the task back
            # now, the task would run again.
            if sent.is_taken:
                return await sent.outcome
            self._dropped[call] = lease.id
            self.wakeup.set()
            raise
        finally:
            if self._waiting.get(call) is sent:
                del self._waiting[call]

    async def tick(self) -> Pace:
        if not (self._waiting or self._dropped):
            return Idle()
        try:
            redis = self._client()
            async with redis_timeout():
                await self._receive(redis)
            await self._withdraw_cancelled(redis)
        except REDIS_ERRORS:
            # Redis may be unreachable only from this process, so the sent calls may still be running. Lost calls are
            # detected after the reconnect.
            self._looked_at = datetime.min.replace(tzinfo=UTC)
            await self._close_idle()
            return Idle(self._clock.now() + AWAY_FOR)
        return Idle(self._clock.now() + LOOK)

    async def drain(self, grace: timedelta) -> None:
        """Withdraw the calls of cancelled tasks, and leave all other calls in Redis for the next relay."""
        if self._dropped:
            with suppress(*REDIS_ERRORS):
                await self._withdraw_cancelled(self._client())

    async def close(self) -> None:
        if self._redis is not None:
            await self._redis.aclose(close_connection_pool=True)

    async def _send(self, redis: ArqRedis, task: AnyTask, lease: Lease, call: CallId) -> None:
        call_data = {
            "id": lease.id,
            "fence": lease.fence,
            "attempt": lease.attempt,
            "args": lease.row["args"],
            "created_at": lease.created_at.isoformat(),
            "told_in": self._list,
            "is_current": True,  # the runner checks this field; older releases do not send it
        }
        # The call may have arrived although the command failed; the next check of all calls detects whether it was
        # lost.
        with suppress(*REDIS_ERRORS):
            async with redis_timeout():
                await redis.enqueue_job(task.name, dumps(call_data), _job_id=call)

    def _client(self) -> ArqRedis:
        """Return the Redis client, which connects when it sends its first command. The client is stored before it
        connects, so that ``close`` also closes its connection if the caller is cancelled while it connects.
        """
        if self._redis is None:
            self._redis = _limit_answers(self._make_client())
            self._redis.job_serializer, self._redis.job_deserializer = calls.encode_call, calls.decode_call
        return self._redis

    async def _close_idle(self) -> None:
        """Close idle connections to Redis. After an outage these connections may be dead, and the next command on a
        dead connection would wait until its timeout.
        """
        if self._redis is None:
            return
        pool: Any = self._redis.connection_pool
        for idle in [pool.get_available_connection() for _ in [*pool._available_connections]]:
            await idle.disconnect(nowait=True)
            await pool.release(idle)

    async def _receive(self, redis: ArqRedis) -> None:
        """Read the outcomes of the calls that were reported as ended. Once per LOST_AFTER, check all awaited calls
        instead, in case a report was lost.
        """
        is_all = self._clock.now() - self._looked_at > LOST_AFTER
        ids = list(self._waiting) if is_all else await self._read_reports(redis)
        answered = await self._outcomes(redis, ids)
        if is_all:
            self._looked_at = self._clock.now()
            self._ended.clear()
            pending = [id for id in ids if id not in answered]
            await self._return_lost(pending, redis)
            await self._withdraw_overdue([id for id in pending if id in self._waiting], redis)

    async def _read_reports(self, redis: ArqRedis) -> list[CallId]:
        reports = await cast("Awaitable[list[bytes] | None]", redis.lpop(self._list, MAX_OUTCOMES))
        self._ended.update(each.decode() for each in reports or ())
        ids = [id for id in self._ended if id in self._waiting]
        self._ended.difference_update(ids)
        return ids

    async def _outcomes(self, redis: ArqRedis, ids: Collection[CallId]) -> Collection[CallId]:
        answers = await calls.outcomes(redis, ids)
        answered = {
            id: calls.decode_result(loads(answer))
            for id, answer in zip(ids, answers, strict=True)
            if answer is not None
        }
        taken = {id: self._waiting[id] for id in answered if id in self._waiting}
        for sent in taken.values():
            sent.is_taken = True
        if taken:
            # Mark the outcome as taken first, so that the task's next attempt does not treat this call as in progress.
            await calls.mark_taken(redis, [(id, sent.lease) for id, sent in taken.items()])
        for id, sent in taken.items():
            sent.resolve(answered[id])
        return answered.keys()

    async def _return_lost(self, ids: list[CallId], redis: ArqRedis) -> None:
        """Return the tasks of lost calls to the queue. ARQ keeps a call in its queue until the call has run, so a call
        that has no outcome and is not in that queue is lost.
        """
        if not ids:
            return
        places = await redis.zmscore(default_queue_name, ids)
        gone = [id for id, place in zip(ids, places, strict=True) if place is None]
        answered = await self._outcomes(redis, gone)
        lost = {id: self._waiting[id].lease.id for id in gone if id not in answered and id in self._waiting}
        if lost:
            await calls.forget(redis, [(task, id) for id, task in lost.items()])
        for id in lost:
            self._resolve(id, Snooze(timedelta(0), REDIS_LOST()))

    async def _withdraw_overdue(self, ids: list[CallId], redis: ArqRedis) -> None:
        marks = await redis.mget([in_progress_key_prefix + id for id in ids]) if ids else []
        for id, mark in zip(ids, marks, strict=True):
            sent = self._waiting.get(id)
            if sent is not None and sent.is_overdue(mark is not None, self._clock.now()):
                await calls.withdraw(redis, [(sent.lease.id, id)])
                self._resolve(id, Failed(TIMED_OUT()))

    async def _withdraw_cancelled(self, redis: ArqRedis) -> None:
        """Of the calls that this relay no longer awaits, withdraw those whose tasks were cancelled. Another relay takes
        over the other calls.
        """
        if not self._dropped:
            return
        dropped = dict(self._dropped)
        try:
            wanted = await self._wanted(set(dropped.values()))
        except StoreUnavailable:
            return  # the next tick retries
        if unwanted := [(task, call) for call, task in dropped.items() if task not in wanted]:
            async with redis_timeout():
                await calls.withdraw(redis, unwanted)
        for call in dropped:
            self._dropped.pop(call, None)

    def _resolve(self, id: CallId, outcome: Outcome) -> None:
        if (sent := self._waiting.pop(id, None)) is not None:
            sent.resolve(outcome)


def _raise_lost_cancellation() -> None:
    """Raise the cancellation that ``asyncio.wait_for`` swallowed inside the Redis client. In Python 3.11, ``wait_for``
    swallows a cancellation that arrives just after the awaited command has ended.
    """
    if (task := asyncio.current_task()) is not None and task.cancelling():
        raise asyncio.CancelledError


def _limit_answers(redis: ArqRedis) -> ArqRedis:
    """Set a socket timeout for every reply from Redis. Without it, a cancelled call could wait indefinitely for the
    reply to its clean-up command.
    """
    pool: Any = redis.connection_pool
    pool.connection_kwargs["socket_timeout"] = calls.ANSWERS_WITHIN.total_seconds()
    return redis
