"""Conversations in the dashboard: those that are waiting for an operator come first. An operator takes a conversation
over, answers in it and returns it.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from batuta.testing import FakeClock
from tests.julia.tables import add_doctor, one, rows, write
from tests.julia.web.painel import EVERYTHING, OPERATOR, READER, SENDER, Painel, act, open_painel, text_of

SAID = "Quero falar com a coordenadora Beltrana"
PENDING = "00000000-0000-7000-8000-000000000001"


@pytest.fixture
async def painel(database_url: str, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Painel]:
    async with open_painel(database_url, clock, tmp_path) as opened:
        yield opened


async def talk_with(painel: Painel, number: int) -> str:
    """Open a conversation with a new doctor, who has written one message."""
    now = painel.clock.now()
    doctor = await add_doctor(painel.database, f"551190000{number:04d}", now=now)
    async with painel.database.transaction() as transaction:
        id = await painel.julia.messages.conversas.conversa(transaction, doctor, None, now=now)
    await write(
        painel.database,
        "INSERT INTO interacoes (conversation_id, cliente_id, tipo, autor_tipo, conteudo, created_at)"
        " VALUES (:id, :doctor, 'entrada', 'medico', :said, :now)",
        id=id,
        doctor=doctor,
        said=SAID,
        now=now,
    )
    await painel.clock.advance(timedelta(seconds=1))
    return id


async def escalate(painel: Painel, id: str) -> None:
    async with painel.database.transaction() as transaction:
        await painel.julia.messages.estagios.escalar(
            transaction, id, por="teste", motivo="Beltrana pediu", now=painel.clock.now()
        )


async def state(painel: Painel, id: str) -> tuple[str, str, str | None]:
    row = await one(painel.database, "SELECT * FROM conversations WHERE id = :id", id=id)
    return row["status"], row["controlled_by"], row["responsavel"]


async def test_conversations_that_wait_for_a_person_come_first(painel: Painel) -> None:
    led, waiting = await talk_with(painel, 1), await talk_with(painel, 2)
    await escalate(painel, waiting)
    async with painel.browser(*READER) as reader:
        first = await reader.get("/painel/conversas")
        others = await reader.get("/painel/conversas?fila=julia&estagio=novo")
        empty = await reader.get("/painel/conversas?fila=julia&estagio=fechou")
    assert (waiting in first.text, led in first.text) == (True, False)
    assert (waiting in others.text, led in others.text) == (False, True)
    assert led not in empty.text
    assert "Assumir" not in first.text


@pytest.mark.parametrize(
    ("language", "unassigned", "labels"),
    [
        ("pt-BR", "ninguém ainda", ("sem responsável", "o médico pediu para falar com uma pessoa")),
        ("en", "no person yet", ("no person responsible", "the doctor asked for a person")),
    ],
)
async def test_conversation_without_a_person_names_none_and_says_why_it_waits(
    painel: Painel, language: str, unassigned: str, labels: tuple[str, str]
) -> None:
    escalated, asked = await talk_with(painel, 1), await talk_with(painel, 2)
    await escalate(painel, escalated)
    doctor = (await one(painel.database, "SELECT cliente_id FROM conversations WHERE id = :id", id=asked))["cliente_id"]
    await write(
        painel.database,
        "INSERT INTO pendencias (id, quem, cliente_id, conversa_id, provider_message_id, motivo, ultima_em, created_at)"
        " VALUES (:id, 'x', :doctor, :talk, 'm', 'pede_pessoa', :now, :now)",
        id=PENDING,
        doctor=doctor,
        talk=asked,
        now=painel.clock.now(),
    )
    async with painel.browser(*OPERATOR) as operator:
        page = text_of(await operator.get(f"/painel/conversas?lang={language}"))
        form = await operator.get(f"/painel/acoes/conversa.assumir?lang={language}", params={"conversa": escalated})
    assert [label for label in labels if label not in page] == []
    assert (unassigned in page, unassigned in text_of(form)) == (True, True)


async def test_list_continues_after_the_last_row(painel: Painel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.screens.conversas.PAGE", 2)
    ids = [await talk_with(painel, n) for n in range(5)]
    seen: list[str] = []
    async with painel.browser(*READER) as reader:
        address: str | None = "/painel/conversas?fila=julia"
        while address:
            page = await reader.get(address)
            seen += [id for id in reversed(ids) if f'href="/painel/conversas/{id}"' in page.text]
            following = page.text.partition('rel="next" href="')[2].partition('"')[0]
            address = following.replace("&amp;", "&") or None
    assert seen == list(reversed(ids))


async def test_texts_names_and_reasons_need_pii(painel: Painel) -> None:
    id = await talk_with(painel, 1)
    await escalate(painel, id)
    for role in (READER, SENDER):
        async with painel.browser(*role) as browser:
            for path in ("/painel/conversas?mostrar=dados", f"/painel/conversas/{id}?mostrar=dados"):
                page = await browser.get(path)
                assert page.status_code == 200
                assert [sign for sign in ("Beltrana", "Médica Teste", "551190000") if sign in page.text] == []
    assert not await painel.audit("access.")
    async with painel.browser(*EVERYTHING) as person:
        assert "Médica Teste" not in (await person.get("/painel/conversas")).text
        assert "Médica Teste" in (await person.get("/painel/conversas?mostrar=dados")).text
        page = await person.get(f"/painel/conversas/{id}")
    assert (SAID in text_of(page), "Beltrana pediu" in text_of(page)) == (True, True)
    assert [entry[1:] for entry in await painel.audit("access.")] == [
        ("access.unmask", "/painel/conversas"),
        ("access.unmask", "/painel/conversas/{id}"),
    ]


async def test_person_takes_over_answers_returns_and_ends(painel: Painel) -> None:
    id = await talk_with(painel, 1)
    async with painel.browser(*EVERYTHING) as person:
        who = f"token pessoa{painel.said}"
        done = await act(person, "conversa.assumir", conversa=id, motivo="negociar")
        page = await person.get(done.headers["location"])
        assert "A conversa está com você" in text_of(page)
        assert f"batuta conversas assumir {id}" in text_of(page)
        assert await state(painel, id) == ("active", "human", who)
        assert (await act(person, "conversa.responder", conversa=id, texto="Posso ligar às 15h?")).status_code == 303
        (queued,) = await rows(painel.database, "SELECT tipo, conteudo, conversa_id FROM fila_mensagens")
        assert (queued["tipo"], queued["conteudo"], str(queued["conversa_id"])) == ("manual", "Posso ligar às 15h?", id)
        given = {"conversa": id, "mensagens": "cancelar", "motivo": "combinado"}
        assert (await act(person, "conversa.devolver", **given)).status_code == 303
        assert await state(painel, id) == ("active", "ai", None)
        assert (await act(person, "conversa.encerrar", conversa=id, motivo="fim")).status_code == 303
        ended = await person.get("/painel/conversas?fila=encerradas")
    assert id in ended.text
    assert (await state(painel, id))[0] == "completed"
    subject = f"conversa:{id}"
    assert await painel.audit("conversa.") == [
        (who, "conversa.assumir", subject),
        (who, "conversa.responder", subject),
        (who, "conversa.devolver", subject),
        (who, "conversa.encerrar", subject),
    ]


async def test_second_person_is_refused_with_the_name_of_the_first(painel: Painel) -> None:
    id = await talk_with(painel, 1)
    await painel.julia.messages.atendimento.assumir(id, por="bia", motivo="negociar")
    async with painel.browser(*EVERYTHING) as person:
        for name, more in (("assumir", {"motivo": "x"}), ("responder", {"texto": "Olá"})):
            refused = await act(person, f"conversa.{name}", conversa=id, **more)
            assert (refused.status_code, "bia" in text_of(refused)) == (422, True)
        page = await person.get(f"/painel/conversas/{id}")
    assert 'name="texto"' not in page.text


async def test_answer_needs_the_scope_send(painel: Painel) -> None:
    id = await talk_with(painel, 1)
    async with painel.browser(*OPERATOR) as operator:
        assert 'name="texto"' not in (await operator.get(f"/painel/conversas/{id}")).text
        sent = await operator.post("/painel/acoes/conversa.responder", data={"conversa": id, "texto": "Olá"})
    assert sent.status_code == 403
    assert not await rows(painel.database, "SELECT id FROM fila_mensagens")


async def test_pending_message_without_a_conversation_is_resolved(painel: Painel) -> None:
    await write(
        painel.database,
        "INSERT INTO pendencias (id, quem, telefone, provider_message_id, motivo, ultima_em, created_at)"
        " VALUES (:id, 'x', '5511900000009', 'm', 'sem_resposta', :now, :now)",
        id=PENDING,
        now=painel.clock.now(),
    )
    async with painel.browser(*OPERATOR) as operator:
        page = await operator.get("/painel/conversas")
        assert "remetente desconhecido" in text_of(page)
        assert b"5511900000009" not in page.content
        done = await act(operator, "pendencia.resolver", pendencia=PENDING, motivo="liguei")
        assert done.status_code == 303
        assert "Nenhuma conversa aguarda atendimento humano" in text_of(await operator.get("/painel/conversas"))
    (entry,) = await painel.audit("pendencia.")
    assert entry[1:] == ("pendencia.resolver", f"pendencia:{PENDING}")


async def test_unknown_conversation_is_a_page_with_the_next_step(painel: Painel) -> None:
    async with painel.browser(*READER) as reader:
        for id in ("x", PENDING):
            page = await reader.get(f"/painel/conversas/{id}")
            assert (page.status_code, "abra a lista no menu" in text_of(page)) == (404, True)


async def put_in_doubt(painel: Painel, number: int, state: str) -> str:
    """Store a message for which the gateway's response was lost. Return the message's id."""
    now = painel.clock.now()
    id = f"00000000-0000-7000-8000-{number:012d}"
    await write(
        painel.database,
        "INSERT INTO fila_mensagens (id, cliente_id, telefone_destino, conteudo, tipo, status, agendar_para,"
        " envio_estado, envio_desde, created_at)"
        " VALUES (:id, :doctor, :phone, 'x', 'campanha', 'processando', :now, :state, :now, :now)",
        id=id,
        doctor=await add_doctor(painel.database, f"551190001{number:04d}", now=now),
        phone=f"551190001{number:04d}",
        state=state,
        now=now,
    )
    return id


async def test_an_operator_decides_about_messages_in_doubt(painel: Painel) -> None:
    sent, lost = await put_in_doubt(painel, 1, "parked"), await put_in_doubt(painel, 2, "parked")
    searched = await put_in_doubt(painel, 3, "unknown")
    async with painel.browser(*SENDER) as person:
        who = f"token pessoa{painel.said}"
        assert 'href="/painel/conversas/duvidas"' in (await person.get("/painel")).text
        shown = await person.get("/painel/conversas/duvidas")
        assert (f"mensagem={sent}" in shown.text, f"mensagem={searched}" in shown.text) == (True, False)
        assert ("aguarda decisão" in text_of(shown), "em busca no gateway" in text_of(shown)) == (True, True)
        form = await person.get("/painel/acoes/mensagem.nao-enviada", params={"mensagem": lost})
        assert "o médico a receberá duas vezes" in text_of(form)
        assert f"batuta decidir {lost} nao-enviada" in text_of(form)
        assert (await act(person, "mensagem.enviada", mensagem=sent)).status_code == 303
        assert (await act(person, "mensagem.nao-enviada", mensagem=lost)).status_code == 303
        for wrong in (searched, sent, "x"):
            assert (await act(person, "mensagem.enviada", mensagem=wrong)).status_code == 422
        assert "It was sent" not in text_of(await person.get("/painel/conversas/duvidas?lang=en"))
    stored = await rows(painel.database, "SELECT status, envio_estado FROM fila_mensagens ORDER BY id")
    assert [(row["status"], row["envio_estado"]) for row in stored] == [
        ("enviada", None),
        ("pendente", None),
        ("processando", "unknown"),
    ]
    assert await painel.audit("mensagem.") == [(who, "mensagem.decidir", sent), (who, "mensagem.decidir", lost)]


async def test_without_a_message_in_doubt_the_page_says_when_one_appears(painel: Painel) -> None:
    async with painel.browser(*READER) as reader:
        assert "No messages in doubt" in text_of(await reader.get("/painel/conversas/duvidas?lang=en"))


async def test_an_operator_decides_about_probable_opt_outs(painel: Painel) -> None:
    ids = [f"00000000-0000-7000-8000-00000000000{n}" for n in (1, 2)]
    for number, id in enumerate(ids):
        phone = f"551190002{number:04d}"
        await write(
            painel.database,
            "INSERT INTO optouts_provaveis (id, telefone, telefone_chave, cliente_id, provider_message_id, regra,"
            " created_at) VALUES (:id, :phone, :phone, :doctor, 'x', 'x', :now)",
            id=id,
            phone=phone,
            doctor=await add_doctor(painel.database, phone, now=painel.clock.now()),
            now=painel.clock.now(),
        )
    async with painel.browser(*SENDER) as person:
        who = f"token pessoa{painel.said}"
        assert 'href="/painel/conversas/duvidas#descadastros"' in (await person.get("/painel")).text
        assert "Opt-outs to decide" in text_of(await person.get("/painel/conversas/duvidas?lang=en"))
        for verb, id in zip(("parar", "seguir"), ids, strict=True):
            form = await person.get(f"/painel/acoes/optout.{verb}", params={"duvida": id, "motivo": "lido"})
            assert f"batuta conversas decidir {id} --{verb} --motivo lido" in text_of(form)
            assert (await act(person, f"optout.{verb}", duvida=id, motivo="lido")).status_code == 303
        for wrong in (ids[0], PENDING[:-1] + "9", "x"):
            assert (await person.get("/painel/acoes/optout.parar", params={"duvida": wrong})).status_code == 422
            assert (await act(person, "optout.parar", duvida=wrong, motivo="lido")).status_code == 422
        assert "Descadastros a decidir" not in text_of(await person.get("/painel/conversas/duvidas"))
    stored = await rows(painel.database, "SELECT decisao, por FROM optouts_provaveis ORDER BY id")
    assert [(row["decisao"], row["por"]) for row in stored] == [("parar", who), ("seguir", who)]
    assert await painel.audit("optout.decidir") == [(who, "optout.decidir", f"duvida:{id}") for id in ids]
