"""Identity of people in groups: one person may write from a number, a hidden address and several devices."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.contexts.comum.telefone import forms
from batuta.sql import Dialect, Query, Row, Transaction, load_queries


@dataclass(frozen=True, slots=True)
class PersonQueries:
    same: Query


class Pessoas:
    def __init__(self, dialect: Dialect) -> None:
        self._queries = load_queries(PersonQueries, Path(__file__).parent / "pessoas.sql", dialect)

    async def mesma(
        self, transaction: Transaction, id: str, telefone: str | None, lid: str | None = None
    ) -> Sequence[Row]:
        """Return every contact of the same person. The first one represents the person."""
        ways = forms(telefone) if telefone else ("",)
        return await transaction.all(self._queries.same, id=id, lid=lid or "", telefone=ways[0], sem_nono=ways[-1])
