"""ASGI middleware for every request: it adds the request id, the body limit and the security headers, and emits one
event at the end.
"""

import re
from collections.abc import Callable
from datetime import timedelta

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded
from batuta.kernel.events import Events, RequestAnswered, RequestCrashed
from batuta.kernel.ids import Ids
from batuta.kernel.masking import mask
from batuta.kernel.trace import HEADER, bind, follow
from batuta.kernel.waiting import with_timeout
from batuta.web.clients import REFUSED, Clients
from batuta.web.context import request_id_of, route_of
from batuta.web.headers import security_headers
from batuta.web.limit import RefusalLimit
from batuta.web.problems import Problem, answer

BODY_WITHIN = timedelta(seconds=30)
_USABLE_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestAccounting:
    """Assigns the request id, turns an unexpected error into a problem document, and emits an event when the request
    has ended.
    """

    def __init__(
        self,
        app: ASGIApp,
        clock: Clock,
        ids: Ids,
        events: Events,
        clients: Clients,
        limit: RefusalLimit,
        *,
        https: bool,
    ) -> None:
        self._app = app
        self._limit = limit
        self._headers = security_headers(https=https)
        self._clock = clock
        self._ids = ids
        self._events = events
        self._clients = clients

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["request_id"] = self._request_id(scope)
        bind(follow(Headers(scope=scope).get(HEADER)))
        started = self._clock.monotonic()
        status: int | None = None
        ended: float | None = None

        async def sending(message: Message) -> None:
            nonlocal status, ended
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/event-stream"):
                    # the measured time of the request ends here, although its stream may stay open for a long time
                    ended = self._clock.monotonic()
                headers["X-Request-Id"] = request_id_of(scope)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            app = self._refusal(scope) or self._app
            await app(scope, receive, sending)
        except Exception as error:  # noqa: BLE001 - any error of a route becomes a response and one log line
            self._events.emit(RequestCrashed(scope["method"], route_of(scope), error, request_id_of(scope)))
            if status is None:
                await answer(Request(scope), 500, "crashed")(scope, receive, sending)
        finally:
            took = timedelta(seconds=(ended or self._clock.monotonic()) - started)
            caller = getattr(scope["state"].get("caller"), "name", None)
            if status is not None and (status in REFUSED or (caller is None and 400 <= status < 500)):
                cost = scope["state"].get("refusal_cost", 1 if status == 401 else 0)
                self._clients.refuse(self._clients.address(scope), status, cost=cost)
            self._events.emit(
                RequestAnswered(scope["method"], route_of(scope), status or 500, took, request_id_of(scope), caller)
            )

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the response to a request that must be refused before routing, or None.

        This method refuses a client that has exceeded its limit of refused requests, unless the server has already
        refused the request. A request with both Content-Length and Transfer-Encoding is refused too: a proxy and this
        server might see different ends of the body, so the body could hide a second request.
        """
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            return answer(Request(scope), 400, "ambiguous_length", headers={"Connection": "close"})
        if seconds := self._limit.wait(request := Request(scope)):
            return self._limit.answer(request, request_id_of(scope), seconds)
        return None

    def _request_id(self, scope: Scope) -> str:
        """Return the caller's request id if it has the form of an id, so that the caller's log and the engine's log
        contain the same id. Otherwise return a new id.
        """
        given = Headers(scope=scope).get("x-request-id", "")
        # A phone number could also match the pattern for ids. So an id that masking would change is not accepted.
        return given if _USABLE_ID.fullmatch(given) and mask(given) == given else self._ids.new()


class BodyLimit:
    """Refuses a body longer than ``limit(path)``. A body whose Content-Length exceeds the limit is refused immediately,
    and a body without Content-Length as soon as it exceeds the limit.

    A body that has not arrived within BODY_WITHIN is refused too, so that a slow sender cannot keep a request open.
    """

    def __init__(self, app: ASGIApp, limit: Callable[[str], int], clock: Clock) -> None:
        self._app = app
        self._limit = limit
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive, self._limit(scope["path"]), self._clock)
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdigit() and int(announced) > body.limit:
            await body.too_large()(scope, receive, send)
            return
        is_refused = False

        async def sending(message: Message) -> None:
            # The framework responds to the interrupted body with its own error; send the refusal instead of that error.
            nonlocal is_refused
            if body.refusal is None:
                await send(message)
            elif not is_refused:
                is_refused = True
                await body.refusal(scope, receive, send)

        await self._app(scope, body.receive, sending)


class _Body:
    """A request's body while it is arriving. ``refusal`` is the response to send if the body is refused."""

    def __init__(self, scope: Scope, receive: Receive, limit: int, clock: Clock) -> None:
        self.limit = limit
        self.refusal: Response | None = None
        self._request = Request(scope)
        self._receive = receive
        self._clock = clock
        self._ends = clock.monotonic() + BODY_WITHIN.total_seconds()
        self._received = 0
        self._is_whole = False

    async def receive(self) -> Message:
        message = await (self._receive() if self._is_whole else self._receive_in_time())
        self._is_whole = not message.get("more_body", False)
        self._received += len(message.get("body", b""))
        if self._received > self.limit:
            self.refusal = self.too_large()
            raise Problem(413, "too_large", limit=self.limit)
        return message

    async def _receive_in_time(self) -> Message:
        left = timedelta(seconds=max(0.0, self._ends - self._clock.monotonic()))
        try:
            return await with_timeout(left, self._receive(), self._clock, "the body of a request")
        except DeadlineExceeded:
            self.refusal = answer(self._request, 408, "too_slow", headers={"Connection": "close"})
            raise Problem(408, "too_slow") from None

    def too_large(self) -> Response:
        return answer(self._request, 413, "too_large", facts={"limit": self.limit})
