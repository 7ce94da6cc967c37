"""The rules by which a chip, Julia's name for a WhatsApp number, is chosen for a message."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.contexts.chips.selecao import Emissor, rank
from app.contexts.mensagens.limites import TipoDeMensagem

NOW = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WELL = Emissor(id="a", instance="a", trust=90, may=frozenset(TipoDeMensagem), per_hour=30, per_day=100)


def chosen(tipo: TipoDeMensagem, *chips: Emissor, **named: Any) -> list[str]:
    return [chip.id for chip in rank(chips, tipo, NOW, **named)]


def other(**changed: Any) -> Emissor:
    return replace(WELL, **{"id": "b", **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"connected": False},
        {"cooldown_until": NOW + MINUTE},
        {"may": frozenset(TipoDeMensagem) - {TipoDeMensagem.CAMPANHA}},
        {"sent_this_hour": 30},
        {"sent_this_day": 100},
        {"per_hour": 0},
        {"per_day": 0},
        {"trust": 59},
    ],
)
def test_chip_that_may_not_send_is_skipped(changed: dict[str, Any]) -> None:
    assert chosen(TipoDeMensagem.CAMPANHA, replace(WELL, **changed), other()) == ["b"]
    assert chosen(TipoDeMensagem.CAMPANHA, replace(WELL, **changed)) == []


def test_finished_rest_and_last_free_slot_do_not_exclude_a_chip() -> None:
    assert chosen(TipoDeMensagem.CAMPANHA, replace(WELL, cooldown_until=NOW)) == ["a"]
    assert chosen(TipoDeMensagem.CAMPANHA, replace(WELL, sent_this_hour=29, sent_this_day=99)) == ["a"]


@pytest.mark.parametrize(
    ("tipo", "wanted", "at_least"),
    [
        (TipoDeMensagem.PROSPECCAO, 80, 60),
        (TipoDeMensagem.CAMPANHA, 80, 60),
        (TipoDeMensagem.FOLLOWUP, 60, 40),
        (TipoDeMensagem.RESPOSTA, 40, 20),
        (TipoDeMensagem.SISTEMA, 40, 20),
    ],
)
def test_less_trusted_chip_sends_only_without_a_trusted_one(tipo: TipoDeMensagem, wanted: int, at_least: int) -> None:
    trusted, hardly, too_little = other(trust=wanted), replace(WELL, trust=at_least), replace(WELL, trust=at_least - 1)
    assert chosen(tipo, hardly, trusted) == ["b"]
    assert chosen(tipo, hardly) == ["a"]
    assert chosen(tipo, too_little) == []


def test_best_chip_comes_first() -> None:
    assert chosen(TipoDeMensagem.CAMPANHA, WELL, other(trust=91)) == ["b", "a"]
    assert chosen(TipoDeMensagem.CAMPANHA, WELL, other()) == ["a", "b"]
    assert chosen(TipoDeMensagem.CAMPANHA, replace(WELL, sent_this_hour=1, trust=99), other()) == ["b", "a"]
    assert chosen(TipoDeMensagem.CAMPANHA, WELL, other(has_written_to_doctor=True, sent_this_hour=9)) == ["b", "a"]


def test_answer_keeps_the_number_of_its_conversation_and_a_campaign_does_not() -> None:
    own, known = other(is_of_conversation=True, sent_this_hour=9), replace(WELL, has_written_to_doctor=True)
    assert chosen(TipoDeMensagem.RESPOSTA, known, own) == ["b", "a"]
    assert chosen(TipoDeMensagem.CAMPANHA, known, own) == ["a", "b"]


def test_chip_excluded_by_a_campaign_does_not_send_it() -> None:
    assert chosen(TipoDeMensagem.CAMPANHA, WELL, other(), excluded=["a"]) == ["b"]


def test_chip_has_limits_per_hour_per_day_and_a_pause() -> None:
    limits = replace(WELL, pause=45 * timedelta(seconds=1)).limits
    assert [(each.most, each.per) for each in limits] == [
        (30, timedelta(hours=1)),
        (100, timedelta(days=1)),
        (1, timedelta(seconds=45)),
    ]
    assert len(WELL.limits) == 2
