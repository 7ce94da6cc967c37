"""Campaigns in the dashboard: progress, pause and cancellation, and the reason why a doctor received nothing."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.contexts.campanhas.model import TipoDeCampanha
from app.contexts.campanhas.service import NovaCampanha
from app.contexts.envio.whatsapp import NO_CHIP_FREE, NOT_ON_WHATSAPP
from app.contexts.mensagens.desfecho import Desfecho
from batuta.reasons import encode
from batuta.sql import AuditLog
from batuta.testing import FakeClock
from tests.julia.tables import add_doctor, one, rows, write
from tests.julia.web.painel import OPERATOR, READER, SENDER, Painel, act, open_painel, text_of

PHONES = ("5511900000001", "5511900000002", "5511900000003")


@pytest.fixture
async def painel(database_url: str, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Painel]:
    async with open_painel(database_url, clock, tmp_path) as opened:
        yield opened


async def campaign(painel: Painel) -> int:
    """Start a campaign that reaches one of three doctors: the second has opted out, and the third is outside the
    audience.
    """
    campanhas, now = painel.julia.campaigns.campanhas, painel.clock.now()
    doctors = [await add_doctor(painel.database, phone, now=now) for phone in PHONES]
    await write(painel.database, "UPDATE clientes SET opt_out = TRUE WHERE id = :id", id=doctors[1])
    filters = {"clientes_especificos": doctors[:2]}
    nova = NovaCampanha(nome="Oferta", tipo=TipoDeCampanha.OFERTA, corpo="Olá, {nome}.", audience_filters=filters)
    id = await campanhas.criar(nova, by="ana")
    await campanhas.agendar(id, None, by="ana")
    await painel.julia.campaigns.inicio.passar()
    return id


async def status(painel: Painel, id: int) -> str:
    return str((await one(painel.database, "SELECT status FROM campanhas WHERE id = :id", id=id))["status"])


async def test_page_shows_the_progress_and_the_reasons_of_exclusion(painel: Painel) -> None:
    id = await campaign(painel)
    async with painel.browser(*READER) as reader:
        listed, shown = await reader.get("/painel/campanhas"), await reader.get(f"/painel/campanhas/{id}")
        excluded = await reader.get(f"/painel/campanhas/{id}?situacao=excluido&motivo=optout")
        none = await reader.get("/painel/campanhas?situacao=cancelada")
        missing = [(await reader.get(f"/painel/campanhas/{each}")).status_code for each in ("999", "x", "0", "9" * 30)]
    assert "Oferta" in text_of(listed)
    assert ("1 descadastro" in text_of(shown), "a mensagem para o médico está na fila" in text_of(shown)) == (
        True,
        True,
    )
    assert "a mensagem para o médico está na fila" not in text_of(excluded)
    assert "batuta campanhas criar" in text_of(none)
    assert missing == [404, 404, 404, 404]


async def test_failures_are_counted_by_their_stored_cause_with_a_link_to_the_queue(painel: Painel) -> None:
    id = await campaign(painel)
    await write(
        painel.database,
        "UPDATE fila_mensagens SET status = 'erro', outcome = 'FAILED_VALIDATION', outcome_reason_code = :why,"
        " finalizada_em = :now",
        why=encode(NOT_ON_WHATSAPP()), now=painel.clock.now(),
    )  # fmt: skip
    async with painel.browser(*READER) as reader:
        page = await reader.get(f"/painel/campanhas/{id}")
    shown = text_of(page)
    assert ("1 este número não tem conta no WhatsApp falha no envio" in shown, "mensagem inválida" in shown) == (
        True,
        False,
    )
    assert "1 falharam" in shown
    assert '/painel/filas/fila_mensagens?estado=dead">este número' in page.text


@pytest.mark.parametrize(
    ("language", "why", "person"),
    [
        ("pt-BR", "1 nenhum chip pode enviar agora na fila", "está na fila: nenhum chip pode enviar agora"),
        ("en", "1 no chip may send now queued", "is queued: no chip may send now"),
    ],
)
async def test_page_says_why_messages_wait(painel: Painel, language: str, why: str, person: str) -> None:
    id = await campaign(painel)
    held = encode(NO_CHIP_FREE(outcome=Desfecho.FAILED_NO_CAPACITY.value))
    await write(painel.database, "UPDATE fila_mensagens SET erro = :why", why=held)
    async with painel.browser(*READER) as reader:
        page = await reader.get(f"/painel/campanhas/{id}?lang={language}")
    shown = text_of(page)
    assert (why in shown, person in shown, "FAILED_" in shown) == (True, True, False)
    assert '/painel/filas/fila_mensagens?estado=ready">' in page.text


async def test_the_messages_of_a_paused_campaign_wait_because_of_the_pause(painel: Painel) -> None:
    id = await campaign(painel)
    held = encode(NO_CHIP_FREE(outcome=Desfecho.FAILED_NO_CAPACITY.value))
    await write(painel.database, "UPDATE fila_mensagens SET erro = :why", why=held)
    async with painel.browser(*SENDER) as sender:
        await act(sender, "campanha.pausar", campanha=str(id))
        shown = text_of(await sender.get(f"/painel/campanhas/{id}"))
        assert ("1 a campanha está pausada na fila" in shown, "nenhum chip pode enviar" in shown) == (True, False)
        assert "está na fila: a campanha está pausada" in shown
        answered = await act(sender, "campanha.porque", campanha=str(id), quem=PHONES[0])
        assert "a campanha está pausada" in text_of(await sender.get(answered.headers["location"]))


@pytest.mark.parametrize(
    ("phone", "answer"),
    [(PHONES[0], "está na fila"), (PHONES[1], "ficou de fora: descadastro"), (PHONES[2], "não faz parte do público")],
)
async def test_page_answers_why_a_doctor_received_nothing(painel: Painel, phone: str, answer: str) -> None:
    id = await campaign(painel)
    async with painel.browser(*READER) as reader:
        done = await act(reader, "campanha.porque", campanha=str(id), quem=phone)
        page = await reader.get(done.headers["location"])
    assert answer in text_of(page)
    assert phone not in page.text
    entries = await rows(painel.database, "SELECT action, after FROM audit_log WHERE action = 'campanha.porque'")
    assert (len(entries), phone in str(entries)) == (1, False)


async def test_campaign_is_paused_resumed_and_cancelled(painel: Painel) -> None:
    id = await campaign(painel)
    async with painel.browser(*SENDER) as sender:
        who = f"token pessoa{painel.said}"
        for verb, expected in (("pausar", "pausada"), ("retomar", "ativa"), ("cancelar", "cancelada")):
            done = await act(sender, f"campanha.{verb}", campanha=str(id))
            assert (done.status_code, await status(painel, id)) == (303, expected)
        refused = await act(sender, "campanha.pausar", campanha=str(id))
        shown = await sender.get(f"/painel/campanhas/{id}")
    assert "a mensagem para o médico foi cancelada: a campanha foi cancelada" in text_of(shown)
    assert (refused.status_code, "é 'cancelada', e" in text_of(refused)) == (422, True)
    (message,) = await rows(painel.database, "SELECT status FROM fila_mensagens")
    assert message["status"] == "cancelada"
    assert [entry for entry in await painel.audit("campanha.") if entry[0] == who] == [
        (who, f"campanha.{verb}", f"campanha:{id}") for verb in ("pausar", "retomar", "cancelar")
    ]


async def test_resume_and_schedule_need_the_scope_send(painel: Painel) -> None:
    id = await campaign(painel)
    async with painel.browser(*OPERATOR) as operator:
        assert (await act(operator, "campanha.pausar", campanha=str(id))).status_code == 303
        for verb in ("retomar", "agendar"):
            refused = await operator.post(f"/painel/acoes/campanha.{verb}", data={"campanha": str(id)})
            assert refused.status_code == 403
        assert "campanha.retomar" not in (await operator.get(f"/painel/campanhas/{id}")).text
    assert await status(painel, id) == "pausada"


@pytest.mark.parametrize(
    ("language", "state", "switch"),
    [("pt-BR", "situação: concluída", "modo piloto"), ("en", "state: completed", "pilot mode")],
)
async def test_audit_log_shows_states_and_switches_in_the_language_of_the_reader(
    painel: Painel, language: str, state: str, switch: str
) -> None:
    now = painel.clock.now()
    await painel.julia.work.switches.set("pilot_mode", True, by="ana", reason="ativa", now=now)
    async with painel.julia.work.database.transaction() as transaction:
        note = AuditLog(painel.julia.work.database.dialect, painel.julia.work.ids).note
        subject, after = "campanha:1", {"status": "concluida"}
        await note(
            transaction, actor="ana", action="campanha.pausar", subject=subject, before=None, after=after, now=now
        )
    async with painel.browser(*READER) as reader:
        page = text_of(await reader.get(f"/painel/auditoria?lang={language}"))
    assert (state in page, switch in page) == (True, True)


async def test_draft_is_scheduled(painel: Painel) -> None:
    doctor = await add_doctor(painel.database, PHONES[0], now=painel.clock.now())
    filters = {"clientes_especificos": [doctor]}
    nova = NovaCampanha(nome="Nova", tipo=TipoDeCampanha.OFERTA, corpo="Olá.", audience_filters=filters)
    id = await painel.julia.campaigns.campanhas.criar(nova, by="ana")
    async with painel.browser(*SENDER) as sender:
        done = await act(sender, "campanha.agendar", campanha=str(id))
        page = await sender.get(done.headers["location"])
    assert "agendada para 1 médico" in text_of(page)
    assert await status(painel, id) == "agendada"
