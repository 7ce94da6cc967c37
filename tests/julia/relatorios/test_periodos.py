"""The periods that reports cover, in São Paulo time."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.contexts.relatorios.periodos import DO_DIA, TipoDeRelatorio, parte_do_dia, semana

ZONE = ZoneInfo("America/Sao_Paulo")
DAY = date(2026, 3, 11)


@pytest.mark.parametrize(
    ("tipo", "starts", "ends"), [("manha", 3, 13), ("almoco", 13, 16), ("tarde", 16, 20), ("fim_dia", 20, 23)]
)
def test_parts_of_a_day_are_hours_of_sao_paulo_not_of_utc(tipo: str, starts: int, ends: int) -> None:
    part = parte_do_dia(TipoDeRelatorio(tipo), DAY, ZONE)
    assert part.inicio == datetime(2026, 3, 11, starts, tzinfo=UTC)
    assert part.fim == datetime(2026, 3, 11, ends, tzinfo=UTC)


def test_parts_of_a_day_follow_each_other_without_gap_or_overlap() -> None:
    parts = [parte_do_dia(each, DAY, ZONE) for each in DO_DIA]
    assert [each.fim for each in parts[:-1]] == [each.inicio for each in parts[1:]]
    assert all(each.dia_inteiro == parts[0].inicio for each in parts)


@pytest.mark.parametrize("day", [date(2026, 3, 9), date(2026, 3, 11), date(2026, 3, 15)])
def test_week_is_monday_to_sunday_and_ends_on_the_sunday(day: date) -> None:
    week = semana(day, ZONE)
    assert week.inicio == datetime(2026, 3, 9, tzinfo=ZONE)
    assert week.fim == datetime(2026, 3, 16, tzinfo=ZONE)
    assert week.ultimo_dia(ZONE) == date(2026, 3, 15)


def test_week_over_a_change_of_clocks_keeps_local_midnights() -> None:
    new_york = ZoneInfo("America/New_York")
    week = semana(date(2026, 3, 8), new_york)  # clocks go forward on this day
    assert week.fim.astimezone(UTC) - week.inicio.astimezone(UTC) == timedelta(days=7, hours=-1)


def test_period_counts_as_ended_when_the_clock_is_a_little_behind() -> None:
    part = parte_do_dia(TipoDeRelatorio.MANHA, DAY, ZONE)
    assert part.terminou(part.fim - timedelta(seconds=30))
    assert not part.terminou(part.fim - timedelta(minutes=2))
