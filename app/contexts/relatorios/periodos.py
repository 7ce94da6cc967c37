"""The periods that reports cover, in local time.

    manha 00–10 h    almoco 10–13 h    tarde 13–17 h    fim_dia 17–20 h    semanal Monday to Sunday

A period's limits are fixed, so a late run counts the same rows as a run on time.
"""

from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from batuta.kernel import dataclass


class TipoDeRelatorio(StrEnum):
    MANHA = "manha"
    ALMOCO = "almoco"
    TARDE = "tarde"
    FIM_DIA = "fim_dia"
    SEMANAL = "semanal"


HORAS: Final = {
    TipoDeRelatorio.MANHA: (0, 10),
    TipoDeRelatorio.ALMOCO: (10, 13),
    TipoDeRelatorio.TARDE: (13, 17),
    TipoDeRelatorio.FIM_DIA: (17, 20),
}
DO_DIA: Final = tuple(HORAS)
WEEK: Final = timedelta(days=7)
# Tolerance between the clocks of the api and the scheduler. A period that ends within this time is treated as ended.
TOLERANCE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Periodo:
    """The period that a report covers. It includes ``inicio`` and ends before ``fim``."""

    tipo: TipoDeRelatorio
    inicio: datetime
    fim: datetime

    def terminou(self, now: datetime) -> bool:
        """Return whether the period has ended at ``now``."""
        return now >= self.fim - TOLERANCE

    @property
    def dia_inteiro(self) -> datetime:
        """The start of the local day on which the period begins."""
        return self.inicio.replace(hour=0)

    def ultimo_dia(self, zone: ZoneInfo) -> date:
        """Return the last local day of the period."""
        return (self.fim - timedelta(microseconds=1)).astimezone(zone).date()


def parte_do_dia(tipo: TipoDeRelatorio, day: date, zone: ZoneInfo) -> Periodo:
    """Return the part of a local day, such as the morning, that a report of the type ``tipo`` covers. ``tipo`` is one
    of ``DO_DIA``.
    """
    starts, ends = HORAS[tipo]
    return Periodo(tipo, datetime.combine(day, time(starts), zone), datetime.combine(day, time(ends), zone))


def semana(day: date, zone: ZoneInfo) -> Periodo:
    """Return the week, Monday to Sunday, that contains a local day."""
    monday = day - timedelta(days=day.weekday())
    starts, ends = (datetime.combine(each, time(0), zone) for each in (monday, monday + WEEK))
    return Periodo(TipoDeRelatorio.SEMANAL, starts, ends)
