"""Receives calls to job endpoints. A call whose idempotency key is already known is not run again. Calls that do the
same work run one at a time. Every call has a deadline.

The receiver stores each call through ``JobCalls``. A repeated key therefore gets the first reply, and no two processes
run the same work at the same time.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeAlias, assert_never

from batuta.kernel.calls.usercode import Late, Raised, Returned, call_with_deadline, name_of
from batuta.kernel.clock import Clock
from batuta.kernel.events import Events, JobAnswered, JobCrashed
from batuta.kernel.ids import Ids
from batuta.kernel.leases import renew_until_cancelled
from batuta.kernel.reasons import define
from batuta.kernel.storage.json import Json, dumps
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import cancel_and_wait, insist
from batuta.queue.outcome import HANDLER_CRASHED, Failed, Outcome, TimedOut
from batuta.receive.endpoints import Endpoint, JobCall, outcome_word, reply_body, reply_status


@dataclass(frozen=True, slots=True)
class CallOpened:
    """Result of ``JobCalls.open``: the call is new, so this process must run and close it. ``at`` is when the call was
    opened, by the database's clock; later writes about the call pass this time as ``opened_at``.
    """

    at: datetime


@dataclass(frozen=True, slots=True)
class Answered:
    """Result of ``JobCalls.open``: an earlier call used the same idempotency key, and its reply is stored."""

    response_code: int
    response: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Busy:
    """Result of ``JobCalls.open``: the same work is already running. ``same_key`` is true if that work was started by a
    call with the same idempotency key.
    """

    same_key: bool = False


@dataclass(frozen=True, slots=True)
class KeyReused:
    """Result of ``JobCalls.open``: the caller used the same idempotency key for an earlier call with different
    parameters, which is an error.
    """


CallOpening: TypeAlias = CallOpened | Answered | Busy | KeyReused


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCall:
    key: str
    endpoint: str
    subject: str  # identifies the work that must not run twice at the same time
    fingerprint: str  # hash of endpoint and parameters, to detect a key that is reused with other parameters
    lease: timedelta  # if the process does not renew the call for this long, another process may run it again


class JobCalls(Protocol):
    async def open(self, call: NewCall) -> CallOpening: ...
    async def close(self, key: str, response_code: int, response: Mapping[str, Json], *, opened_at: datetime) -> None:
        """Store the reply. If another process has opened a call with the same key since ``opened_at``, store
        nothing.
        """

    async def renew(self, key: str, *, opened_at: datetime, lease: timedelta) -> None: ...

    async def forget(self, key: str, *, opened_at: datetime) -> None:
        """Delete an interrupted call, so that a request with the same key runs the work again."""


# Another process may run a call again if its lease was not renewed for this long.
CALL_LEASE = timedelta(seconds=15)
LONGEST_CALL = timedelta(hours=1)
DEADLINE_PASSED = define("deadline_passed", "the deadline had passed before the call arrived")
WRONG_ANSWER = define("wrong_answer", "the handler returned {type}, which is not an outcome")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: Mapping[str, Json]
    replayed: bool = False


Received: TypeAlias = Reply | Busy | KeyReused


class JobReceiver:
    def __init__(self, calls: JobCalls, clock: Clock, ids: Ids, events: Events) -> None:
        self._calls = calls
        self._clock = clock
        self._ids = ids
        self._events = events

    async def receive(
        self,
        endpoint: Endpoint,
        params: Mapping[str, str],
        *,
        key: str | None,
        deadline: datetime | None,
        by: str | None = None,
    ) -> Received:
        """Run a call and return its reply. ``key`` is the idempotency key; a call without a key is always treated as
        new. If ``deadline`` is not given, the endpoint's own timeout applies.
        """
        now = self._clock.now()
        call = JobCall(
            key=key or self._ids.new(),
            params=params,
            started_at=now,
            deadline=min(deadline or now + endpoint.timeout, now + LONGEST_CALL),
            by=by,
        )
        if call.deadline <= now:
            return self._reply(endpoint, TimedOut(DEADLINE_PASSED()), now)
        opening = await self._calls.open(_new_call(endpoint, call))
        match opening:
            case CallOpened(at=opened_at):
                return await self._run(endpoint, call, opened_at)
            case Answered(response_code=code, response=response):
                return Reply(code, response, replayed=True)
            case Busy() | KeyReused():
                return opening
            case _:
                assert_never(opening)

    async def _run(self, endpoint: Endpoint, call: JobCall, opened_at: datetime) -> Reply:
        renew = partial(self._calls.renew, call.key, opened_at=opened_at, lease=CALL_LEASE)
        renewing = asyncio.create_task(renew_until_cancelled(renew, CALL_LEASE, self._clock))
        try:
            outcome = await self._execute(endpoint, call)
            reply = self._reply(endpoint, outcome, call.started_at)
            close = partial(self._calls.close, call.key, reply.status, reply.body, opened_at=opened_at)
            await insist(close, self._clock)
        except BaseException:
            # The call was cancelled from outside, most likely by a shutdown. Release the work now instead of when the
            # lease expires.
            await self._calls.forget(call.key, opened_at=opened_at)
            raise
        finally:
            await cancel_and_wait(renewing)
        return reply

    async def _execute(self, endpoint: Endpoint, call: JobCall) -> Outcome:
        match await call_with_deadline(
            lambda: endpoint.handler(call), call.deadline, self._clock, f"job {endpoint.name}"
        ):
            case Returned(value=value):
                return value if isinstance(value, Outcome) else Failed(WRONG_ANSWER(type=type(value).__name__))
            case Late(error=error):
                return TimedOut(error)
            case Raised(error=crash):
                self._events.emit(JobCrashed(endpoint.name, crash))
                return Failed(HANDLER_CRASHED(error=name_of(crash)))

    def _reply(self, endpoint: Endpoint, outcome: Outcome, started_at: datetime) -> Reply:
        body = reply_body(outcome)
        reason = body.get("reason") or body.get("error")
        items = body["items_processed"]
        self._events.emit(
            JobAnswered(
                endpoint=endpoint.name,
                outcome=outcome_word(outcome, body),
                reason=str(reason) if reason else None,
                items=items if isinstance(items, int) else None,
                took=self._clock.now() - started_at,
            )
        )
        return Reply(reply_status(outcome), body)


def _new_call(endpoint: Endpoint, call: JobCall) -> NewCall:
    asked = dumps([endpoint.name, sorted(call.params.items())])
    return NewCall(
        key=call.key,
        endpoint=endpoint.name,
        subject=endpoint.subject(call.params),
        fingerprint=hashlib.sha256(asked.encode()).hexdigest(),
        lease=CALL_LEASE,
    )
