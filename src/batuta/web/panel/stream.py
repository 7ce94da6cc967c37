"""The stream of a page's changes (server-sent events), served at the page's own address."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from batuta.kernel.errors import StoreUnavailable
from batuta.web.auth import Caller, authorise
from batuta.web.context import state_of
from batuta.web.live import LiveViews, Reader, Render, Rendered, ViewKey
from batuta.web.panel.frame import REVEAL, caller_of, is_live
from batuta.web.problems import Problem, texts_for

EVENTS = "text/event-stream"
CHECK_EVERY = 20.0  # seconds between two checks of a reader's session
LONGEST_STREAM = 600.0  # maximum seconds of a stream, after which the browser connects again
# Maximum seconds of a stream on a server that another program runs, because that server does not announce its shutdown
# and waits for open streams.
LONGEST_FOREIGN_STREAM = 10.0
_PLACEHOLDER = secrets.token_hex(24)  # replaces a session's CSRF token in parts that all readers share
Page: TypeAlias = Callable[[Request], Awaitable[Response]]


def wants_events(request: Request) -> bool:
    return request.method == "GET" and request.headers.get("accept", "") == EVENTS


async def open_stream(request: Request, page: Page) -> Response:
    """Return a streaming response with all later changes to a page, or an empty response (204) if the page cannot be
    updated live. The caller must first check that the user may access the page.
    """
    state = state_of(request)
    views = state.live
    key, render = _view_of(request, page)
    is_known = bool(caller_of(request).scopes)
    is_followed = is_known and REVEAL not in request.query_params and not state.draining.is_set()
    reader = views.join(key, render) if is_followed else None
    if reader is None:
        # 204 stops the browser from reconnecting; the page reloads itself at intervals instead
        return Response(status_code=204)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(_follow(request, views, key, reader), media_type=EVENTS, headers=headers)


async def _follow(request: Request, views: LiveViews, key: ViewKey, reader: Reader) -> AsyncIterator[str]:
    state, loop = state_of(request), asyncio.get_running_loop()
    proof: str = getattr(request.state, "proof", None) or ""
    ends = loop.time() + (LONGEST_STREAM if state.is_served else LONGEST_FOREIGN_STREAM)
    checked = loop.time()
    draining = asyncio.ensure_future(state.draining.wait())
    draining.add_done_callback(lambda _: reader.end())
    try:
        yield "retry: 2000\n\n"
        while (left := ends - loop.time()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(CHECK_EVERY, left)):
                    await reader.changed.wait()
            # check the session here too, because the check after a pause never runs if changes keep arriving
            if reader.is_doubted or loop.time() - checked >= CHECK_EVERY:
                if not await _is_still_allowed(request):
                    return
                checked, reader.is_doubted = loop.time(), False
                yield ": \n\n"  # an empty comment, which shows proxies and the server that the stream is in use
            if parts := reader.take():
                yield f"data: {json.dumps(parts, ensure_ascii=False).replace(_PLACEHOLDER, proof)}\n\n"
            if reader.is_over:
                if reader.is_last:
                    yield "event: last\ndata:\n\n"
                return
    finally:
        draining.cancel()
        views.leave(key, reader)


async def _is_still_allowed(request: Request) -> bool:
    """Return whether the reader may still see the page. The reader's session may have ended, or its token may have been
    revoked.
    """
    try:
        await authorise(request)
    except Problem:
        return False
    except StoreUnavailable:
        return True
    return True


def _view_of(request: Request, page: Page) -> tuple[ViewKey, Render]:
    """Return the key of the view that a reader requests, and the function that renders the view for all its readers."""
    scopes, language = caller_of(request).scopes, texts_for(request).language
    has_session = bool(getattr(request.state, "proof", None))
    query = urlencode([each for each in request.query_params.multi_items() if each[0] != "lang"])
    key = ViewKey(request.url.path, query, scopes, language, has_session)
    shared = {
        **request.scope,
        "query_string": query.encode(),
        "headers": [(b"host", request.headers.get("host", "").encode()), (b"accept-language", language.encode())],
        "state": {
            "caller": Caller("readers", scopes),
            "proof": _PLACEHOLDER if has_session else None,
            "is_shared": True,
        },
    }
    work = state_of(request).work

    async def render() -> Rendered | None:
        asked = Request(dict(shared, state=dict(shared["state"])))
        try:
            with work.connections.reading_for_pages():
                shown = await page(asked)
        except Problem:
            return None
        if not isinstance(shown, HTMLResponse) or shown.status_code != 200:
            return None
        return Rendered(bytes(shown.body).decode(), is_live(asked))

    return key, render
