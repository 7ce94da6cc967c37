"""Decisions about a doctor's state, such as the temperature, tested without a database."""

from datetime import UTC, datetime, timedelta

import pytest

from app.contexts.estado_medico.model import Gravidade, efeito_de, faixa_de, queda_de
from app.contexts.leitura_conversas.api import ler

NOW = datetime(2026, 3, 11, 6, 0, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("texto", "sobe", "gravidade"),
    [
        ("bom dia", 0.1, None),
        ("qual o valor?", 0.1, None),
        ("aceito, pode reservar", 0.25, None),
        ("muito longe pra mim", 0.1, Gravidade.MEDIUM),
        ("meu advogado vai cobrar o pagamento atrasado", 0.0, Gravidade.GRAVE),
        ("isso é golpe?", 0.0, Gravidade.GRAVE),
        ("PARAR", 0.0, None),
        ("que saco", 0.0, None),
    ],
)
def test_effect_of_an_inbound_message(texto: str, sobe: float, gravidade: Gravidade | None) -> None:
    efeito = efeito_de(ler(texto), texto)
    assert efeito.sobe == pytest.approx(sobe)
    assert efeito.gravidade is gravidade


def test_fall_counts_whole_days_since_the_later_instant() -> None:
    assert queda_de(None, None, NOW) is None
    assert queda_de(None, NOW - DAY + timedelta(seconds=1), NOW) is None
    fall = queda_de(NOW - 9 * DAY, NOW - 3 * DAY, NOW)
    assert fall is not None
    assert fall.quanto == pytest.approx(0.15)
    assert queda_de(NOW - DAY / 2, NOW - 30 * DAY, NOW) is None


def test_fall_keeps_the_hours_beyond_the_last_whole_day() -> None:
    """The job runs at 03:00:05 on one day and at 03:00:01 on the next. Although less than a day has passed, each run
    lowers the doctor's temperature once.
    """
    lowered, at = [], NOW - 10 * DAY
    decayed: datetime | None = None
    for n in range(10):
        fall = queda_de(decayed, at, at + (n + 1) * DAY + timedelta(seconds=5 if n % 2 else 1))
        assert fall is not None
        lowered.append(fall.quanto)
        decayed = fall.ate
    assert sum(lowered) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("temperatura", "faixa"), [(0, "cold"), (0.33, "warm"), (0.5, "warm"), (0.66, "hot"), (1, "hot")]
)
def test_band_of_a_temperature(temperatura: float, faixa: str) -> None:
    assert faixa_de(temperatura) == faixa
