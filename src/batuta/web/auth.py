"""Access rules. Every route requires authorisation, except the few open paths (``OPEN``).

A caller is the bearer of a token, or a browser with a session that was opened with a token. In development a program on
the same machine needs no token, so that a plain ``curl`` works. Requests from other sites' pages are refused. The
Origin and Sec-Fetch-Site headers reveal such requests, the Host header reveals DNS rebinding, and the dashboard's forms
contain a CSRF token.
"""

import secrets
from collections.abc import Callable, Coroutine, MutableMapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.routing import Match, compile_path

from batuta.access import EVERY_SCOPE, Scope, Session, Sessions, Token, includes, proves, same, split_token
from batuta.config import EngineSettings, is_loopback
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.web.clients import bearer_of
from batuta.web.context import ApiState, route_of, state_of
from batuta.web.forms import read_form
from batuta.web.problems import Problem, refuse_unwritable

# Paths that load balancers use without a token. The sign-in page and its files are open too. An application may add
# routes, such as webhooks that verify their own secret.
OPEN = frozenset({"/health", "/health/ready"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SCOPE_KEY = "x-batuta-scope"
# A browser accepts the prefix __Host- only on a Secure cookie, which no other host and no other path can set.
SESSION_COOKIE, SECURE_SESSION_COOKIE = "batuta_session", "__Host-batuta_session"
PROOF_FIELD, PROOF_HEADER = "csrf", "x-csrf-token"
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_SAME_SITE = frozenset({"", "none", "same-origin"})
_PROXY_HEADERS = ("x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via")


@dataclass(frozen=True, slots=True)
class Caller:
    name: str
    scopes: frozenset[Scope]


ANYBODY = Caller("anybody", frozenset())
DEVELOPER = Caller("local", EVERY_SCOPE)


def needs(scope: Scope) -> dict[str, Any]:
    """Return the argument ``openapi_extra`` for a route that requires ``scope`` instead of the default scope of its
    HTTP method: ``@router.post(…, openapi_extra=needs(Scope.SEND))``.
    """
    return {SCOPE_KEY: scope.value}


def scope_of(route: object, method: str) -> Scope:
    """Return the scope that the route declares. Without a declaration, safe methods need ``read`` and all others
    ``operate``.
    """
    declared = (getattr(route, "openapi_extra", None) or {}).get(SCOPE_KEY)
    if declared is not None:
        return Scope(declared)
    return Scope.READ if method in SAFE_METHODS else Scope.OPERATE


async def authorise(request: Request) -> Caller:
    """Identify the caller and check that it has the required scope. Every route calls this function."""
    state = state_of(request)
    if route_of(request.scope) in state.open_routes:
        return ANYBODY
    request.state.caller = caller = await identify(request, state)
    require(caller, scope_of(request.scope.get("route"), request.method))
    return caller


class AuthoriseFirst(APIRoute):
    """A route that checks the token before it reads the body. By default the framework would read and validate the body
    first.

    The route object itself runs the checks that apply to every request. So ``create_api`` can add the object to the
    application unchanged. If the application added these checks, the framework would build a second object for the
    route. The route's parameters are analysed at its first request, because analysing all routes at once would delay
    every start by half a second.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self._analyse: Callable[[], None] | None = partial(super().__init__, path, endpoint, **options)
        # The attributes by which the framework matches a request to the route.
        self.path, self.endpoint = path, endpoint
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.methods = {method.upper() for method in options.get("methods") or ("GET",)}
        self.name = options.get("name") or endpoint.__name__
        self.include_in_schema = options.get("include_in_schema", True)
        self._beginning = path.partition("{")[0]

    def matches(self, scope: MutableMapping[str, Any]) -> tuple[Match, MutableMapping[str, Any]]:
        """Return whether the route matches the request: fully, partially or not at all. A path that does not start with
        the fixed beginning of the route's path is rejected before the route's regular expression runs. This saves time,
        because the framework tries the routes one after another, and an application may have a hundred routes.
        """
        if not scope.get("root_path") and not scope["path"].startswith(self._beginning):
            return Match.NONE, {}
        return super().matches(scope)

    def __getattr__(self, name: str) -> Any:
        """Analyse the route's parameters on the first access to an attribute that is set only by this analysis."""
        if (analyse := vars(self).pop("_analyse", None)) is None:
            raise AttributeError(name=name, obj=self)
        analyse()
        return getattr(self, name)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def authorise_first(request: Request) -> Response:
            await authorise(request)
            await refuse_unwritable(request)
            return await handle(request)

        return authorise_first


def require(caller: Caller, scope: Scope) -> None:
    """Raise a 403 problem unless the caller has the scope."""
    if not includes(caller.scopes, scope):
        raise Problem(403, "forbidden", scope=scope.value)


def refuse_above_limit(request: Request, credential: str = "") -> None:
    """Raise a 429 problem if the client is above its limit of refused requests, unless the credential is valid.

    A route that checks its own secret, such as a webhook, calls this function when the secret is wrong. The route
    accepts the right secret even above the limit, because the legitimate sender may share an address with an attacker.
    """
    clients = state_of(request).clients
    if seconds := clients.wait(clients.address(request.scope), credential):
        raise Problem(429, "too_many_refusals", headers={"Retry-After": str(seconds)}, seconds=seconds)


def sees_personal_data(request: Request) -> bool:
    """Return whether the caller has the scope ``pii``, which permits personal data."""
    caller: Caller = request.state.caller
    return includes(caller.scopes, Scope.PII)


async def disclose(request: Request, count: int, *, unmasked: bool = False) -> bool:
    """Return whether the caller may see the personal data in ``count`` records, and record the access.

    ``unmasked`` requests values that are normally masked even for callers with the scope pii; a caller without this
    scope gets a 403 problem.
    """
    if unmasked:
        require(request.state.caller, Scope.PII)
    if not sees_personal_data(request):
        return False
    if count:
        await note_access(request, "unmask" if unmasked else "read", count=count)
    return True


async def note_access(request: Request, action: str, **facts: Json) -> None:
    """Write an audit entry with the caller, the route's operation, the client's address, and ``facts``.

    If the page is being rendered once for all its readers, raise a 403 problem, because the entry could not name the
    caller.
    """
    if getattr(request.state, "is_shared", False):
        raise Problem(403, "forbidden", scope=Scope.PII.value)
    request.state.is_recorded = True
    state = state_of(request)
    subject = str(getattr(request.scope.get("route"), "operation_id", None) or route_of(request.scope))
    client = state.clients.address(request.scope)
    actor = str(request.state.caller.name)
    await state.work.access.note(actor=actor, action=f"access.{action}", subject=subject, client=client, **facts)


async def identify(request: Request, state: ApiState) -> Caller:
    if given := bearer_of(request.headers):
        return (await bearer(given, request))[1]
    note = request.cookies.get(session_cookie(state.settings), "")
    if (session := await session_of(request)) is not None and (caller := await _holder(session, request)) is not None:
        await _refuse_foreign_pages(request, state, session)
        state.clients.accept(note)
        return caller
    if state.settings.in_development and is_local(request):
        return DEVELOPER
    state.clients.forget(note)
    raise Problem(401, "unauthorised", headers={"WWW-Authenticate": 'Bearer realm="batuta"'})


async def bearer(given: str, request: Request) -> tuple[str, Caller]:
    """Check a bearer token. Return two values: the token's id, in the form that sessions store, and the caller, who has
    the token's scopes.
    """
    state = state_of(request)
    master = state.settings.api_token
    if master is not None and same(master.get_secret_value(), given):
        state.clients.accept(given)
        return "API_TOKEN", Caller("API_TOKEN", EVERY_SCOPE)
    if parts := split_token(given):
        token, now = await state.work.tokens.find(parts[0]), state.work.clock.now()
        if proves(token, parts[1], now=now) and token is not None:
            _refuse_other_networks(token, request)
            await state.work.tokens.note_use(token, now=now)
            state.clients.accept(given)
            return token.id, _caller(token)
    state.clients.forget(given)
    raise Problem(401, "wrong_token", headers={"WWW-Authenticate": 'Bearer realm="batuta", error="invalid_token"'})


def make_sessions(settings: EngineSettings) -> Sessions:
    """Return the object that signs sessions with SECRET_KEY and API_TOKEN. If either of them changes, every session
    ends.

    Without SECRET_KEY the signing key is random. API_TOKEN alone is not used as the key, because anyone with a cookie
    could then guess that token offline.
    """
    if settings.secret_key is None:
        return Sessions(secrets.token_hex(32))
    given = [each.get_secret_value() for each in (settings.secret_key, settings.api_token) if each is not None]
    return Sessions("\n".join(given))


def session_cookie(settings: EngineSettings) -> str:
    return SECURE_SESSION_COOKIE if settings.has_https else SESSION_COOKIE


async def session_of(request: Request) -> Session | None:
    """Return the request's session. Return None if the request has no valid session, or if the session has expired or
    was signed out.
    """
    state = state_of(request)
    note = request.cookies.get(session_cookie(state.settings), "")
    session = state.sessions.find(note, now=state.work.clock.now())
    if session is None or await state.work.tokens.is_ended(session.chance):
        return None
    return session


async def _holder(session: Session, request: Request) -> Caller | None:
    """Return the caller who opened the session, with the token's current scopes. Return None if the token was revoked
    or deleted, or has expired.
    """
    state = state_of(request)
    if session.holder == "API_TOKEN":
        return None if state.settings.api_token is None else Caller("API_TOKEN", EVERY_SCOPE)
    token = await state.work.tokens.find(session.holder)
    if token is None or not token.is_valid(state.work.clock.now()):
        return None
    _refuse_other_networks(token, request)
    return _caller(token)


def _refuse_other_networks(token: Token, request: Request) -> None:
    if not token.serves(state_of(request).clients.address(request.scope)):
        raise Problem(403, "foreign_network")


def _caller(token: Token) -> Caller:
    return Caller(f"token {token.name}", token.scopes)


async def _refuse_foreign_pages(request: Request, state: ApiState, session: Session) -> None:
    """Refuse requests that other sites' pages trigger. Requests that change state need the CSRF token, because browsers
    attach the session cookie to requests from other sites too. A link on another site may open a page. A read by
    another site's script or image is refused: although the browser would hide the response from that site, the engine
    would record an access that the user did not intend.
    """
    proof = state.sessions.proof(session)
    request.state.proof = proof
    if request.method in SAFE_METHODS:
        if request.headers.get("sec-fetch-mode", "navigate") != "navigate" and not is_own_page(request):
            raise Problem(403, "foreign_page")
        return
    given = request.headers.get(PROOF_HEADER) or (await read_form(request)).get(PROOF_FIELD)
    if not is_own_page(request) or not same(proof, given):
        raise Problem(403, "foreign_page")


def is_own_page(request: Request) -> bool:
    """Return whether the browser's headers say that the request comes from one of this application's pages. Behind a
    proxy, the application's host name is in X-Forwarded-Host.
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
    if origin == "null" and headers.get("sec-fetch-site") == "same-origin":
        origin = ""  # the dashboard's pages send no referrer, so the browser hides the origin of their forms
    return (
        request.client is not None
        and is_loopback(request.client.host)
        and _host(f"//{headers.get('host', '')}") in _LOCAL_HOSTS
        and (not origin or (_host(origin) in _LOCAL_HOSTS and _same_port(origin, headers.get("host", ""))))
        and headers.get("sec-fetch-site", "") in _SAME_SITE
    )


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
