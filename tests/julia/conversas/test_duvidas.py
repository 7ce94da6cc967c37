"""After a probable opt-out, messages that Julia initiates are held back until an operator decides. The tests run on
both databases.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.composition.julia import Julia, julia_of
from app.contexts.comum.telefone import Address
from app.contexts.conversas.duvidas import Decisao, DuvidaDesconhecida
from app.contexts.webhooks.api import Recebida
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.health import Severity
from batuta.queue.item import NewItem
from batuta.testing import FakeClock
from tests.command import Command
from tests.julia.tables import add_doctor, one, rows

PHONE = "5511999990001"
WITHOUT_NINTH = "551199990001"
HIDDEN = "999000111222333@lid"
JULIA = ("--app", "app.main:work")


@pytest.fixture
async def work(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with build(Settings(database_url=database_url), clock=clock).work as work:
        yield work


@pytest.fixture
def julia(work: Batuta) -> Julia:
    return julia_of(work)


async def receive(julia: Julia, texto: str, *, message_id: str = "m1", de: Address | None = None) -> None:
    now = julia.work.clock.now()
    fato = Recebida(
        message_id=message_id,
        instance="julia-sim",
        de=de or Address(f"{PHONE}@s.whatsapp.net", PHONE),
        nome=None,
        texto=texto,
        midia=None,
        em=now,
    )
    async with julia.work.database.transaction() as transaction:
        await julia.messages.conversas.recebida(transaction, fato, now=now)


async def test_class_and_opt_out_of_each_inbound_text_are_recorded(julia: Julia) -> None:
    await receive(julia, "qual o valor?", message_id="m1")
    await receive(julia, "que saco", message_id="m2")
    await receive(julia, "PARAR", message_id="m3")
    read = await rows(julia.work.database, "SELECT classe, opt_out, pedido FROM interacoes ORDER BY id")
    assert [(row["classe"], row["opt_out"], row["pedido"]) for row in read] == [
        ("pergunta", "nao", None),
        ("opt_out", "provavel", None),
        ("opt_out", "certo", "opt_out"),
    ]


async def test_probable_opt_out_opens_one_question_and_stops_nothing(julia: Julia) -> None:
    doctor = await add_doctor(julia.work.database, PHONE, now=julia.work.clock.now())
    await receive(julia, "de novo isso?", message_id="m1")
    await receive(
        julia, "já falei que não", message_id="m2", de=Address(f"{WITHOUT_NINTH}@s.whatsapp.net", WITHOUT_NINTH)
    )
    (question,) = await julia.messages.duvidas.listar(limite=10)
    assert (question.cliente_id, question.texto, question.regra) == (doctor, "de novo isso?", "incomodo")
    events = await rows(julia.work.database, "SELECT event_type, cliente_id FROM business_events")
    assert [(row["event_type"], row["cliente_id"]) for row in events] == [("optout_provavel", doctor)]
    assert not (await one(julia.work.database, "SELECT opted_out FROM clientes"))["opted_out"]


async def test_health_reports_a_probable_opt_out_until_its_decision(julia: Julia) -> None:
    await receive(julia, "que saco")
    (finding,) = (await julia.messages.duvidas.ask()).findings
    assert (finding.severity, finding.says, finding.facts) == (
        Severity.WARNING,
        "conversas_optouts_provaveis",
        {"count": 1},
    )
    (question,) = await julia.messages.duvidas.listar(limite=10)
    await julia.messages.duvidas.decidir(question.id, Decisao.SEGUIR, por="ana", motivo="ligou")
    assert (await julia.messages.duvidas.ask()).findings == ()


async def test_decision_parar_is_a_full_opt_out(julia: Julia) -> None:
    doctor = await add_doctor(julia.work.database, PHONE, now=julia.work.clock.now())
    await julia.work.queues["fila_mensagens"].put(
        [NewItem(values={"cliente_id": doctor, "telefone_destino": PHONE, "conteudo": "x", "tipo": "campanha",
                         "devida_em": julia.work.clock.now()})]
    )  # fmt: skip
    await receive(julia, "que saco")
    (question,) = await julia.messages.duvidas.listar(limite=10)
    assert await julia.messages.duvidas.decidir(question.id, Decisao.PARAR, por="ana", motivo="-") == 1
    assert (await one(julia.work.database, "SELECT opted_out FROM clientes"))["opted_out"]
    noted = await one(julia.work.database, "SELECT actor, action, subject FROM audit_log")
    assert (noted["actor"], noted["action"], noted["subject"]) == ("ana", "optout.decidir", f"duvida:{question.id}")


async def test_question_is_decided_once(julia: Julia) -> None:
    await receive(julia, "que saco")
    (question,) = await julia.messages.duvidas.listar(limite=10)
    await julia.messages.duvidas.decidir(question.id, Decisao.SEGUIR, por="ana", motivo="-")
    with pytest.raises(DuvidaDesconhecida):
        await julia.messages.duvidas.decidir(question.id, Decisao.PARAR, por="bia", motivo="-")
    kept = await one(julia.work.database, "SELECT decisao, por FROM optouts_provaveis")
    assert (kept["decisao"], kept["por"]) == ("seguir", "ana")


async def test_another_probable_text_after_seguir_opens_another_question(julia: Julia) -> None:
    await receive(julia, "que saco", message_id="m1")
    (first,) = await julia.messages.duvidas.listar(limite=10)
    await julia.messages.duvidas.decidir(first.id, Decisao.SEGUIR, por="ana", motivo="-")
    await receive(julia, "chega", message_id="m2")
    (second,) = await julia.messages.duvidas.listar(limite=10)
    assert second.id != first.id


async def test_certain_opt_out_answers_the_open_question(julia: Julia) -> None:
    await receive(julia, "que saco", message_id="m1")
    await receive(julia, "PARAR", message_id="m2")
    await receive(julia, "chega", message_id="m3")
    assert await julia.messages.duvidas.listar(limite=10) == []
    kept = await one(julia.work.database, "SELECT decisao, por FROM optouts_provaveis")
    assert (kept["decisao"], kept["por"]) == ("parar", "sistema")


async def test_hidden_address_is_held_as_soon_as_its_number_is_known(julia: Julia) -> None:
    await receive(julia, "que saco", message_id="m1", de=Address(HIDDEN, None, lid=HIDDEN))
    assert await julia.messages.duvidas.listar(limite=10) == []
    await receive(julia, "oi", message_id="m2", de=Address(HIDDEN, PHONE, lid=HIDDEN))
    (question,) = await julia.messages.duvidas.listar(limite=10)
    assert (question.telefone, question.texto) == (PHONE, "que saco")


def test_commands_list_and_decide_without_the_whole_number(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    assert batuta(*JULIA, "conversas", "duvidas")[:2] == (0, "nenhum descadastro provável aguarda decisão\n")
    code, _, err = batuta(*JULIA, "conversas", "decidir", "abc", "--parar")
    assert (code, "batuta conversas duvidas" in err) == (1, True)
    code, _, err = batuta(*JULIA, "conversas", "decidir", "abc")
    assert (code, "--seguir" in err) == (2, True)
