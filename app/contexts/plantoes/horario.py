"""Compute when a shift starts and ends. Missing hours are derived from the period, such as day or night. If hours and
period are both missing, the shift is assumed to last until the end of the day.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.leitura_grupos.api import Periodo
from app.contexts.vagas.api import PERIODO_ID
from batuta.kernel import dataclass
from batuta.sql import Row

HORAS: Final[Mapping[Periodo, tuple[str, str]]] = {
    Periodo.DIURNO: ("07:00", "19:00"),
    Periodo.TARDE: ("13:00", "19:00"),
    Periodo.NOTURNO: ("19:00", "07:00"),
    Periodo.CINDERELA: ("19:00", "01:00"),
    Periodo.MANHA: ("07:00", "13:00"),
    Periodo.H24: ("07:00", "07:00"),
}
# 6 is an earlier id of the afternoon.
_POR_ID: Final = {**{PERIODO_ID[each]: hours for each, hours in HORAS.items()}, 6: HORAS[Periodo.TARDE]}
# The parts of the day that each period covers: morning 1, afternoon 2, night 4.
_PARTES: Final = {
    **{PERIODO_ID[each]: parts for each, parts in (
        (Periodo.MANHA, 1), (Periodo.TARDE, 2), (Periodo.DIURNO, 3), (Periodo.NOTURNO, 4), (Periodo.CINDERELA, 4),
        (Periodo.H24, 7),
    )},
    6: 2,
}  # fmt: skip
_HORA: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::[0-5][0-9])?")


@dataclass(frozen=True, slots=True)
class Turno:
    """Start and end of a shift. If neither the hours nor the period (such as day or night) are known, ``inicio`` is the
    end of the day, so that the vacancy stays open until then.
    """

    inicio: datetime
    fim: datetime


def turno_de(vaga: Row | Mapping[str, Any], zone: ZoneInfo) -> Turno:
    """Return when a vacancy's shift starts and ends. If the end hour is not later than the start hour, the shift ends
    on the next day.
    """
    day: date = vaga["data"]
    usual = _POR_ID.get(vaga["periodo_id"])
    starts, ends = _hora(vaga["hora_inicio"]), _hora(vaga["hora_fim"])
    if usual is not None:
        starts, ends = starts or _hora(usual[0]), ends or _hora(usual[1])
    day_ends = datetime.combine(day + timedelta(days=1), time(), zone)
    inicio = day_ends if starts is None else datetime.combine(day, starts, zone)
    if starts is None or ends is None:
        return Turno(inicio, day_ends)
    return Turno(inicio, datetime.combine(day if ends > starts else day + timedelta(days=1), ends, zone))


def condicao_de_conflito(held: str, wanted: str) -> str:
    """Return the SQL condition under which two rows of ``vagas`` with the same date exclude each other: their periods
    (such as day or night) cover the same part of the day, or they begin at the same hour. The arguments are the aliases
    of the rows.
    """
    parts = " ".join(f"WHEN {id} THEN {parts}" for id, parts in _PARTES.items())
    first, second = (f"CASE {alias}.periodo_id {parts} ELSE 0 END" for alias in (held, wanted))
    return f"(({first}) & ({second}) > 0 OR {held}.hora_inicio = {wanted}.hora_inicio)"


def _hora(text: str | None) -> time | None:
    """Parse an hour such as 19:00. Returns None if the text is missing or invalid."""
    found = _HORA.fullmatch(text.strip()) if text else None
    return time(int(found[1]), int(found[2])) if found else None
