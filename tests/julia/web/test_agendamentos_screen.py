"""Appointments in the dashboard: upload, proposed columns, progress, and problems listed by line."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from batuta.testing import FakeClock
from tests.julia.tables import one, rows, write
from tests.julia.web.painel import EVERYTHING, OPERATOR, READER, Painel, act, open_painel, proof_in, text_of

KNOWN = "Nome;Data;Endereco;Documento\r\nPessoa Fictícia;11/03/2026;Rua Um 1;-\r\n;12/03/2026;Rua Dois 2;-\r\n"
UNKNOWN = KNOWN.replace("Data", "Quando").partition("\r\n;")[0] + "\r\n"


@pytest.fixture
async def painel(database_url: str, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Painel]:
    async with open_painel(database_url, clock, tmp_path) as opened:
        yield opened


async def upload(client: httpx2.AsyncClient, content: str, colunas: str = "") -> httpx2.Response:
    form = await client.get("/painel/acoes/agendamentos.importar")
    file = {"arquivo": ("Paciente Fulana.csv", content.encode(), "text/csv")}
    data = {"colunas": colunas, "csrf": proof_in(form)}
    return await client.post("/painel/acoes/agendamentos.importar", data=data, files=file)


async def test_uploaded_file_is_imported_with_its_problems_by_line(painel: Painel) -> None:
    async with painel.browser(*OPERATOR) as operator:
        who = f"token pessoa{painel.said}"
        done = await upload(operator, KNOWN)
        assert done.status_code == 303, text_of(done)
        page = await operator.get(done.headers["location"])
        listed = await operator.get("/painel/agendamentos?mostrar=dados")
    assert ("importados: 1" in text_of(page), "linha 3" in text_of(page)) == (True, True)
    assert "sem nome de paciente" in text_of(page)
    for each in (page, listed):
        assert [sign for sign in ("Pessoa Fictícia", "Fulana", "Rua Um") if sign in each.text] == []
    stored = await one(painel.database, "SELECT * FROM importacoes")
    assert (stored["status"], stored["imported"], stored["arquivo"]) == ("concluida", 1, "Paciente Fulana.csv")
    assert (who, "access.import", "agendamentos.importar") in await painel.audit("access.")
    async with painel.browser(*EVERYTHING) as person:
        assert "Paciente Fulana.csv" in (await person.get("/painel/agendamentos?mostrar=dados")).text


async def test_unknown_title_is_refused_with_a_proposal_that_the_operator_confirms(painel: Painel) -> None:
    async with painel.browser(*OPERATOR) as operator:
        refused = await upload(operator, UNKNOWN)
        assert refused.status_code == 422
        alert = refused.text.partition('role="alert">')[2].partition("</p>")[0]
        assert ("confira as colunas propostas abaixo" in alert, "--coluna" in refused.text) == (True, False)
        proposed = refused.text.partition("<textarea")[2].partition(">")[2].partition("</textarea>")[0]
        assert proposed.strip() == "Quando=data"
        assert not await rows(painel.database, "SELECT id FROM importacoes")
        done = await upload(operator, UNKNOWN, proposed)
        assert done.status_code == 303, text_of(done)
    assert (await one(painel.database, "SELECT imported FROM importacoes"))["imported"] == 1


@pytest.mark.parametrize(("content", "colunas"), [("", ""), ("isto não é planilha", ""), (KNOWN, "X=inexistente")])
async def test_wrong_file_or_column_is_refused_with_the_next_step(painel: Painel, content: str, colunas: str) -> None:
    async with painel.browser(*OPERATOR) as operator:
        refused = await upload(operator, content, colunas)
    assert (refused.status_code, 'role="alert"' in refused.text) == (422, True)
    assert not await rows(painel.database, "SELECT id FROM importacoes")


async def test_failed_readings_are_read_again(painel: Painel) -> None:
    async with painel.browser(*OPERATOR) as operator:
        await upload(operator, KNOWN)
        await write(painel.database, "UPDATE appointments SET normalization_status = 'failed'")
        assert "agendamentos.reler" in (await operator.get("/painel/agendamentos")).text
        assert (await act(operator, "agendamentos.reler")).status_code == 303
    assert (await one(painel.database, "SELECT normalization_status FROM appointments"))[
        "normalization_status"
    ] == "pending"
    assert len(await painel.audit("agendamentos.reler")) == 1


@pytest.mark.parametrize(("language", "label"), [("pt-BR", "Repetir leituras"), ("en", "Retry parsing")])
async def test_repetition_counts_only_the_readings_that_it_repeats(painel: Painel, language: str, label: str) -> None:
    async with painel.browser(*OPERATOR) as operator:
        await upload(operator, KNOWN)
        counts = {}
        for change in (
            "normalization_status = 'failed'",
            "normalization_status = 'skipped', endereco_completo = NULL, cep = NULL, documento_completo = NULL",
        ):
            await write(painel.database, f"UPDATE appointments SET {change}")
            form = text_of(await operator.get(f"/painel/acoes/agendamentos.reler?lang={language}"))
            assert label in form
            counts[change.split("'")[1]] = " ".join(re.findall(r": (\d+) \(", form))
        await act(operator, "agendamentos.reler")
    assert counts == {"failed": "1", "skipped": "0"}
    assert (await one(painel.database, "SELECT normalization_status AS now FROM appointments"))["now"] == "skipped"


async def test_page_says_how_to_begin_and_offers_no_import_to_readers(painel: Painel) -> None:
    async with painel.browser(*READER) as reader:
        page = await reader.get("/painel/agendamentos")
        assert (await reader.get("/painel/agendamentos/x")).status_code == 404
    assert "Nenhuma planilha importada" in text_of(page)
    assert "agendamentos.importar" not in page.text
    assert "/api/v1/appointments/export" in page.text
