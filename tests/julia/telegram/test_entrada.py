"""Inbound messages, the history of chats, and actions on messages."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.contexts.mensagens.api import FILA_MENSAGENS, NovaMensagem, Tipo
from app.contexts.telegram.entrada import TELEGRAM_ENTRADA
from app.contexts.telegram.tarefas import TELEGRAM_ACOES, TELEGRAM_HISTORICO, Acao
from batuta.kernel import Json
from tests.julia.tables import one, rows, write
from tests.julia.telegram.escritorio import PHONE, Escritorio, open_office


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Escritorio]:
    # A WhatsApp gateway that no test reaches, because the rules are checked before the call.
    whatsapp: dict[str, Any] = {
        "evolution_api_url": "http://127.0.0.1:9",
        "evolution_api_key": "x",
        "send_allowlist": PHONE,
    }
    async with open_office(database_url, **whatsapp) as office:
        yield office


async def test_message_of_a_group_joins_the_pipeline_once_for_two_accounts(office: Escritorio) -> None:
    first, second = await office.account(), await office.account("conta-2")
    _, person = await office.doctor()
    await office.connect()
    members = [office.usuarios[first], office.usuarios[second], person]
    chat = office.mundo.add_chat("Plantões Sintéticos", members, tipo="canal")
    office.mundo.says_in_chat(person, chat, "Plantão UTI 12/03 noite, Hospital Sintético, R$ 1.500")
    await office.sync("SELECT 1 FROM telegram_entrada")
    await office.reads_inbox()
    (stored,) = await rows(office.database, "SELECT chave FROM telegram_entrada")
    (read,) = await rows(office.database, "SELECT message_id, status FROM mensagens_grupo")
    assert read == {"message_id": stored["chave"], "status": "pendente"}


async def test_repeated_update_is_stored_once(office: Escritorio) -> None:
    conta = await office.account()
    _, person = await office.doctor()
    office.mundo.change({"repeated_updates": 1.0})
    await office.connect()
    office.mundo.says(person, office.usuarios[conta], "Bom dia")
    office.mundo.says(person, office.usuarios[conta], "Tudo bem?")
    await office.sync("SELECT 1 FROM telegram_entrada WHERE mensagem = 2")
    await office.reads_inbox()
    texts = [
        each["texto"] for each in await rows(office.database, "SELECT texto FROM telegram_entrada ORDER BY mensagem")
    ]
    assert texts == ["Bom dia", "Tudo bem?"]
    came = await rows(office.database, "SELECT conteudo FROM interacoes WHERE tipo = 'entrada' ORDER BY id")
    assert [each["conteudo"] for each in came] == texts


async def test_another_user_under_the_same_name_is_another_account(office: Escritorio) -> None:
    first = await office.account()
    _, person = await office.doctor()
    await office.connect()
    office.mundo.says(person, office.usuarios[first], "Bom dia")
    await office.sync("SELECT 1 FROM telegram_entrada")
    second = await office.account()  # the same name, another user, whose first message has the same number
    await office.connect()
    office.mundo.says(person, office.usuarios[second], "Boa tarde")
    await office.sync("SELECT 1 FROM telegram_entrada WHERE texto = 'Boa tarde'")
    contas = await rows(office.database, "SELECT id, nome, estado FROM telegram_contas ORDER BY created_at, id")
    assert [(str(each["id"]), each["estado"]) for each in contas] == [(first, "removida"), (second, "ativa")]
    assert contas[1]["nome"] == "conta-1"
    sessions = await rows(office.database, "SELECT conta_id FROM telegram_sessoes")
    assert [str(each["conta_id"]) for each in sessions] == [second]


async def test_characters_that_no_database_stores_are_replaced(office: Escritorio) -> None:
    conta = await office.account()
    await office.connect()
    person = office.mundo.add_person("Nome\x00 Sintético", username="nome\x00")
    midia: dict[str, Json] = {
        "tipo": "documento",
        "sha256": "a\x00b",
        "nome": "escala\x00.pdf",
        "mime": "x\x00",
        "tamanho": 1,
    }
    office.mundo.says(person, office.usuarios[conta], "Tem plantão\x00 amanhã?", midia=midia)
    await office.sync("SELECT 1 FROM telegram_entrada")
    row = await one(office.database, "SELECT texto, autor_nome, midia FROM telegram_entrada")
    assert (row["texto"], row["autor_nome"]) == ("Tem plantão\ufffd amanhã?", "Nome\ufffd Sintético")
    await office.telegram.servico.ler_historico("conta-1", f"pessoa:{person}", maximo=10)
    await office.works(TELEGRAM_HISTORICO.name)
    assert (await one(office.database, "SELECT status FROM telegram_historico"))["status"] == "concluido"


async def test_opt_out_of_an_unlinked_person_holds_after_the_link(office: Escritorio) -> None:
    conta = await office.account()
    doctor, _ = await office.doctor(on_telegram=False)
    stranger = office.mundo.add_person("Pessoa Sintética")
    await office.connect()
    office.mundo.says(stranger, office.usuarios[conta], "Não me mande mais mensagens, por favor")
    await office.sync("SELECT 1 FROM telegram_entrada")
    await office.reads_inbox()
    before = await one(office.database, "SELECT opted_out FROM clientes WHERE id = :id", id=doctor)
    assert before == {"opted_out": False}
    await office.telegram.servico.vincular(PHONE, stranger)
    after = await one(office.database, "SELECT opted_out FROM clientes WHERE id = :id", id=doctor)
    assert after == {"opted_out": True}


async def test_history_is_stored_without_an_answer_and_continues_at_its_position(office: Escritorio) -> None:
    conta = await office.account()
    _, person = await office.doctor()
    for number in range(250):
        office.mundo.says(person, office.usuarios[conta], f"Tem plantão no dia {number}?")
    await office.connect()
    await office.telegram.servico.ler_historico("conta-1", f"+{PHONE}", maximo=1_000)
    await office.work.work_once(TELEGRAM_HISTORICO.name, 1)
    half = await one(office.database, "SELECT lidas, status FROM telegram_historico")
    assert half == {"lidas": 100, "status": "pendente"}
    await office.works(TELEGRAM_HISTORICO.name)
    done = await one(office.database, "SELECT lidas, novas, status FROM telegram_historico")
    assert done == {"lidas": 250, "novas": 250, "status": "concluido"}
    assert await rows(office.database, "SELECT 1 FROM interacoes") == []


@pytest.mark.parametrize("is_linked", [True, False], ids=["number shown", "linked later"])
async def test_opt_out_of_long_ago_in_the_history_holds_on_both_channels(office: Escritorio, is_linked: bool) -> None:
    conta = await office.account()
    doctor, person = await office.doctor()
    if not is_linked:
        person = office.mundo.add_person("Pessoa Sintética", username="pessoa")
    office.mundo.says(person, office.usuarios[conta], "Por favor, não me mande mais mensagens")
    office.mundo.says(person, office.usuarios[conta], "Obrigada")
    await office.connect()
    chat = f"+{PHONE}" if is_linked else "@pessoa"
    await office.telegram.servico.ler_historico("conta-1", chat, maximo=1_000)
    await office.works(TELEGRAM_HISTORICO.name)
    if not is_linked:
        await office.telegram.servico.vincular(PHONE, person)
    state = await one(office.database, "SELECT opt_out, opted_out FROM clientes WHERE id = :id", id=doctor)
    assert state == {"opt_out": True, "opted_out": True}
    on_telegram = await office.send(PHONE, "Bom dia")
    message = NovaMensagem(tipo=Tipo.SISTEMA, cliente_id=doctor, telefone=PHONE, texto="Oi", chave="x")
    (on_whatsapp,) = await office.work.queues[FILA_MENSAGENS.name].put([message.item(now=office.work.clock.now())])
    await office.works()
    await office.works(FILA_MENSAGENS.name)
    assert on_whatsapp is not None
    outcomes = [(await office.message(id))["outcome"] for id in (on_telegram, on_whatsapp)]
    assert outcomes == ["BLOCKED_OPTED_OUT", "BLOCKED_OPTED_OUT"]
    recorded = await rows(office.database, "SELECT conteudo FROM interacoes")
    assert [each["conteudo"] for each in recorded] == ["Por favor, não me mande mais mensagens"]
    assert await rows(office.database, "SELECT 1 FROM pendencias") == []


async def test_probable_opt_out_in_the_history_waits_for_an_operator(office: Escritorio) -> None:
    conta = await office.account()
    _, person = await office.doctor()
    office.mundo.says(person, office.usuarios[conta], "que saco")
    await office.connect()
    await office.telegram.servico.ler_historico("conta-1", f"+{PHONE}", maximo=10)
    await office.works(TELEGRAM_HISTORICO.name)
    (question,) = await rows(office.database, "SELECT telefone FROM optouts_provaveis")
    assert question == {"telefone": PHONE}


async def test_opt_out_words_of_an_account_or_in_a_group_do_not_count(office: Escritorio) -> None:
    conta = await office.account()
    doctor, person = await office.doctor()
    chat = office.mundo.add_chat("Plantões", [office.usuarios[conta], person])
    await office.connect()
    await office.send(PHONE, "Se não quer mais receber mensagens, responda PARAR")
    await office.works()
    office.mundo.says_in_chat(person, chat, "Não me mande mais mensagens")
    await office.sync("SELECT 1 FROM telegram_entrada WHERE chat LIKE 'grupo:%'")
    await write(office.database, "DELETE FROM telegram_entrada")
    for each in (f"+{PHONE}", chat):
        await office.telegram.servico.ler_historico("conta-1", each, maximo=10)
    await office.works(TELEGRAM_HISTORICO.name)
    assert len(await rows(office.database, "SELECT 1 FROM telegram_entrada WHERE origem = 'historico'")) == 2
    state = await one(office.database, "SELECT opted_out FROM clientes WHERE id = :id", id=doctor)
    assert state == {"opted_out": False}


async def test_message_that_a_back_fill_read_first_still_joins_the_conversation(office: Escritorio) -> None:
    conta = await office.account()
    _, person = await office.doctor()
    await office.connect()
    office.mundo.change({"silent": True})  # the update arrives later than the page of the history
    office.mundo.says(person, office.usuarios[conta], "Tem plantão amanhã?")
    await office.telegram.servico.ler_historico("conta-1", f"+{PHONE}", maximo=10)
    await office.works(TELEGRAM_HISTORICO.name)
    assert (await one(office.database, "SELECT status FROM telegram_entrada"))["status"] == "processada"
    office.mundo.restore()
    office.mundo.says(person, office.usuarios[conta], "Alô?")
    await office.sync("SELECT 1 FROM telegram_entrada WHERE mensagem = 2")
    await office.works(TELEGRAM_ENTRADA.name)
    came = await rows(office.database, "SELECT conteudo FROM interacoes WHERE tipo = 'entrada' ORDER BY id")
    assert [each["conteudo"] for each in came] == ["Tem plantão amanhã?", "Alô?"]


async def test_edit_and_deletion_reach_the_person(office: Escritorio) -> None:
    conta = await office.account()
    _, person = await office.doctor()
    await office.connect()
    id = await office.send(PHONE, "Bom dai")
    await office.works()
    number = int((await office.message(id))["provider_message_id"].rsplit(":", 1)[1])
    chat = f"pessoa:{person}"
    await office.telegram.servico.agir("conta-1", Acao.EDITAR, chat, number, by="teste", texto="Bom dia")
    await office.works(TELEGRAM_ACOES.name)
    assert office.mundo.message(office.usuarios[conta], chat, number).texto == "Bom dia"
    await office.telegram.servico.agir("conta-1", Acao.APAGAR, chat, number, by="teste")
    await office.works(TELEGRAM_ACOES.name)
    states = await rows(office.database, "SELECT acao, status FROM telegram_acoes ORDER BY created_at, id")
    assert [each["status"] for each in states] == ["feita", "feita"]


async def test_hanging_account_delays_only_itself(office: Escritorio) -> None:
    slow, _ = await office.account("lenta"), await office.account("rapida")
    await office.doctor()
    await office.connect()
    office.mundo.change({"hang": True}, office.usuarios[slow])
    await office.doctor("5511900000002")
    id = await office.send("5511900000002", "Bom dia", conta="rapida")
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
