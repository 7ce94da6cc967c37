"""Vacancies as a manager uses them: over HTTP, in the terminal, and on the first page."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.julia import julia_of
from app.web.boards import vacancies_board
from batuta.access import Scope, mint
from batuta.kernel.clock import SystemClock
from tests.command import Command
from tests.julia.tables import add_doctor, rows, write
from tests.julia.web.test_api import Julia, open_julia

UNKNOWN_ID = "00000000-0000-7000-8000-999999999999"
VAGAS = "/api/v1/vagas"
JULIA = ("--app", "app.main:work", "--lang", "en")


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(database_url)
    yield opened
    await opened.work.close()


def nova(julia: Julia, **values: Any) -> dict[str, Any]:
    day = julia.work.clock.now().astimezone(julia.work.zone).date() + timedelta(days=3)
    return {
        "hospital": "Hospital Fictício", "especialidade": "pediatria", "data": day.isoformat(), "periodo": "noturno",
        "valor": 1500, "novo_hospital": True, **values,
    }  # fmt: skip


async def post(julia: Julia, path: str, body: Any = None, **headers: str) -> httpx2.Response:
    asked = {"Accept-Language": "en", "Content-Type": "application/json", **headers}
    return await julia.ask("POST", path, content=None if body is None else json.dumps(body), headers=asked)


async def doctors(julia: Julia, count: int) -> list[str]:
    made = [await add_doctor(julia.work.database, f"551190000{n:04d}") for n in range(count)]
    await write(julia.work.database, "UPDATE clientes SET especialidade = 'Pediatria'")
    return made


def is_problem(answer: httpx2.Response, status: int, slug: str) -> bool:
    return answer.status_code == status and str(answer.json()["type"]).endswith(slug)


async def test_a_vacancy_lives_from_its_creation_to_the_confirmation_of_its_shift(julia: Julia) -> None:
    ana, bia = await doctors(julia, 2)
    made = await post(julia, VAGAS, nova(julia))
    document = made.json()
    assert (made.status_code, document["status"], document["criada_por"]) == (201, "aberta", "local")
    id = f"{VAGAS}/{document['id']}"
    best = (await julia.ask("GET", f"{id}/candidatos")).json()["candidatos"]
    assert [each["pontos"] for each in best] == [70.0, 70.0]
    offered = (await post(julia, f"{id}/anunciar", {"medicos": [ana, UNKNOWN_ID]})).json()
    assert (offered["status"], offered["oferecidas"], offered["recusadas"]) == (
        "anunciada", [ana], {UNKNOWN_ID: "desconhecido"},
    )  # fmt: skip
    assert (await post(julia, f"{id}/anunciar", {"melhores": 5.0})).json()["oferecidas"] == [bia]
    assert (await post(julia, f"{id}/interesse", {"medico": ana})).json()["repetida"] is False
    assert (await post(julia, f"{id}/reservar", {"medico": ana})).json()["status"] == "reservada"
    assert (await post(julia, f"{id}/reservar", {"medico": ana})).json()["repetida"] is True
    taken = await post(julia, f"{id}/reservar", {"medico": bia})
    assert is_problem(taken, 409, "vacancy_taken")
    assert "already taken" in taken.json()["detail"]
    assert (await post(julia, f"{id}/liberar", {"motivo": "trocou"})).json()["status"] == "anunciada"
    assert (await post(julia, f"{id}/reservar", {"medico": bia})).json()["status"] == "reservada"
    assert is_problem(await post(julia, f"{id}/realizada"), 409, "vacancy_state")
    await write(julia.work.database, "UPDATE vagas SET data = '2026-01-05'")
    done = await julia.ask("POST", "/jobs/processar-confirmacao-plantao")
    assert (done.json()["processadas"], done.json()["items_processed"]) == (1, 1)
    assert (await post(julia, f"{id}/realizada")).json() == {
        "id": document["id"], "status": "realizada", "repetida": False,
    }  # fmt: skip
    assert (await post(julia, f"{id}/realizada")).json()["repetida"] is True
    shown = (await julia.ask("GET", id)).json()
    assert [line["para"] for line in shown["historico"]] == [
        "aberta", "anunciada", "reservada", "anunciada", "reservada", "pendente_confirmacao", "realizada",
    ]  # fmt: skip
    assert shown["historico"][3]["motivo"] == "trocou"
    assert {offer["medico"] for offer in shown["ofertas"]} == {ana, bia}
    listed = (await julia.ask("GET", f"{VAGAS}?status=realizada&medico={bia}")).json()["vagas"]
    assert [each["id"] for each in listed] == [document["id"]]


@pytest.mark.parametrize(
    ("change", "status", "slug", "said"),
    [
        ({"especialidade": "Adivinhação"}, 404, "vacancy_refused", "speciality"),
        (
            {"hospital": "Hospital Nunca Visto", "novo_hospital": False},
            404,
            "vacancy_refused",
            "no hospital has that name",
        ),
        ({"hospital": "R$ 1500", "novo_hospital": True}, 409, "vacancy_refused", "name"),
        ({"data": "2020-01-01"}, 409, "vacancy_refused", "data"),
        ({"periodo": None}, 409, "vacancy_refused", "periodo"),
        ({"hora_inicio": "19:00"}, 409, "vacancy_refused", "hora_fim"),
        ({"hora_inicio": "7h"}, 422, "invalid", ""),
        ({"valor": 15}, 422, "invalid", ""),
        ({"valor": "1500"}, 422, "invalid", ""),
        ({"valor": 1500.5}, 422, "invalid", ""),
        ({"cor": "azul"}, 422, "invalid", ""),
    ],
)
async def test_a_bad_field_is_named(julia: Julia, change: dict[str, Any], status: int, slug: str, said: str) -> None:
    answer = await post(julia, VAGAS, nova(julia, **change))
    assert is_problem(answer, status, slug), answer.text
    assert said in answer.json()["detail"]
    assert await rows(julia.work.database, "SELECT id FROM vagas") == []


async def test_a_repeated_creation_is_refused_with_the_id_of_the_first(julia: Julia) -> None:
    first = (await post(julia, VAGAS, nova(julia))).json()["id"]
    again = await post(julia, VAGAS, nova(julia))
    assert is_problem(again, 409, "vacancy_refused")
    assert first in again.json()["detail"]
    assert (await post(julia, VAGAS, nova(julia, outra=True))).status_code == 201


async def test_unknown_ids_and_callers_without_the_scope_are_refused(julia: Julia) -> None:
    (ana,) = await doctors(julia, 1)
    assert is_problem(await julia.ask("GET", f"{VAGAS}/{UNKNOWN_ID}"), 404, "vacancy_unknown")
    assert is_problem(await post(julia, f"{VAGAS}/{UNKNOWN_ID}/reservar", {"medico": ana}), 404, "vacancy_unknown")
    id = (await post(julia, VAGAS, nova(julia))).json()["id"]
    assert is_problem(await post(julia, f"{VAGAS}/{id}/reservar", {"medico": UNKNOWN_ID}), 404, "doctor_unknown")
    assert (await post(julia, f"{VAGAS}/{id}/cancelar", {"motivo": "sei la"})).status_code == 422
    assert is_problem(await post(julia, f"{VAGAS}/{id}/cancelar", {"motivo": "nao_compareceu"}), 409, "vacancy_state")
    now = julia.work.clock.now()
    token, secret = mint("teste", [Scope.OPERATE], by="ana", now=now, chance=lambda n: "a" * 2 * n)
    await julia.work.tokens.keep(token)
    bearer = {"Authorization": f"Bearer {secret}"}
    assert (await post(julia, f"{VAGAS}/{id}/anunciar", {"melhores": 1}, **bearer)).status_code == 403
    assert (await post(julia, f"{VAGAS}/{id}/cancelar", {"motivo": "outro"}, **bearer)).status_code == 200


async def test_the_first_page_counts_vacancies(julia: Julia) -> None:
    await post(julia, VAGAS, nova(julia))
    board = await vacancies_board(julia_of(julia.work))
    assert {figure.says.rpartition(".")[2]: figure.value for figure in board.figures} == {
        "aberta": 1, "anunciada": 0, "aguardando_confirmacao": 0, "reservada": 0, "pendente_confirmacao": 0, "realizada": 0,
        "cancelada": 0,
    }  # fmt: skip


async def _people(folder: Path) -> list[str]:
    opened = await open_julia(f"sqlite:///{folder}/julia.db")
    made = await doctors(opened, 2)
    await opened.work.close()
    return made


async def _age(folder: Path) -> None:
    opened = await open_julia(f"sqlite:///{folder}/julia.db")
    await write(opened.work.database, "UPDATE vagas SET data = '2026-01-05'")
    answer = await opened.ask("POST", "/jobs/processar-confirmacao-plantao")
    assert answer.json()["processadas"] == 1
    await opened.work.close()


def test_the_terminal_leads_a_vacancy_through_its_life(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    assert batuta(*JULIA, "vagas", "listar")[1].strip() == "no vacancies"
    ana, bia = asyncio.run(_people(folder))
    day = f"{SystemClock().now() + timedelta(days=3):%d/%m/%Y}"
    new = (
        "vagas",
        "criar",
        "--hospital",
        "Hospital Fictício",
        "--especialidade",
        "pediatria",
        "--data",
        day,
        "--valor",
        "1500",
    )
    code, _, err = batuta(*JULIA, *new, "--periodo", "noturno")
    assert (code, "no hospital has that name" in err) == (1, True)
    code, out, err = batuta(*JULIA, *new, "--hora-inicio", "19:00", "--hora-fim", "07:00", "--novo-hospital")
    assert (code, err) == (0, "")
    found = re.search(r"vacancy ([0-9a-f-]{36}): open", out)
    assert found is not None
    id = found[1]
    assert "R$ 1,500.00" in out
    assert batuta(*JULIA, "vagas", "anunciar", id)[0] == 2
    assert (
        f"vacancy {id}: offered to 1 doctor; status: announced"
        in batuta(*JULIA, "vagas", "anunciar", id, "--medico", ana)[1]
    )
    assert "this vacancy was offered before" in batuta(*JULIA, "vagas", "anunciar", id, "--medico", ana)[1]
    assert bia in batuta(*JULIA, "vagas", "candidatos", id[:13])[1]
    assert "interest recorded" in batuta(*JULIA, "vagas", "interesse", id, "--medico", ana)[1]
    assert batuta(*JULIA, "vagas", "reservar", id, "--medico", ana)[1].strip() == f"vacancy {id}: reserved"
    assert "nothing to change" in batuta(*JULIA, "vagas", "reservar", id, "--medico", ana)[1]
    code, _, err = batuta(*JULIA, "vagas", "reservar", id, "--medico", bia)
    assert (code, "already taken" in err) == (1, True)
    assert batuta(*JULIA, "vagas", "cancelar", id, "--motivo", "outro")[0] == 1
    assert "released; status: announced" in batuta(*JULIA, "vagas", "liberar", id, "--motivo", "trocou")[1]
    assert "reserved" in batuta(*JULIA, "vagas", "reservar", id, "--medico", bia)[1]
    asyncio.run(_age(folder))
    assert id in batuta(*JULIA, "vagas", "listar", "--status", "pendente_confirmacao")[1]
    assert batuta(*JULIA, "vagas", "realizada", id)[1].strip() == f"vacancy {id}: done"
    shown = batuta(*JULIA, "vagas", "ver", id)[1]
    assert all(each in shown for each in ("open → announced", "trocou", f"offered to {ana}", f"wanted by {ana}"))
    document = json.loads(batuta(*JULIA, "vagas", "ver", id, "--json")[1])
    assert (document["status"], document["medico"]) == ("realizada", bia)
