"""An operator takes over a conversation, and later ends it or returns it to Julia. As soon as the operator takes over,
Julia's messages are held back. The tests run on both databases.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.julia import julia_of
from app.contexts.conversas.atendimento import (
    Atendimento,
    Com,
    ConversaComPessoa,
    ConversaDesconhecida,
    ConversaEncerrada,
    ConversaSemPessoa,
    EstagioDaConversa,
)
from app.contexts.conversas.escrita import RespostaRecusada
from app.contexts.mensagens.service import NaDevolucao
from batuta.access import Scope, mint
from tests.command import Command
from tests.julia.envio.sending import MINUTE, Office
from tests.julia.tables import PHONE, add_doctor, one, rows, write
from tests.julia.web.test_api import Julia, open_julia

UNKNOWN = "00000000-0000-7000-8000-999999999999"


def care(office: Office) -> Atendimento:
    return julia_of(office.work).messages.atendimento


async def open_talk(office: Office, doctor: str) -> str:
    async with office.work.database.transaction() as transaction:
        return await office.conversas.conversa(transaction, doctor, None, now=office.clock.now())


async def state(office: Office, id: str) -> tuple[str, str, str | None]:
    row = await one(office.work.database, "SELECT * FROM conversations WHERE id = :id", id=id)
    return row["status"], row["controlled_by"], row["responsavel"]


async def history(office: Office, id: str) -> list[tuple[str, str, str, int]]:
    vista = await care(office).ver(id)
    return [(line["acao"], line["por"], line["motivo"], line["mensagens"]) for line in vista.historico]


async def test_messages_queued_by_julia_are_held_from_the_take_over_and_continue_after_it(
    office: Office, doctor: str, chip: str
) -> None:
    talk = await open_talk(office, doctor)
    id = await office.put(doctor)
    taken = await care(office).assumir(talk, por="ana", motivo="quer negociar")
    assert (taken.mensagens, taken.repetida) == (1, False)
    assert await state(office, talk) == ("active", "human", "ana")
    await office.works()
    assert (office.line.receipts, (await office.message(id))["status"]) == ([], "pendente")
    await office.later(20 * MINUTE)
    given = await care(office).devolver(talk, NaDevolucao.CONTINUAR, por="ana", motivo="combinado")
    assert given.mensagens == 1
    assert await state(office, talk) == ("active", "ai", None)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    assert await history(office, talk) == [
        ("assumir", "ana", "quer negociar", 1), ("devolver", "ana", "continuar: combinado", 1),
    ]  # fmt: skip


async def test_answer_of_a_person_is_sent_and_gives_the_conversation_to_that_person(
    office: Office, doctor: str, chip: str
) -> None:
    talk = await open_talk(office, doctor)
    julias = await office.put(doctor)
    write_to = julia_of(office.work).team.escrita
    done = await write_to.responder(talk, " Posso ligar às 15h? ", por="ana", chave="1")
    again = await write_to.responder(talk, "Posso ligar às 15h?", por="ana", chave="1")
    assert (done.assumida, again.assumida, again.mensagem_id) == (True, False, None)
    assert await state(office, talk) == ("active", "human", "ana")
    await office.works()
    assert [(await office.message(str(id)))["status"] for id in (done.mensagem_id, julias)] == ["enviada", "pendente"]
    assert (await office.message(str(done.mensagem_id)))["conteudo"] == "Posso ligar às 15h?"
    audit = await rows(office.work.database, "SELECT * FROM audit_log WHERE action = 'conversa.responder'")
    assert {(row["actor"], row["subject"]) for row in audit} == {("ana", f"conversa:{talk}")}
    assert "ligar" not in str(audit)
    with pytest.raises(ConversaComPessoa):
        await write_to.responder(talk, "Olá", por="bia")
    with pytest.raises(RespostaRecusada):
        await write_to.responder(talk, "  ", por="ana")


async def test_person_may_cancel_the_held_messages_at_the_return(office: Office, doctor: str, chip: str) -> None:
    talk = await open_talk(office, doctor)
    id = await office.put(doctor)
    await care(office).assumir(talk, por="ana", motivo="-")
    given = await care(office).devolver(talk, NaDevolucao.CANCELAR, por="bia", motivo="já resolvi")
    assert (given.mensagens, (await office.message(id))["status"]) == (1, "cancelada")


async def test_message_of_the_person_is_sent_while_the_person_leads(office: Office, doctor: str, chip: str) -> None:
    await care(office).assumir(await open_talk(office, doctor), por="ana", motivo="-")
    id = await office.put(doctor, tipo="manual")
    await office.works()
    assert (await office.message(id))["status"] == "enviada"


async def test_one_person_leads_and_a_second_one_is_refused(office: Office, doctor: str) -> None:
    talk = await open_talk(office, doctor)
    results = await asyncio.gather(
        *(care(office).assumir(talk, por=who, motivo="-") for who in ("ana", "bia", "caio")), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["ConversaComPessoa", "ConversaComPessoa", "Mudada"]
    _, _, leader = await state(office, talk)
    assert leader is not None
    assert (await care(office).assumir(talk, por=leader, motivo="-")).repetida
    assert len(await history(office, talk)) == 1


async def test_end_cancels_messages_resolves_the_entry_and_the_next_message_opens_another(
    office: Office, doctor: str
) -> None:
    talk = await open_talk(office, doctor)
    id = await office.put(doctor)
    now = office.clock.now()
    await write(
        office.work.database,
        "INSERT INTO pendencias (id, quem, cliente_id, provider_message_id, motivo, ultima_em, created_at)"
        " VALUES (:id, 'x', :id, 'm', 'sem_resposta', :now, :now)",
        id=doctor,
        now=now,
    )
    ended = await care(office).encerrar(talk, por="ana", motivo="fechou por telefone")
    assert (ended.mensagens, (await office.message(id))["status"]) == (1, "cancelada")
    row = await one(office.work.database, "SELECT status, encerrada_em FROM conversations")
    assert (row["status"], row["encerrada_em"]) == ("completed", now)
    resolved = await one(office.work.database, "SELECT por, resolucao FROM pendencias")
    assert (resolved["por"], resolved["resolucao"]) == ("ana", "fechou por telefone")
    with pytest.raises(ConversaEncerrada):
        await care(office).assumir(talk, por="ana", motivo="-")
    assert await open_talk(office, doctor) != talk


async def test_every_change_is_in_the_audit_log_with_person_and_reason(office: Office, doctor: str) -> None:
    talk = await open_talk(office, doctor)
    await care(office).assumir(talk, por="ana", motivo="pediu uma pessoa")
    await care(office).devolver(talk, NaDevolucao.CONTINUAR, por="bia", motivo="pronto")
    await care(office).encerrar(talk, por="caio", motivo="fim")
    noted = await rows(office.work.database, "SELECT actor, action, subject FROM audit_log ORDER BY id")
    assert [(row["actor"], row["action"]) for row in noted] == [
        ("ana", "conversa.assumir"), ("bia", "conversa.devolver"), ("caio", "conversa.encerrar"),
    ]  # fmt: skip
    assert {row["subject"] for row in noted} == {f"conversa:{talk}"}


async def test_refusals_name_the_next_step(office: Office, doctor: str) -> None:
    talk = await open_talk(office, doctor)
    with pytest.raises(ConversaSemPessoa):
        await care(office).devolver(talk, NaDevolucao.CONTINUAR, por="ana", motivo="-")
    with pytest.raises(ConversaDesconhecida):
        await care(office).assumir(UNKNOWN, por="ana", motivo="-")
    await care(office).assumir(talk, por="ana", motivo="-")
    with pytest.raises(ConversaComPessoa, match=r"ana handles .*batuta conversas devolver"):
        await care(office).assumir(talk, por="bia", motivo="-")


async def test_escalated_conversation_needs_a_person_and_any_person_may_take_it(office: Office, doctor: str) -> None:
    talk, stages = await open_talk(office, doctor), julia_of(office.work).messages.estagios
    now = office.clock.now()
    async with office.work.database.transaction() as transaction:
        assert await stages.escalar(transaction, talk, por="sistema", motivo="pede_pessoa", now=now)
        assert not await stages.escalar(transaction, talk, por="sistema", motivo="pede_pessoa", now=now)
    assert await state(office, talk) == ("escalated", "human", None)
    (finding,) = (await care(office).ask()).findings
    assert (finding.says, finding.facts) == ("conversas_sem_responsavel", {"count": 1})
    await care(office).assumir(talk, por="ana", motivo="-")
    assert await state(office, talk) == ("active", "human", "ana")
    assert (await care(office).ask()).findings == ()


async def test_stage_moves_forward_and_never_leaves_an_opt_out(office: Office, doctor: str) -> None:
    talk, stages = await open_talk(office, doctor), julia_of(office.work).messages.estagios
    async with office.work.database.transaction() as transaction:
        assert await stages.mover(transaction, talk, EstagioDaConversa.NEGOCIANDO, now=office.clock.now())
        assert not await stages.mover(transaction, talk, EstagioDaConversa.NEGOCIANDO, now=office.clock.now())
    (listed,) = await care(office).listar(estagio=EstagioDaConversa.NEGOCIANDO, com=Com.JULIA, limite=10)
    assert listed["id"] == talk
    assert await care(office).listar(com=Com.PESSOA, limite=10) == []
    await write(office.work.database, "UPDATE conversations SET stage = 'optout'")
    async with office.work.database.transaction() as transaction:
        assert not await stages.mover(transaction, talk, EstagioDaConversa.FECHOU, now=office.clock.now())


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(database_url)
    yield opened
    await opened.work.close()


async def post(julia: Julia, path: str, body: Any, **headers: str) -> httpx2.Response:
    asked = {"Accept-Language": "en", "Content-Type": "application/json", **headers}
    return await julia.ask("POST", path, content=json.dumps(body), headers=asked)


async def a_talk(julia: Julia) -> str:
    doctor, now = await add_doctor(julia.work.database, PHONE), julia.work.clock.now()
    async with julia.work.database.transaction() as transaction:
        conversas = julia_of(julia.work).messages.conversas
        return await conversas.conversa(transaction, doctor, None, now=now)


async def test_routes_list_show_take_return_and_end(julia: Julia) -> None:
    talk = await a_talk(julia)
    path = f"/api/v1/conversas/{talk}"
    (listed,) = (await julia.ask("GET", "/api/v1/conversas?com=ai")).json()["conversas"]
    assert (listed["id"], listed["estagio"]) == (talk, "novo")
    taken = await post(julia, f"{path}/assumir", {"motivo": "quer negociar"})
    assert (taken.status_code, taken.json()["acao"]) == (200, "assumir")
    shown = (await julia.ask("GET", path)).json()
    assert (shown["com"], shown["responsavel"], shown["historico"][0]["motivo"]) == ("human", "local", "quer negociar")
    written = await post(julia, f"{path}/responder", {"texto": "Posso ligar?"})
    assert (written.status_code, written.json()["assumida"]) == (202, False)
    assert (await post(julia, f"{path}/responder", {"texto": " "})).status_code == 422
    assert (await post(julia, f"{path}/devolver", {"motivo": "-"})).status_code == 422
    given = await post(julia, f"{path}/devolver", {"motivo": "pronto", "mensagens": "cancelar"})
    assert given.json() == {"id": talk, "acao": "devolver", "mensagens": 0, "repetida": False}
    refused = await post(julia, f"{path}/devolver", {"motivo": "pronto", "mensagens": "cancelar"})
    assert (refused.status_code, "Julia already handles" in refused.json()["detail"]) == (409, True)
    assert (await post(julia, f"{path}/encerrar", {"motivo": "fim"})).status_code == 200
    assert (await julia.ask("GET", "/api/v1/conversas")).json() == {"conversas": []}
    assert (await julia.ask("GET", f"/api/v1/conversas/{UNKNOWN}")).status_code == 404


async def test_routes_list_and_resolve_pending_messages(julia: Julia) -> None:
    now = julia.work.clock.now()
    await write(
        julia.work.database,
        "INSERT INTO pendencias (id, quem, telefone, provider_message_id, motivo, ultima_em, created_at)"
        " VALUES (:id, 'x', :phone, 'm', 'sem_resposta', :now, :now)",
        id=UNKNOWN,
        phone=PHONE,
        now=now,
    )
    listed = (await julia.ask("GET", "/api/v1/pendencias")).json()
    assert (listed["abertas"], listed["pendencias"][0]["telefone"]) == (1, f"…{PHONE[-4:]}")
    path = f"/api/v1/pendencias/{UNKNOWN}/resolver"
    assert (await post(julia, path, {"motivo": "liguei"})).json() == {"id": UNKNOWN, "resolvida": True}
    assert (await post(julia, path, {"motivo": "liguei"})).status_code == 404


async def test_texts_need_the_scope_for_personal_data(julia: Julia) -> None:
    token, secret = mint("leitor", [Scope.READ], by="ana", now=julia.work.clock.now(), chance=lambda n: "a" * 2 * n)
    await julia.work.tokens.keep(token)
    headers = {"Authorization": f"Bearer {secret}"}
    answers = [
        (await julia.ask("GET", path, headers=headers)).status_code
        for path in (f"/api/v1/conversas/{UNKNOWN}", "/api/v1/pendencias", "/api/v1/conversas")
    ]
    assert answers == [403, 403, 200]


def test_commands_list_and_refuse(folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    command = ("--app", "app.main:work", "conversas")
    assert batuta(*command, "listar")[:2] == (0, "nenhuma conversa\n")
    code, _, err = batuta(*command, "assumir", UNKNOWN, "--motivo", "x")
    assert (code, "batuta conversas listar" in err) == (1, True)
    assert batuta(*command, "devolver", UNKNOWN, "--motivo", "x")[0] == 2
    code, _, err = batuta(*command, "ver", UNKNOWN)
    assert (code, "não existe" in err) == (1, True)


def test_commands_take_return_and_show(folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    command = ("--app", "app.main:work", "conversas")

    async def prepare() -> str:
        opened = await open_julia("sqlite:///julia.db")
        talk = await a_talk(opened)
        await opened.work.close()
        return talk

    talk = asyncio.run(prepare())
    assert batuta(*command, "assumir", talk[:18], "--motivo", "negociar")[:2] == (
        0, f"conversa {talk}: agora está com você; mensagens da Julia retidas: 0\n",
    )  # fmt: skip
    assert talk in batuta(*command, "listar", "--com", "human", "--json")[1]
    assert "a mensagem está na fila" in batuta(*command, "responder", talk, "Posso ligar?")[1]
    shown = batuta(*command, "ver", talk)[1]
    assert ("assumida" in shown, "negociar" in shown) == (True, True)
    assert batuta(*command, "devolver", talk, "--mensagens", "continuar", "--motivo", "pronto")[0] == 0
    assert batuta(*command, "encerrar", talk, "--motivo", "fim")[0] == 0
    assert batuta(*command, "listar")[1] == "nenhuma conversa\n"
