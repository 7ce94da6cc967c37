"""Listeners are called once for each inbound message. If no listener answers a message, the message waits for an
operator. The tests run on both databases.
"""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from app.composition.julia import Julia, julia_of
from app.contexts.comum.telefone import Address
from app.contexts.conversas.api import MensagemRecebida, MotivoDaPendencia
from app.contexts.conversas.pendencias import PendenciaDesconhecida
from app.contexts.leitura_conversas.api import Classe
from app.contexts.mensagens.api import Desfecho, MensagemEncerrada
from app.contexts.webhooks.api import Recebida
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.health import Severity
from batuta.sql import Transaction
from batuta.testing import FakeClock
from tests.command import Command
from tests.julia.conversas.test_duvidas import HIDDEN, JULIA, PHONE, WITHOUT_NINTH, receive
from tests.julia.tables import add_doctor, one, prune, rows, write


@pytest.fixture
async def work(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with build(Settings(database_url=database_url), clock=clock).work as work:
        yield work


@pytest.fixture
def julia(work: Batuta) -> Julia:
    return julia_of(work)


class Listener:
    def __init__(self, does: str | None = None, fails: bool = False) -> None:
        self.does, self.fails = does, fails
        self.heard: list[MensagemRecebida] = []

    async def recebida(self, transaction: Transaction, mensagem: MensagemRecebida, *, now: datetime) -> str | None:
        if self.fails:
            raise RuntimeError("a listener with a bug")
        self.heard.append(mensagem)
        return self.does


def add(julia: Julia, *listeners: Listener) -> None:
    for each in listeners:
        julia.messages.conversas.ao_receber(each)


async def take_over(julia: Julia) -> None:
    await write(julia.work.database, "UPDATE conversations SET controlled_by = 'human'")


async def test_listener_gets_the_recorded_message_with_its_reading_once(julia: Julia) -> None:
    doctor = await add_doctor(julia.work.database, PHONE, now=julia.work.clock.now())
    add(julia, listener := Listener("resposta"))
    await receive(julia, "qual o valor?")
    await receive(julia, "qual o valor?")
    (heard,) = listener.heard
    talk = await one(julia.work.database, "SELECT id FROM conversations")
    assert (heard.message_id, heard.cliente_id, heard.tipo_cliente, heard.conversa_id) == (
        "m1", doctor, "medico", talk["id"],
    )  # fmt: skip
    assert (heard.texto, heard.leitura.classe, heard.com_pessoa) == ("qual o valor?", Classe.PERGUNTA, False)
    assert (heard.telefone, heard.em, heard.feitos) == (PHONE, julia.work.clock.now(), ("resposta",))


async def test_each_listener_sees_what_those_before_it_did(julia: Julia) -> None:
    first, second, third = Listener("reserva_pedida"), Listener(), Listener("resposta")
    last = Listener()
    add(julia, first, second, third, last)
    await receive(julia, "aceito")
    assert [each.heard[0].feitos for each in (first, second, third, last)] == [
        (), ("reserva_pedida",), ("reserva_pedida",), ("reserva_pedida", "resposta"),
    ]  # fmt: skip
    assert await julia.messages.pendencias.listar(limite=10) == []


async def test_message_that_no_listener_answers_waits_for_a_person(julia: Julia) -> None:
    doctor = await add_doctor(julia.work.database, PHONE, now=julia.work.clock.now())
    add(julia, Listener())
    await receive(julia, "oi", message_id="m1")
    await receive(julia, "boa noite", message_id="m2", de=Address(f"{WITHOUT_NINTH}@s.whatsapp.net", WITHOUT_NINTH))
    (pending,) = await julia.messages.pendencias.listar(limite=10)
    assert (pending.cliente_id, pending.texto, pending.motivo) == (doctor, "oi", MotivoDaPendencia.SEM_RESPOSTA)
    assert (pending.mensagens, pending.telefone) == (2, PHONE)


async def test_message_of_a_stranger_and_of_a_hidden_address_wait_for_a_person(julia: Julia) -> None:
    await receive(julia, "oi", message_id="m1")
    await receive(julia, "oi", message_id="m2", de=Address(HIDDEN, None, lid=HIDDEN))
    found = await julia.messages.pendencias.listar(limite=10)
    assert sorted((each.telefone or "", each.cliente_id) for each in found) == [("", None), (PHONE, None)]


async def test_certain_and_probable_opt_outs_do_not_enter_the_pending_list(julia: Julia) -> None:
    add(julia, listener := Listener())
    await receive(julia, "que saco", message_id="m1")
    await receive(julia, "PARAR", message_id="m2")
    assert [each.feitos for each in listener.heard] == [("opt_out_provavel",), ("opt_out",)]
    assert await julia.messages.pendencias.listar(limite=10) == []


async def test_message_in_a_conversation_that_a_person_has_waits_for_that_person(julia: Julia) -> None:
    doctor = await add_doctor(julia.work.database, PHONE, now=julia.work.clock.now())
    add(julia, listener := Listener())
    await receive(julia, "oi", message_id="m1")
    (first,) = await julia.messages.pendencias.listar(limite=10)
    await julia.messages.pendencias.resolver(first.id, por="ana", motivo="liguei")
    await take_over(julia)
    await receive(julia, "e então?", message_id="m2")
    (pending,) = await julia.messages.pendencias.listar(limite=10)
    assert (pending.cliente_id, pending.motivo) == (doctor, MotivoDaPendencia.COM_PESSOA)
    assert listener.heard[-1].com_pessoa


async def test_answer_of_a_person_resolves_the_pending_entry(julia: Julia) -> None:
    doctor = await add_doctor(julia.work.database, PHONE, now=julia.work.clock.now())
    await receive(julia, "oi")
    now = julia.work.clock.now()
    sent = MensagemEncerrada(
        id=doctor, tipo="manual", cliente_id=doctor, conversa_id=None, metadata={}, desfecho=Desfecho.SENT, em=now
    )
    async with julia.work.database.transaction() as transaction:
        await julia.messages.ouvintes.encerrada(transaction, sent)
    assert await julia.messages.pendencias.quantas() == 1
    async with julia.work.database.transaction() as transaction:
        await julia.messages.ouvintes.enviada(transaction, sent)
    assert await julia.messages.pendencias.quantas() == 0
    row = await one(julia.work.database, "SELECT por, resolucao FROM pendencias")
    assert (row["por"], row["resolucao"]) == ("sistema", "respondida")


async def test_listener_that_fails_leaves_the_message_unrecorded_for_a_retry(julia: Julia) -> None:
    add(julia, listener := Listener("resposta", fails=True))
    with pytest.raises(RuntimeError):
        await receive(julia, "oi")
    assert await rows(julia.work.database, "SELECT id FROM interacoes") == []
    listener.fails = False
    await receive(julia, "oi")
    assert len(listener.heard) == 1


async def test_operator_resolves_once_and_the_audit_log_keeps_it(julia: Julia) -> None:
    await receive(julia, "oi")
    (pending,) = await julia.messages.pendencias.listar(limite=10)
    await julia.messages.pendencias.resolver(pending.id, por="ana", motivo="respondi por telefone")
    with pytest.raises(PendenciaDesconhecida):
        await julia.messages.pendencias.resolver(pending.id, por="bia", motivo="-")
    kept = await one(julia.work.database, "SELECT por, resolucao FROM pendencias")
    assert (kept["por"], kept["resolucao"]) == ("ana", "respondi por telefone")
    noted = await one(julia.work.database, "SELECT actor, action, subject FROM audit_log")
    assert (noted["actor"], noted["action"], noted["subject"]) == (
        "ana", "pendencia.resolver", f"pendencia:{pending.id}",
    )  # fmt: skip


async def test_old_resolved_entries_are_pruned_and_open_ones_stay(julia: Julia, clock: FakeClock) -> None:
    await receive(julia, "oi", message_id="m1")
    (first,) = await julia.messages.pendencias.listar(limite=10)
    await julia.messages.pendencias.resolver(first.id, por="ana", motivo="-")
    await receive(julia, "olá", message_id="m2")
    later = clock.now() + timedelta(seconds=1)
    assert await prune(julia.work.database, "conversas", before=later) == {"pendencias": 1}
    assert await julia.messages.pendencias.quantas() == 1


async def test_health_reports_messages_that_wait_for_a_person(julia: Julia) -> None:
    assert (await julia.messages.pendencias.ask()).findings == ()
    await receive(julia, "oi")
    (finding,) = (await julia.messages.pendencias.ask()).findings
    assert (finding.severity, finding.says, finding.facts, finding.since) == (
        Severity.WARNING, "conversas_pendencias", {"count": 1}, julia.work.clock.now(),
    )  # fmt: skip


async def test_inbound_media_without_text_waits_for_a_person(julia: Julia) -> None:
    now = julia.work.clock.now()
    fato = Recebida(
        message_id="m1", instance="julia-sim", de=Address(f"{PHONE}@s.whatsapp.net", PHONE), nome=None, texto="",
        midia="audio", em=now,
    )  # fmt: skip
    add(julia, listener := Listener())
    async with julia.work.database.transaction() as transaction:
        await julia.messages.conversas.recebida(transaction, fato, now=now)
    assert (listener.heard[0].texto, listener.heard[0].midia) == ("", "audio")
    (pending,) = await julia.messages.pendencias.listar(limite=10)
    assert pending.texto == "[audio]"


def test_commands_list_and_resolve(folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    assert batuta(*JULIA, "conversas", "pendencias")[:2] == (0, "nenhuma pendência\n")
    code, _, err = batuta(*JULIA, "conversas", "resolver", "abc")
    assert (code, "batuta conversas pendencias" in err) == (1, True)
