"""Around every request, as plain ASGI: an id, a limit to its size, headers that keep a browser honest, and one fact at its end."""

import re
from collections.abc import Callable
from datetime import timedelta

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from batuta.kernel.clock import Clock
from batuta.kernel.events import Events, RequestAnswered, RequestCrashed
from batuta.kernel.ids import Ids
from batuta.kernel.masking import mask
from batuta.kernel.trace import HEADER, bind, follow
from batuta.web.context import request_id_of, route_of
from batuta.web.problems import Problem, answer

_USABLE_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Accounted:
    """Gives the request its id, turns a crash into a problem, and announces how it was answered."""

    def __init__(self, app: ASGIApp, clock: Clock, ids: Ids, events: Events) -> None:
        self._app = app
        self._clock = clock
        self._ids = ids
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["request_id"] = self._request_id(scope)
        bind(follow(Headers(scope=scope).get(HEADER)))
        started = self._clock.monotonic()
        status: int | None = None

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(MutableHeaders(scope=message), request_id_of(scope))
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:  # noqa: BLE001 - whatever a route meets, its caller is answered and the log told, once
            self._events.emit(RequestCrashed(scope["method"], route_of(scope), error, request_id_of(scope)))
            if status is None:
                await answer(Request(scope), 500, "crashed")(scope, receive, sending)
        finally:
            took = timedelta(seconds=self._clock.monotonic() - started)
            told = RequestAnswered(scope["method"], route_of(scope), status or 500, took, request_id_of(scope))
            self._events.emit(told)

    def _request_id(self, scope: Scope) -> str:
        """The caller's own, if it is harmless, so that his log and ours can be laid side by side."""
        given = _harmless(Headers(scope=scope).get("x-request-id", ""))
        return given if _USABLE_ID.fullmatch(given) else self._ids.new()


def _harmless(id: str) -> str:
    """A phone number has the form of an id as well."""
    return id if mask(id) == id else ""


def _add_headers(headers: MutableHeaders, request_id: str) -> None:
    headers["X-Request-Id"] = request_id
    for name, value in SECURITY_HEADERS.items():
        headers.setdefault(name, value)


class BodyLimit:
    """Refuses a body longer than ``limit(path)``: by its announced length at once, otherwise as soon as it has grown too long."""

    def __init__(self, app: ASGIApp, limit: Callable[[str], int]) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope["path"])
        refusal = answer(Request(scope), 413, "too_large", facts={"limit": limit})
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdigit() and int(announced) > limit:
            await refusal(scope, receive, send)
            return
        received = 0
        refused = False

        async def counting() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise Problem(413, "too_large", limit=limit)
            return message

        async def sending(message: Message) -> None:
            # Whatever a framework makes of the interrupted body, the caller hears why.
            nonlocal refused
            if received <= limit:
                await send(message)
            elif not refused:
                refused = True
                await refusal(scope, receive, send)

        await self._app(scope, counting, sending)
