"""The contract of the Telegram interface, tested with the simulator's client and with Telethon's client."""

import asyncio
import time
from datetime import timedelta

import httpx2

from app.contexts.telegram.porta import (
    AlreadySent,
    Apagadas,
    Arquivo,
    Entidade,
    Enviadas,
    Feito,
    FloodWait,
    Historico,
    LidaPeloOutro,
    Linha,
    MensagemVista,
    Metodo,
    Novidades,
    OwnedElsewhere,
    Peer,
    PeerBlocked,
    PeerFlood,
    PeerUnknown,
    Refused,
    Sent,
    SessionRevoked,
    SlowMode,
    TipoDeChat,
    Unavailable,
    Unknown,
    Vivo,
)
from app.integrations.telegram.simulado import LinhaSimulada
from tests.julia.telegram.ambiente import LONG, SHORT, Ambiente, messages, updates

RANDOM_ID = 4611686018427387905


async def send(line: Linha, peer: Peer, texto: str = "Olá", random_id: int = RANDOM_ID) -> object:
    return await line.send_text(peer, texto, random_id=random_id, limit=LONG)


# Sending


async def test_a_text_is_sent_once_with_its_random_id(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    sent = await send(line, ambiente.peer(conta, ambiente.person()))
    assert isinstance(sent, Sent)
    receipt = ambiente.mundo.receipts[0]
    assert (receipt.id, receipt.random_id, receipt.texto) == (sent.id, RANDOM_ID, "Olá")


async def test_a_repeated_random_id_returns_the_first_message(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    peer = ambiente.peer(conta, ambiente.person())
    first, second = await send(line, peer), await send(line, peer)
    assert first == second
    assert len(ambiente.mundo.receipts) == 1


async def test_a_duplicate_is_reported_and_found_in_the_history(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    peer = ambiente.peer(conta, ambiente.person())
    first = await send(line, peer)
    ambiente.mundo.change({"duplicate_error": True})
    assert await send(line, peer) == AlreadySent()
    found = await line.list_sent(peer, since=ambiente.clock.now() - timedelta(minutes=1), limit=LONG)
    assert isinstance(found, Enviadas)
    assert found.is_complete
    assert isinstance(first, Sent)
    assert [(each.id, each.texto) for each in found.mensagens] == [(first.id, "Olá")]


async def test_a_lost_answer_is_unknown_and_the_history_shows_the_message(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    peer = ambiente.peer(conta, ambiente.person())
    ambiente.mundo.change({"lost_answers": 1.0})
    assert isinstance(await send(line, peer), Unknown)
    ambiente.mundo.change({"lost_answers": 0.0, "forgets_random_ids": True})
    await line.close(limit=LONG)
    line = await ambiente.line(conta)
    found = await line.list_sent(peer, since=ambiente.clock.now() - timedelta(minutes=1), limit=LONG)
    assert isinstance(found, Enviadas)
    assert found.is_complete
    assert len(found.mensagens) == 1


async def test_a_call_that_never_left_proves_that_nothing_was_sent(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    peer = ambiente.peer(conta, ambiente.person())
    ambiente.mundo.change({"dropped": 1.0})
    assert isinstance(await send(line, peer), Unknown)  # the server may have accepted it
    ambiente.mundo.change({"dropped": 0.0})
    await line.close(limit=LONG)
    assert isinstance(await send(line, peer), Unavailable)
    assert ambiente.mundo.receipts == []


async def test_a_server_error_is_unknown(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    ambiente.mundo.change({"server_error": 1.0})
    assert isinstance(await send(line, ambiente.peer(conta, ambiente.person())), Unknown)
    assert len(ambiente.mundo.receipts) == 1


async def test_a_call_without_an_answer_ends_at_its_limit(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    other, second = await ambiente.connected()
    peer = ambiente.peer(conta, ambiente.person())
    ambiente.mundo.change({"hang": True}, conta.usuario)
    began = time.monotonic()
    hung = line.send_text(peer, "Olá", random_id=RANDOM_ID, limit=SHORT)
    works = send(other, ambiente.peer(second, ambiente.person()))
    answers = await asyncio.gather(hung, works, line.history(peer, after=0, most=10, limit=SHORT))
    assert isinstance(answers[0], Unknown)
    assert isinstance(answers[1], Sent)
    assert isinstance(answers[2], Unknown)
    assert time.monotonic() - began < 15


async def test_a_flood_is_reported_with_its_method_and_not_waited_out(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    peer = ambiente.peer(conta, ambiente.person())
    ambiente.mundo.change({"flood_wait": 3600, "flood_methods": ["send_text"]})
    assert await send(line, peer) == FloodWait(Metodo.SEND_TEXT, timedelta(hours=1))
    assert isinstance(await line.history(peer, after=0, most=10, limit=LONG), Historico)
    assert ambiente.mundo.calls[(conta.usuario, "send_text")] == 1


async def test_limits_of_the_account_and_of_the_chat_differ(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    peer = ambiente.peer(conta, ambiente.person())
    ambiente.mundo.change({"peer_flood": True})
    assert await send(line, peer) == PeerFlood()
    ambiente.mundo.change({"peer_flood": False, "slow_mode": 30})
    assert await send(line, peer) == SlowMode(timedelta(seconds=30))
    assert ambiente.mundo.receipts == []


async def test_each_reason_why_a_person_cannot_be_reached_differs(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    blocked = ambiente.person()
    ambiente.mundo.block(blocked)
    assert isinstance(await send(line, ambiente.peer(conta, blocked)), PeerBlocked)
    foreign = Peer(TipoDeChat.PESSOA, ambiente.person(), 12345)
    assert isinstance(await send(line, foreign), PeerUnknown)
    assert isinstance(await send(line, ambiente.peer(conta, ambiente.person()), "x" * 5000), Refused)
    assert ambiente.mundo.receipts == []


async def test_a_file_is_sent_and_seen_by_reference(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    peer = ambiente.peer(conta, ambiente.person())
    arquivo = Arquivo(conteudo=b"synthetic" * 100, nome="escala.pdf", mime="application/pdf")
    sent = await line.send_file(peer, arquivo, "A escala", random_id=RANDOM_ID, limit=LONG)
    assert isinstance(sent, Sent)
    assert [(each.midia, each.texto) for each in ambiente.mundo.receipts] == [("escala.pdf", "A escala")]
    page = await line.history(peer, after=0, most=10, limit=LONG)
    assert isinstance(page, Historico)
    midia = page.mensagens[0].midia
    assert midia is not None
    assert (midia.nome, midia.mime, midia.tamanho, midia.tipo) == ("escala.pdf", "application/pdf", 900, "documento")
    assert midia.referencia


async def test_a_message_is_sent_to_a_group_and_to_a_supergroup(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    group = ambiente.mundo.add_chat("Plantões", [conta.usuario])
    wide = ambiente.mundo.add_chat("Plantões SP", [conta.usuario], tipo="canal")
    for n, (tipo, chave) in enumerate([(TipoDeChat.GRUPO, group), (TipoDeChat.CANAL, wide)]):
        peer = Peer(tipo, int(chave.partition(":")[2]), ambiente.mundo.hash_for(conta.usuario, chave))
        assert isinstance(await send(line, peer, random_id=n + 1), Sent)
    assert [each.chat for each in ambiente.mundo.receipts] == [group, wide]


# Actions on messages


async def test_messages_are_edited_read_forwarded_and_deleted(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    person, other = ambiente.person(), ambiente.person()
    peer, second = ambiente.peer(conta, person), ambiente.peer(conta, other)
    sent = await send(line, peer)
    assert isinstance(sent, Sent)
    assert await line.edit(peer, sent.id, "Olá de novo", limit=LONG) == Feito()
    assert await line.edit(peer, sent.id, "Olá de novo", limit=LONG) == Feito()  # a repetition
    assert await line.mark_read(peer, sent.id, limit=LONG) == Feito()
    forwarded = await line.forward(peer, sent.id, second, random_id=RANDOM_ID + 1, limit=LONG)
    assert isinstance(forwarded, Sent)
    page = await line.history(second, after=0, most=10, limit=LONG)
    assert isinstance(page, Historico)
    assert [(each.texto, each.encaminhada) for each in page.mensagens] == [("Olá de novo", True)]
    assert await line.delete(peer, [sent.id], limit=LONG) == Feito()
    assert await line.delete(peer, [sent.id], limit=LONG) == Feito()
    assert await line.history(peer, after=0, most=10, limit=LONG) == Historico(mensagens=(), ate=0, has_more=False)


async def test_the_history_comes_page_by_page_oldest_first(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    person = ambiente.person()
    for n in range(7):
        ambiente.mundo.says(person, conta.usuario, f"mensagem {n}")
    peer, after, texts = ambiente.peer(conta, person), 0, list[str]()
    for _ in range(4):
        page = await line.history(peer, after=after, most=3, limit=LONG)
        assert isinstance(page, Historico)
        texts += [each.texto for each in page.mensagens]
        after = page.ate
        if not page.has_more:
            break
    assert texts == [f"mensagem {n}" for n in range(7)]


# People and chats


async def test_a_person_is_resolved_once_and_known_afterwards(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    person = ambiente.person("Ana Sintética", username="ana_sintetica", telefone="5511987650001")
    found = await line.resolve("@ana_sintetica", limit=LONG)
    assert isinstance(found, Entidade)
    assert (found.peer, found.nome) == (ambiente.peer(conta, person), "Ana Sintética")
    for destino in ("@ana_sintetica", "+5511987650001", str(person), f"pessoa:{person}"):
        assert await line.resolve(destino, limit=LONG) == found
    assert ambiente.mundo.calls[(conta.usuario, "resolve")] == 1
    assert isinstance(await send(line, found.peer), Sent)


async def test_an_unknown_name_number_or_id_is_reported(ambiente: Ambiente) -> None:
    line, _ = await ambiente.connected()
    for destino in ("@ninguem", "+5511900009999", "424242"):
        assert isinstance(await line.resolve(destino, limit=LONG), PeerUnknown)


async def test_an_address_that_became_invalid_is_forgotten(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    person = ambiente.person(username="antiga")
    stale = Entidade(peer=Peer(TipoDeChat.PESSOA, person, 999), username="antiga")
    await ambiente.entidades.keep(conta.id, [stale])
    assert isinstance(await send(line, stale.peer), PeerUnknown)
    found = await line.resolve("@antiga", limit=LONG)
    assert isinstance(found, Entidade)
    assert found.peer.acesso == ambiente.mundo.hash_for(conta.usuario, f"pessoa:{person}")


# Updates


async def test_a_message_arrives_with_its_author_and_chat(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    person = ambiente.person("Bia Sintética", username="bia")
    id = ambiente.mundo.says(person, conta.usuario, "Tem plantão?")
    (seen,), _ = await messages(line, 1)
    assert (seen.id, seen.texto, seen.is_own, seen.chat.peer.chave) == (id, "Tem plantão?", False, f"pessoa:{person}")
    assert seen.autor is not None
    assert (seen.autor.nome, seen.autor.peer.acesso) == ("Bia Sintética", ambiente.peer(conta, person).acesso)
    assert await line.resolve(str(person), limit=LONG) == seen.autor  # without a request to Telegram
    assert ambiente.mundo.calls[(conta.usuario, "resolve")] == 0


async def test_messages_of_groups_arrive_with_the_group_and_the_author(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    person = ambiente.person("Caio Sintético")
    group = ambiente.mundo.add_chat("Plantões", [conta.usuario, person])
    wide = ambiente.mundo.add_chat("Plantões SP", [conta.usuario, person], tipo="canal")
    ambiente.mundo.says_in_chat(person, group, "Vaga 1")
    ambiente.mundo.says_in_chat(person, wide, "Vaga 2")
    found, _ = await messages(line, 2)
    seen = {(each.chat.peer.chave, each.chat.nome, each.autor and each.autor.nome, each.texto) for each in found}
    assert seen == {
        (group, "Plantões", "Caio Sintético", "Vaga 1"),
        (wide, "Plantões SP", "Caio Sintético", "Vaga 2"),
    }


async def test_edits_deletions_and_reads_arrive(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    friend = await ambiente.account("Outra Conta")
    theirs = await ambiente.line(friend)
    sent = await send(theirs, ambiente.peer(friend, conta.usuario))
    assert isinstance(sent, Sent)
    (seen,), _ = await messages(line, 1)
    await theirs.edit(ambiente.peer(friend, conta.usuario), sent.id, "Olá, corrigido", limit=LONG)
    (edited,), _ = await messages(line, 1)
    assert (edited.id, edited.texto) == (seen.id, "Olá, corrigido")
    assert edited.editada is not None
    await theirs.delete(ambiente.peer(friend, conta.usuario), [sent.id], limit=LONG)
    (deleted,), _ = await updates(line, 1)
    assert isinstance(deleted, Apagadas)
    assert deleted.ids == (seen.id,)
    mine = await send(line, ambiente.peer(conta, friend.usuario), random_id=RANDOM_ID + 5)
    assert isinstance(mine, Sent)
    ambiente.mundo.reads(friend.usuario, conta.usuario)
    (read,), _ = await updates(line, 1)
    assert read == LidaPeloOutro(chat=Peer(TipoDeChat.PESSOA, friend.usuario), ate=mine.id)


async def test_repeated_updates_arrive_once_and_in_order(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    ambiente.mundo.change({"repeated_updates": 1.0})
    person = ambiente.person()
    for n in range(5):
        ambiente.mundo.says(person, conta.usuario, f"mensagem {n}")
    found, _ = await messages(line, 5)
    assert [each.texto for each in found] == [f"mensagem {n}" for n in range(5)]
    assert isinstance(await line.probe(limit=LONG), Vivo)
    again = await line.receive(limit=SHORT)
    assert isinstance(again, Novidades)
    assert again.atualizacoes == ()


async def test_a_probe_fetches_what_a_silent_server_did_not_push(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    assert await line.probe(limit=LONG) == Vivo(eu=conta.usuario)
    ambiente.mundo.change({"silent": True})
    ambiente.mundo.says(ambiente.person(), conta.usuario, "Alguém?")
    nothing = await line.receive(limit=SHORT)
    assert isinstance(nothing, Novidades)
    assert nothing.atualizacoes == ()
    assert await line.probe(limit=LONG) == Vivo(eu=conta.usuario, atraso=True)
    (seen,), _ = await messages(line, 1)
    assert seen.texto == "Alguém?"


async def test_a_skipped_update_is_fetched_when_the_next_one_arrives(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    person = ambiente.person()
    ambiente.mundo.change({"silent": True})
    ambiente.mundo.says(person, conta.usuario, "primeira")
    ambiente.mundo.change({"silent": False})
    ambiente.mundo.says(person, conta.usuario, "segunda")
    found, _ = await messages(line, 2)
    assert [each.texto for each in found] == ["primeira", "segunda"]


async def test_a_new_connection_continues_at_the_stored_position(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    person = ambiente.person()
    ambiente.mundo.says(person, conta.usuario, "vista")
    _, marca = await messages(line, 1)
    await line.close(limit=LONG)
    for n in range(250):
        ambiente.mundo.says(person, conta.usuario, f"perdida {n}")
    again = await ambiente.line(conta, marca)
    found, after = await messages(again, 250)
    assert [each.texto for each in found] == [f"perdida {n}" for n in range(250)]
    await again.close(limit=LONG)
    last = await ambiente.line(conta, after)
    nothing = await last.receive(limit=SHORT)
    assert isinstance(nothing, Novidades)
    assert nothing.atualizacoes == ()


async def test_updates_that_were_not_stored_come_again(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    person = ambiente.person()
    _, before = await received_nothing(line)
    ambiente.mundo.says(person, conta.usuario, "não guardada")
    await messages(line, 1)
    await line.close(limit=LONG)
    found, _ = await messages(await ambiente.line(conta, before), 1)
    assert [each.texto for each in found] == ["não guardada"]


async def test_updates_whose_answer_came_too_late_come_with_the_next(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    if not isinstance(line, LinhaSimulada):
        return  # Telegram pushes to Telethon over its open connection
    answered, never = asyncio.Event(), asyncio.Event()

    async def lose(answer: httpx2.Response) -> None:
        answered.set()
        await never.wait()

    line._client.event_hooks = {"response": [lose]}
    ambiente.mundo.says(ambiente.person(), conta.usuario, "atrasada")
    receiving = asyncio.create_task(line.receive(limit=LONG))
    await answered.wait()
    receiving.cancel()  # as if the limit of the call had passed
    await asyncio.wait([receiving])
    line._client.event_hooks = {}
    found, _ = await messages(line, 1)
    assert [each.texto for each in found] == ["atrasada"]


async def test_missing_updates_are_not_requested_during_a_flood(ambiente: Ambiente) -> None:
    line, _ = await ambiente.connected()
    if not isinstance(line, LinhaSimulada):
        return  # Telethon requests the difference itself
    line._may_lack = True
    ambiente.mundo.change({"flood_wait": 60})
    assert isinstance(await line.receive(limit=LONG), FloodWait)
    for _ in range(3):
        assert isinstance(await line.receive(limit=SHORT), Novidades)
    assert ambiente.mundo.calls_during_flood == 0


async def test_a_message_whose_answer_was_lost_comes_back_as_an_update(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    _, marca = await received_nothing(line)
    ambiente.mundo.change({"lost_answers": 1.0})
    assert isinstance(await send(line, ambiente.peer(conta, ambiente.person())), Unknown)
    ambiente.mundo.change({"lost_answers": 0.0})
    await line.close(limit=LONG)
    again = await ambiente.line(conta, marca)
    async with asyncio.timeout(LONG.total_seconds()):
        while True:
            received = await again.receive(limit=SHORT)
            assert isinstance(received, Novidades)
            if received.atualizacoes:
                break
    (seen,) = received.atualizacoes
    assert isinstance(seen, MensagemVista)
    assert (seen.is_own, seen.texto) == (True, "Olá")


# The life of a connection


async def test_a_revoked_session_is_reported_by_every_request(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    peer = ambiente.peer(conta, ambiente.person())
    ambiente.mundo.revoke(conta.usuario)
    found = await line.receive(limit=timedelta(seconds=5))
    assert isinstance(found, SessionRevoked)
    assert isinstance(await send(line, peer), SessionRevoked)
    assert isinstance(await line.probe(limit=LONG), SessionRevoked)
    await line.close(limit=LONG)
    assert isinstance(await ambiente.telegram.connect(conta.id, marca=None, limit=LONG), SessionRevoked)


async def test_a_banned_account_is_reported_as_banned(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    ambiente.mundo.pessoas[conta.usuario].is_banned = True
    found = await line.probe(limit=LONG)
    assert isinstance(found, SessionRevoked)
    assert found.banned


async def test_a_dead_connection_is_found_by_a_probe(ambiente: Ambiente) -> None:
    line, _ = await ambiente.connected()
    ambiente.mundo.change({"hang": True})
    assert isinstance(await line.probe(limit=SHORT), Unknown)
    ambiente.mundo.change({"hang": False, "down": True})
    assert isinstance(await line.probe(limit=LONG), Unknown | Unavailable)


async def test_an_unreachable_server_refuses_the_connection_within_the_limit(ambiente: Ambiente) -> None:
    conta = await ambiente.account()
    ambiente.mundo.change({"hang": True})
    assert isinstance(await ambiente.telegram.connect(conta.id, marca=None, limit=SHORT), Unavailable | Unknown)
    ambiente.mundo.change({"hang": False, "down": True})
    assert isinstance(await ambiente.telegram.connect(conta.id, marca=None, limit=LONG), Unavailable | Unknown)
    ambiente.mundo.restore()
    assert isinstance(await (await ambiente.line(conta)).probe(limit=LONG), Vivo)


async def test_a_session_belongs_to_one_process(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    other = ambiente.port(ambiente.vault("another process"))
    refused = await other.connect(conta.id, marca=None, limit=LONG)
    assert isinstance(refused, OwnedElsewhere)
    assert refused.until > ambiente.clock.now()
    await line.close(limit=LONG)
    taken = await other.connect(conta.id, marca=None, limit=LONG)
    assert not isinstance(taken, OwnedElsewhere)
    assert isinstance(await line.probe(limit=LONG), OwnedElsewhere)
    await taken.close(limit=LONG)  # type: ignore[union-attr]


async def test_an_account_without_a_session_asks_for_a_login(ambiente: Ambiente) -> None:
    found = await ambiente.telegram.connect("00000000-0000-7000-8000-000000000000", marca=None, limit=LONG)
    assert isinstance(found, SessionRevoked)
    assert "batuta telegram login" in found.why


async def test_a_line_closes_twice_and_reports_itself_closed(ambiente: Ambiente) -> None:
    line, conta = await ambiente.connected()
    await line.close(limit=LONG)
    await line.close(limit=LONG)
    assert line.conta == conta.id
    assert isinstance(await line.receive(limit=SHORT), Unavailable)


async def received_nothing(line: Linha) -> tuple[None, str]:
    found = await line.receive(limit=SHORT)
    assert isinstance(found, Novidades)
    return None, found.marca
