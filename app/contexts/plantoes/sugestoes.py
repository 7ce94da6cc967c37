"""Add one open vacancy in the doctor's speciality to another message, such as a follow-up.

The message is then an offer to the doctor: an acceptance reserves the vacancy, and the vacancy is not offered to the
doctor again. The vacancy's state does not change, so it can still be offered to other doctors.
"""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.nomes.api import Dicionario, Nomes
from app.contexts.plantoes.candidatos import eh_a_mesma, formas_da_especialidade
from app.contexts.plantoes.horario import condicao_de_conflito, turno_de
from batuta.kernel import dataclass
from batuta.sql import Dialect, Query, Reading, Row, Transaction, load_text

# Maximum number of open vacancies that are considered, the earliest first.
MOST: Final = 500
# Shortest time until the shift begins, because the message may wait for the sending hours.
NOTICE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SuggestionQueries:
    open: Query
    unfit: Query
    offer: Query


@cache
def suggestion_queries(dialect: Dialect) -> SuggestionQueries:
    text = (Path(__file__).parent / "sql" / "sugestoes.sql").read_text(encoding="utf-8")
    text = text.replace("{conflito}", condicao_de_conflito("held", "vaga"))
    return load_text(SuggestionQueries, text, "sugestoes.sql", dialect)


@dataclass(frozen=True, slots=True, kw_only=True)
class VagasAbertas:
    """The vacancies that were open at the time of reading, earliest shift first."""

    vagas: Sequence[Row]
    nomes: Nomes
    hoje: date

    def da_especialidade(self, escrita: str) -> list[Row]:
        """Return the vacancies in a doctor's speciality. ``escrita`` is the speciality as spelled in the
        doctor's row.
        """
        canonica = self.nomes.vocabulario.especialidades.valor
        return [vaga for vaga in self.vagas if eh_a_mesma(escrita, formas_da_especialidade(self.nomes, vaga), canonica)]


class Sugestoes:
    def __init__(self, dialect: Dialect, dicionario: Dicionario, zone: ZoneInfo) -> None:
        self._dicionario = dicionario
        self._zone = zone
        self._queries = suggestion_queries(dialect)

    async def abertas(self, reading: Reading, *, now: datetime) -> VagasAbertas:
        """Read the open vacancies whose shift begins tomorrow or later."""
        names, today = await self._dicionario.nomes(), now.astimezone(self._zone).date()
        rows = await reading.all(self._queries.open, hoje=today, limite=MOST)
        later = [row for row in rows if turno_de(row, self._zone).inicio >= now + NOTICE]
        return VagasAbertas(vagas=later, nomes=names, hoje=today)

    async def para(
        self, reading: Reading, abertas: VagasAbertas, cliente_id: str, especialidade: str | None
    ) -> Row | None:
        """Return the vacancy with the earliest shift that may be offered to the doctor, or None if there is none."""
        fitting = abertas.da_especialidade(especialidade) if especialidade else []
        if not fitting:
            return None
        rows = await reading.all(self._queries.unfit, cliente_id=cliente_id, hoje=abertas.hoje)
        unfit = {row["id"] for row in rows}
        return next((vaga for vaga in fitting if vaga["id"] not in unfit), None)

    async def registrar(
        self, transaction: Transaction, vaga: Row, cliente_id: str, mensagem_id: str, *, por: str, now: datetime
    ) -> None:
        """Record that a message offers the vacancy to the doctor."""
        await transaction.run(
            self._queries.offer, vaga_id=vaga["id"], cliente_id=cliente_id, mensagem_id=mensagem_id, por=por, now=now
        )
