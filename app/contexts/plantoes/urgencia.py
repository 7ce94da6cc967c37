"""Mark vacancies without a doctor as urgent if the briefing names their hospital and day.

Only the active briefing is considered. A vacancy that the briefing no longer names stops being urgent. A vacancy that
is created later becomes urgent at the next run.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.nomes.api import Dicionario, Nomes, achar
from batuta.kernel import Clock, Ids, dataclass
from batuta.reasons import Reason, define
from batuta.sql import AsJson, AuditLog, Database, Query, load_queries

BRIEFING: Final = "briefing"
# A day without a year, such as 12/03, means its next occurrence, or its last one if that is at most this long ago.
PAST: Final = timedelta(days=60)
UNKNOWN_PLACE = define("aviso_hospital", "hospital '{hospital}' is unknown or ambiguous: write its registered name")
UNKNOWN_DAY = define("aviso_dia", "'{dia}' is not a day: write it as 12/03 or 12/03/2026")
_DAY = re.compile(r"(\d{1,2})/(\d{1,2})(?:/(\d{2}|\d{4}))?")


@dataclass(frozen=True, slots=True)
class Urgentes:
    """The result of marking vacancies as urgent: how many are urgent now, how many were changed, and a warning for each
    briefing line that was not understood.
    """

    total: int
    mudaram: int
    avisos: Sequence[Reason]


@dataclass(frozen=True, slots=True)
class UrgencyQueries:
    change: Query
    urgent: Query


class Urgencias:
    def __init__(self, database: Database, dicionario: Dicionario, ids: Ids, zone: ZoneInfo, clock: Clock) -> None:
        self._database = database
        self._dicionario = dicionario
        self._audit = AuditLog(database.dialect, ids)
        self._zone = zone
        self._clock = clock
        self._queries = load_queries(UrgencyQueries, "sql/urgencia.sql", database.dialect)

    async def marcar(self, itens: Sequence[Mapping[str, Any]]) -> Urgentes:
        """Mark an open vacancy as urgent if an item of ``itens`` names its ``hospital`` and ``data``. Remove the mark
        from all other vacancies.
        """
        now, names = self._clock.now(), await self._dicionario.nomes()
        wanted, warnings = _read(itens, names, now.astimezone(self._zone).date())
        async with self._database.transaction() as transaction:
            changed = await transaction.all(self._queries.change, lugares=AsJson(wanted), now=now)
            for row in changed:
                urgent = bool(row["urgente"])
                await self._audit.note(
                    transaction, actor=BRIEFING, action="vaga.urgente", subject=f"vaga:{row['id']}",
                    before={"urgente": not urgent}, after={"urgente": urgent}, now=now,
                )  # fmt: skip
            counted = await transaction.one(self._queries.urgent)
        assert counted is not None
        return Urgentes(int(counted["items"]), len(changed), warnings)


def _read(itens: Sequence[Mapping[str, Any]], names: Nomes, today: date) -> tuple[list[dict[str, str]], list[Reason]]:
    """Return the hospital and the day named by each briefing item, and a warning for each item without a known hospital
    or day.
    """
    found: list[dict[str, str]] = []
    warnings: list[Reason] = []
    for each in itens:
        if "hospital" not in each:
            continue  # the line stays plain text; a warning was given when the document was read
        hospital, day = achar(str(each["hospital"]), None, None, None, names), _day(str(each["data"]), today)
        if hospital.id is None:
            warnings.append(UNKNOWN_PLACE(hospital=each["hospital"]))
        elif day is None:
            warnings.append(UNKNOWN_DAY(dia=each["data"]))
        else:
            found.append({"hospital_id": hospital.id, "data": day.isoformat()})
    return found, warnings


def _day(text: str, today: date) -> date | None:
    """Parse the day of a briefing item. Return None if the text is not a day. If the year is missing, choose the year
    in which the day is in the future, or at most PAST ago.
    """
    if (match := _DAY.fullmatch(text)) is None:
        return None
    day, month, year = (None if each is None else int(each) for each in match.groups())
    assert day is not None
    assert month is not None
    years = [today.year - 1, today.year, today.year + 1] if year is None else [year + 2000 if year < 100 else year]
    for each in years:
        try:
            found = date(each, month, day)
        except ValueError:
            continue
        if year is not None or found >= today - PAST:
            return found
    return None
