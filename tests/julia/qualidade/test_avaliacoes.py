"""Evaluations of conversations, and the guidance derived from them. The tests run on both databases."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.gestao.qualidade import Quality
from app.composition.julia import julia_of
from app.composition.llm import build_llm, guard_llm
from app.contexts.llm.service import Calou, Respondeu, Resposta
from app.contexts.qualidade.avaliacoes import LOTE, AvaliacaoDesconhecida, AvaliacaoMudou
from app.integrations.llm.client import ChatClient
from app.main import build
from app.settings import Settings
from batuta.guard.base import Effect, EffectReport
from batuta.jobs import JobCall
from batuta.queue.outcome import Done, Outcome, Partial, Skipped
from batuta.testing import FakeClock
from simulador.main import create_app
from tests.command import Command
from tests.julia.conversas.test_atendimento import care, open_talk
from tests.julia.envio.sending import LIMITS, MINUTE, OPEN, Office
from tests.julia.line import ScriptedLine
from tests.julia.plantoes.mesa import add_doctors
from tests.julia.qualidade.test_notas import FORM
from tests.julia.tables import add_doctor, one, rows, write
from tests.julia.web.test_api import TOKEN, Julia, open_julia

HOUR = timedelta(hours=1)
UNKNOWN_ID = "00000000-0000-7000-8000-999999999999"
JULIA = ("--app", "app.main:work", "--lang", "en")


@dataclass
class Oracle:
    """A language model with scripted answers, the last of which repeats. It records the questions that it is asked."""

    answers: list[Resposta] = field(default_factory=lambda: [Respondeu(dict(FORM), 1000, 100)])
    orders: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def perguntar(self, instrucao: str, dados: str, schema: Mapping[str, Any]) -> Resposta:
        self.orders.append(instrucao)
        self.asked.append(dados)
        return self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
async def modelled(
    database_url: str, clock: FakeClock, tmp_path: Path, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Office]:
    """Julia's services, with a language model that evaluates the conversations."""
    monkeypatch.setattr("app.composition.julia.build_llm", lambda work, settings: guard_llm(work, settings, oracle))
    clock.step(OPEN - clock.now())
    settings = Settings(
        database_url=database_url, optout_journal=str(tmp_path / "optouts"), llm_daily_budget_usd=1, **LIMITS
    )
    async with build(settings, clock=clock).work as work:
        yield Office(work, clock, ScriptedLine(clock), settings)


def quality(office: Office) -> Quality:
    return julia_of(office.work).quality


def call_of(office: Office, lasts: timedelta = 5 * MINUTE) -> JobCall:
    now = office.clock.now()
    return JobCall(key="test", params={}, started_at=now, deadline=now + lasts, by="ana")


async def evaluate(office: Office, lasts: timedelta = 5 * MINUTE) -> Outcome:
    return await quality(office).avaliacoes.avaliar_conversas_pendentes(call_of(office, lasts))


async def condense(office: Office) -> Outcome:
    return await quality(office).orientacoes.atualizar_prompt_feedback(call_of(office))


async def add_talks(office: Office, count: int, texto: str = "qual o valor?", ended: bool = True) -> list[str]:
    """Add conversations, each with one question and one answer. With ``ended``, an operator has ended them."""
    made = []
    known = len(await rows(office.work.database, "SELECT id FROM clientes"))
    for n in range(known, known + count):
        id = await add_doctor(office.work.database, f"55119{20_000_000 + n:08d}")
        talk = await open_talk(office, id)
        made.append(talk)
        for tipo, autor, said, classe in (
            ("entrada", "medico", texto, "pergunta"),
            ("saida", "julia", "R$ 1.500", None),
        ):
            await write(
                office.work.database,
                "INSERT INTO interacoes (conversation_id, cliente_id, tipo, autor_tipo, conteudo, classe, created_at)"
                " VALUES (:talk, :id, :tipo, :autor, :said, :classe, :now)",
                talk=talk,
                id=id,
                tipo=tipo,
                autor=autor,
                said=said,
                classe=classe,
                now=office.clock.now(),
            )
        await write(
            office.work.database,
            "UPDATE conversations SET ultima_mensagem_em = :now, stage = 'negociando' WHERE id = :talk",
            talk=talk,
            now=office.clock.now(),
        )
        if ended:
            await care(office).encerrar(talk, por="ana", motivo="resolvida")
        office.clock.step(timedelta(seconds=1))
    return made


async def stored(office: Office) -> list[dict[str, Any]]:
    return await rows(office.work.database, "SELECT * FROM avaliacoes_qualidade ORDER BY created_at, id")


def figures(outcome: Outcome) -> dict[str, Any]:
    assert isinstance(outcome, Done | Partial)
    assert isinstance(outcome.result, dict)
    return dict(outcome.result)


async def test_without_a_model_the_rules_evaluate_each_ended_conversation_once_and_say_so(office: Office) -> None:
    (talk,) = await add_talks(office, 1)
    outcome = await evaluate(office)
    assert isinstance(outcome, Done)
    assert outcome.result == {"regras": 1, "modelo": 0, "ilegiveis": 0, "restantes": 0}
    (row,) = await stored(office)
    assert (row["conversa_id"], row["avaliador"], row["modelo"], row["score_geral"]) == (talk, "regras", None, 6)
    assert (row["naturalidade"], row["objetivo"], row["mensagens"]) == (None, 7, 2)
    assert figures(await evaluate(office))["regras"] == 0
    assert len(await stored(office)) == 1


async def test_open_conversation_is_evaluated_when_it_is_quiet_and_one_without_a_reply_never(
    office: Office, doctor: str
) -> None:
    await open_talk(office, doctor)
    await add_talks(office, 1, ended=False)
    assert figures(await evaluate(office))["regras"] == 0
    await office.later(71 * HOUR)
    assert figures(await evaluate(office))["regras"] == 0
    await office.later(2 * HOUR)
    assert figures(await evaluate(office)) == {"regras": 1, "modelo": 0, "ilegiveis": 0, "restantes": 0}


async def test_run_evaluates_a_batch_oldest_first_and_reports_the_remainder(office: Office) -> None:
    talks = await add_talks(office, LOTE + 2)
    outcome = await evaluate(office)
    assert isinstance(outcome, Partial)
    assert (figures(outcome)["regras"], figures(outcome)["restantes"]) == (LOTE, 2)
    assert "2 conversations remain" in str(outcome.reason)
    assert [row["conversa_id"] for row in await stored(office)] == talks[:LOTE]
    assert isinstance(await evaluate(office), Done)
    assert len(await stored(office)) == LOTE + 2


async def test_run_without_time_stops_and_reports_the_remainder(office: Office) -> None:
    await add_talks(office, 2)
    outcome = await evaluate(office, timedelta(seconds=30))
    assert isinstance(outcome, Partial)
    assert (figures(outcome)["restantes"], await stored(office)) == (2, [])


async def test_removed_doctor_is_not_evaluated(office: Office) -> None:
    await add_talks(office, 1)
    await write(office.work.database, "UPDATE clientes SET deleted_at = :now", now=office.clock.now())
    assert figures(await evaluate(office)) == {"regras": 0, "modelo": 0, "ilegiveis": 0, "restantes": 0}


async def test_two_runs_at_once_store_one_evaluation(office: Office) -> None:
    await add_talks(office, 3)
    first, second = await asyncio.gather(evaluate(office), evaluate(office))
    assert figures(first)["regras"] + figures(second)["regras"] == len(await stored(office)) == 3


async def test_model_evaluates_the_masked_conversation_and_its_cost_is_recorded(
    modelled: Office, oracle: Oracle
) -> None:
    await add_talks(modelled, 1, "sou a Médica Teste, 11 98765-4321: qual o valor?")
    assert figures(await evaluate(modelled))["modelo"] == 1
    (row,) = await stored(modelled)
    assert (row["avaliador"], row["modelo"], row["score_geral"], row["persona"]) == ("modelo", "gpt-4o-mini", 8, 9)
    assert row["sugestoes"] == FORM["sugestoes"]
    (asked,) = oracle.asked
    assert "qual o valor?" in asked
    assert not [word for word in ("Teste", "98765") if word in asked]
    (spent,) = await rows(modelled.work.database, "SELECT uso, tokens_input FROM leituras_modelo")
    assert (spent["uso"], spent["tokens_input"]) == ("qualidade", 1000)


async def test_unreadable_answer_changes_nothing_is_reported_and_delays_no_other_conversation(
    modelled: Office, oracle: Oracle
) -> None:
    talks = await add_talks(modelled, 2)
    oracle.answers = [Respondeu({"geral": "ótima"}), Respondeu(dict(FORM))]
    outcome = await evaluate(modelled)
    assert isinstance(outcome, Partial)
    assert figures(outcome) == {"regras": 0, "modelo": 1, "ilegiveis": 1, "restantes": 1}
    assert "1 answers from the model could not be read" in str(outcome.reason)
    assert [row["conversa_id"] for row in await stored(modelled)] == [talks[1]]
    oracle.answers = [Respondeu(None)]
    later = await add_talks(modelled, 1, ended=False)
    await modelled.later(80 * HOUR)
    await evaluate(modelled)
    assert "qual o valor?" in oracle.asked[-1]
    unread = {
        row["conversa_id"]: row["vezes"]
        for row in await rows(modelled.work.database, "SELECT * FROM avaliacoes_ilegiveis")
    }
    assert unread == {talks[0]: 2, later[0]: 1}
    await evaluate(modelled)
    # the third unreadable answer about the first conversation was the last one
    assert figures(await evaluate(modelled))["regras"] == 1
    assert [row["avaliador"] for row in await stored(modelled) if row["conversa_id"] == talks[0]] == ["regras"]


async def test_silent_model_ends_the_run_with_its_reason_and_the_conversation_waits(
    modelled: Office, oracle: Oracle
) -> None:
    await add_talks(modelled, 2)
    oracle.answers = [Calou(EffectReport(Effect.BROKE, "HTTP 503"))]
    outcome = await evaluate(modelled)
    assert isinstance(outcome, Partial)
    assert "HTTP 503" in str(outcome.reason)
    assert (figures(outcome)["restantes"], len(oracle.asked), await stored(modelled)) == (2, 1, [])


async def test_rules_evaluate_when_the_budget_of_the_model_is_spent(modelled: Office, oracle: Oracle) -> None:
    oracle.answers = [Respondeu(dict(FORM), 10_000_000, 0)]
    await add_talks(modelled, 3)
    assert figures(await evaluate(modelled)) == {"regras": 2, "modelo": 1, "ilegiveis": 0, "restantes": 0}


async def test_guidance_is_versioned_never_empty_and_part_of_the_question_to_the_model(
    modelled: Office, oracle: Oracle
) -> None:
    empty = await condense(modelled)
    assert isinstance(empty, Skipped)
    assert "the active guidance stays unchanged" in str(empty.reason)
    await add_talks(modelled, 1)
    await evaluate(modelled)
    assert "Orientação" not in oracle.orders[-1]
    (row,) = await stored(modelled)
    assert figures(await condense(modelled)) == {
        "versao": 1, "mudou": True, "avaliacoes": 1, "correcoes": 0, "exemplos_bons": 1, "exemplos_ruins": 0,
    }  # fmt: skip
    assert figures(await condense(modelled))["mudou"] is False
    await quality(modelled).avaliacoes.corrigir(
        row["id"], 3, por="gestora", motivo="insistiu com a Médica Teste; ligar para 11 98765-4321"
    )
    assert (figures(await condense(modelled))["versao"], figures(await condense(modelled))["mudou"]) == (2, False)
    newest, oldest = await quality(modelled).orientacoes.versoes()
    assert "- (nota 3) insistiu com a [nome] [nome]; ligar para [telefone]" in newest["conteudo"]
    assert (oldest["versao"], oldest["encerrado_em"] is None, newest["encerrado_em"]) == (1, False, None)
    assert (newest["por"], newest["base"]["correcoes"]) == ("ana", 1)
    await add_talks(modelled, 1, ended=False)
    await modelled.later(80 * HOUR)
    await evaluate(modelled)
    assert "Orientação da equipe (versão 2)" in oracle.orders[-1]
    assert newest["conteudo"] in oracle.orders[-1]
    assert (await stored(modelled))[-1]["prompt_versao"] == 2
    await write(
        modelled.work.database, "UPDATE avaliacoes_qualidade SET positivos = '[]', sugestoes = '[]', correcao = NULL"
    )
    assert isinstance(await condense(modelled), Skipped)
    assert len(await quality(modelled).orientacoes.versoes()) == 2


async def test_correction_keeps_the_evaluation_and_records_who_and_why(office: Office) -> None:
    await add_talks(office, 1)
    await evaluate(office)
    (row,) = await stored(office)
    corrected = await quality(office).avaliacoes.corrigir(row["id"], 2, por="gestora", motivo="prometeu demais")
    assert (corrected["score_geral"], corrected["nota_corrigida"], corrected["corrigida_por"]) == (6, 2, "gestora")
    noted = await one(office.work.database, "SELECT * FROM audit_log WHERE action = 'avaliacao.corrigir'")
    assert (noted["actor"], noted["after"]["motivo"]) == ("gestora", "prometeu demais")
    with pytest.raises(AvaliacaoDesconhecida):
        await quality(office).avaliacoes.corrigir(UNKNOWN_ID, 2, por="gestora", motivo="x")


async def test_second_of_two_corrections_at_once_is_refused(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    await add_talks(office, 1)
    await evaluate(office)
    (row,) = await stored(office)
    evaluations = quality(office).avaliacoes
    read = await evaluations.ver(row["id"])
    await evaluations.corrigir(row["id"], 2, por="gestora", motivo="a")

    async def stale(id: str) -> Any:
        return read

    monkeypatch.setattr(evaluations, "ver", stale)
    with pytest.raises(AvaliacaoMudou):
        await evaluations.corrigir(row["id"], 9, por="outra", motivo="b")


async def test_low_scores_of_a_day_are_a_finding(office: Office) -> None:
    await add_talks(office, 5)
    await evaluate(office)
    await write(office.work.database, "UPDATE avaliacoes_qualidade SET score_geral = 4")
    report = await quality(office).alertas.ask()
    assert [each.cause for each in report.findings] == ["alertas.score_qualidade_baixo"]
    await office.later(25 * HOUR)
    assert (await quality(office).alertas.ask()).findings == ()


async def test_simulated_model_over_http(
    database_url: str, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.step(OPEN - clock.now())
    settings = Settings(
        database_url=database_url,
        openai_api_key="chave-de-teste",
        openai_base_url="http://simulador/openai/v1",
        optout_journal=str(tmp_path / "optouts"),
        **LIMITS,
    )
    monkeypatch.setattr("app.composition.julia.build_llm", build_llm)
    transport = httpx2.ASGITransport(app=create_app(clock))
    async with httpx2.AsyncClient(transport=transport, base_url="http://simulador") as world:
        monkeypatch.setattr(ChatClient, "_open", lambda self: world)
        async with build(settings, clock=clock).work as work:
            office = Office(work, clock, ScriptedLine(clock), settings)
            answers = [{"content": "não sei"}, {"content": "```json\n" + json.dumps(FORM) + "\n```"}]
            await world.put("/openai/respostas", json={"respostas": answers})
            await add_talks(office, 2)
            assert figures(await evaluate(office)) == {"regras": 0, "modelo": 1, "ilegiveis": 1, "restantes": 1}
            assert len((await world.get("/recebidos")).json()["openai"]) == 2


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(database_url, BATUTA_LANG="en")
    yield opened
    await opened.work.close()


async def test_evaluations_and_the_guidance_over_http(julia: Julia, tmp_path: Path) -> None:
    settings = Settings(database_url="sqlite:///x.db")
    office = Office(julia.work, julia.work.clock, ScriptedLine(julia.work.clock), settings)  # type: ignore[arg-type]
    assert (await julia.ask("GET", "/api/v1/qualidade/orientacao")).json() == {"versoes": []}
    (doctor,) = await add_doctors(office, 1)
    talk = await open_talk(office, doctor)
    await write(
        office.work.database,
        "INSERT INTO interacoes (conversation_id, cliente_id, tipo, autor_tipo, conteudo, created_at)"
        " VALUES (:talk, :doctor, 'entrada', 'medico', 'oi', :now)",
        talk=talk,
        doctor=doctor,
        now=office.work.clock.now(),
    )
    await care(office).encerrar(talk, por="ana", motivo="resolvida")
    ran = (await julia.ask("POST", "/jobs/avaliar-conversas-pendentes")).json()
    assert (ran["status"], ran["items_processed"], ran["regras"]) == ("ok", 1, 1)
    (listed,) = (await julia.ask("GET", "/api/v1/qualidade?avaliador=regras&ate=9")).json()["avaliacoes"]
    assert (listed["conversa"], listed["avaliador"]) == (talk, "regras")
    path = f"/api/v1/qualidade/{listed['id']}"
    assert (await julia.ask("GET", path)).json() == listed
    corrected = await julia.ask("POST", f"{path}/corrigir", json={"nota": 3, "motivo": "faltou responder"})
    assert (corrected.status_code, corrected.json()["nota_corrigida"]) == (200, 3)
    assert (await julia.ask("POST", f"{path}/corrigir", json={"nota": 11, "motivo": "x"})).status_code == 422
    missing = await julia.ask("GET", f"/api/v1/qualidade/{UNKNOWN_ID}")
    assert (missing.status_code, missing.json()["detail"].split(":")[0]) == (
        404,
        f"Evaluation {UNKNOWN_ID} does not exist",
    )
    made = (await julia.ask("POST", "/jobs/atualizar-prompt-feedback")).json()
    assert (made["versao"], made["mudou"]) == (1, True)
    (version,) = (await julia.ask("GET", "/api/v1/qualidade/orientacao")).json()["versoes"]
    assert "faltou responder" in version["conteudo"]
    async with julia.client("192.0.2.1") as client:
        assert (await client.get("/api/v1/qualidade")).status_code == 401
        with_token = await client.get("/api/v1/qualidade", headers={"Authorization": f"Bearer {TOKEN}"})
        assert with_token.status_code == 200


def test_commands_list_show_correct_and_print_the_guidance(folder: Path, batuta: Command) -> None:
    code, out, _ = batuta(*JULIA, "qualidade", "listar")
    assert (code, "no evaluation yet" in out) == (0, True)
    code, out, _ = batuta(*JULIA, "qualidade", "orientacao")
    assert (code, "no guidance yet" in out) == (0, True)
    code, _, err = batuta(*JULIA, "qualidade", "ver", UNKNOWN_ID)
    assert (code != 0, f"evaluation {UNKNOWN_ID} does not exist" in err) == (True, True)
    asyncio.run(_add_evaluation(folder))
    code, out, _ = batuta(*JULIA, "qualidade", "listar", "--json")
    id = json.loads(out)["avaliacoes"][0]["id"]
    code, out, _ = batuta(*JULIA, "qualidade", "corrigir", id, "3", "--motivo", "faltou responder")
    assert (code, "corrected to 3" in out) == (0, True)
    code, out, _ = batuta(*JULIA, "qualidade", "ver", id)
    assert (code, "score: 4" in out, "faltou responder" in out) == (0, True, True)
    code, out, _ = batuta(*JULIA, "qualidade", "listar", "--ate", "2", "--json")
    assert json.loads(out) == {"avaliacoes": []}


async def _add_evaluation(folder: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{folder}/data/julia.db", optout_journal=str(folder / "optouts"))
    async with build(settings).work as work:
        office = Office(work, work.clock, ScriptedLine(work.clock), settings)  # type: ignore[arg-type]
        (doctor,) = await add_doctors(office, 1)
        talk = await open_talk(office, doctor)
        await write(
            work.database,
            "INSERT INTO avaliacoes_qualidade (id, conversa_id, avaliador, score_geral, positivos, negativos, sugestoes, mensagens,"
            " created_at) VALUES (:id, :talk, 'regras', 4, '[]', '[]', '[]', 1, :now)",
            id=work.ids.new(),
            talk=talk,
            now=work.clock.now(),
        )
