"""When a conversation needs a member of the team, the team is notified once, even after a rejected notice or a crash.
The tests run on both databases.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from app.composition.gestao.equipe import destinations
from app.composition.gestao.relatorios import TEXTS
from app.composition.julia import julia_of
from app.contexts.comum.entrega import Entrega, Entregue, Incerto, Recusado
from app.contexts.equipe.avisos import AVISOS, Aviso, Avisos, Canal
from app.integrations.reports.webhooks import Poster
from app.integrations.team.notices import SlackNotices
from app.web.boards import people_board
from batuta.health import Severity
from batuta.queue.item import Lease
from batuta.queue.outcome import Cancelled, Failed
from batuta.texts import Texts
from tests.julia.envio.sending import MINUTE, PHONE, Office
from tests.julia.respostas.test_respostas import receive
from tests.julia.tables import rows

QUESTION, HUMAN, GRAVE = "qual o valor?", "quero falar com um atendente", "isso é golpe, vou te processar"


@dataclass
class Mural:
    """A destination that records the notices it receives and answers as scripted."""

    nome: str = "slack"
    repete: bool = False
    answer: Entrega | BaseException = field(default_factory=Entregue)
    received: list[Aviso] = field(default_factory=list)

    async def avisar(self, aviso: Aviso) -> Entrega:
        self.received.append(aviso)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def notices(office: Office, *canais: Canal) -> Avisos:
    avisos = julia_of(office.work).team.avisos
    avisos.canais = {each.nome: each for each in canais}
    return avisos


async def deliver(office: Office) -> None:
    await office.work.work_once(AVISOS.name, 10)


async def stored(office: Office) -> list[dict[str, Any]]:
    return await rows(office.work.database, "SELECT * FROM avisos_equipe ORDER BY created_at, id")


async def lease_of(office: Office) -> Lease:
    (row,) = await stored(office)
    return Lease(id=row["id"], fence=1, attempt=1, row=row)


async def states(office: Office) -> list[tuple[str, str]]:
    return [(row["motivo"], row["status"]) for row in await stored(office)]


@pytest.mark.parametrize(
    ("texto", "motivo"), [(QUESTION, "sem_resposta"), (HUMAN, "pede_pessoa"), (GRAVE, "objecao_grave")]
)
async def test_a_need_for_a_person_is_notified_once(
    office: Office, doctor: str, chip: str, texto: str, motivo: str
) -> None:
    board = Mural()
    notices(office, board)
    await receive(office, texto, "m1")
    await receive(office, texto, "m2")
    await office.works()  # the answer is sent, and the conversation is escalated if the doctor asked for a person
    await deliver(office)
    await deliver(office)
    assert [each.motivo for each in board.received] == [motivo]
    (talk,) = await rows(office.work.database, "SELECT id FROM conversations")
    assert board.received[0].conversa_id == talk["id"]
    assert await states(office) == [(motivo, "enviado")]


async def test_an_urgent_reason_of_an_open_entry_is_notified_once_more(office: Office, doctor: str, chip: str) -> None:
    board = Mural()
    notices(office, board)
    await receive(office, QUESTION, "m1")
    await deliver(office)
    for n, texto in enumerate([HUMAN, GRAVE, HUMAN], start=2):
        await receive(office, texto, f"m{n}")
    await office.works()
    await deliver(office)
    assert [each.motivo for each in board.received] == ["sem_resposta", "pede_pessoa"]
    pending = await julia_of(office.work).messages.pendencias.listar(limite=5)
    assert [(each.motivo, each.mensagens) for each in pending] == [("pede_pessoa", 4)]


async def test_escalation_without_an_open_entry_is_notified(office: Office, doctor: str, chip: str) -> None:
    board, julia = Mural(), julia_of(office.work)
    notices(office, board)
    async with office.work.database.transaction() as transaction:
        talk = await office.conversas.conversa(transaction, doctor, None, now=office.clock.now())
        assert await julia.messages.estagios.escalar(
            transaction, talk, por="gestora", motivo="outro", now=office.clock.now()
        )
    await deliver(office)
    assert [(each.motivo, each.conversa_id) for each in board.received] == [("outro", talk)]


async def test_a_message_to_a_person_who_leads_the_conversation_is_not_notified(
    office: Office, doctor: str, chip: str
) -> None:
    notices(office, Mural())
    async with office.work.database.transaction() as transaction:
        talk = await office.conversas.conversa(transaction, doctor, None, now=office.clock.now())
    await julia_of(office.work).messages.atendimento.assumir(talk, por="ana", motivo="-")
    await receive(office, HUMAN)
    assert await stored(office) == []


async def test_a_person_who_took_the_conversation_makes_the_notice_unnecessary(
    office: Office, doctor: str, chip: str
) -> None:
    board = Mural()
    notices(office, board)
    await receive(office, QUESTION)
    (talk,) = await rows(office.work.database, "SELECT id FROM conversations")
    await julia_of(office.work).messages.atendimento.assumir(talk["id"], por="ana", motivo="-")
    await deliver(office)
    (row,) = await stored(office)
    assert (board.received, row["status"]) == ([], "cancelado")
    assert row["erro"] == "a person has taken over the conversation, or the message was answered"


async def test_a_resolved_entry_makes_the_notice_unnecessary(office: Office, doctor: str, chip: str) -> None:
    board, julia = Mural(), julia_of(office.work)
    notices(office, board)
    await receive(office, QUESTION)
    (pending,) = await julia.messages.pendencias.listar(limite=5)
    await julia.messages.pendencias.resolver(pending.id, por="ana", motivo="liguei")
    await deliver(office)
    assert board.received == []


async def test_message_of_a_stranger_is_notified_without_a_conversation(office: Office, chip: str) -> None:
    board = Mural()
    notices(office, board)
    await receive(office, "bom dia")  # no doctor has this number
    await deliver(office)
    assert [(each.motivo, each.conversa_id) for each in board.received] == [("sem_resposta", None)]
    texts = SlackNotices(
        Poster("http://127.0.0.1:1", office.clock), Texts("pt-BR", [TEXTS]), "https://julia.example.org"
    )
    assert texts.texto(board.received[0]).startswith("Uma mensagem precisa de atendimento humano: sem resposta.")


async def test_a_refused_notice_is_retried_and_arrives_once(office: Office, doctor: str, chip: str) -> None:
    board = Mural(answer=Recusado("HTTP 503"))
    avisos = notices(office, board)
    await receive(office, QUESTION)
    await deliver(office)
    assert [row["status"] for row in await stored(office)] == ["pendente"]
    assert (await avisos.ask()).findings == ()
    await office.later(11 * MINUTE)
    (finding,) = (await avisos.ask()).findings
    assert (finding.cause, finding.severity) == ("equipe.avisos", Severity.WARNING)
    board.answer = Entregue()
    await deliver(office)
    assert (len(board.received), [row["status"] for row in await stored(office)]) == (2, ["enviado"])
    assert (await avisos.ask()).findings == ()


async def test_an_uncertain_notice_is_not_repeated_and_health_reports_it(
    office: Office, doctor: str, chip: str
) -> None:
    board = Mural(answer=Incerto("no answer within 15 s"))
    avisos = notices(office, board)
    await receive(office, QUESTION)
    for _ in range(3):
        await deliver(office)
        await office.later(60 * MINUTE)
    assert (len(board.received), [row["status"] for row in await stored(office)]) == (1, ["erro"])
    assert len((await avisos.ask()).findings) == 1
    shown = {each.says: each.value for each in (await people_board(julia_of(office.work))).figures}
    assert shown["quadro.atendimento.avisos"] == 1
    # An operator checks the channel and repeats the notice.
    board.answer = Entregue()
    assert await office.work.queues[AVISOS.name].revive((await stored(office))[0]["id"], by="ana")
    await deliver(office)
    assert [row["status"] for row in await stored(office)] == ["enviado"]


async def test_a_destination_that_recognises_repetitions_gets_an_uncertain_notice_again(
    office: Office, doctor: str, chip: str
) -> None:
    board = Mural(nome="webhook", repete=True, answer=Incerto("no answer within 15 s"))
    notices(office, board)
    await receive(office, QUESTION)
    await deliver(office)
    await office.later(MINUTE)
    board.answer = Entregue()
    await deliver(office)
    first, second = board.received
    assert first.id == second.id
    assert [row["status"] for row in await stored(office)] == ["enviado"]


async def test_a_process_that_dies_during_the_request_leaves_no_second_request(
    office: Office, doctor: str, chip: str
) -> None:
    board = Mural(answer=asyncio.CancelledError())
    avisos = notices(office, board)
    await receive(office, QUESTION)
    lease = await lease_of(office)
    with pytest.raises(asyncio.CancelledError):
        await avisos.handle(lease)
    board.answer = Entregue()
    outcome = await avisos.handle(lease)
    assert isinstance(outcome, Failed)
    assert outcome.permanent
    assert "batuta queue retry avisos_equipe" in str(outcome.error)
    assert len(board.received) == 1


async def test_without_a_destination_nothing_is_queued(office: Office, doctor: str, chip: str) -> None:
    notices(office)
    await receive(office, QUESTION)
    assert await stored(office) == []


async def test_a_destination_that_was_removed_ends_its_notices(office: Office, doctor: str, chip: str) -> None:
    avisos = notices(office, Mural())
    await receive(office, QUESTION)
    avisos.canais = {}
    lease = await lease_of(office)
    assert isinstance(await avisos.handle(lease), Cancelled)


async def test_the_notice_and_the_entry_are_one_transaction(office: Office, doctor: str, chip: str) -> None:
    notices(office, Mural())
    with pytest.raises(RuntimeError):
        async with office.work.database.transaction() as transaction:
            now = office.clock.now()
            talk = await office.conversas.conversa(transaction, doctor, None, now=now)
            await julia_of(office.work).messages.estagios.escalar(transaction, talk, por="x", motivo="-", now=now)
            raise RuntimeError
    assert await stored(office) == []


# Real requests: the notices that Slack and the webhook receive


async def test_slack_and_webhook_receive_reason_and_link_without_personal_data(
    office: Office, doctor: str, chip: str, simulador: str
) -> None:
    settings = office.settings.model_copy(
        update={
            "slack_webhook_url": SecretStr(f"{simulador}/slack/T/B/X"),
            "alert_webhook_url": SecretStr(f"{simulador}/slack/json"),
            "public_url": "https://julia.example.org/",
        }
    )
    found = destinations(office.work, settings)
    aviso = Aviso(id="a1", motivo="pede_pessoa", conversa_id="c1", desde=office.clock.now())
    assert await found[0].avisar(aviso) == Entregue()
    # this simulated service accepts only the format of Slack
    assert await found[1].avisar(aviso) == Recusado("HTTP 400")
    async with httpx2.AsyncClient(trust_env=False) as client:
        (received,) = (await client.get(f"{simulador}/recebidos")).json()["slack"]
    text = received["payload"]["text"]
    assert "pede para falar com uma pessoa" in text
    assert "https://julia.example.org/painel" in text
    assert PHONE not in text
