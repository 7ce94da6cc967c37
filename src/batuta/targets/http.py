"""Delivers a fire as an HTTP POST. Every outcome has its own reason, and no call takes longer than the deadline.

The execution's id is sent as ``Idempotency-Key``, so a delivery that is repeated after a crash takes effect only once.
The remaining time is sent as ``X-Batuta-Timeout`` in seconds, so that the endpoint stops when the scheduler stops
waiting, even if the clocks differ. ``X-Batuta-Deadline`` contains the same limit as an instant by the scheduler's
clock.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from batuta.dispatch.job import Run
from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded
from batuta.kernel.reasons import Reason, ReasonCode, read_reason
from batuta.kernel.trace import HEADER, onward
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import exponential, full_jitter, with_deadline
from batuta.runlog import reasons
from batuta.runlog.execution import Ending, Status

if TYPE_CHECKING:
    import httpx2

LARGEST_ANSWER = 1024 * 1024
STILL_RUNNING = "/problemas/still_running"
FIRST_REST, LONGEST_REST = timedelta(milliseconds=250), timedelta(seconds=5)
# Less than the 5 s after which uvicorn closes an idle connection. A request sent while the connection is being closed
# would be lost.
IDLE_SECONDS = 2.0
CONNECT_SECONDS = 5.0
# Statuses that may carry Retry-After and mean that the request had no effect.
LATER = frozenset({429, 503})
LONGEST_ASKED = timedelta(days=1)
AGREED = frozenset({"status", "items_processed", "reason", "reason_code", "reason_facts"})


@cache
def list_unsent_errors() -> "tuple[type[httpx2.TransportError], ...]":
    """Return the error classes that prove that the request was not sent. After such an error, a retry is safe."""
    import httpx2  # imported inside functions, because a command that only lists jobs makes no call

    return (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Mapping[str, Any]
    is_object: bool = True  # False if the body is not a JSON object
    too_long: bool = False
    lost: str | None = None  # name of the error that ended the connection before the response was complete
    retry_at: datetime | None = None  # instant from the Retry-After header


class HttpCaller:
    """The HTTP client for all targets in a process. It follows no redirects, ignores proxies from the environment, and
    limits the size of responses.
    """

    def __init__(self, clock: Clock, chance: Callable[[], float] = random.random) -> None:
        self.clock = clock
        self.chance = chance
        self._clients: dict[bool, httpx2.AsyncClient] = {}  # one client for encrypted and one for plain connections

    async def post(self, url: str, headers: Mapping[str, str]) -> Answer:
        async with self._client(url).stream("POST", url, headers=dict(headers)) as response:
            if _content_length(response.headers) > LARGEST_ANSWER:
                return Answer(response.status_code, {}, too_long=True)
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > LARGEST_ANSWER:
                    return Answer(response.status_code, {}, too_long=True)
            return replace(_answer(response.status_code, bytes(body)), retry_at=self._retry_at(response))

    async def send(self, method: str, url: str, body: bytes | None = None) -> int:
        """Send a request and return the response's status code. The response body is not read."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        async with self._client(url).stream(method, url, headers=headers, content=body) as response:
            return response.status_code

    async def close(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    def _retry_at(self, response: "httpx2.Response") -> datetime | None:
        header = response.headers.get("retry-after", "")
        return retry_at(header, self.clock.now()) if response.status_code in LATER else None

    def _client(self, url: str) -> "httpx2.AsyncClient":
        """Return the client for a URL. The client for encrypted connections is created on first use, because loading
        the certificates takes 30 ms and several megabytes.
        """
        is_encrypted = not url.lower().startswith("http:")
        if is_encrypted not in self._clients:
            import httpx2

            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=IDLE_SECONDS)
            # No timeout per read, because a slow response could reset it indefinitely. The deadline around the call
            # limits the time.
            timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
            self._clients[is_encrypted] = httpx2.AsyncClient(
                follow_redirects=False, trust_env=False, limits=limits, timeout=timeout, verify=is_encrypted
            )
        return self._clients[is_encrypted]


class HttpTarget:
    repeatable = True

    def __init__(self, url: str, caller: HttpCaller, token: str | None = None, *, any_success: bool = False) -> None:
        """Create the target. If ``any_success`` is true, every 2xx response is a success, even if its body is not a
        JSON object.
        """
        self._any_success = any_success
        self._url = url
        self._caller = caller
        self._token = token

    @property
    def address(self) -> str:
        parts = urlsplit(self._url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    async def deliver(self, run: Run) -> Ending:
        """Deliver the run. Retry if the request was not sent, if the endpoint is still working on this run, or if the
        endpoint's response contains Retry-After.
        """
        clock = self._caller.clock
        connect_by, deadline, tries = clock.now() + run.grace, clock.now() + run.timeout, 0
        # whether an earlier attempt may have sent the run; such a run must not be recorded as skipped
        was_sent = run.execution.attempt > 1
        while True:
            tries += 1
            rest = exponential(tries, FIRST_REST, LONGEST_REST)
            try:
                answer = await with_deadline(deadline, self._call(run, deadline), clock, run.execution.job)
            except DeadlineExceeded:
                return _ending_of_timeout()
            except list_unsent_errors() as error:
                if clock.now() + rest >= connect_by:
                    return _ending_of_refusal(error, tries, self._url)
                if not was_sent and (held := await run.why_not()) is not None:
                    return Ending(status=Status.SKIPPED, reason=reasons.hold_reason(held))
                # The time limit applies to the work and does not include the wait for a connection.
                deadline = clock.now() + rest + run.timeout
            else:
                if answer.retry_at is not None and answer.retry_at < connect_by:
                    # Add jitter, because other callers may have received the same instant.
                    rest = answer.retry_at - clock.now() + full_jitter(LONGEST_REST, self._caller.chance())
                    deadline = clock.now() + rest + run.timeout
                elif answer.body.get("type") != STILL_RUNNING:
                    return ending_of(answer, any_success=self._any_success)
                else:
                    was_sent = True
            await clock.sleep(rest.total_seconds())

    async def _call(self, run: Run, deadline: datetime) -> Answer:
        left = deadline - self._caller.clock.now()
        headers = {
            "Idempotency-Key": run.execution.id,
            "X-Batuta-Timeout": f"{max(left.total_seconds(), 0.001):.3f}",
            "X-Batuta-Deadline": deadline.isoformat(),
            HEADER: onward(),
        }
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        import httpx2

        try:
            return await self._caller.post(_add_query(self._url, run.params), headers)
        except list_unsent_errors():
            raise
        except httpx2.HTTPError as error:
            return Answer(0, {}, lost=type(error).__name__)


def retry_at(header: str, now: datetime) -> datetime | None:
    """Parse a ``Retry-After`` header, which contains seconds or a date, and return the instant that it denotes. Return
    None if it cannot be parsed.
    """
    if header.isdecimal():
        return now + min(timedelta(seconds=int(header[:9])), LONGEST_ASKED)
    from email.utils import parsedate_to_datetime

    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(now, min(at if at.tzinfo is not None else at.replace(tzinfo=UTC), now + LONGEST_ASKED))


def _content_length(headers: "httpx2.Headers") -> int:
    """Return the announced length of the response in bytes, or 0 if the header is missing."""
    header = headers.get("content-length", "")
    return int(header) if header.isdecimal() else 0


def ending_of(answer: Answer, *, any_success: bool = False) -> Ending:
    body, code = answer.body, answer.status
    if answer.lost is not None:
        return Ending(status=Status.ERROR, error=reasons.CONNECTION_LOST(error=answer.lost))
    if answer.too_long and not (any_success and 200 <= code < 300):
        return Ending(status=Status.ERROR, response_code=code, error=reasons.ANSWER_TOO_LONG())
    if code == 409:
        return Ending(status=Status.SKIPPED, response_code=code, reason=reasons.OVERLAP_BUSY())
    if code == 504:
        return _ending_of_timeout(code)
    if not 200 <= code < 300:
        error = _refusal(code, body)
        return Ending(status=Status.ERROR, response_code=code, error=error, retry_at=answer.retry_at)
    if not answer.is_object and not any_success:
        # For example, an HTML page from a proxy, which is not a success.
        return Ending(status=Status.ERROR, response_code=code, error=reasons.NO_JSON(status=code))
    return _ending_of_answer(code, body)


def _ending_of_answer(code: int, body: Mapping[str, Any]) -> Ending:
    """Return the outcome of a 2xx response. A response without a body means success, and so does a JSON object without
    a status, which comes from an endpoint outside Batuta.
    """
    items, reason = body.get("items_processed"), _reason(body)
    match body.get("status", "ok"):
        case "ok":
            return Ending(status=Status.SUCCESS, response_code=code, items=items, result=_details_to_keep(body))
        case "partial":
            reason = reasons.PARTIAL(why=reason)
            return Ending(
                status=Status.SUCCESS, response_code=code, items=items, reason=reason, result=_details_to_keep(body)
            )
        case "skipped":
            return Ending(status=Status.SKIPPED, response_code=code, reason=reason)
        case _:
            # An unknown status is not a success.
            return Ending(
                status=Status.ERROR,
                response_code=code,
                error=_add_words(reasons.ENDPOINT_ERROR, reasons.ENDPOINT_ERROR_SAID, body),
            )


def _ending_of_timeout(code: int | None = None) -> Ending:
    return Ending(status=Status.TIMEOUT, response_code=code, error=reasons.NO_ANSWER())


def _ending_of_refusal(error: Exception, tries: int, url: str) -> Ending:
    parts = urlsplit(url)
    where = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    return Ending(status=Status.ERROR, error=reasons.REFUSED(where=where, count=tries, error=type(error).__name__))


def _refusal(code: int, body: Mapping[str, Any]) -> Reason:
    if code == 429:
        return _add_words(reasons.TOO_MANY_REQUESTS, reasons.TOO_MANY_REQUESTS_SAID, body)
    return _add_words(reasons.HTTP_STATUS, reasons.HTTP_STATUS_SAID, body, status=code)


def _reason(body: Mapping[str, Any]) -> str:
    """Return the reason that the endpoint's response gives, with its code and facts if the response contains them."""
    said = body.get("reason")
    if not said or not isinstance(said, str):
        return reasons.NO_REASON()
    return read_reason(said, body.get("reason_code"), body.get("reason_facts"))


def _add_words(plain: ReasonCode, telling: ReasonCode, body: Mapping[str, Any], **facts: object) -> Reason:
    """Return a reason that includes the endpoint's own error text. If that text is not a string but a list of
    validation errors, it is omitted, because it would repeat values from the request.
    """
    name = next((name for name in ("error", "detail", "title") if body.get(name)), "error")
    said = body.get(name)
    if not isinstance(said, str):
        return plain(**facts)
    return telling(**facts, said=read_reason(said, body.get(f"{name}_code"), body.get(f"{name}_facts")))


def _details_to_keep(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the response's additional fields, which the protocol does not define. Return None if there are none."""
    return {name: value for name, value in body.items() if name not in AGREED} or None


def _answer(status: int, body: bytes) -> Answer:
    if not body.strip():
        return Answer(status, {})
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):  # invalid JSON or UTF-8, a number out of range, or nesting that is too deep
        found = None
    return Answer(status, found) if isinstance(found, dict) else Answer(status, {}, is_object=False)


def _add_query(url: str, params: Mapping[str, str]) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(params)}" if params else url
