"""Brazil's national holidays, as arithmetic. Carnival and Corpus Christi are optional days, not holidays."""

from datetime import date, timedelta
from zoneinfo import ZoneInfo

# (month, day): name, and the first year it was kept as a national holiday within living memory of a schedule.
_FIXED: dict[tuple[int, int], tuple[str, int]] = {
    (1, 1): ("Confraternização Universal", 0),
    (4, 21): ("Tiradentes", 0),
    (5, 1): ("Dia do Trabalhador", 0),
    (9, 7): ("Independência do Brasil", 0),
    (10, 12): ("Nossa Senhora Aparecida", 1980),
    (11, 2): ("Finados", 0),
    (11, 15): ("Proclamação da República", 0),
    (11, 20): ("Dia da Consciência Negra", 2024),
    (12, 25): ("Natal", 0),
}


def holidays(year: int) -> dict[date, str]:
    found = {date(year, month, day): name for (month, day), (name, since) in _FIXED.items() if year >= since}
    found[easter(year) - timedelta(days=2)] = "Sexta-feira Santa"
    return found


_CITIES = (
    "Araguaina Bahia Belem Boa_Vista Campo_Grande Cuiaba Eirunepe Fortaleza Maceio Manaus Noronha Porto_Velho Recife "
    "Rio_Branco Santarem Sao_Paulo"
)
_ZONES = frozenset(f"America/{city}" for city in _CITIES.split())


def holiday_at(day: date, zone: ZoneInfo) -> str | None:
    """The holiday of a day in a zone of Brazil; the holidays of other countries are not known."""
    return holidays(day.year).get(day) if zone.key in _ZONES else None


def is_holiday(day: date) -> bool:
    return day in holidays(day.year)


def easter(year: int) -> date:
    """The Gregorian computus: the Sunday after the first full moon of spring, by the church's tables."""
    golden = year % 19
    century, rest = divmod(year, 100)
    leaps_dropped, leap_phase = divmod(century, 4)
    moon_shift = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - leaps_dropped - moon_shift + 15) % 30
    leaps, phase = divmod(rest, 4)
    weekday = (32 + 2 * leap_phase + 2 * leaps - epact - phase) % 7
    correction = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * correction + 114, 31)
    return date(year, month, day + 1)
