"""Sign-in of a browser: a page with a form for the token, a session in an HttpOnly cookie, and sign-out."""

import re
import secrets
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from batuta.access import SESSION_LENGTH
from batuta.web.auth import bearer, form_of, is_own_page, session_cookie, session_of
from batuta.web.clients import SIGN_IN_COST
from batuta.web.context import state_of
from batuta.web.pages import page
from batuta.web.problems import Problem

SIGN_IN, HOME = "/painel/entrar", "/painel"
# Return only to our own pages: an address of another site would send the browser there after sign-in.
_OWN_PATH = re.compile(r"/(?:painel|docs)(?:/[\w./-]*)?(?:\?[\w=&.%+:-]*)?", re.ASCII)


async def show_sign_in(request: Request) -> HTMLResponse:
    return _page(request, to=own_address(request.query_params.get("para", "")))


async def sign_in(request: Request) -> Response:
    state = state_of(request)
    if not is_own_page(request):
        raise Problem(403, "foreign_page")
    form = await form_of(request)
    to = own_address(form.get("para", ""))
    try:
        holder, caller = await bearer(form.get("token", "").strip(), request)
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
    response = RedirectResponse(SIGN_IN, 303)
    cookie, secure = session_cookie(state.settings), state.settings.has_https
    response.delete_cookie(cookie, httponly=True, samesite="strict", secure=secure)
    return response


async def note_session(request: Request, action: str) -> None:
    state = state_of(request)
    actor, client = str(request.state.caller.name), state.clients.address(request.scope)
    await state.work.access.note(actor=actor, action=f"session.{action}", subject="painel", client=client)


def redirect_to_sign_in(request: Request) -> RedirectResponse:
    """Redirect a request for a page to the sign-in page, which redirects back after the sign-in."""
    asked = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    to = own_address(asked) if request.method == "GET" else HOME
    return RedirectResponse(f"{SIGN_IN}?{urlencode({'para': to})}", 303)


def own_address(address: str) -> str:
    return address if _OWN_PATH.fullmatch(address) and "//" not in address and ".." not in address else HOME


def _page(request: Request, *, to: str, refused: bool = False, status: int = 200) -> HTMLResponse:
    values = {"service": state_of(request).service, "to": to, "refused": refused}
    return page(request, "panel/sign_in.html.j2", values, status=status)
