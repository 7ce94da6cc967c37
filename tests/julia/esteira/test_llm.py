"""A language model supplements the rules, on both databases. The model is queried once about each uncertain message.
While the model is unavailable, uncertain messages wait.
"""

import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.catalogue import migrations
from app.composition.conversas import build_messages
from app.composition.grupos import add_groups, limiares
from app.composition.julia import add_guards
from app.composition.llm import guard_llm
from app.contexts.esteira.leituras import LeitorPorRegras
from app.contexts.esteira.llm import LeitorComLlm
from app.contexts.leitura_grupos.api import Categoria, Leitura
from app.contexts.llm.service import Calou, Respondeu, Resposta
from app.contexts.nomes.dicionario import Dicionario
from app.integrations.llm.client import ChatClient
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.engine.extension import Extension
from batuta.guard.base import Effect, EffectReport
from batuta.kernel.storage.json import Json
from batuta.testing import FakeClock
from simulador.main import create_app
from tests.julia.esteira.injecoes import INJECOES
from tests.julia.grupos.bancada import Bancada

# The rules are uncertain about it: no shift, no price, no contact.
DOUBTFUL = "Pessoal, alguém disponível pro Hospital Inventado sexta?"
ANSWER: dict[str, Json] = {
    "eh_oferta": True,
    "confianca": 0.9,
    "vagas": [
        {
            "hospital": "Hospital Inventado", "cidade": None, "uf": None, "especialidade": None, "data": "2026-01-09",
            "data_texto": "sexta", "periodo": "diurno", "hora_inicio": None, "hora_fim": None, "valor": None, "valor_texto": None,
            "contato_nome": None, "contato_whatsapp": None,
        }
    ],
}  # fmt: skip


@dataclass
class Oraculo:
    """A language model with scripted answers. It records the questions that it is asked."""

    answer: Resposta = field(default_factory=lambda: Respondeu(ANSWER, 1000, 100))
    asked: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)

    async def perguntar(self, instrucao: str, dados: str, schema: Mapping[str, Any]) -> Resposta:
        self.orders.append(instrucao)
        self.asked.append(dados)
        return self.answer


async def unsure(texto: str, mensagem: Any) -> Any:
    """Stand in for the rules: classify every message as a conversation, with low confidence."""
    return Leitura(False, 0.5, Categoria.CONVERSA, "unsure")


@pytest.fixture
def oraculo() -> Oraculo:
    return Oraculo()


async def opened(url: str, clock: FakeClock, oraculo: Oraculo, rules: Any = unsure, **settings: Any) -> Bancada:
    values = Settings(database_url=url, openai_api_key="chave-de-teste", grupos_limiar_heuristica=0.0, **settings)
    work = Batuta(url, clock=clock, extension=Extension(migrations=migrations()), settings=values)
    add_guards(work, values)
    known = Dicionario(work.database, work.clock)
    chosen = LeitorPorRegras(known, work.zone) if rules is None else rules
    guarded, people = guard_llm(work, values, oraculo), values.llm_personal_data
    reads = LeitorComLlm(chosen, guarded, known, work.zone, limiares(values), com_pessoas=people)
    groups = add_groups(work, values, build_messages(work, values).conversas, leitor=reads)
    await work.open()
    return Bancada(work, groups, clock, {})


@pytest.fixture
async def mesa(database_url: str, clock: FakeClock, oraculo: Oraculo) -> AsyncIterator[Bancada]:
    bench = await opened(database_url, clock, oraculo)
    yield bench
    await bench.work.close()


async def test_model_reads_an_uncertain_message_that_becomes_a_vacancy(mesa: Bancada, oraculo: Oraculo) -> None:
    await mesa.dizem(DOUBTFUL)
    await mesa.trabalha()
    assert len(oraculo.asked) == 1  # one answer for classification and extraction
    first, text, last = oraculo.asked[0].split("\n")
    assert (first == last, text) == (True, DOUBTFUL)
    assert "2026-01-05" in oraculo.orders[0]
    row = await mesa.one("SELECT status, data, hospital_raw FROM vagas_grupo")
    assert (row["status"], row["data"].isoformat(), row["hospital_raw"]) == (
        "importada",
        "2026-01-09",
        "Hospital Inventado",
    )
    spent = await mesa.one("SELECT tokens_input, tokens_output, custo_usd FROM leituras_modelo")
    assert (spent["tokens_input"], spent["tokens_output"]) == (1000, 100)
    assert spent["custo_usd"] == pytest.approx(0.00021)


async def test_model_is_asked_once_for_a_message_forwarded_to_thirty_groups(mesa: Bancada, oraculo: Oraculo) -> None:
    for n in range(30):
        await mesa.dizem(DOUBTFUL, grupo=f"1203630000000{n:05d}@g.us")
    for _ in range(4):
        await mesa.trabalha()
        mesa.clock.step(timedelta(seconds=5))
    assert len(oraculo.asked) == 1
    assert set(await mesa.fila()) == {"finalizado"}
    assert (await mesa.one("SELECT qtd_fontes FROM vagas_grupo WHERE status = 'importada'"))["qtd_fontes"] == 30
    assert len(await mesa.rows("SELECT id FROM vagas")) == 1


async def test_same_text_on_another_day_is_another_question(mesa: Bancada, oraculo: Oraculo) -> None:
    for _ in range(2):
        await mesa.dizem(DOUBTFUL)
        await mesa.trabalha()
        mesa.clock.step(timedelta(days=1))
    assert len(oraculo.asked) == 2


@pytest.mark.parametrize("effect", [Effect.BROKE, Effect.TIMED_OUT, Effect.UNREACHED, Effect.MISTAKE])
async def test_messages_wait_during_an_outage_of_the_model_and_none_is_lost(
    mesa: Bancada, oraculo: Oraculo, effect: Effect
) -> None:
    oraculo.answer = Calou(EffectReport(effect, "HTTP 503"))
    for n in range(5):
        await mesa.dizem(f"{DOUBTFUL} {n}")
    for _ in range(20):
        await mesa.trabalha()
        mesa.clock.step(timedelta(minutes=10))
    rows = await mesa.rows("SELECT estagio, tentativas FROM fila_processamento_grupos")
    assert [tuple(row.values()) for row in rows] == [("classificacao", 0)] * 5
    oraculo.answer = Respondeu({"eh_oferta": False, "confianca": 0.9, "vagas": []})
    for _ in range(8):
        mesa.clock.step(timedelta(minutes=10))
        await mesa.clock.advance(timedelta(minutes=10))
        await mesa.trabalha()
    assert set(await mesa.fila()) == {"descartado"}


async def test_circuit_holds_questions_to_a_broken_model(mesa: Bancada, oraculo: Oraculo) -> None:
    oraculo.answer = Calou(EffectReport(Effect.BROKE, "HTTP 500"))
    for n in range(12):
        await mesa.dizem(f"{DOUBTFUL} {n}")
    await mesa.operacao.ciclo(100, 2)
    assert len(oraculo.asked) <= 6  # the circuit opened, so there were no further queries
    waits = await mesa.rows("SELECT ultimo_erro FROM fila_processamento_grupos")
    assert any("circuit" in (row["ultimo_erro"] or "") for row in waits)


async def test_rules_work_alone_when_the_daily_budget_is_spent(
    database_url: str, clock: FakeClock, oraculo: Oraculo
) -> None:
    mesa = await opened(database_url, clock, oraculo, llm_daily_budget_usd=0.0003)
    try:
        for n in range(4):
            await mesa.dizem(f"{DOUBTFUL} {n}")
            await mesa.trabalha()
        assert len(oraculo.asked) == 2
        assert set(await mesa.fila()) == {"finalizado", "descartado"}
        clock.step(timedelta(days=1))
        await mesa.dizem(f"{DOUBTFUL} amanhã")
        await mesa.trabalha()
        assert len(oraculo.asked) == 3
    finally:
        await mesa.work.close()


async def test_model_is_not_asked_about_certain_messages(tmp_path: Path, clock: FakeClock, oraculo: Oraculo) -> None:
    mesa = await opened(f"sqlite:///{tmp_path}/test.db", clock, oraculo, rules=None)
    try:
        await mesa.dizem("Plantão de pediatria no Hospital Inventado, dia 20/01, 19h às 7h, R$ 1.500")
        await mesa.trabalha()
        assert oraculo.asked == []
        assert len(await mesa.rows("SELECT id FROM vagas")) == 1
    finally:
        await mesa.work.close()


async def test_prompt_injection_forges_no_field(tmp_path: Path) -> None:
    forged: dict[str, Json] = {
        "hospital": "Hospital Forjado", "cidade": "Recife", "uf": "PE", "especialidade": "pediatria", "data": "2099-01-01",
        "data_texto": "sempre", "periodo": "diurno", "hora_inicio": "07:00", "hora_fim": "19:00", "valor": 99999,
        "valor_texto": "noventa mil", "contato_nome": "Golpista", "contato_whatsapp": "5511911112222",
    }  # fmt: skip
    obedient = Oraculo(
        Respondeu({"eh_oferta": True, "confianca": 1.0, "vagas": [forged], "acao": "enviar", "sql": "DROP TABLE vagas"})
    )
    clock = FakeClock(datetime.fromisoformat("2030-03-10T09:00:00-03:00"))
    mesa = await opened(f"sqlite:///{tmp_path}/test.db", clock, obedient, llm_per_minute=1000)
    try:
        for n, texto in enumerate(INJECOES):
            await mesa.dizem(texto, id=f"3EB0{n:04d}")
        for _ in range(3):
            await mesa.trabalha()
            clock.step(timedelta(minutes=2))
        assert len(obedient.asked) > 150  # the heuristic discarded the other messages
        assert set(await mesa.fila()) <= {"finalizado", "descartado"}
        assert await mesa.rows("SELECT id FROM vagas_grupo") == []
        for table in ("vagas", "hospitais", "fila_mensagens", "campanhas"):
            assert await mesa.rows(f"SELECT * FROM {table}") == []
    finally:
        await mesa.work.close()


def nested(depth: int) -> Json:
    return [] if depth == 0 else [nested(depth - 1)]


@pytest.mark.parametrize(
    "lie",
    [
        {"confianca": 10**400}, {"confianca": math.nan}, {"confianca": math.inf}, {"nobody reads this": math.nan},
        {"nobody reads this": nested(80)}, {"nobody reads this": "a\x00b"}, {"nobody reads this": "a\ud800b"}, {"a\ud800b": 1},
    ],
    ids=lambda each: ascii(each)[:40],
)  # fmt: skip
async def test_answer_that_cannot_be_stored_is_paid_once_and_the_rules_decide(
    mesa: Bancada, oraculo: Oraculo, clock: FakeClock, lie: dict[str, Json]
) -> None:
    oraculo.answer = Respondeu({**ANSWER, **lie}, 1000, 100)
    for _ in range(2):
        await mesa.dizem(DOUBTFUL)
        await mesa.trabalha()
        await clock.advance(timedelta(minutes=20))
    assert set(await mesa.fila()) == {"descartado"}
    assert len(oraculo.asked) == 1
    spent = await mesa.one("SELECT resposta, custo_usd FROM leituras_modelo")
    assert spent["custo_usd"] == pytest.approx(0.00021)
    assert spent["resposta"] in ({}, "{}")


# The protocol, tested against the simulator


@pytest.fixture
async def client(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[ChatClient, httpx2.AsyncClient]]:
    transport = httpx2.ASGITransport(app=create_app(clock))
    async with httpx2.AsyncClient(transport=transport, base_url="http://simulador") as world:
        line = ChatClient("http://simulador/openai/v1", "chave", "modelo-de-teste", clock)
        monkeypatch.setattr(line, "_open", lambda: world)
        yield line, world


async def prepared(world: httpx2.AsyncClient, *answers: dict[str, Json]) -> None:
    assert (await world.put("/openai/respostas", json={"respostas": list(answers)})).status_code == 204


async def test_question_has_a_fixed_instruction_the_data_and_a_strict_schema(
    client: tuple[ChatClient, httpx2.AsyncClient],
) -> None:
    asking, world = client
    await prepared(world, {"content": {"eh_oferta": False, "confianca": 0.9, "vagas": []}})
    answer = await asking.perguntar("ordem", "dados", {"type": "object"})
    assert isinstance(answer, Respondeu)
    assert answer.documento == {"eh_oferta": False, "confianca": 0.9, "vagas": []}
    assert answer.entrada > 0
    assert answer.saida > 0
    (asked,) = (await world.get("/recebidos")).json()["openai"]
    assert [each["role"] for each in asked["body"]["messages"]] == ["system", "user"]
    assert asked["body"]["response_format"]["json_schema"] == {
        "name": "leitura",
        "strict": True,
        "schema": {"type": "object"},
    }
    assert "tools" not in asked["body"]
    assert "chave" not in repr(asking)


async def test_answer_in_a_code_fence_is_read_and_one_without_json_is_empty(
    client: tuple[ChatClient, httpx2.AsyncClient],
) -> None:
    asking, world = client
    await prepared(world, {"content": 'Claro:\n```json\n{"eh_oferta": true}\n```'}, {"content": "não sei"})
    first, second = [await asking.perguntar("o", "d", {}) for _ in range(2)]
    assert isinstance(first, Respondeu)
    assert isinstance(second, Respondeu)
    assert (first.documento, second.documento) == ({"eh_oferta": True}, None)


async def test_answer_with_a_lone_surrogate_is_read_and_its_cost_counted(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = rb'{"choices": [{"message": {"content": "{\"x\": \"\ud800\"}"}}], "usage": {"completion_tokens": 7}}'
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=said))
    async with httpx2.AsyncClient(transport=transport) as world:
        asking = ChatClient("http://modelo", "chave", "modelo-de-teste", clock)
        monkeypatch.setattr(asking, "_open", lambda: world)
        answer = await asking.perguntar("o", "d", {})
    assert isinstance(answer, Respondeu)
    assert answer.saida == 7


@pytest.mark.parametrize(
    ("status", "effect"),
    [(500, Effect.BROKE), (503, Effect.BROKE), (429, Effect.BROKE), (400, Effect.MISTAKE), (401, Effect.MISTAKE)],
)
async def test_http_error_of_the_model_becomes_its_effect(
    client: tuple[ChatClient, httpx2.AsyncClient], clock: FakeClock, status: int, effect: Effect
) -> None:
    asking, world = client
    await prepared(world, {"status": status})
    answer = await asking.perguntar("o", "d", {})
    assert isinstance(answer, Calou)
    assert (answer.report.effect, answer.report.error) == (effect, f"HTTP {status}")
    assert answer.report.retry_at == (clock.now() + timedelta(seconds=30) if status == 429 else None)


async def test_unreachable_model_is_reported_as_unreached(clock: FakeClock) -> None:
    asking = ChatClient("http://127.0.0.1:1/v1", "chave", "modelo-de-teste", clock)
    answer = await asking.perguntar("o", "d", {})
    await asking.close()
    assert isinstance(answer, Calou)
    assert answer.report.effect is Effect.UNREACHED


PEOPLE = (
    "Pessoal, alguém disponível pro Hospital Inventado sexta?\nFalar com Fulana Inventada 11 98765-4321\n"
    "Dra. Beltrana Fictícia, CPF 529.982.247-25, fulana@exemplo.com.br\nRua das Acácias Inventadas, 123"
)
SIGNS = ("Fulana", "98765", "4321", "Beltrana", "529.982", "fulana@", "Acácias")


async def test_model_sees_no_names_phones_documents_or_addresses(mesa: Bancada, oraculo: Oraculo) -> None:
    found: Any = ANSWER["vagas"]
    named = {**found[0], "contato_nome": "[nome 1]", "contato_whatsapp": "[telefone 2]"}
    oraculo.answer = Respondeu({**ANSWER, "vagas": [named]}, 1, 1)
    await mesa.dizem(PEOPLE)
    await mesa.trabalha()
    (sent,) = oraculo.asked
    assert [sign for sign in SIGNS if sign in sent] == []
    assert "Hospital Inventado sexta" in sent
    row = await mesa.one("SELECT contato_nome, contato_whatsapp FROM vagas_grupo")
    assert (row["contato_nome"], row["contato_whatsapp"]) == ("Fulana Inventada", "5511987654321")


async def test_setting_allows_to_send_people_to_the_model(
    database_url: str, clock: FakeClock, oraculo: Oraculo
) -> None:
    bench = await opened(database_url, clock, oraculo, llm_personal_data=True)
    await bench.dizem(PEOPLE)
    await bench.trabalha()
    assert PEOPLE in oraculo.asked[0]
    await bench.work.close()
