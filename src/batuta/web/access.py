"""Who may ask what. Everything is closed but the two paths that a load balancer needs.

In development a program on the same machine needs no token, so that a plain ``curl`` works. A web page must not profit
from that: its Origin or Sec-Fetch-Site gives it away, and so does the Host that a rebound name carries.
"""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import Request

from batuta.guard.tokens import EVERY_SCOPE, Scope, proves, same, taken_apart
from batuta.web.context import ApiState, state_of
from batuta.web.problems import Problem

OPEN = frozenset({"/health", "/health/ready"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_HOSTS_OF_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_FROM_THE_SAME_PLACE = frozenset({"", "none", "same-origin"})


@dataclass(frozen=True, slots=True)
class Caller:
    name: str
    scopes: frozenset[Scope]


ANYBODY = Caller("anybody", frozenset())
DEVELOPER = Caller("local", EVERY_SCOPE)


async def authorise(request: Request) -> Caller:
    """Asked for every route: GET needs ``read``, everything else ``operate``."""
    state = state_of(request)
    if request.url.path in OPEN or request.url.path in state.own_proof:
        return ANYBODY
    caller = await identify(request, state)
    needed = Scope.READ if request.method in SAFE_METHODS else Scope.OPERATE
    require(caller, needed)
    request.state.caller = caller
    return caller


def require(caller: Caller, scope: Scope) -> None:
    # Whoever may do anything at all may look.
    granted = caller.scopes | ({Scope.READ} if caller.scopes else frozenset())
    if scope not in granted:
        raise Problem(403, "forbidden", scope=scope.value)


async def identify(request: Request, state: ApiState) -> Caller:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and given:
        return await _bearer(given.strip(), state)
    if not state.settings.in_production and is_local(request):
        return DEVELOPER
    raise Problem(401, "unauthorised", headers={"WWW-Authenticate": 'Bearer realm="batuta"'})


async def _bearer(given: str, state: ApiState) -> Caller:
    master = state.settings.api_token
    if master is not None and same(master.get_secret_value(), given):
        return Caller("API_TOKEN", EVERY_SCOPE)
    if parts := taken_apart(given):
        token = await state.work.tokens.find(parts[0])
        if token is not None and proves(token, parts[1]):
            return Caller(f"token:{token.name}", token.scopes)
    raise Problem(401, "wrong_token", headers={"WWW-Authenticate": 'Bearer realm="batuta", error="invalid_token"'})


def is_local(request: Request) -> bool:
    """A program on this machine, asked by its own name, and not through a browser's page of somebody else's."""
    headers = request.headers
    if "x-forwarded-for" in headers or "forwarded" in headers:
        return False
    origin = headers.get("origin", "")
    return (
        request.client is not None
        and _is_loopback(request.client.host)
        and _host(f"//{headers.get('host', '')}") in _HOSTS_OF_THIS_MACHINE
        and (not origin or (_host(origin) in _HOSTS_OF_THIS_MACHINE and _same_port(origin, headers.get("host", ""))))
        and headers.get("sec-fetch-site", "") in _FROM_THE_SAME_PLACE
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


def _same_port(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.rpartition(":")[2] == host.rpartition(":")[2]
    except ValueError:
        return False
