"""Access rules. Every route needs authorisation, except the few paths listed here.

A caller is the bearer of a token or a browser with a session that a token opened. In development a program on the same
machine needs no token, so that a plain ``curl`` works. Requests from pages of other sites are refused: Origin or
Sec-Fetch-Site reveals them, the Host header reveals DNS rebinding, and our forms contain a CSRF token.
"""

import ipaddress
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from batuta.access import EVERY_SCOPE, Scope, Session, Sessions, Token, proves, same, split_token
from batuta.config import EngineSettings
from batuta.web.context import ApiState, route_of, state_of
from batuta.web.problems import Problem

# Used by load balancers and by the sign-in page. An application may add routes, such as webhooks that verify their own
# secret.
OPEN = frozenset({"/health", "/health/ready", "/painel/entrar", "/painel/static/{name}"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SCOPE_KEY = "x-batuta-scope"
SESSION_COOKIE = "batuta_session"
PROOF_FIELD, PROOF_HEADER = "csrf", "x-csrf-token"
FORM = "application/x-www-form-urlencoded"
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_SAME_SITE = frozenset({"", "none", "same-origin"})
_PROXY_HEADERS = ("x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via")
_MOST_FIELDS = 50


@dataclass(frozen=True, slots=True)
class Caller:
    name: str
    scopes: frozenset[Scope]


ANYBODY = Caller("anybody", frozenset())
DEVELOPER = Caller("local", EVERY_SCOPE)


def needs(scope: Scope) -> dict[str, Any]:
    """Return the ``openapi_extra`` of a route that needs this scope instead of its method's default: ``@router.post(…,
    openapi_extra=needs(Scope.SEND))``.
    """
    return {SCOPE_KEY: scope.value}


def scope_of(route: object, method: str) -> Scope:
    """Return the scope that the route declares; otherwise ``read`` for safe methods and ``operate`` for the others."""
    declared = (getattr(route, "openapi_extra", None) or {}).get(SCOPE_KEY)
    if declared is not None:
        return Scope(declared)
    return Scope.READ if method in SAFE_METHODS else Scope.OPERATE


async def authorise(request: Request) -> Caller:
    """Identify the caller and check the scope. A dependency of every route."""
    state = state_of(request)
    if route_of(request.scope) in state.open_routes:
        return ANYBODY
    caller = await identify(request, state)
    require(caller, scope_of(request.scope.get("route"), request.method))
    request.state.caller = caller
    return caller


class AuthoriseFirst(APIRoute):
    """A route that checks the token before the body. By default the framework would read and validate the body first."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def authorise_first(request: Request) -> Response:
            await authorise(request)
            return await handle(request)

        return authorise_first


def require(caller: Caller, scope: Scope) -> None:
    """Raise a 403 problem unless the caller has the scope."""
    # Any scope includes ``read``.
    granted = caller.scopes | ({Scope.READ} if caller.scopes else frozenset())
    if scope not in granted:
        raise Problem(403, "forbidden", scope=scope.value)


async def identify(request: Request, state: ApiState) -> Caller:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and given:
        return (await bearer(given.strip(), state))[1]
    if (session := session_of(request)) is not None and (caller := await _holder(session, state)) is not None:
        await _refuse_foreign_pages(request, state, session)
        return caller
    if not state.settings.in_production and is_local(request):
        return DEVELOPER
    raise Problem(401, "unauthorised", headers={"WWW-Authenticate": 'Bearer realm="batuta"'})


async def bearer(given: str, state: ApiState) -> tuple[str, Caller]:
    """Check a bearer token. Return its id, in the form that a session stores, and the caller with the token's scopes."""
    master = state.settings.api_token
    if master is not None and same(master.get_secret_value(), given):
        return "API_TOKEN", Caller("API_TOKEN", EVERY_SCOPE)
    if parts := split_token(given):
        token = await state.work.tokens.find(parts[0])
        if token is not None and proves(token, parts[1]):
            return token.id, _caller(token)
    raise Problem(401, "wrong_token", headers={"WWW-Authenticate": 'Bearer realm="batuta", error="invalid_token"'})


def make_sessions(settings: EngineSettings) -> Sessions:
    """Return the sessions, signed with SECRET_KEY and API_TOKEN. A change of either key ends every session."""
    given = [each.get_secret_value() for each in (settings.secret_key, settings.api_token) if each is not None]
    return Sessions("\n".join(given) if given else secrets.token_hex(32))


def session_of(request: Request) -> Session | None:
    state = state_of(request)
    return state.sessions.find(request.cookies.get(SESSION_COOKIE, ""), now=state.work.clock.now())


async def _holder(session: Session, state: ApiState) -> Caller | None:
    """Return the caller who opened the session, with the token's current scopes. Return None if the token was revoked
    or deleted.
    """
    if session.holder == "API_TOKEN":
        return None if state.settings.api_token is None else Caller("API_TOKEN", EVERY_SCOPE)
    token = await state.work.tokens.find(session.holder)
    return None if token is None or token.revoked_at is not None else _caller(token)


def _caller(token: Token) -> Caller:
    return Caller(f"token:{token.name}", token.scopes)


async def _refuse_foreign_pages(request: Request, state: ApiState, session: Session) -> None:
    """Require the CSRF token on requests that change state, because browsers attach the session cookie to cross-site
    requests too.
    """
    proof = state.sessions.proof(session)
    request.state.proof = proof
    if request.method in SAFE_METHODS:
        return
    given = request.headers.get(PROOF_HEADER) or (await form_of(request)).get(PROOF_FIELD, "")
    if not is_own_page(request) or not same(proof, given):
        raise Problem(403, "foreign_page")


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form, or an empty mapping for any other content type."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        return {}
    try:
        text = (await request.body()).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:  # not UTF-8, or too many fields
        raise Problem(400, "unreadable_form") from None


def is_own_page(request: Request) -> bool:
    """Return whether the browser reports that one of our pages sent the request. Behind a proxy our host name is in
    X-Forwarded-Host.
    """
    headers = request.headers
    if (site := headers.get("sec-fetch-site")) is not None:
        return site in _SAME_SITE
    origin = headers.get("origin")
    return origin is None or _netloc(origin) in {headers.get("host"), headers.get("x-forwarded-host")} - {"", None}


def is_local(request: Request) -> bool:
    """Return whether the request comes from a program on this machine, uses a local host name, and was not sent by
    another site's page.
    """
    headers = request.headers
    if any(sign in headers for sign in _PROXY_HEADERS):
        return False
    origin = headers.get("origin", "")
    return (
        request.client is not None
        and _is_loopback(request.client.host)
        and _host(f"//{headers.get('host', '')}") in _LOCAL_HOSTS
        and (not origin or (_host(origin) in _LOCAL_HOSTS and _same_port(origin, headers.get("host", ""))))
        and headers.get("sec-fetch-site", "") in _SAME_SITE
    )


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _same_port(origin: str, host: str) -> bool:
    return _netloc(origin).rpartition(":")[2] == host.rpartition(":")[2]
