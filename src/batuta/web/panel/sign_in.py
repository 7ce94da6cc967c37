"""Browser sign-in: a page with a form for the token, a session in an HttpOnly cookie, and sign-out."""

import re
import secrets
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from batuta.access import SESSION_LENGTH
from batuta.web.auth import bearer, is_own_page, refuse_above_limit, session_cookie, session_of
from batuta.web.clients import SIGN_IN_COST
from batuta.web.context import base_of, state_of
from batuta.web.forms import read_form
from batuta.web.pages import page
from batuta.web.problems import Problem

# Allow only paths of this application, because a link with the address of another site could redirect the browser to
# that site after the sign-in.
_OWN_PATH = re.compile(r"(?:/[\w./-]*)?(?:\?[\w=&.%+:~-]*)?", re.ASCII)


async def show_sign_in(request: Request) -> HTMLResponse:
    return _page(request, to=own_address(request.query_params.get("para", ""), base_of(request)))


async def sign_in(request: Request) -> Response:
    state = state_of(request)
    if not is_own_page(request):
        raise Problem(403, "foreign_page")
    form = await read_form(request)
    to = own_address(form.get("para"), base_of(request))
    given = form.get("token").strip()
    refuse_above_limit(request, given)
    try:
        holder, caller = await bearer(given, request)
    except Problem as refused:
        if refused.status != 401:
            raise
        request.state.refusal_cost = SIGN_IN_COST
        return _page(request, to=to, refused=True, status=refused.status)
    request.state.caller = caller
    await note_session(request, "begin")
    note = state.sessions.begin(holder, now=state.work.clock.now(), chance=secrets.token_hex(16))
    response = RedirectResponse(to, 303)
    response.set_cookie(
        session_cookie(state.settings),
        note,
        max_age=int(SESSION_LENGTH.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=state.settings.has_https,
    )
    return response


async def sign_out(request: Request) -> Response:
    state = state_of(request)
    if (session := await session_of(request)) is not None:
        await note_session(request, "end")
        await state.work.tokens.end_session(session.chance, until=session.expires_at)
        state.live.doubt()
    response = RedirectResponse(f"{base_of(request)}/entrar", 303)
    cookie, secure = session_cookie(state.settings), state.settings.has_https
    response.delete_cookie(cookie, httponly=True, samesite="strict", secure=secure)
    return response


async def note_session(request: Request, action: str) -> None:
    state = state_of(request)
    actor, client = str(request.state.caller.name), state.clients.address(request.scope)
    await state.work.access.note(actor=actor, action=f"session.{action}", subject="painel", client=client)


def redirect_to_sign_in(request: Request) -> RedirectResponse:
    """Redirect a page request to the sign-in page, which returns the user to the requested page after sign-in."""
    asked = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    to = own_address(asked, base_of(request)) if request.method == "GET" else base_of(request)
    return RedirectResponse(f"{base_of(request)}/entrar?{urlencode({'para': to})}", 303)


def own_address(address: str, base: str) -> str:
    """Return the address if it belongs to the dashboard or to the API reference (``/docs``), otherwise ``base``, the
    dashboard's first page.
    """
    below = next((address.removeprefix(each) for each in (base, "/docs") if address.startswith(each)), None)
    is_ours = below is not None and _OWN_PATH.fullmatch(below) and "//" not in address and ".." not in address
    return address if is_ours else base


def _page(request: Request, *, to: str, refused: bool = False, status: int = 200) -> HTMLResponse:
    values = {"service": state_of(request).service, "to": to, "refused": refused}
    return page(request, "panel/sign_in.html.j2", values, status=status)
