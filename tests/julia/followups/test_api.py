"""Follow-ups over HTTP and in the terminal."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.main import build
from app.settings import Settings
from batuta.stores.sql.database import Database
from tests.command import Command
from tests.julia.tables import add_doctor, one, write
from tests.julia.web.test_api import Julia, open_julia

FOLLOWUPS = "/api/v1/followups"
UNKNOWN_ID = "00000000-0000-7000-8000-999999999999"
JULIA = ("--app", "app.main:work", "--lang", "pt-BR")
DAY = timedelta(days=1)


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(database_url)
    yield opened
    await opened.work.close()


async def begin(database: Database, now: datetime) -> str:
    """Insert a conversation whose only message was sent three days ago. The id of the conversation is also the doctor's
    id.
    """
    id = await add_doctor(database)
    await write(
        database,
        "INSERT INTO conversations (id, cliente_id, stage, ultima_mensagem_em, created_at, updated_at)"
        " VALUES (:id, :id, 'msg_enviada', :since, :since, :since)",
        id=id,
        since=now - 3 * DAY,
    )
    return id


async def post(julia: Julia, path: str, **body: Any) -> httpx2.Response:
    headers = {"Content-Type": "application/json", "Accept-Language": "en"}
    return await julia.ask("POST", f"{FOLLOWUPS}/{path}", content=json.dumps(body), headers=headers)


async def test_conversations_are_listed_paused_and_resumed(julia: Julia) -> None:
    now = julia.work.clock.now()
    id, until = await begin(julia.work.database, now), (now + DAY).isoformat()
    (listed,) = (await julia.ask("GET", f"{FOLLOWUPS}?devidos=true")).json()["followups"]
    assert (listed["conversa"], listed["estagio"], listed["impedimento"]) == (id, "msg_enviada", None)
    assert datetime.fromisoformat(listed["devido_em"]) == now - DAY
    paused = await post(julia, f"{id}/pausar", ate=until, motivo="férias")
    assert (paused.status_code, paused.json()["estagio"]) == (200, "msg_enviada")
    assert (await julia.ask("GET", f"{FOLLOWUPS}?devidos=true")).json()["followups"] == []
    (listed,) = (await julia.ask("GET", f"{FOLLOWUPS}?estagio=msg_enviada")).json()["followups"]
    assert listed["impedimento"] == "pausada"
    assert (await julia.ask("GET", f"{FOLLOWUPS}?estagio=respondeu")).json()["followups"] == []
    assert (await post(julia, f"{id}/retomar", motivo="voltou")).json()["pausado_ate"] is None
    history = (await julia.ask("GET", f"/api/v1/conversas/{id}")).json()["historico"]
    assert [line["acao"] for line in history] == ["pausar", "retomar"]


async def test_wrong_requests_are_refused(julia: Julia) -> None:
    now = julia.work.clock.now()
    id, until = await begin(julia.work.database, now), (now + DAY).isoformat()
    assert (await post(julia, f"{UNKNOWN_ID}/pausar", ate=until, motivo="-")).status_code == 404
    past = await post(julia, f"{id}/pausar", ate=now.isoformat(), motivo="-")
    assert (past.status_code, "future" in past.json()["detail"]) == (409, True)
    for wrong in ({"ate": until}, {"motivo": "x"}, {"ate": "2026-03-11T10:00", "motivo": "x"}):
        assert (await post(julia, f"{id}/pausar", **wrong)).status_code == 422, wrong
    row = await one(julia.work.database, "SELECT pausado_ate FROM conversations")
    assert row["pausado_ate"] is None


def test_operator_pauses_and_resumes_in_the_terminal(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    assert "nenhuma conversa" in batuta(*JULIA, "followups", "listar")[1]
    id = asyncio.run(_begin(folder))
    assert "primeira mensagem" in batuta(*JULIA, "followups", "listar", "--devidos")[1]
    code, out, err = batuta(*JULIA, "followups", "pausar", id[:13], "--ate", "01/03/2099 10:00", "--motivo", "férias")
    assert (code, err) == (0, "")
    assert "sem lembretes até" in out
    listed = json.loads(batuta(*JULIA, "followups", "listar", "--json")[1])["followups"]
    assert [each["impedimento"] for each in listed] == ["pausada"]
    assert "a pausa terminou" in batuta(*JULIA, "followups", "retomar", id, "--motivo", "voltou")[1]
    code, _, err = batuta(*JULIA, "followups", "pausar", id, "--ate", "01/03/2020 10:00", "--motivo", "-")
    assert (code, "já passou" in err) == (1, True)


async def _begin(folder: Path) -> str:
    async with build(Settings(database_url=f"sqlite:///{folder}/julia.db")).work as work:
        return await begin(work.database, work.clock.now())
