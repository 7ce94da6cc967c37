"""The tokens page: only administrators see it, and they create, rotate and revoke tokens there."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from batuta import Batuta
from batuta.access import Scope, Token, UserRole, mint, proves, split_token
from batuta.config import EngineSettings, load_settings
from batuta.stores.sql.queries import query_of
from batuta.testing import FakeClock
from batuta.web import create_api
from tests.engine.web.test_queues import SECRETS, act, proof_in

AUDIT = query_of("audit", "SELECT actor, action, subject, after FROM audit_log ORDER BY at, id", writes=False)
SHOWN = re.compile(r"bat_[0-9a-f]{12}_[0-9a-f]{48}")
CREATE = {"nome": "rui", "papel": "operator", "prazo": "90d"}


@dataclass
class Office:
    work: Batuta
    api: FastAPI
    clock: FakeClock
    made: int = 0

    async def browser(self, *scopes: Scope) -> httpx2.AsyncClient:
        self.made += 1
        number = self.made
        token, text = mint(
            f"ana{number}", scopes, by="test", now=self.clock.now(), chance=lambda n: f"{number:02x}" * n
        )
        await self.work.tokens.keep(token)
        client = self.client()
        assert (await client.post("/painel/entrar", data={"token": text})).status_code == 200
        return client

    def client(self) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=self.api, client=("10.0.0.1", 5000))
        return httpx2.AsyncClient(
            transport=transport,
            base_url="http://batuta.test",
            headers={"Accept": "text/html", "Accept-Language": "en"},
            follow_redirects=True,
        )

    async def find(self, name: str) -> Token:
        (found,) = [token for token in await self.work.tokens.all() if token.name == name]
        return found

    async def audit(self, action: str) -> list[tuple[Any, ...]]:
        rows = await self.work.database.all(AUDIT)
        found = [(row["actor"], row["subject"], row["after"]) for row in rows if row["action"] == action]
        return [each for each in found if each[0] != "test"]


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Office]:
    clock = FakeClock()
    work = Batuta(database_url, clock=clock)
    async with work:
        settings = load_settings(EngineSettings, {"DATABASE_URL": database_url, **SECRETS})
        yield Office(work, create_api(work, settings), clock)


async def test_an_administrator_creates_a_token_and_sees_its_secret_once(office: Office) -> None:
    admin = await office.browser(*UserRole.ADMIN.scopes)
    answer = await act(admin, "token.create", **CREATE)
    (text,) = set(SHOWN.findall(answer.text))
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    stored = await office.find("rui")
    parts = split_token(text)
    assert parts is not None
    assert proves(stored, parts[1], now=office.clock.now())
    assert stored.scopes == UserRole.OPERATOR.scopes
    assert stored.expires_at == office.clock.now() + timedelta(days=90)
    assert stored.created_by == "token ana1"
    assert [(who, subject) for who, subject, _ in await office.audit("token.create")] == [("token ana1", stored.id)]
    assert "batuta token create --name rui --role operator --for 90d" in answer.text
    again = await admin.get("/painel/tokens")
    assert "rui" in again.text
    assert parts[1] not in again.text + str(dict(admin.cookies))
    assert parts[1] not in str([row["after"] for row in await office.work.database.all(AUDIT)])
    bearer = await office.client().get("/jobs", headers={"Authorization": f"Bearer {text}", "Accept": "*/*"})
    assert bearer.status_code == 200


async def test_a_token_has_no_more_scopes_than_its_creator(office: Office) -> None:
    admin = await office.browser(*UserRole.ADMIN.scopes)
    refused = await act(admin, "token.create", **CREATE, dados="sim")
    assert refused.status_code == 422
    assert "pii" in refused.text
    assert "rui" not in {token.name for token in await office.work.tokens.all()}
    watcher = await act(admin, "token.create", nome="prometheus", papel="metrics")
    assert watcher.status_code == 200
    assert (await office.find("prometheus")).scopes == {Scope.METRICS}
    with_data = await office.browser(*UserRole.ADMIN.scopes, Scope.PII)
    assert (await act(with_data, "token.create", **CREATE, dados="sim")).status_code == 200
    assert (await office.find("rui")).scopes == {*UserRole.OPERATOR.scopes, Scope.PII}
    # A rotation shows the secret of the new token, so only users who have all scopes of the token may rotate it.
    stolen = await act(admin, "token.rotate", token=(await office.find("rui")).id, prazo="1d")
    assert stolen.status_code == 422
    assert await office.audit("token.rotate") == []


async def test_rotation_shows_a_successor_and_ends_the_old_token_later(office: Office) -> None:
    admin = await office.browser(*UserRole.ADMIN.scopes)
    await act(admin, "token.create", **CREATE)
    old = await office.find("rui")
    answer = await act(admin, "token.rotate", token=old.id, prazo="2h")
    assert len(set(SHOWN.findall(answer.text))) == 1
    ends = {token.id: token.expires_at for token in await office.work.tokens.all() if token.name == "rui"}
    assert ends.pop(old.id) == office.clock.now() + timedelta(hours=2)
    (new,) = ends
    ((who, subject, facts),) = await office.audit("token.rotate")
    assert (who, subject, facts["new"]) == ("token ana1", old.id, new)


async def test_a_revoked_token_ends_its_session(office: Office) -> None:
    admin = await office.browser(*UserRole.ADMIN.scopes)
    reader = await office.browser(Scope.READ)
    found = await office.find("ana2")
    done = await act(admin, "token.revoke", token=found.id)
    assert done.status_code == 200
    assert (await office.find("ana2")).revoked_at == office.clock.now()
    assert await office.audit("token.revoke") == [("token ana1", found.id, None)]
    assert (await reader.get("/painel/tarefas")).url.path == "/painel/entrar"
    assert (await act(admin, "token.revoke", token=found.id)).status_code == 422
    assert (await act(admin, "token.rotate", token=found.id, prazo="1d")).status_code == 422


@pytest.mark.parametrize(
    "scopes",
    [(Scope.READ,), (Scope.OPERATE,), (Scope.OPERATE, Scope.SEND, Scope.PII)],
    ids=("reader", "operator", "sender"),
)
async def test_only_administrators_see_tokens(office: Office, scopes: tuple[Scope, ...]) -> None:
    client = await office.browser(*scopes)
    assert "/painel/tokens" not in (await client.get("/painel")).text
    assert (await client.get("/painel/tokens")).status_code == 403
    proof = proof_in((await client.get("/painel/tarefas")).text)
    for name in ("create", "rotate", "revoke"):
        answer = await client.post(f"/painel/acoes/token.{name}", data={**CREATE, "csrf": proof})
        assert answer.status_code == 403
    assert len(await office.work.tokens.all()) == 1
