"""A doctor is offered a vacancy once, and no offer is sent after the vacancy is taken. The tests run on both databases."""

from datetime import timedelta

import pytest

from app.contexts.comum.texto import chamado
from app.contexts.plantoes.anuncios import Anuncio
from app.contexts.plantoes.candidatos import Impedimento
from app.contexts.plantoes.model import MotivoDaCancelada, Ocupada, PlantaoComecou, VagaDesconhecida
from app.contexts.vagas.api import StatusDaVaga
from tests.julia.envio.sending import Office
from tests.julia.plantoes.mesa import DAY, UNKNOWN_ID, add_doctors, add_vaga, events, history, shifts, vaga
from tests.julia.tables import add_doctor, rows, write

JA = Impedimento.JA_OFERECIDA


async def offered(office: Office, id: str, *clientes: str) -> Anuncio:
    answer = await shifts(office).anuncios.anunciar(id, clientes, por="gestora")
    assert isinstance(answer, Anuncio)
    return answer


async def test_each_selected_doctor_gets_one_truthful_message_and_the_vacancy_is_announced(
    office: Office, chip: str
) -> None:
    (ana, bia), id = await add_doctors(office, 2), await add_vaga(office)
    answer = await offered(office, id, ana, bia, ana)
    assert (answer.status, answer.oferecidas, answer.recusadas) == (StatusDaVaga.ANUNCIADA, (ana, bia), {})
    await office.works()
    await office.later(timedelta(seconds=2))
    await office.works()
    assert len(office.line.receipts) == 2
    assert all("assistente virtual" in each.texto for each in office.line.receipts)
    assert all("• Hospital: Hospital Fictício\n" in each.texto for each in office.line.receipts)
    messages = await rows(office.work.database, "SELECT tipo, metadata FROM fila_mensagens")
    assert [(each["tipo"], each["metadata"]) for each in messages] == [("oferta", {"vaga_id": id})] * 2
    assert await history(office, id) == [
        (None, "aberta", "gestora", "criada"),
        ("aberta", "anunciada", "gestora", "anunciada"),
    ]
    assert sorted(await events(office, id)) == ["vaga_anunciada", "vaga_criada", "vaga_oferecida", "vaga_oferecida"]
    seen = await shifts(office).plantoes.ver(id)
    assert {(row["cliente_id"], row["mensagem"]) for row in seen.ofertas} == {(ana, "enviada"), (bia, "enviada")}


async def test_doctor_is_never_offered_the_same_vacancy_twice_even_if_the_first_offer_was_not_sent(
    office: Office,
) -> None:
    (ana, bia), id = await add_doctors(office, 2), await add_vaga(office)
    plantoes = shifts(office).plantoes
    await offered(office, id, ana)
    assert (await offered(office, id, ana)).recusadas == {ana: JA}
    await write(office.work.database, "UPDATE fila_mensagens SET status = 'cancelada'")
    assert (await offered(office, id, ana)).recusadas == {ana: JA}
    await plantoes.reservar(id, bia, por="gestora")
    await plantoes.liberar(id, por="gestora", motivo="desistiu")
    assert (await vaga(office, id))["status"] == "anunciada"
    again = await offered(office, id, ana, bia)
    assert (again.oferecidas, again.recusadas) == ((bia,), {ana: JA})
    assert len(await rows(office.work.database, "SELECT id FROM fila_mensagens")) == 2


async def test_doctors_who_may_not_be_written_to_are_refused_each_with_the_reason(office: Office) -> None:
    database, now = office.work.database, office.clock.now()
    names = ("optout", "externo", "esfriando", "proximo", "invalido", "humana", "cheio", "bem")
    doctors = dict(zip(names, await add_doctors(office, len(names)), strict=True))
    await write(database, "UPDATE clientes SET opted_out = TRUE WHERE id = :id", id=doctors["optout"])
    await write(database, "UPDATE clientes SET status_telefone = 'invalido' WHERE id = :id", id=doctors["invalido"])
    await write(
        database,
        "INSERT INTO external_contacts (telefone, permission_state, created_at, updated_at)"
        " SELECT telefone, 'opted_out', :now, :now FROM clientes WHERE id = :id",
        id=doctors["externo"],
        now=now,
    )
    for name, column in (("esfriando", "cooling_off_until"), ("proximo", "next_allowed_at")):
        await write(
            database,
            f"INSERT INTO doctor_state (cliente_id, permission_state, {column}, updated_at) VALUES (:id, :state, :later, :now)",
            id=doctors[name],
            state="cooling_off" if name == "esfriando" else "active",
            later=now + timedelta(days=1),
            now=now,
        )
    await write(
        database,
        "INSERT INTO conversations (id, cliente_id, controlled_by, created_at, updated_at)"
        " VALUES (:new, :id, 'human', :now, :now)",
        new=UNKNOWN_ID,
        id=doctors["humana"],
        now=now,
    )
    for _ in range(5):
        sent = await office.put(doctors["cheio"])
        await write(
            database, "UPDATE fila_mensagens SET status = 'enviada', enviada_em = :now WHERE id = :id", id=sent, now=now
        )
    divulgador = await add_doctor(database, "5511900000055")
    await write(database, "UPDATE clientes SET tipo = 'divulgador' WHERE id = :id", id=divulgador)
    answer = await offered(office, await add_vaga(office), *doctors.values(), divulgador, UNKNOWN_ID)
    assert answer.oferecidas == (doctors["bem"],)
    assert answer.recusadas == {
        doctors["optout"]: Impedimento.OPTOUT,
        doctors["externo"]: Impedimento.OPTOUT,
        doctors["invalido"]: Impedimento.TELEFONE_INVALIDO,
        doctors["esfriando"]: Impedimento.ESFRIANDO,
        doctors["proximo"]: Impedimento.PROXIMO_CONTATO,
        doctors["humana"]: Impedimento.CONVERSA_HUMANA,
        doctors["cheio"]: Impedimento.LIMITE_CONTATOS,
        divulgador: Impedimento.CADASTRO_REMOVIDO,
        UNKNOWN_ID: Impedimento.DESCONHECIDO,
    }


async def test_an_announcement_to_no_doctor_leaves_the_vacancy_open(office: Office) -> None:
    id = await add_vaga(office)
    assert (await offered(office, id, UNKNOWN_ID)).status is StatusDaVaga.ABERTA
    assert len(await history(office, id)) == 1


async def test_queued_offer_is_not_sent_after_the_vacancy_is_taken(office: Office, chip: str) -> None:
    (ana, bia), id = await add_doctors(office, 2), await add_vaga(office)
    await offered(office, id, ana)
    await shifts(office).plantoes.reservar(id, bia, por="gestora")
    await office.works()
    assert office.line.receipts == []
    (message,) = await rows(office.work.database, "SELECT status, outcome, outcome_reason_code FROM fila_mensagens")
    assert (message["status"], message["outcome"]) == ("cancelada", "FAILED_EXPIRED")
    assert message["outcome_reason_code"] == "the offered vacancy is no longer open"


async def test_a_taken_cancelled_or_started_vacancy_is_not_announced(office: Office) -> None:
    (ana, bia), anuncios = await add_doctors(office, 2), shifts(office).anuncios
    taken, gone = await add_vaga(office), await add_vaga(office)
    await shifts(office).plantoes.reservar(taken, ana, por="gestora")
    await shifts(office).plantoes.cancelar(gone, MotivoDaCancelada.OUTRO, por="gestora")
    assert await anuncios.anunciar(taken, [bia], por="gestora") == Ocupada(taken, StatusDaVaga.RESERVADA)
    assert not isinstance(await anuncios.anunciar(gone, [bia], por="gestora"), Anuncio)
    begun = await add_vaga(office, data=office.clock.now().date(), hora_inicio="11:00", hora_fim="19:00")
    with pytest.raises(PlantaoComecou):
        await anuncios.anunciar(begun, [bia], por="gestora")
    with pytest.raises(VagaDesconhecida):
        await anuncios.anunciar(UNKNOWN_ID, [bia], por="gestora")
    assert await rows(office.work.database, "SELECT id FROM fila_mensagens") == []


async def test_the_best_candidates_are_offered_it_and_the_next_call_continues_with_the_next(office: Office) -> None:
    doctors, id = await add_doctors(office, 5), await add_vaga(office, data=DAY)
    anuncios = shifts(office).anuncios
    first = await anuncios.anunciar_aos_melhores(id, 3, por="gestora")
    second = await anuncios.anunciar_aos_melhores(id, 3, por="gestora")
    assert isinstance(first, Anuncio)
    assert isinstance(second, Anuncio)
    assert (len(first.oferecidas), len(second.oferecidas)) == (3, 2)
    assert {*first.oferecidas, *second.oferecidas} == set(doctors)


@pytest.mark.parametrize(
    ("nome", "expected"),
    [
        ("Ana-Maria Souza", ", Ana-Maria"),
        ("D'Ávila", ", D'Ávila"),
        ("Zé", ", Zé"),
        ("55 11", ""),
        ("<b>", ""),
        (None, ""),
    ],
)
def test_offer_calls_the_doctor_by_the_first_name_if_it_is_one(nome: str | None, expected: str) -> None:
    assert chamado(nome) == expected
