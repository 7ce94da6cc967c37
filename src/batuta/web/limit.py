"""The limit of refused requests per client: decides which requests from a client above the limit are refused, and
builds the responses to them.

The engine's own server refuses such a request as soon as it has the raw bytes of the request's head. Parsing the
request, finding its route and checking its token would cost more processor time than all other work for the refusal.
"""

import json
import re
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache
from secrets import token_hex
from urllib.parse import unquote

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Scope

from batuta.kernel.events import RequestAnswered
from batuta.kernel.masking import mask
from batuta.texts import Language
from batuta.web.auth import session_cookie
from batuta.web.clients import bearer_of
from batuta.web.context import UNMATCHED, ApiState
from batuta.web.headers import security_headers
from batuta.web.problems import MEDIA_TYPE, language_of

STATUS, SLUG = 429, "too_many_refusals"
END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
LARGEST_HEAD = 64 * 1024  # bytes; the server refuses a longer head anyway
_LINE = re.compile(rb"\r?\n")
_LONGEST_PATH = 200


class RefusalLimit:
    def __init__(self, state: ApiState) -> None:
        self._state = state
        self._open = [compile_path(each)[0] for each in state.open_routes]
        self._cookie = session_cookie(state.settings)
        self._rendered = lru_cache(maxsize=256)(self._render)
        self._security = _lines(security_headers(https=state.settings.has_https).items())

    @property
    def is_active(self) -> bool:
        """Whether any client is currently above the limit of refused requests."""
        return self._state.clients.is_limiting

    def wait(self, connection: HTTPConnection) -> int:
        """Return how many seconds the client must wait before this request is served; 0 means that it may be served
        now.

        A request to an open route is always served, and so is a request with a valid credential.
        """
        if not self.is_active or self._is_open(connection.scope):
            return 0
        clients = self._state.clients
        credential = bearer_of(connection.headers) or connection.cookies.get(self._cookie, "")
        if not credential and self._state.settings.in_development:
            return 0  # programs on this machine need no credential
        return clients.wait(clients.address(connection.scope), credential)

    def answer(self, connection: HTTPConnection, request_id: str, seconds: int) -> Response:
        media_type, body = self._body(connection, request_id, seconds)
        return Response(body, STATUS, {"Retry-After": str(seconds)}, media_type)

    def refuse(self, head: bytes, client: tuple[str, int] | None) -> bytes | None:
        """If the client must wait, count a refusal and return the complete response, including the status line.
        Otherwise return None.
        """
        connection = HTTPConnection(_scope(head, client))
        if not (seconds := self.wait(connection)):
            return None
        method, request_id = connection.scope["method"], token_hex(16)
        clients, events = self._state.clients, self._state.work.events
        clients.refuse(clients.address(connection.scope), STATUS)
        events.emit(RequestAnswered(method, UNMATCHED, STATUS, timedelta(), request_id))
        media_type, body = self._body(connection, request_id, seconds)
        own = (
            ("Content-Type", media_type),
            ("Content-Length", str(len(body))),
            ("Retry-After", str(seconds)),
            ("X-Request-Id", request_id),
            ("Connection", "close"),
        )
        head = b"HTTP/1.1 429 Too Many Requests\r\n" + _lines(own) + self._security + b"\r\n"
        return head if method == "HEAD" else head + body

    def _is_open(self, scope: Scope) -> bool:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        return any(each.match(path) for each in self._open)

    def _body(self, connection: HTTPConnection, request_id: str, seconds: int) -> tuple[str, bytes]:
        """Return the media type and the body of the response to a refused request: plain text for a browser, otherwise
        a problem document.
        """
        language = language_of(connection, self._state.settings.batuta_lang)
        title, detail, rest = self._rendered(language, seconds, connection.scope["path"][:_LONGEST_PATH])
        if "text/html" in connection.headers.get("accept", ""):
            return "text/plain; charset=utf-8", f"{title}\n\n{detail}\n".encode()
        return MEDIA_TYPE, f'{{"request_id": "{request_id}", {rest}'.encode()

    def _render(self, language: Language, seconds: int, path: str) -> tuple[str, str, str]:
        """Return three parts of the response to a refused request: the title, the detail, and the problem document as
        JSON without its opening brace. ``_body`` inserts the request id at the beginning of this document.
        """
        texts = self._state.texts[language]
        title, detail = texts(f"problem.{SLUG}.title"), texts(f"problem.{SLUG}.detail", seconds=seconds)
        problem = {
            "type": f"/problemas/{SLUG}",
            "title": title,
            "status": STATUS,
            "detail": detail,
            "instance": mask(path),
        }
        return title, detail, json.dumps(problem, ensure_ascii=False)[1:]


def _scope(head: bytes, client: tuple[str, int] | None) -> Scope:
    """Parse a request's head into the fields of an ASGI scope that ``RefusalLimit`` needs. A malformed head results in
    a scope without a credential.
    """
    first, *lines = _LINE.split(head)
    method, _, rest = first.decode("latin-1").partition(" ")
    path, _, query = rest.partition(" ")[0].partition("?")
    headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    return {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "query_string": query.encode("latin-1"),
        "headers": headers,
        "client": client,
    }


def _lines(headers: Iterable[tuple[str, str]]) -> bytes:
    return "".join(f"{name.lower()}: {value}\r\n" for name, value in headers).encode()
