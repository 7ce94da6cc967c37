"""The start and the end of a shift, computed from its date, hours and period."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from app.contexts.plantoes.horario import turno_de

ZONE = ZoneInfo("America/Sao_Paulo")
DAY = date(2026, 3, 31)


@pytest.mark.parametrize(
    ("inicio", "fim", "periodo", "starts", "ends"),
    [
        ("07:00", "19:00", None, "2026-03-31T07:00", "2026-03-31T19:00"),
        ("19:00", "07:00", None, "2026-03-31T19:00", "2026-04-01T07:00"),
        ("07:00", "07:00", 7, "2026-03-31T07:00", "2026-04-01T07:00"),
        ("19:00", "01:00", 4, "2026-03-31T19:00", "2026-04-01T01:00"),
        (None, None, 3, "2026-03-31T19:00", "2026-04-01T07:00"),
        (None, None, 1, "2026-03-31T07:00", "2026-03-31T19:00"),
        (None, None, 6, "2026-03-31T13:00", "2026-03-31T19:00"),
        ("20:00", None, 3, "2026-03-31T20:00", "2026-04-01T07:00"),
        (None, "13:00", 5, "2026-03-31T07:00", "2026-03-31T13:00"),
        (None, None, None, "2026-04-01T00:00", "2026-04-01T00:00"),
        ("08:00", None, None, "2026-03-31T08:00", "2026-04-01T00:00"),
        ("noite", "25:00", 3, "2026-03-31T19:00", "2026-04-01T07:00"),
        ("7:00", "19:00:00", None, "2026-03-31T07:00", "2026-03-31T19:00"),
    ],
)
def test_a_shift_has_its_hours_else_those_of_its_period_else_its_whole_day(
    inicio: str | None, fim: str | None, periodo: int | None, starts: str, ends: str
) -> None:
    turno = turno_de({"data": DAY, "hora_inicio": inicio, "hora_fim": fim, "periodo_id": periodo}, ZONE)
    assert turno.inicio == datetime.fromisoformat(starts).replace(tzinfo=ZONE)
    assert turno.fim == datetime.fromisoformat(ends).replace(tzinfo=ZONE)
