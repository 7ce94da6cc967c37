"""Doctors' states over HTTP and in the terminal."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.main import build
from app.settings import Settings
from tests.command import Command
from tests.julia.tables import add_doctor, rows, write
from tests.julia.web.test_api import Julia, open_julia

MEDICOS = "/api/v1/medicos"
UNKNOWN_ID = "00000000-0000-7000-8000-999999999999"
JULIA = ("--app", "app.main:work", "--lang", "pt-BR")


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(database_url)
    yield opened
    await opened.work.close()


async def correct(julia: Julia, id: str, **body: Any) -> httpx2.Response:
    return await julia.ask(
        "POST",
        f"{MEDICOS}/{id}/estado",
        content=json.dumps({"motivo": "teste", **body}),
        headers={"Content-Type": "application/json", "Accept-Language": "en"},
    )


async def test_state_is_shown_and_corrected_with_a_record(julia: Julia) -> None:
    id = await add_doctor(julia.work.database)
    shown = (await julia.ask("GET", f"{MEDICOS}/{id}/estado")).json()
    assert (shown["permissao"], shown["temperatura"], shown["ciclo"], shown["contatos_7d"]) == ("none", 0.5, "novo", 0)
    until = julia.work.clock.now() + timedelta(days=2)
    answer = await correct(julia, id, temperatura=0.2, ciclo="qualified", descanso_ate=until.isoformat())
    document = answer.json()
    assert answer.status_code == 200
    assert (document["temperatura"], document["faixa"], document["tendencia"]) == (0.2, "cold", "cooling")
    assert (document["ciclo"], document["permissao"]) == ("qualified", "cooling_off")
    listed = (await julia.ask("GET", f"{MEDICOS}?permissao=cooling_off&ciclo=qualified")).json()["medicos"]
    assert [each["medico"] for each in listed] == [id]
    assert (await julia.ask("GET", f"{MEDICOS}?ciclo=churned")).json()["medicos"] == []
    document = (await correct(julia, id, descanso_ate=None)).json()
    assert (document["permissao"], document["descanso_ate"], document["temperatura"]) == ("initial", None, 0.2)
    notes = await rows(
        julia.work.database, "SELECT action, after FROM audit_log WHERE subject = :id", id=f"medico:{id}"
    )
    assert [note["action"] for note in notes] == ["medico.corrigir"] * 2


async def test_wrong_corrections_are_refused_and_change_nothing(julia: Julia) -> None:
    id = await add_doctor(julia.work.database)
    past = (julia.work.clock.now() - timedelta(days=1)).isoformat()
    assert (await correct(julia, UNKNOWN_ID, temperatura=0.2)).status_code == 404
    assert (await correct(julia, id)).status_code == 409
    assert (await correct(julia, id, proximo_contato=past)).status_code == 409
    for wrong in (
        {"temperatura": 1.5},
        {"temperatura": None},
        {"ciclo": "amigo"},
        {"descanso_ate": "2026-03-11T10:00"},
    ):
        assert (await correct(julia, id, **wrong)).status_code == 422, wrong
    await write(julia.work.database, "UPDATE clientes SET opt_out = TRUE, opted_out = TRUE")
    refused = await correct(julia, id, descanso_ate=None)
    assert refused.status_code == 409
    assert "asked for no more messages" in refused.json()["detail"]
    assert await rows(julia.work.database, "SELECT 1 FROM doctor_state") == []


def test_operator_sees_and_corrects_a_state_in_the_terminal(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    assert "estado registrado" in batuta(*JULIA, "medicos", "listar")[1]
    id = asyncio.run(_add_doctor(folder))
    change = ("corrigir", id[:13], "--motivo", "teste", "--temperatura", "0.9", "--ciclo", "active")
    code, out, err = batuta(*JULIA, "medicos", *change, "--descanso-ate", "01/03/2099 10:00")
    assert (code, err) == (0, "")
    assert all(each in out for each in ("quente", "em descanso", "ativo"))
    assert "em alta" in batuta(*JULIA, "medicos", "listar", "--permissao", "cooling_off")[1]
    assert json.loads(batuta(*JULIA, "medicos", "ver", id, "--json")[1])["temperatura"] == 0.9
    assert batuta(*JULIA, "medicos", *change, "--descanso-ate", "01/03/2099 10:00", "--sem-descanso")[0] == 2
    code, _, err = batuta(*JULIA, "medicos", "corrigir", id, "--motivo", "teste")
    assert (code, "nada a mudar" in err) == (1, True)


async def _add_doctor(folder: Path) -> str:
    async with build(Settings(database_url=f"sqlite:///{folder}/julia.db")).work as work:
        return await add_doctor(work.database)
