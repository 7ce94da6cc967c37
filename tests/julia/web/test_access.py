"""Every route is requested with every kind of wrong credential. Each request is refused with a problem document, and
the database does not change.
"""

import re
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from batuta.access import SESSION_LENGTH, Scope, mint
from batuta.web.auth import scope_of
from tests.julia.web.test_api import BEARER, TOKEN, Julia, open_julia

# Routes without authentication; every other route has a scope.
OPEN = {
    ("GET", "/health"),
    ("GET", "/health/ready"),
    ("GET", "/painel/entrar"),
    ("POST", "/painel/entrar"),
    ("GET", "/painel/static/{name}"),
}
# Routes that check their own secret. They refuse a request without it like all other routes.
OWN_SECRET = {("POST", "/webhook/evolution"), ("POST", "/webhook/chatwoot")}
# The page of a signed link, for people outside the team. tests/julia/handoffs checks its tokens.
SIGNED_LINK = {("GET", "/handoffs/confirmar"), ("POST", "/handoffs/confirmar")}
SECRETS = {"SECRET_KEY": "s" * 32, "WEBHOOK_SECRET": "w" * 32, "BATUTA_HTTPS": "false"}
PATIENT = {"BATUTA_REFUSALS_PER_MINUTE": "1000000"}  # these tests send thousands of wrong credentials
LOCAL = "127.0.0.1:8000"
# Clients that are not this machine's own: on another machine, behind a proxy, or a page of another site.
OTHER_CLIENTS: list[tuple[str, dict[str, str]]] = [
    ("192.0.2.7", {}),
    ("::ffff:192.0.2.7", {}),
    ("127.0.0.1", {"Host": "evil.example"}),
    ("127.0.0.1", {"Host": "127.0.0.1.evil.example:8000"}),
    ("127.0.0.1", {"Host": "127.0.0.1:8000@evil.example"}),
    ("127.0.0.1", {"Host": ""}),
    ("127.0.0.1", {"Origin": "https://evil.example"}),
    ("127.0.0.1", {"Origin": "http://127.0.0.1:9999"}),
    ("127.0.0.1", {"Origin": "null"}),
    ("127.0.0.1", {"Sec-Fetch-Site": "cross-site"}),
    ("127.0.0.1", {"Sec-Fetch-Site": "same-site"}),
    ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}),
    ("127.0.0.1", {"X-Forwarded-For": "203.0.113.9, 127.0.0.1"}),
    ("127.0.0.1", {"X-Forwarded-Host": LOCAL}),
    ("127.0.0.1", {"X-Real-IP": "127.0.0.1"}),
    ("127.0.0.1", {"Forwarded": "for=127.0.0.1"}),
    ("127.0.0.1", {"Via": "1.1 proxy"}),
]


def routes(api: FastAPI) -> Iterator[tuple[str, str]]:
    for context in iter_route_contexts(api.routes):
        for method in sorted(context.methods or ()):
            yield method, str(context.path)


def protected_routes(api: FastAPI) -> list[tuple[str, str]]:
    return [route for route in routes(api) if route not in OPEN | SIGNED_LINK]


def address(path: str) -> str:
    """Return the route's path with valid values for its parameters, so that only authentication can refuse a request."""
    path = re.sub(r"{[^}]+:uuid}", "01920000-0000-7000-8000-000000000000", path)
    return re.sub(r"{[^}]+}", "x", path.replace("{endpoint}", "limpar-historico"))


def contents(folder: Path) -> list[str]:
    with sqlite3.connect(f"file:{folder}/julia.db?mode=ro", uri=True) as connection:
        return list(connection.iterdump())


@pytest.fixture
async def production(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url, APP_ENV="production", **SECRETS, **PATIENT)
    yield opened
    await opened.work.close()


@pytest.fixture
async def development(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url, **SECRETS, **PATIENT)
    yield opened
    await opened.work.close()


async def refused_everywhere(julia: Julia, folder: Path, headers: Mapping[str, str], client: httpx2.AsyncClient) -> int:
    """Request every protected route with these headers, and fail if one of the requests is accepted. Return the number
    of refused requests.
    """
    before = contents(folder)
    asked = protected_routes(julia.api)
    for method, path in asked:
        answer = await client.request(method, address(path), headers=dict(headers))
        assert answer.status_code in (401, 403), (method, path, answer.status_code, headers)
        assert answer.headers["content-type"] == "application/problem+json", (method, path, headers)
    assert contents(folder) == before
    return len(asked)


async def invalid_credentials(julia: Julia) -> dict[str, dict[str, str]]:
    """Return credentials that used to be valid, or only look valid."""
    work, sessions = julia.work, julia.api.state.batuta.sessions
    now = work.clock.now()
    token, text = mint("ida", list(Scope), by="ana", now=now, chance=lambda n: "cd" * n)
    await work.tokens.keep(token)
    await work.tokens.revoke(token.id, by="ana", now=now)
    ended = sessions.begin("API_TOKEN", now=now, chance="ef" * 16)
    await work.tokens.end_session("ef" * 16, until=now + SESSION_LENGTH)
    notes = {
        "session of a revoked token": sessions.begin(token.id, now=now, chance="ab" * 16),
        "session of an unknown token": sessions.begin("0" * 12, now=now, chance="ab" * 16),
        "expired session": sessions.begin(
            "API_TOKEN", now=now - SESSION_LENGTH - timedelta(seconds=1), chance="ab" * 16
        ),
        "ended session": ended,
        "token as a session": TOKEN,
    }
    return {
        "none": {},
        "wrong": {"Authorization": "Bearer wrong"},
        "too long": {"Authorization": "Bearer " + "x" * 4000},
        "not ASCII": {"Authorization": "Bearer tókên"},
        "almost": {"Authorization": f"Bearer {TOKEN[:-1]}"},
        "another scheme": {"Authorization": f"Basic {TOKEN}"},
        "in the wrong place": {"X-Api-Key": TOKEN, "Cookie": f"token={TOKEN}"},
        "revoked": {"Authorization": f"Bearer {text}"},
        **{name: {"Cookie": f"batuta_session={note}"} for name, note in notes.items()},
        "loopback in production": {"Host": LOCAL, "Origin": f"http://{LOCAL}"},
    }


async def test_every_route_needs_a_currently_valid_credential(production: Julia, tmp_path: Path) -> None:
    async with production.client() as client:
        for name, headers in (await invalid_credentials(production)).items():
            asked = [(k.encode(), v.encode()) for k, v in headers.items()]
            assert await refused_everywhere(production, tmp_path, dict(asked), client) >= 10, name  # type: ignore[arg-type]


async def test_loopback_exemption_applies_to_no_other_client(development: Julia, tmp_path: Path) -> None:
    for client_at, headers in OTHER_CLIENTS:
        async with development.client(client_at) as client:
            assert await refused_everywhere(development, tmp_path, headers, client) >= 10, (client_at, headers)


async def test_session_is_useless_to_a_foreign_page(production: Julia, tmp_path: Path) -> None:
    sessions = production.api.state.batuta.sessions
    note = sessions.begin("API_TOKEN", now=production.work.clock.now(), chance="ab" * 16)
    proof = sessions.proof(sessions.find(note, now=production.work.clock.now()))
    before = contents(tmp_path)
    async with production.client() as client:
        for method, path in protected_routes(production.api):
            if method == "GET" or (method, path) in OWN_SECRET:
                continue  # the request has no effect, and a page of another site cannot read the answer
            for more in ({}, {"X-CSRF-Token": "x"}, {"X-CSRF-Token": proof, "Origin": "https://evil.example"}):
                headers = {"Cookie": f"batuta_session={note}", **more}
                answer = await client.request(method, address(path), headers=headers)
                assert answer.status_code == 403, (method, path)
    assert contents(tmp_path) == before


async def test_valid_credential_works_on_every_route_also_through_a_proxy(production: Julia) -> None:
    async with production.client("192.0.2.7") as client:
        for method, path in set(protected_routes(production.api)) - OWN_SECRET:
            headers = {**BEARER, "X-Forwarded-For": "203.0.113.9", "Host": "julia.example"}
            answer = await client.request(method, address(path), headers=headers)
            assert answer.status_code not in (401, 403), (method, path)


async def test_unauthenticated_request_gets_no_validation_errors(production: Julia, tmp_path: Path) -> None:
    """Requests are authenticated before their body is read or validated."""
    strange = [(method, path) for method, path in protected_routes(production.api) if method == "POST"]
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        for method, path in strange:
            async with production.client() as client:
                given = {"Content-Type": "application/json", **headers}
                answer = await client.request(method, address(path), content=b"{", headers=given)
            assert answer.status_code in (401, 403), (path, answer.text)


async def test_every_route_has_a_scope_except_the_listed_ones(production: Julia) -> None:
    found = set(routes(production.api))
    assert found >= OPEN
    assert production.api.state.batuta.open_routes == {path for _, path in OPEN | OWN_SECRET | SIGNED_LINK}
    for context in iter_route_contexts(production.api.routes):
        for method in context.methods or ():
            assert scope_of(context, method) in Scope


async def test_get_has_no_effect(production: Julia) -> None:
    """Every GET route requires a scope for reading only. Other tests check that no refused request changes the
    database.
    """
    for context in iter_route_contexts(production.api.routes):
        if "GET" in (context.methods or ()):
            # The form of an action needs the action's scope, but opening it changes nothing.
            is_form = str(context.path).startswith("/painel/acoes/")
            assert is_form or scope_of(context, "GET") in (Scope.READ, Scope.PII, Scope.METRICS, Scope.TOKENS), (
                context.path
            )


async def test_openapi_document_names_the_scope_of_each_route(production: Julia) -> None:
    document = production.api.openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            is_open = (method.upper(), path) in OPEN | OWN_SECRET | SIGNED_LINK
            assert bool(operation["security"]) != is_open
            assert is_open or Scope(operation["x-batuta-scope"])
            assert is_open or {"401", "403"} <= operation["responses"].keys()
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    assert "application/problem+json" in answer["content"], (method, path, status)
