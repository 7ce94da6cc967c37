"""Authors of incomplete offers are asked for the missing fields: once, in one message for all their offers, and only if
they may be contacted. The tests run on both databases.
"""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.campanhas.model import TipoDeCampanha
from app.contexts.campanhas.service import NovaCampanha
from app.contexts.comum.telefone import Address, address
from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.recuperacao import Recuperacao
from app.contexts.grupos.relato import vaga_em_palavras
from app.contexts.nomes.correcoes import Correcao
from app.contexts.webhooks.api import DeGrupo, Recebida
from batuta.queue.outcome import Done
from batuta.receive.endpoints import JobCall
from tests.julia.envio.sending import Office
from tests.julia.tables import add_chip, add_doctor, one, rows, write

FULANA, SICRANO = "5511900000077", "5511900000088"
SEM_LUGAR = "Preciso de pediatra, dia {dia}/03, 19h às 7h, R$ 1.500, chama no pv"
SEM_DIA = "Hospital Fictício com vagas de anestesia, R$ 2.400, PJ. Datas no pv"


async def posts(
    office: Office,
    texto: str,
    autor: str = f"{FULANA}@s.whatsapp.net",
    nome: str = "Fulana Teste",
    *,
    read: bool = True,
) -> None:
    work, now = office.work, office.clock.now()
    (said,) = (await rows(work.database, "SELECT count(*) AS n FROM mensagens_grupo"))[0].values()
    fato = DeGrupo(
        message_id=f"3EB0{said:06d}", instance="escuta", grupo="120363000000000001@g.us", autor=address(autor), nome=nome,
        texto=texto, midia=None, encaminhada=False, em=now,
    )  # fmt: skip
    async with work.database.transaction() as transaction:
        await julia_of(work).groups.grupos.ingerir(transaction, fato, now=now)
    if read:
        await reads(office)


async def reads(office: Office) -> None:
    for stage in Estagio:
        await office.work.work_once(stage, 100)


def call(office: Office) -> JobCall:
    now = office.clock.now()
    return JobCall(key="k", params={}, started_at=now, deadline=now + timedelta(minutes=1))


@pytest.fixture(autouse=True)
async def _trigger_on(office: Office) -> None:
    for switch, on in (("pilot_mode", False), ("recuperacao_automatica_enabled", True)):
        await office.work.switches.set(switch, on, by="ana", reason="-", now=office.clock.now())


async def asks(office: Office) -> dict[str, Any]:
    answer = await julia_of(office.work).group_contacts.recuperacao.recovery_vagas_incompletas(call(office))
    assert isinstance(answer, Done)
    assert isinstance(answer.result, dict)
    return dict(answer.result)


async def stamps(office: Office) -> list[str | None]:
    found = await rows(
        office.work.database, "SELECT dm_recovery_status AS estado FROM vagas_grupo ORDER BY data IS NULL, data, id"
    )
    return [row["estado"] for row in found]


async def test_one_message_asks_for_the_missing_fields_of_all_offers(office: Office, chip: str) -> None:
    await add_chip(office.work.database, "escuta", tipo="listener")
    await posts(office, SEM_LUGAR.format(dia=20))
    await posts(office, SEM_LUGAR.format(dia=21))
    await posts(office, SEM_DIA)
    await posts(office, SEM_LUGAR.format(dia=22), f"{SICRANO}@s.whatsapp.net", "Sicrano Teste")
    result = await asks(office)
    assert result == {"vagas_encontradas": 4, "dms_enfileirados": 2, "sem_telefone": 0, "recusadas": 0, "erros": 0}
    assert await stamps(office) == ["perguntada"] * 4
    await office.works()
    await office.later(timedelta(seconds=2))
    await office.works()
    assert {each.telefone for each in office.line.receipts} == {FULANA, SICRANO}
    assert {each.instance for each in office.line.receipts} == {"julia-sim"}
    (text,) = [each.texto for each in office.line.receipts if each.telefone == FULANA]
    assert "• o hospital (Pediatria, 20/03, noturno; Pediatria, 21/03, noturno)\n" in text
    assert "• o dia e o horário (Hospital Fictício, Anestesiologia)\n" in text
    assert await asks(office) == {
        "vagas_encontradas": 0, "dms_enfileirados": 0, "sem_telefone": 0, "recusadas": 0, "erros": 0,
    }  # fmt: skip
    row = (await julia_of(office.work).groups.revisao.pendentes(limite=1))[0]
    shown = vaga_em_palavras(row, office.work.zone)["pergunta"]
    assert (shown["estado"], shown["mensagem"]) == ("perguntada", "enviada")


async def test_author_is_asked_once_a_day_and_about_each_vaga_once(office: Office, chip: str) -> None:
    await posts(office, SEM_LUGAR.format(dia=20))
    assert (await asks(office))["dms_enfileirados"] == 1
    await office.works()
    await posts(office, SEM_LUGAR.format(dia=21))
    assert (await asks(office))["dms_enfileirados"] == 0
    assert await stamps(office) == ["perguntada", None]
    await office.later(timedelta(days=1))
    assert (await asks(office))["dms_enfileirados"] == 1
    await office.works()
    assert ["20/03" in each.texto for each in office.line.receipts] == [True, False]


async def test_hidden_address_has_no_number_and_is_not_tried_again(office: Office, chip: str) -> None:
    await posts(office, SEM_LUGAR.format(dia=20), "999000000000077@lid")
    assert await asks(office) == {
        "vagas_encontradas": 1, "dms_enfileirados": 0, "sem_telefone": 1, "recusadas": 0, "erros": 0,
    }  # fmt: skip
    assert await stamps(office) == ["sem_telefone"]
    assert (await asks(office))["vagas_encontradas"] == 0
    assert await rows(office.work.database, "SELECT id FROM fila_mensagens") == []


async def test_hidden_address_with_a_known_number_is_the_same_person(office: Office, chip: str) -> None:
    hidden = "999000000000077@lid"
    await write(
        office.work.database,
        "INSERT INTO contatos_lid (lid, telefone, created_at) VALUES (:lid, :telefone, :now)",
        lid=hidden,
        telefone=FULANA,
        now=office.clock.now(),
    )
    await posts(office, SEM_LUGAR.format(dia=20), hidden)
    await posts(office, SEM_LUGAR.format(dia=21))
    assert (await asks(office))["dms_enfileirados"] == 1
    assert await stamps(office) == ["perguntada", "perguntada"]


async def test_opted_out_blocked_and_own_numbers_are_not_asked(office: Office, chip: str) -> None:
    database, now = office.work.database, office.clock.now()
    await write(
        database,
        "INSERT INTO external_contacts (telefone, permission_state, created_at, updated_at)"
        " VALUES (:telefone, 'opted_out', :now, :now)",
        telefone=FULANA,
        now=now,
    )
    await add_doctor(database, SICRANO, now=now)
    await write(database, "UPDATE clientes SET opted_out = TRUE")
    await write(database, "UPDATE chips SET telefone = '5511900000099'")
    for number in (FULANA, SICRANO, "5511900000099"):
        await posts(office, SEM_LUGAR.format(dia=20 + int(number[-1])), f"{number}@s.whatsapp.net")
    result = await asks(office)
    assert (result["vagas_encontradas"], result["dms_enfileirados"], result["recusadas"]) == (3, 0, 3)
    assert await stamps(office) == ["recusada"] * 3
    assert await rows(database, "SELECT id FROM fila_mensagens") == []


async def test_author_who_answers_parar_gets_nothing_more(office: Office, chip: str) -> None:
    await posts(office, SEM_LUGAR.format(dia=20))
    await asks(office)
    await office.works()
    fato = Recebida(
        instance="julia-sim", message_id="3EB0FF", de=Address(f"{FULANA}@s.whatsapp.net", FULANA), nome=None, texto="PARAR",
        midia=None, em=office.clock.now(),
    )  # fmt: skip
    async with office.work.database.transaction() as transaction:
        await office.conversas.recebida(transaction, fato, now=office.clock.now())
    await posts(office, SEM_LUGAR.format(dia=21))
    await office.later(timedelta(days=1))
    assert (await asks(office))["recusadas"] == 1
    assert len(office.line.receipts) == 1


@pytest.mark.parametrize("how", ["blocked", "approved", "opted out"])
async def test_queued_question_that_is_obsolete_or_forbidden_is_not_sent(office: Office, chip: str, how: str) -> None:
    await posts(office, SEM_LUGAR.format(dia=20))
    await asks(office)
    vaga = (await one(office.work.database, "SELECT id FROM vagas_grupo"))["id"]
    if how == "blocked":
        await julia_of(office.work).groups.autores.bloquear(vaga, por="gestora")
    elif how == "approved":
        await julia_of(office.work).groups.revisao.aprovar(vaga, Correcao(hospital="Hospital Fictício"), por="gestora")
    else:
        await write(office.work.database, "UPDATE clientes SET opt_out = TRUE")
    await office.works()
    assert office.line.receipts == []
    status = (await one(office.work.database, "SELECT status FROM fila_mensagens"))["status"]
    assert status == ("bloqueada" if how == "opted out" else "cancelada")


async def test_question_queued_before_pilot_mode_waits(office: Office, chip: str) -> None:
    await posts(office, SEM_LUGAR.format(dia=20))
    assert (await asks(office))["dms_enfileirados"] == 1
    await office.work.switches.set("pilot_mode", True, by="ana", reason="-", now=office.clock.now())
    await office.works()
    assert office.line.receipts == []
    queued = await one(office.work.database, "SELECT status, metadata FROM fila_mensagens")
    assert (queued["status"], queued["metadata"]) == ("pendente", {"gatilho": "recuperacao_automatica_enabled"})


async def test_question_waits_for_the_allowed_hours(office: Office, chip: str) -> None:
    await office.later(timedelta(hours=10))  # nine in the evening
    await posts(office, SEM_LUGAR.format(dia=20))
    assert (await asks(office))["dms_enfileirados"] == 1
    await office.works()
    assert office.line.receipts == []
    await office.later(timedelta(hours=11))
    await office.works()
    assert len(office.line.receipts) == 1


async def test_crash_between_message_and_stamp_asks_no_author(office: Office, chip: str) -> None:
    await posts(office, SEM_LUGAR.format(dia=20))

    class Death(Exception): ...

    class Fila:
        async def put(self, items: Any, within: Any = None, shared: Any = None) -> Any:
            await office.store.put(items, within=within)
            raise Death

    work = office.work
    dying = Recuperacao(work.database, Fila(), work.ids, work.zone, work.clock)
    with pytest.raises(Death):
        await dying.recovery_vagas_incompletas(call(office))
    assert await rows(office.work.database, "SELECT id FROM fila_mensagens") == []
    assert await stamps(office) == [None]
    assert (await asks(office))["dms_enfileirados"] == 1


async def test_concurrent_runs_ask_once(office: Office, chip: str) -> None:
    for day in (20, 21, 22):
        await posts(office, SEM_LUGAR.format(dia=day))
    results = await asyncio.gather(*(asks(office) for _ in range(4)))
    assert sum(each["dms_enfileirados"] for each in results) == 1
    assert len(await rows(office.work.database, "SELECT id FROM fila_mensagens")) == 1


async def test_at_most_twenty_questions_wait(office: Office) -> None:
    for n in range(23):
        await posts(
            office, SEM_LUGAR.format(dia=12 + n % 18) + f" ({n})", f"55119000007{n:02d}@s.whatsapp.net", read=False
        )
    await reads(office)
    assert (await asks(office))["dms_enfileirados"] == 20
    assert (await asks(office))["dms_enfileirados"] == 0  # without a chip nothing was sent
    await write(office.work.database, "UPDATE fila_mensagens SET status = 'enviada'")
    assert (await asks(office))["dms_enfileirados"] == 3


async def test_author_of_offers_is_not_a_doctor_in_campaigns_and_a_doctor_stays_one(office: Office, chip: str) -> None:
    database = office.work.database
    await add_doctor(database, SICRANO, now=office.clock.now())
    await posts(office, SEM_LUGAR.format(dia=20))
    await posts(office, SEM_LUGAR.format(dia=21), f"{SICRANO}@s.whatsapp.net")
    assert (await asks(office))["dms_enfileirados"] == 2
    found = await rows(database, "SELECT telefone, tipo FROM clientes ORDER BY telefone")
    assert [tuple(row.values()) for row in found] == [(FULANA, "divulgador"), (SICRANO, "medico")]
    campanhas = julia_of(office.work).campaigns.campanhas
    nova = NovaCampanha(
        nome="teste", tipo=TipoDeCampanha.OFERTA, corpo="Olá.", audience_filters={"quantidade_alvo": 10}
    )
    await campanhas.agendar(await campanhas.criar(nova, by="gestora"), None, by="gestora")
    await julia_of(office.work).campaigns.inicio.passar()
    considered = "SELECT telefone FROM campanha_destinatarios JOIN clientes ON clientes.id = cliente_id"
    assert [row["telefone"] for row in await rows(database, considered)] == [SICRANO]


async def test_past_vaga_or_one_in_review_for_another_reason_is_not_asked_about(office: Office, chip: str) -> None:
    await posts(office, SEM_LUGAR.format(dia=12))
    await posts(office, "Vaga de pediatria\nLocal: Vila Fantasia\nDia 20, 19h às 7h\nR$ 1.500")
    await office.later(timedelta(days=2))
    assert (await asks(office))["vagas_encontradas"] == 0
    assert await stamps(office) == [None, None]
