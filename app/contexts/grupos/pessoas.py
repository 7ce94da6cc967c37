"""Who is who in groups: one person writes from a number, from a hidden address and from devices."""

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
        """Every contact that is the same person as this one; the first stands for all of them."""
        ways = forms(telefone) if telefone else ("",)
        return await transaction.all(self._queries.same, id=id, lid=lid or "", telefone=ways[0], sem_nono=ways[-1])
