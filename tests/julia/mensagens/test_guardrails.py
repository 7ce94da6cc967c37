"""Rules that decide whether a message may be sent. Each rule has its own reason, and the rules are checked in a fixed
order.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.composition.envio import is_simulated
from app.composition.jobs import WINDOWS
from app.contexts.comum.whatsapp import NO_LINE
from app.contexts.mensagens.desfecho import Desfecho
from app.contexts.mensagens.guardrails import (
    PROBABLE_OPT_OUT,
    SAME_TEXT_SENT,
    TRIGGER_OFF,
    UNKNOWN_TYPE,
    WITH_PERSON,
    WITHOUT_LINE,
    Adia,
    Bloqueia,
    DecisaoDeEnvio,
    Libera,
    Medico,
    PedidoDeEnvio,
    RegrasDeEnvio,
    decide,
    open_time,
)
from app.contexts.mensagens.limites import HORARIO, TipoDeMensagem
from app.contexts.mensagens.tipos import TIPOS, Tipo, gatilho_de
from app.settings import Settings
from batuta.guard.base import Hold

ZONE = ZoneInfo("America/Sao_Paulo")
# A Wednesday, eleven o'clock in São Paulo.
NOW = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)
PHONE = "5511900000001"
HOUR = timedelta(hours=1)
HELD = Hold(NOW, "switch is off, set by an operator: -")
ENOUGH = Medico()
PRODUCTION = {"app_env": "production", "api_token": "x" * 40, "secret_key": "y" * 40}
RULES = RegrasDeEnvio(zone=ZONE, is_production=True, is_simulated=False)


def message(**facts: Any) -> PedidoDeEnvio:
    known = {"tipo": "followup", "telefone": PHONE, "texto": "Bom dia", "created_at": NOW, "due_at": NOW}
    return PedidoDeEnvio(**{**known, **facts})


def verdict(
    pedido: PedidoDeEnvio, medico: Medico = ENOUGH, rules: RegrasDeEnvio = RULES, now: datetime = NOW
) -> DecisaoDeEnvio:
    return decide(pedido, medico, rules, now)


def outcome(decision: DecisaoDeEnvio) -> Desfecho:
    assert isinstance(decision, Bloqueia)
    return decision.desfecho


def test_message_without_an_objection_may_be_sent() -> None:
    assert verdict(message()) == Libera(TipoDeMensagem.FOLLOWUP)


def test_only_the_allowlist_and_the_simulator_receive_outside_production() -> None:
    development = replace(RULES, is_production=False)
    assert outcome(verdict(message(), rules=development)) is Desfecho.BLOCKED_DEV_ALLOWLIST
    assert isinstance(verdict(message(), rules=replace(development, allowlist=[PHONE])), Libera)
    assert isinstance(verdict(message(), rules=replace(development, is_simulated=True)), Libera)


def test_process_without_a_gateway_only_postpones() -> None:
    for without in (replace(RULES, has_line=False), replace(RULES, has_line=False, is_production=False)):
        assert verdict(message(), rules=without) == Adia(NOW + WITHOUT_LINE, NO_LINE())


def test_number_is_the_same_with_and_without_the_ninth_digit() -> None:
    development = replace(RULES, is_production=False, allowlist=["551190000001"])
    assert isinstance(verdict(message(telefone="551190000001"), rules=development), Libera)


def test_same_text_is_not_sent_twice_within_the_hour() -> None:
    said = message(same_words_at=NOW - timedelta(minutes=59))
    assert verdict(said) == Bloqueia(Desfecho.DEDUPED, SAME_TEXT_SENT(), cancels=True)
    assert isinstance(verdict(message(same_words_at=NOW - timedelta(minutes=61))), Libera)


def test_opt_out_is_absolute() -> None:
    gone = Medico(opted_out=True)
    for tipo in ("followup", "campanha", "oferta", "resposta", "sistema", "lembrete"):
        assert outcome(verdict(message(tipo=tipo), gone)) is Desfecho.BLOCKED_OPTED_OUT
    assert outcome(verdict(message(campaign_status="ativa"), gone)) is Desfecho.BLOCKED_OPTED_OUT


def test_probable_opt_out_holds_our_own_initiative_and_no_answer() -> None:
    doubtful = Medico(opt_out_in_doubt=True, last_inbound_at=NOW)
    held = verdict(message(), doubtful)
    assert isinstance(held, Adia)
    assert held.reason == PROBABLE_OPT_OUT()
    assert isinstance(verdict(message(tipo="resposta", proves_inbound=True), doubtful), Libera)
    assert isinstance(verdict(message(tipo="manual"), doubtful), Libera)


def test_answer_to_a_recent_message_is_allowed_even_after_an_opt_out() -> None:
    wrote = Medico(opted_out=True, last_inbound_at=NOW - timedelta(minutes=5))
    assert verdict(message(tipo="resposta", proves_inbound=True), wrote) == Libera(TipoDeMensagem.RESPOSTA)


@pytest.mark.parametrize(
    ("proves", "wrote"),
    [(False, timedelta(minutes=5)), (True, timedelta(minutes=31)), (True, None)],
    ids=["names no message of his", "he wrote too long ago", "he never wrote"],
)
def test_unproven_answer_counts_as_our_own_initiative(proves: bool, wrote: timedelta | None) -> None:
    medico = Medico(last_inbound_at=None if wrote is None else NOW - wrote)
    assert verdict(message(tipo="resposta", proves_inbound=proves), medico) == Libera(TipoDeMensagem.FOLLOWUP)


def test_answer_to_a_message_of_the_night_counts_as_one_until_noon_of_the_next_business_day() -> None:
    friday_night, monday = datetime(2026, 3, 14, 1, 0, tzinfo=UTC), datetime(2026, 3, 16, 11, 0, tzinfo=UTC)
    answer = message(tipo="retomada", proves_inbound=True, after_hours_at=friday_night, due_at=monday)
    wrote = Medico(last_inbound_at=friday_night)
    assert verdict(answer, wrote, now=monday) == Libera(TipoDeMensagem.RESPOSTA)
    assert verdict(answer, wrote, now=monday + 4 * HOUR - timedelta(seconds=1)) == Libera(TipoDeMensagem.RESPOSTA)
    assert verdict(answer, wrote, now=monday + 4 * HOUR) == Libera(TipoDeMensagem.FOLLOWUP)
    unproven = replace(answer, proves_inbound=False)
    assert verdict(unproven, wrote, now=monday) == Libera(TipoDeMensagem.FOLLOWUP)


def test_answer_to_a_message_of_the_night_is_not_sent_after_an_opt_out() -> None:
    night, morning = datetime(2026, 3, 11, 2, 0, tzinfo=UTC), datetime(2026, 3, 11, 11, 0, tzinfo=UTC)
    answer = message(tipo="retomada", proves_inbound=True, after_hours_at=night, due_at=morning)
    stopped = Medico(opted_out=True, last_inbound_at=night)
    assert outcome(verdict(answer, stopped, now=morning)) is Desfecho.BLOCKED_OPTED_OUT
    # The opt-out itself is a recent inbound message. Still, the answer that waited for the morning does not count as a
    # reply to it.
    asked_to_stop = Medico(opted_out=True, last_inbound_at=morning)
    assert outcome(verdict(answer, asked_to_stop, now=morning)) is Desfecho.BLOCKED_OPTED_OUT


@pytest.mark.parametrize("tipo", [each for each in Tipo if TIPOS[each].responde])
def test_each_type_of_answer_needs_the_message_it_answers(tipo: Tipo) -> None:
    wrote = Medico(last_inbound_at=NOW - timedelta(minutes=5))
    assert verdict(message(tipo=tipo.value, proves_inbound=True), wrote) == Libera(TipoDeMensagem.RESPOSTA)
    assert verdict(message(tipo=tipo.value), wrote) == Libera(TipoDeMensagem.FOLLOWUP)


def test_every_type_is_named_and_an_unknown_one_is_never_sent() -> None:
    assert set(TIPOS) == set(Tipo)
    for tipo in Tipo:
        assert verdict(message(tipo=tipo.value)) == Libera(TIPOS[tipo].como)
    unknown = verdict(message(tipo="recado"))
    assert outcome(unknown) is Desfecho.FAILED_VALIDATION
    assert unknown == Bloqueia(Desfecho.FAILED_VALIDATION, UNKNOWN_TYPE(tipo="recado"))


def test_message_of_a_trigger_waits_while_its_switch_is_off() -> None:
    held = verdict(message(tipo="discovery"), rules=replace(RULES, trigger_off="pilot_mode"))
    assert held == Adia(NOW + timedelta(minutes=10), TRIGGER_OFF(switch="pilot_mode"))


@pytest.mark.parametrize(
    ("tipo", "metadata", "is_campaign", "switch"),
    [
        ("discovery", {}, False, "discovery_automatico_enabled"),
        ("reativacao", {}, False, "reativacao_automatica_enabled"),
        ("feedback", {}, False, "feedback_automatico_enabled"),
        ("recuperacao", {}, False, "recuperacao_automatica_enabled"),
        ("oferta", {}, False, None),
        ("oferta", {"gatilho": "oferta_automatica_enabled"}, False, "oferta_automatica_enabled"),
        ("discovery", {}, True, None),
        ("followup_1", {}, False, None),
        ("recado", {}, False, None),
    ],
)
def test_trigger_of_a_message_comes_from_its_metadata_or_its_type(
    tipo: str, metadata: dict[str, str], is_campaign: bool, switch: str | None
) -> None:
    assert gatilho_de(tipo, metadata, is_campaign=is_campaign) == switch


def test_automatic_messages_wait_while_a_person_talks_to_a_doctor() -> None:
    taken = Medico(with_person=True, last_inbound_at=NOW - timedelta(minutes=5))
    for spoken in (message(), message(tipo="resposta", proves_inbound=True), message(campaign_status="ativa")):
        assert verdict(spoken, taken) == Adia(NOW + timedelta(minutes=10), WITH_PERSON())
    for owed in (message(tipo="manual"), message(tipo="sistema")):
        assert isinstance(verdict(owed, taken), Libera)


def test_message_held_for_a_person_does_not_expire() -> None:
    old = message(due_at=NOW - timedelta(days=9))
    assert isinstance(verdict(old, Medico(with_person=True)), Adia)
    assert isinstance(verdict(old), Bloqueia)


def test_bypass_reason_allows_a_message_to_an_opted_out_doctor() -> None:
    decision = verdict(message(bypass="the hospital asked: -"), Medico(opted_out=True))
    assert decision == Libera(TipoDeMensagem.FOLLOWUP, "the hospital asked: -")
    assert verdict(message(bypass="not needed")) == Libera(TipoDeMensagem.FOLLOWUP)


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        ("2026-03-11T23:00:00+00:00", "2026-03-12T11:00:00+00:00"),  # 20:00 itself is outside the hours
        ("2026-03-14T15:00:00+00:00", "2026-03-16T11:00:00+00:00"),  # a Saturday
        ("2026-03-11T10:59:59+00:00", "2026-03-11T11:00:00+00:00"),
    ],
)
def test_message_in_quiet_hours_waits_for_the_opening(now: str, opens: str) -> None:
    at = datetime.fromisoformat(now)
    decision = verdict(message(due_at=at, created_at=at), now=at)
    assert decision == Adia(datetime.fromisoformat(opens), "outside the sending hours")


def test_answer_is_sent_at_any_hour() -> None:
    night = datetime(2026, 3, 12, 4, 0, tzinfo=UTC)
    medico = Medico(last_inbound_at=night)
    assert isinstance(verdict(message(tipo="resposta", proves_inbound=True), medico, now=night), Libera)


def test_campaign_is_sent_in_the_window_of_its_type() -> None:
    offers = replace(RULES, window=WINDOWS["tarde"])
    campaign = message(campaign_status="ativa")
    decision = verdict(campaign, rules=offers)
    assert decision == Adia(datetime(2026, 3, 11, 17, 0, tzinfo=UTC), "outside the campaign's window")
    assert isinstance(verdict(campaign, rules=offers, now=NOW + 3 * HOUR), Libera)


def test_nights_and_weekends_do_not_age_a_message() -> None:
    friday = datetime(2026, 3, 13, 22, 0, tzinfo=UTC)  # 19:00: one open hour is left
    monday = datetime(2026, 3, 16, 12, 0, tzinfo=UTC)  # 09:00
    assert open_time(friday, monday, HORARIO, ZONE) == 2 * HOUR
    assert isinstance(verdict(message(due_at=friday), now=monday), Libera)


def test_message_expires_after_two_working_days() -> None:
    late = verdict(message(due_at=NOW), now=NOW + timedelta(days=2, minutes=1))
    assert late == Bloqueia(Desfecho.FAILED_EXPIRED, "the message waited too long to be useful", cancels=True)


@pytest.mark.parametrize(
    ("medico", "expected"),
    [
        (Medico(is_cooling_off=True, cooling_off_until=NOW + HOUR), Desfecho.BLOCKED_COOLING_OFF),
        (Medico(is_cooling_off=True), Desfecho.BLOCKED_COOLING_OFF),
        (Medico(next_allowed_at=NOW + HOUR), Desfecho.BLOCKED_NEXT_ALLOWED),
        (Medico(contacts_7d=5), Desfecho.BLOCKED_CONTACT_CAP),
    ],
)
def test_cooling_off_and_contact_limits_block_a_message(medico: Medico, expected: Desfecho) -> None:
    assert outcome(verdict(message(), medico)) is expected


def test_expired_cooling_off_holds_nothing() -> None:
    over = Medico(is_cooling_off=True, cooling_off_until=NOW - HOUR, next_allowed_at=NOW - HOUR, contacts_7d=4)
    assert isinstance(verdict(message(), over), Libera)


def test_campaign_switch_holds_campaigns_and_safe_mode_holds_own_initiative() -> None:
    off, safe = replace(RULES, campaigns=HELD), replace(RULES, safe_mode=HELD)
    campaign, answer = message(campaign_status="ativa"), message(tipo="resposta", proves_inbound=True)
    wrote = Medico(last_inbound_at=NOW)
    assert isinstance(verdict(campaign, rules=off), Adia)
    assert isinstance(verdict(message(), rules=off), Libera)
    assert isinstance(verdict(campaign, rules=safe), Adia)
    assert isinstance(verdict(message(), rules=safe), Adia)
    assert isinstance(verdict(answer, wrote, rules=safe), Libera)


def test_pause_holds_answers_too() -> None:
    answer = message(tipo="resposta", proves_inbound=True)
    assert isinstance(verdict(answer, Medico(last_inbound_at=NOW), rules=replace(RULES, paused=HELD)), Adia)


def test_paused_campaign_waits_and_a_cancelled_one_ends() -> None:
    assert verdict(message(campaign_status="pausada")) == Adia(NOW + timedelta(seconds=15), "the campaign is paused")
    ended = verdict(message(campaign_status="cancelada"))
    assert isinstance(ended, Bloqueia)
    assert ended.cancels


def test_message_with_a_campaign_counts_as_a_campaign_message() -> None:
    wrote = Medico(last_inbound_at=NOW)
    for tipo in ("campanha", "resposta", "sistema", "discovery"):
        assert verdict(message(tipo=tipo, campaign_status="ativa", proves_inbound=True), wrote) == Libera(
            TipoDeMensagem.CAMPANHA
        )


def test_two_campaigns_are_three_days_apart() -> None:
    lately = Medico(other_campaign_at=NOW - timedelta(days=2))
    assert outcome(verdict(message(campaign_status="ativa"), lately)) is Desfecho.BLOCKED_CAMPAIGN_COOLDOWN
    assert isinstance(verdict(message(), lately), Libera)
    before = Medico(other_campaign_at=NOW - timedelta(days=4))
    assert isinstance(verdict(message(campaign_status="ativa"), before), Libera)


def test_final_reasons_come_before_temporary_ones() -> None:
    """At night, a message to a doctor who has opted out ends immediately. It does not wait until the morning only to be
    blocked then.
    """
    night = datetime(2026, 3, 12, 4, 0, tzinfo=UTC)
    assert outcome(verdict(message(), Medico(opted_out=True), now=night)) is Desfecho.BLOCKED_OPTED_OUT


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, False),
        ({"evolution_api_url": "http://127.0.0.1:8001/evolution", "evolution_api_key": "simulador"}, True),
        ({"evolution_api_url": "http://localhost:8080", "evolution_api_key": "a real one"}, False),
        ({"evolution_api_url": "https://gateway.example", "evolution_api_key": "simulador"}, False),
        ({"evolution_api_url": "http://127.0.0.1:1", "evolution_api_key": "simulador", **PRODUCTION}, False),
    ],
)
def test_local_gateway_is_the_simulator_only_with_the_simulators_key(settings: dict[str, Any], expected: bool) -> None:
    assert is_simulated(Settings(**settings)) is expected
