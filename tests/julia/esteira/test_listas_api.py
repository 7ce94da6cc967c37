"""The groups pipeline's lists for operators: discarded messages and open vacancies. Operators can also try out one text
in a dry run.
"""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from batuta.access import Scope, mint
from tests.command import Command
from tests.julia.esteira.test_api import GOOD, JULIA, said
from tests.julia.tables import write
from tests.julia.web.test_api import Julia, open_julia

CHATTER = "a chave do carro azul sumiu ontem cedo"


@pytest.fixture
async def julia(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url)
    yield opened
    await opened.work.close()


async def _bearer(julia: Julia, *scopes: Scope) -> dict[str, str]:
    now, mark = julia.work.clock.now(), "b" if Scope.PII in scopes else "a"
    token, secret = mint("teste", list(scopes), by="ana", now=now, chance=lambda n: mark * 2 * n)
    await julia.work.tokens.keep(token)
    return {"Authorization": f"Bearer {secret}", "Accept-Language": "en"}


async def test_discarded_message_has_its_reason_and_its_text_needs_permission(julia: Julia) -> None:
    await said(julia, CHATTER)
    reader, trusted = await _bearer(julia, Scope.READ), await _bearer(julia, Scope.READ, Scope.PII)
    answer = await julia.ask("GET", "/grupos/mensagens?motivo=score_baixo", headers=reader)
    (message,) = answer.json()["mensagens"]
    assert (message["motivo"], message["motivo_em_palavras"], message["estagio"]) == (
        "score_baixo",
        "low score",
        "heuristica",
    )
    assert "texto" not in message
    assert answer.json()["descartadas_por_motivo"] == {"score_baixo": 1}
    assert (await julia.ask("GET", "/grupos/mensagens?texto=true", headers=reader)).status_code == 403
    (whole,) = (await julia.ask("GET", "/grupos/mensagens?texto=true", headers=trusted)).json()["mensagens"]
    assert whole["texto"] == CHATTER
    assert (await julia.ask("GET", "/grupos/mensagens?motivo=qualquer", headers=reader)).status_code == 422
    assert (await julia.ask("GET", "/grupos/mensagens?motivo=nao_eh_oferta", headers=reader)).json()["mensagens"] == []


async def test_open_vacancies_are_listed_and_the_contact_needs_permission(julia: Julia) -> None:
    await said(julia, GOOD)
    reader, trusted = await _bearer(julia, Scope.READ), await _bearer(julia, Scope.READ, Scope.PII)
    answer = (await julia.ask("GET", "/grupos/vagas", headers=reader)).json()
    (vacancy,) = answer["vagas"]
    assert (answer["abertas"], vacancy["hospital"], vacancy["valor"]) == (1, "Hospital Inventado", 1500)
    assert "contato_whatsapp" not in vacancy
    shown = (await julia.ask("GET", f"/grupos/revisao/{vacancy['revisao_id']}", headers=trusted)).json()
    assert shown["vaga"] == {"id": vacancy["vaga_id"], "status": "aberta", "fechada_em": None}
    assert (await julia.ask("GET", "/grupos/vagas?contato=true", headers=reader)).status_code == 403
    assert "contato_whatsapp" in (await julia.ask("GET", "/grupos/vagas?contato=1", headers=trusted)).json()["vagas"][0]
    assert (await julia.ask("GET", "/grupos/vagas?fechadas=true", headers=reader)).json()["vagas"] == []
    days = [
        (await julia.ask("GET", f"/grupos/vagas?dia={each}", headers=reader)).status_code for each in (0, "2026-03-20")
    ]
    assert days == [422, 200]


async def _filled(folder: Path) -> None:
    opened = await open_julia(f"sqlite:///{folder}/julia.db")
    for text in (CHATTER, GOOD):
        await said(opened, text)
        await write(opened.work.database, "UPDATE mensagens_grupo SET message_id = id")
    await opened.work.close()


def test_terminal_lists_messages_and_vacancies(folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    assert batuta(*JULIA, "grupos", "mensagens", "--descartadas")[1].strip() == "no messages"
    assert batuta(*JULIA, "grupos", "vagas")[1].strip() == "no open vacancies"
    code, _, err = batuta(*JULIA, "grupos", "mensagens", "--motivo", "qualquer")
    assert (code, "nao_eh_oferta" in err) == (2, True)
    asyncio.run(_filled(folder))
    counted = batuta(*JULIA, "grupos", "status")[1]
    assert "1  score_baixo: low score" in counted
    assert "batuta grupos mensagens --descartadas" in counted
    listed = batuta(*JULIA, "grupos", "mensagens", "--descartadas")[1]
    assert all(word in listed for word in ("heuristic", "low score", CHATTER))
    assert "Plantão" not in listed
    (vacancy,) = json.loads(batuta(*JULIA, "grupos", "vagas", "--json")[1])["vagas"]
    table = batuta(*JULIA, "grupos", "vagas")[1]
    assert all(vacancy[name] in table for name in ("vaga_id", "revisao_id", "hospital"))
    for name in ("vaga_id", "revisao_id"):
        assert f"vacancy {vacancy['vaga_id']}: open" in batuta(*JULIA, "grupos", "ver", vacancy[name])[1]
    assert "the status: discarded" in batuta(*JULIA, "grupos", "revisao", "--status", "descartada")[1]


def test_dry_run_of_a_text_shows_the_slice_of_each_field(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    text = GOOD.format(dia="20/03/2026")
    code, out, _ = batuta(*JULIA, "grupos", "ler", text, "--em", "2026-03-10", "--json")
    read = json.loads(out)
    assert (code, read["categoria"], read["descartada"], read["estagio"]) == (0, "oferta", False, "extracao")
    (vaga,) = read["vagas"]
    assert (vaga["data"]["valor"], vaga["data"]["palavras"]) == ("2026-03-20", "dia 20/03/2026")
    assert vaga["hospital"] == {
        "valor": "Hospital Inventado",
        "trecho": [text.index("Hospital"), text.index(", dia")],
        "palavras": "Hospital Inventado",
    }
    out = batuta(*JULIA, "grupos", "ler", CHATTER)[1]
    assert "would be discarded at stage heuristic, reason score_baixo: low score" in out
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert "hospital: Hospital Inventado  [" in batuta(*JULIA, "grupos", "ler", "--em", "2026-03-10")[1]
    monkeypatch.setattr("sys.stdin", io.StringIO(" \n"))
    assert batuta(*JULIA, "grupos", "ler")[0] == 2
