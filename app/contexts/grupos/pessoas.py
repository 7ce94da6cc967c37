"""Identity of people in groups: one person may write from a number, a hidden address and several devices."""

from collections.abc import Sequence
from datetime import datetime

from app.contexts.comum.telefone import chave, forms
from batuta.kernel import Ids, dataclass
from batuta.sql import Dialect, Query, Row, Transaction, load_queries


@dataclass(frozen=True, slots=True)
class PersonQueries:
    same: Query
    excluded: Query
    add_person: Query
    person: Query


class Pessoas:
    def __init__(self, dialect: Dialect) -> None:
        self._queries = load_queries(PersonQueries, "sql/pessoas.sql", dialect)

    async def mesma(
        self, transaction: Transaction, id: str, telefone: str | None, lid: str | None = None
    ) -> Sequence[Row]:
        """Return all contacts of the person to whom the contact ``id`` belongs. The first contact represents the
        person.
        """
        ways = forms(telefone) if telefone else ("",)
        return await transaction.all(self._queries.same, id=id, lid=lid or "", telefone=ways[0], sem_nono=ways[-1])

    async def pode_receber(self, transaction: Transaction, telefone: str) -> bool:
        """Return whether Julia may write to a number: the number has not opted out, is not blocked, and is not one of
        our chips.
        """
        every = forms(telefone)
        return await transaction.one(self._queries.excluded, form=every[0], other_form=every[-1]) is None

    async def achar_ou_criar(
        self, transaction: Transaction, telefone: str, nome: str | None, ids: Ids, *, now: datetime
    ) -> str:
        """Return the id in ``clientes`` of an offer's author. If no row has the author's phone number, create one. If
        the number belongs to a doctor, the doctor's row is not changed.
        """
        await transaction.run(self._queries.add_person, id=ids.new(), telefone=telefone, nome=nome, now=now)
        row = await transaction.one(self._queries.person, chave=chave(telefone))
        assert row is not None
        return str(row["id"])
