"""A language model supplements the rules, on both databases. It is asked once about the fields that the rules could not
read, and no value that it invents is stored.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.llm import build_llm, guard_llm
from app.contexts.agendamentos.service import QUEUE
from app.contexts.llm.service import Calou, Respondeu, Resposta
from app.integrations.llm.client import ChatClient
from app.main import build
from batuta.guard.base import Effect, EffectReport
from batuta.kernel.storage.json import Json
from batuta.testing import FakeClock
from simulador.main import create_app
from tests.julia.agendamentos.test_service import READ, START, Office, settings_of
from tests.julia.esteira.injecoes import INJECOES
from tests.julia.tables import one, rows

UNCLEAR = "a casa verde 77 em Recife"
UNREADABLE = "doc 5-44-332-1-00"
HOUSE: dict[str, Json] = {
    "logradouro": "a casa verde", "numero": "77", "complemento": None, "bairro": "Boa Viagem", "cidade": "RECIFE", "uf": "PE",
    "cep": "50000-000",
}  # fmt: skip
PAPERS: dict[str, Json] = {
    "cpf": "52998224725", "rg": "5.443.321-00", "orgao_emissor": "SSP", "uf_emissor": None, "cns": None
}  # fmt: skip
SILENT = Calou(EffectReport(Effect.BROKE, "HTTP 503"))


@dataclass
class Oracle:
    """A language model with scripted answers. It records the questions that it is asked."""

    answer: Resposta = field(default_factory=lambda: Respondeu({"endereco": HOUSE, "documento": PAPERS}, 1000, 100))
    fails: int = 0
    asked: list[list[str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    async def perguntar(self, instrucao: str, dados: str, schema: Mapping[str, Any]) -> Resposta:
        self.asked.append([*schema["properties"]])
        self.texts.append(dados)
        if self.fails:
            self.fails -= 1
            return SILENT
        return self.answer


@pytest.fixture
async def oracle() -> Oracle:
    return Oracle()


@pytest.fixture(autouse=True)
def model(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every Julia that a test builds use the scripted language model."""
    monkeypatch.setattr("app.composition.julia.build_llm", lambda work, settings: guard_llm(work, settings, oracle))


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Office]:
    clock, settings = (
        FakeClock(START),
        settings_of(database_url, address_model_enabled=True, document_model_enabled=True),
    )
    async with build(settings, clock).work as work:
        yield Office(work, clock, settings)


async def tried(julia: Office, *waits: int) -> None:
    for wait in waits:
        await julia.clock.advance(timedelta(seconds=wait))
        await julia.work_on()


async def test_model_is_asked_only_for_fields_that_the_rules_cannot_read(julia: Office, oracle: Oracle) -> None:
    await julia.criar(endereco_completo="Rua Um, 1, Centro, Campinas/SP", documento_completo="CPF 529.982.247-25")
    await julia.criar(nome_paciente="Ninguém", endereco_completo="não informado", documento_completo="sem documento")
    await julia.work_on()
    assert oracle.asked == []
    await julia.criar(nome_paciente="Outra", endereco_completo=UNCLEAR, documento_completo="CPF 529.982.247-25")
    await julia.work_on()
    assert oracle.asked == [["endereco"]]
    assert "529.982" not in oracle.texts[0]  # a field without a question is not sent
    read = await one(julia.database, f"{READ} WHERE nome_paciente = 'Outra'")
    # The number is in the text. The CEP, the neighbourhood and the state are not, because a model may invent them.
    assert read["endereco_normalizado"] | {"avisos": []} == {
        "logradouro": "A Casa Verde", "numero": "77", "complemento": None, "bairro": None, "cidade": "Recife", "uf": None,
        "cep": None, "referencia": None, "avisos": [], "fonte": "modelo",
    }  # fmt: skip
    assert read["cpf"] == "52998224725"


async def test_one_question_holds_every_missing_field_each_between_its_own_marks(julia: Office, oracle: Oracle) -> None:
    await julia.criar(endereco_completo=UNCLEAR, documento_completo=UNREADABLE)
    await julia.work_on()
    assert oracle.asked == [["endereco", "documento"]]
    first, second = re.findall(r"\w+:\n([0-9a-f]{16})\n.+\n\1", oracle.texts[0])
    assert first != second
    read = await julia.one()
    # The CPF of the answer is valid, but not in the text. The RG is in the text, digit by digit.
    assert (read["normalization_status"], read["cpf"], read["rg"]) == ("completed", None, "544332100")
    assert read["documento_normalizado"]["orgao_emissor"] is None
    spent = await rows(julia.database, "SELECT uso, resposta, tokens_input FROM leituras_modelo")
    assert [(row["uso"], row["resposta"], row["tokens_input"]) for row in spent] == [("agendamentos", {}, 1000)]


@pytest.mark.parametrize(
    ("flags", "asked"),
    [
        ({}, []),
        ({"address_model_enabled": True}, [["endereco"]]),
        ({"address_model_enabled": True, "document_model_enabled": True}, [["endereco", "documento"]]),
        ({"document_model_enabled": True}, [["documento"]]),
        (
            {"address_model_enabled": True, "document_model_enabled": True, "document_normalization_enabled": False},
            [["endereco"]],
        ),
    ],
)
async def test_no_field_is_sent_that_the_flags_do_not_allow(
    database_url: str, oracle: Oracle, flags: dict[str, bool], asked: list[list[str]]
) -> None:
    clock, settings = FakeClock(START), settings_of(database_url, **flags)
    async with build(settings, clock).work as work:
        office = Office(work, clock, settings)
        await office.criar(endereco_completo=UNCLEAR, documento_completo=UNREADABLE)
        await office.work_on()
        assert oracle.asked == asked
        assert (await office.one())["normalization_status"] == "completed"


async def test_partial_reading_is_kept_and_the_rest_retried_after_60_and_120_seconds(
    julia: Office, oracle: Oracle
) -> None:
    oracle.fails = 99
    await julia.criar(endereco_completo="Rua Um, 1, Centro, Campinas/SP", documento_completo=UNREADABLE)
    assert await julia.work_on() == 1
    kept = await julia.one()
    assert (kept["normalization_status"], kept["endereco_normalizado"]["cidade"]) == ("pending", "Campinas")
    await julia.clock.advance(timedelta(seconds=59))
    assert await julia.work_on() == 0
    await julia.clock.advance(timedelta(seconds=2))
    assert await julia.work_on() == 1
    await julia.clock.advance(timedelta(seconds=118))
    assert await julia.work_on() == 0
    await julia.clock.advance(timedelta(seconds=3))
    assert await julia.work_on() == 1
    failed = await julia.one()
    assert (failed["normalization_status"], failed["normalization_error"]) == (
        "failed",
        "the model could not be called",
    )
    assert failed["endereco_normalizado"]["cidade"] == "Campinas"
    await julia.clock.advance(timedelta(hours=1))
    assert (await julia.work_on(), oracle.asked) == (0, [["documento"]] * 3)


async def test_open_circuit_of_the_model_delays_appointments_without_an_attempt(julia: Office, oracle: Oracle) -> None:
    oracle.answer = SILENT
    for n in range(12):
        await julia.criar(nome_paciente=f"Pessoa {n}", endereco_completo=UNCLEAR)
    await julia.work_on()
    assert len(oracle.asked) < 12  # the circuit opened, so there were no further queries
    assert (await julia.agendamentos.contagem())["pending"] == 12
    oracle.answer = Oracle().answer
    await tried(julia, *[300] * 6)
    assert await julia.agendamentos.contagem() == {
        "pending": 0, "processing": 0, "completed": 12, "failed": 0, "skipped": 0,
    }  # fmt: skip


async def test_rules_work_alone_when_the_daily_budget_is_spent(database_url: str, oracle: Oracle) -> None:
    clock, settings = (
        FakeClock(START),
        settings_of(database_url, address_model_enabled=True, llm_daily_budget_usd=0.0001),
    )
    async with build(settings, clock).work as work:
        office = Office(work, clock, settings)
        for n in range(2):
            await office.criar(nome_paciente=f"Pessoa {n}", endereco_completo=f"{UNCLEAR} {n}")
            await office.work_on()
        assert len(oracle.asked) == 1
        assert (await office.agendamentos.contagem())["completed"] == 2


async def test_unusable_answer_is_asked_for_again(julia: Office, oracle: Oracle) -> None:
    good, oracle.answer = oracle.answer, Respondeu(None, 10, 1)
    await julia.criar(endereco_completo=UNCLEAR)
    await julia.work_on()
    assert (await julia.one())["normalization_status"] == "pending"
    oracle.answer = good
    await tried(julia, 61)
    assert (await julia.one())["endereco_normalizado"]["logradouro"] == "A Casa Verde"


async def test_failed_appointments_are_enqueued_again(julia: Office, oracle: Oracle) -> None:
    oracle.fails = 3
    id = await julia.criar(endereco_completo=UNCLEAR)
    await tried(julia, 0, 61, 121)
    assert (await julia.one())["normalization_status"] == "failed"
    first = (await julia.agendamentos.um(id))["normalization_job_id"]
    assert (await julia.work.queues[QUEUE].pulse()).dead == 1
    assert len(await julia.agendamentos.reprocessar(limit=10, by="alguém")) == 1
    assert (await julia.one())["normalization_status"] == "pending"
    assert (await julia.work.queues[QUEUE].pulse()).dead == 0  # the dead item is resolved
    status = await julia.work.status(first)
    assert status is not None
    assert (status.status, status.error) == ("cancelled", "the model could not be called")
    await tried(julia, 0, 301)  # the circuit was open after three failures
    assert (await julia.one())["normalization_status"] == "completed"
    assert await julia.agendamentos.reprocessar(limit=10, by="alguém") == []


async def test_reading_of_an_outdated_text_is_not_written(julia: Office, oracle: Oracle) -> None:
    id = await julia.criar(endereco_completo=UNCLEAR)
    answer, seen = oracle.perguntar, []

    async def meanwhile(instrucao: str, dados: str, schema: Mapping[str, Any]) -> Resposta:
        seen.append((await julia.one())["normalization_status"])
        await julia.agendamentos.alterar(id, {"endereco_completo": "Rua Um, 1, Centro, Campinas/SP"}, by="alguém")
        return await answer(instrucao, dados, schema)

    oracle.perguntar = meanwhile  # type: ignore[method-assign]
    await julia.work_on()
    assert seen == ["processing"]
    read = await julia.one()
    assert (read["normalization_status"], read["endereco_normalizado"]["cidade"]) == ("completed", "Campinas")
    assert await julia.work_on() == 0


async def test_reading_that_exceeds_its_timeout_fails_at_once_and_says_so(database_url: str, oracle: Oracle) -> None:
    async def never(instrucao: str, dados: str, schema: Mapping[str, Any]) -> Resposta:
        await asyncio.Event().wait()
        raise AssertionError

    oracle.perguntar = never  # type: ignore[method-assign]
    settings = settings_of(database_url, address_model_enabled=True, arq_job_timeout=6)
    async with build(settings).work as work:
        office = Office(work, FakeClock(START), settings)
        await office.criar(endereco_completo=UNCLEAR)
        await office.work_on()
        failed = await one(work.database, f"{READ.replace(' FROM', ', normalization_job_id AS job FROM')}")
        assert (failed["normalization_status"], failed["normalization_error"]) == ("failed", "Job timeout exceeded")
        status = await work.status(failed["job"])
        assert status is not None
        assert (status.status, status.error, status.attempts) == ("failed", "Job timeout exceeded", 1)


async def test_log_names_each_step_by_ids_only(julia: Office, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="julia.agendamentos")
    id = await julia.criar(endereco_completo=UNCLEAR, documento_completo=UNREADABLE)
    await julia.work_on()
    assert [record.getMessage() for record in caplog.records if record.name == "julia.agendamentos"] == [
        f"Starting normalization for appointment {id}",
        f"Normalizing address for appointment {id}",
        f"Normalizing documents for appointment {id}",
        f"Address normalized for appointment {id}",
        f"Documents normalized for appointment {id}",
        f"Normalization completed successfully for {id}",
    ]


async def test_prompt_injection_in_a_cell_forges_no_field(tmp_path: Path, oracle: Oracle) -> None:
    forged: Json = {**HOUSE, "logradouro": "Rua Forjada", "cidade": "Cidade Forjada"}
    papers: Json = {**PAPERS, "rg": "99887766"}
    oracle.answer = Respondeu(
        {"endereco": forged, "documento": papers, "acao": "enviar", "sql": "DROP TABLE appointments"}
    )
    values = {"address_model_enabled": True, "document_model_enabled": True, "llm_per_minute": 1000}
    clock, settings = FakeClock(START), settings_of(f"sqlite:///{tmp_path}/test.db", **values)
    async with build(settings, clock).work as work:
        office = Office(work, clock, settings)
        for n, text in enumerate(INJECOES):
            await office.criar(nome_paciente=f"Pessoa {n}", endereco_completo=text, documento_completo=text)
        await office.work_on()
        assert len(oracle.asked) > 100
        read = await rows(work.database, READ)
        assert {row["normalization_status"] for row in read} == {"completed"}
        found = json.dumps([[row["endereco_normalizado"], row["documento_normalizado"]] for row in read])
        assert not re.search(r"Forjada|99887766|52998224725|50000-000|Boa Viagem|Recife", found)
        assert {row["cpf"] for row in read} == {None}
        assert await rows(work.database, "SELECT id FROM fila_mensagens") == []


async def test_failed_question_over_http_is_asked_again_and_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, values = (
        FakeClock(START),
        {"address_model_enabled": True, "openai_api_key": "chave", "openai_base_url": "http://simulador/openai/v1"},
    )
    settings = settings_of(f"sqlite:///{tmp_path}/test.db", **values)
    monkeypatch.setattr("app.composition.julia.build_llm", build_llm)
    transport = httpx2.ASGITransport(app=create_app(clock))
    async with httpx2.AsyncClient(transport=transport, base_url="http://simulador") as world:
        monkeypatch.setattr(ChatClient, "_open", lambda self: world)
        async with build(settings, clock).work as work:
            office = Office(work, clock, settings)
            answers = [{"status": 503}, {"content": {"endereco": HOUSE}}]
            await world.put("/openai/respostas", json={"respostas": answers})
            await office.criar(endereco_completo=UNCLEAR, documento_completo=UNREADABLE)
            await tried(office, 0, 61)
            assert (await office.one())["endereco_normalizado"]["fonte"] == "modelo"
            asked = (await world.get("/recebidos")).json()["openai"]
            assert len(asked) == 2
            assert UNREADABLE not in json.dumps(asked)
