"""Triggers, the jobs that choose doctors to write to, over HTTP and in the terminal. A simulation lists the ids of the
doctors that a trigger would choose, and sends nothing.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.main import build
from app.settings import Settings
from tests.command import Command
from tests.julia.tables import PHONE, add_doctor, rows, write
from tests.julia.web.test_api import Julia, open_julia

GATILHOS = "/api/v1/gatilhos"
JULIA = ("--app", "app.main:work", "--lang", "pt-BR")


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(database_url)
    yield opened
    await opened.work.close()


async def test_triggers_are_listed_with_the_switch_that_holds_each(julia: Julia) -> None:
    listed = (await julia.ask("GET", GATILHOS)).json()["gatilhos"]
    assert [each["nome"] for each in listed] == [
        "discovery_autonomo", "oferta_autonoma", "reativacao_autonoma", "feedback_autonomo",
    ]  # fmt: skip
    assert {each["suspenso_por"] for each in listed} == {"pilot_mode"}
    await julia.work.switches.set("pilot_mode", False, by="ana", reason="-", now=julia.work.clock.now())
    listed = (await julia.ask("GET", GATILHOS)).json()["gatilhos"]
    assert [each["suspenso_por"] for each in listed] == [each["chave"] for each in listed]
    assert listed[0]["ultimos_7_dias"] == {"enfileiradas": 0, "enviados": 0, "respondidos": 0, "avaliacoes": {}}


async def test_simulation_names_ids_and_reasons_and_sends_nothing(julia: Julia) -> None:
    chosen, other = await add_doctor(julia.work.database), await add_doctor(julia.work.database, "5511900000002")
    await write(julia.work.database, "UPDATE clientes SET status_telefone = 'validado' WHERE id = :id", id=chosen)
    answer = await julia.ask("GET", f"{GATILHOS}/discovery_autonomo/simular")
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "nome": "discovery_autonomo", "suspenso_por": "pilot_mode", "encontrados": 2, "selecionados": [chosen], "vagas": [],
            "restantes": 0, "por_motivo": {"telefone_nao_validado": 1}, "exemplos": {"telefone_nao_validado": [other]},
            "sem_selecao": None,
        },
    )  # fmt: skip
    assert PHONE not in answer.text
    for nome in ("oferta_autonoma", "reativacao_autonoma", "feedback_autonomo"):
        document = (await julia.ask("GET", f"{GATILHOS}/{nome}/simular")).json()
        assert (document["encontrados"], document["sem_selecao"]) == (0, "sem_candidatos")
    assert (await julia.ask("GET", f"{GATILHOS}/outro/simular")).status_code == 422
    assert await rows(julia.work.database, "SELECT id FROM fila_mensagens") == []


def test_operator_lists_and_simulates_in_the_terminal(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    code, out, err = batuta(*JULIA, "gatilhos", "listar")
    assert (code, err, "suspensa por" in out) == (0, "", True)
    assert (
        "nenhum médico atende aos critérios desta ação automática"
        in batuta(*JULIA, "gatilhos", "simular", "discovery_autonomo")[1]
    )
    id = asyncio.run(_add_doctor(folder))
    out = batuta(*JULIA, "gatilhos", "simular", "discovery_autonomo")[1]
    assert all(each in out for each in ("todos os candidatos têm um impedimento", "telefone ainda não validado: 1", id))
    document = json.loads(batuta(*JULIA, "gatilhos", "simular", "feedback_autonomo", "--json")[1])
    assert document["sem_selecao"] == "sem_candidatos"
    assert batuta(*JULIA, "gatilhos", "simular", "outro")[0] == 2


async def _add_doctor(folder: Path) -> str:
    async with build(Settings(database_url=f"sqlite:///{folder}/julia.db")).work as work:
        return await add_doctor(work.database)
