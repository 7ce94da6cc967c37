"""Chips and Telegram accounts in the dashboard: why a chip or an account is not sending, and the actions that pause and
activate it.
"""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from app.contexts.chips.service import BANS
from app.contexts.telegram.contas import EstadoDaConta
from app.contexts.telegram.porta import NO_ANSWER
from batuta.extension import Language, Texts
from batuta.reasons import RATE_LIMIT, encode
from batuta.testing import FakeClock
from tests import ROOT
from tests.julia.tables import add_chip, one, rows, write
from tests.julia.web.painel import EVERYTHING, OPERATOR, READER, Painel, act, open_painel, text_of

TEXTS = ROOT / "app" / "texts"


@pytest.fixture
async def painel(database_url: str, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Painel]:
    async with open_painel(database_url, clock, tmp_path) as opened:
        yield opened


async def test_page_says_what_keeps_a_chip_from_sending(painel: Painel) -> None:
    await add_chip(painel.database, "sem-conexao")
    await write(
        painel.database,
        "UPDATE chips SET evolution_connected = FALSE, trust_score = 20, trust_level = 'critico', telefone = '5511900001234'",
    )
    await add_chip(painel.database, "escuta", tipo="listener")
    async with painel.browser(*READER) as reader:
        page = await reader.get("/painel/chips")
    shown = text_of(page)
    assert ("escaneie o QR code de novo" in shown, "a confiança (20) está abaixo de 40" in shown) == (True, True)
    assert "só lê grupos" in shown
    assert "…1234" not in shown
    async with painel.browser(*EVERYTHING) as person:
        assert "…1234" in text_of(await person.get("/painel/chips"))


async def test_page_says_why_a_chip_rests_and_why_it_is_banned(painel: Painel) -> None:
    id, now = await add_chip(painel.database, "cansado"), painel.julia.work.clock.now()
    await add_chip(painel.database, "banido", status="banned")
    await write(painel.database, "UPDATE chips SET ban_reason = :why WHERE status = 'banned'", why=encode(BANS[403]()))
    await write(
        painel.database,
        "UPDATE chips SET cooldown_until = :until WHERE id = :id",
        until=now + timedelta(hours=1),
        id=id,
    )
    for order, why in enumerate(("refused", "disconnected")):
        await write(
            painel.database,
            "INSERT INTO chip_erros (id, chip_id, motivo, created_at) VALUES (:error, :id, :why, :at)",
            error=painel.julia.work.ids.new(), id=id, why=why, at=now + timedelta(seconds=order),
        )  # fmt: skip
    async with painel.browser(*READER) as reader:
        shown = text_of(await reader.get("/painel/chips"))
        english = text_of(await reader.get("/painel/chips?lang=en"))
    assert "em descanso porque a instância estava desconectada durante um envio; fim:" in shown
    assert "banido pelo WhatsApp (acesso proibido, código 403): troque o número" in shown
    assert "forbidden" not in shown
    assert "in a rest period because the instance was disconnected during a send; end:" in english


async def test_pages_show_the_names_of_switches_and_limits(painel: Painel) -> None:
    async with painel.browser(*READER) as reader:
        brakes = text_of(await reader.get("/painel/freios"))
        job = text_of(await reader.get("/painel/tarefas/oferta_autonoma"))
        english = text_of(await reader.get("/painel/freios?lang=en"))
    assert "ofertas automáticas oferta_automatica_enabled" in brakes
    assert ("envios por hora" in brakes, "envios/hora" in brakes) == (True, False)
    assert "pilot mode pilot_mode" in english
    assert ("chave “modo piloto” ligada" in job, "chave pilot_mode" in job) == (True, False)


@pytest.mark.parametrize("language", ["pt-BR", "en"])
async def test_every_switch_limit_and_window_has_a_name(painel: Painel, language: Language) -> None:
    work, texts = painel.julia.work, Texts(language, [TEXTS])
    keys = {"switch": [rule.key for rule in work.extension.switches.values()]}
    keys |= {"limit": list(work.limits), "window": list(work.registry.windows)}
    assert all(keys.values())
    assert [key for kind, names in keys.items() for key in names if not texts.get(f"{kind}_name.{key}", "")] == []
    async with painel.browser(*READER) as reader:
        brakes = text_of(await reader.get(f"/painel/freios?lang={language}"))
    shown = [texts(f"{kind}_name.{key}") for kind, names in keys.items() for key in names]
    assert [name for name in shown if name not in brakes] == []


async def test_english_pages_name_the_switch_of_a_reason(painel: Painel) -> None:
    async with painel.browser(*READER) as reader:
        job = text_of(await reader.get("/painel/tarefas/oferta_autonoma?lang=en"))
    assert ("switch “pilot mode” is on" in job, "switch pilot_mode is" in job) == (True, False)


def test_only_pages_show_the_name_of_a_limit() -> None:
    texts, reason = Texts("pt-BR", [TEXTS]), RATE_LIMIT(limit="chip/intervalo", most=1, per=timedelta(seconds=45))
    assert texts.reason(reason) == "limite chip/intervalo: 1 em 45 s"
    assert texts.for_pages.reason(reason) == "limite “intervalo entre mensagens do chip”: 1 em 45 s"


async def test_chip_is_paused_and_activated_with_a_reason(painel: Painel) -> None:
    await add_chip(painel.database, "julia-sim")
    async with painel.browser(*OPERATOR) as operator:
        who = f"token pessoa{painel.said}"
        for verb, status in (("pausar", "paused"), ("ativar", "active")):
            assert (await act(operator, f"chip.{verb}", instancia="julia-sim", motivo="manutencao")).status_code == 303
            assert (await one(painel.database, "SELECT status FROM chips"))["status"] == status
        page = await operator.get("/painel/chips")
        assert "batuta chip julia-sim --status active --motivo manutencao" in text_of(page)
        refused = await act(operator, "chip.pausar", instancia="outro", motivo="x")
        assert refused.status_code == 422
        assert (await act(operator, "chip.pausar", instancia="julia-sim", motivo="")).status_code == 422
    changed = await painel.audit("chip.")
    assert changed[:2] == [(who, "chip.pausar", "julia-sim"), (who, "chip.ativar", "julia-sim")]
    events = await rows(painel.database, "SELECT event_type FROM business_events WHERE event_type = 'chip_alterado'")
    assert len(events) == 2


async def test_banned_chip_is_retired_on_the_page_and_no_longer_reported(painel: Painel) -> None:
    await add_chip(painel.database, "julia-sim")
    await add_chip(painel.database, "julia-dois", status="banned")
    async with painel.browser(*OPERATOR) as operator:
        page = await operator.get("/painel/chips")
        offered = re.findall(r"/acoes/(chip\.retirar)\?instancia=([\w-]+)", page.text)
        assert offered == [("chip.retirar", "julia-dois")]
        assert (await act(operator, "chip.retirar", instancia="julia-dois", motivo="trocado")).status_code == 303
        assert (await act(operator, "chip.retirar", instancia="julia-sim", motivo="x")).status_code == 422
        who = f"token pessoa{painel.said}"
        assert "julia-dois" not in text_of(await operator.get("/painel"))
    stored = {row["instance_name"]: row["status"] for row in await rows(painel.database, "SELECT * FROM chips")}
    assert stored == {"julia-sim": "active", "julia-dois": "cancelled"}
    assert (who, "chip.retirar", "julia-dois") in await painel.audit("chip.")


async def test_telegram_account_is_paused_and_resumed(painel: Painel) -> None:
    await painel.julia.telegram.contas.adicionar("principal", by="ana")
    async with painel.browser(*OPERATOR) as operator:
        who = f"token pessoa{painel.said}"
        page = await operator.get("/painel/telegram")
        assert ("principal" in text_of(page), "envio" in text_of(page)) == (True, True)
        for verb, state in (("pausar", EstadoDaConta.PAUSADA), ("retomar", EstadoDaConta.ATIVA)):
            assert (await act(operator, f"telegram.{verb}", conta="principal")).status_code == 303
            assert (await one(painel.database, "SELECT estado FROM telegram_contas"))["estado"] == state
        assert (await act(operator, "telegram.pausar", conta="outra")).status_code == 422
    assert len([entry for entry in await painel.audit("") if entry[0] == who and "telegram" in entry[1]]) == 2


async def test_account_with_a_revoked_session_says_the_next_step(painel: Painel) -> None:
    id = await painel.julia.telegram.contas.adicionar("principal", by="ana")
    await painel.julia.telegram.contas.mudar(id, EstadoDaConta.REVOGADA, by="telegram")
    async with painel.browser(*READER) as reader:
        shown = text_of(await reader.get("/painel/telegram"))
        empty = text_of(await reader.get("/painel/chips?lang=en"))
    assert 'batuta telegram login "principal"' in shown
    assert "No chip is known" in empty


async def test_error_of_an_account_is_in_the_language_of_the_reader(painel: Painel) -> None:
    contas = painel.julia.telegram.contas
    id = await contas.adicionar("principal", by="ana")
    await contas.caiu(id, NO_ANSWER(limit=timedelta(seconds=30)))
    async with painel.browser(*READER) as reader:
        portuguese = text_of(await reader.get("/painel/telegram"))
        english = text_of(await reader.get("/painel/telegram?lang=en"))
    assert "o servidor do Telegram não respondeu em 30 s" in portuguese
    assert "the server did not answer within 30 s" in english
