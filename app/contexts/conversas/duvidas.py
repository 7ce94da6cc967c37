"""Probable opt-outs: messages that probably ask Julia to stop writing. An operator decides about each of them.

    a text is read as provavel ──▶ open: Julia sends nothing on its own initiative ──▶ parar: recorded as an opt-out
                                                                                  └──▶ seguir: messages are allowed again

If the person later opts out clearly, the probable opt-out is closed too.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from app.contexts.comum.saude import report_count
from app.contexts.conversas.service import Conversas
from batuta import BatutaError
from batuta.health import QUEUES, Check, Report, Severity
from batuta.kernel import Clock, Ids, dataclass
from batuta.sql import AuditLog, Database, Query, load_queries


class DuvidaDesconhecida(BatutaError):
    sentence = "no probable opt-out with the id {id} awaits a decision: `batuta conversas duvidas` lists the open ones"


class Decisao(StrEnum):
    PARAR = "parar"
    SEGUIR = "seguir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Duvida:
    """A probable opt-out. ``texto`` and ``telefone`` are personal data: operators may see them, but logs never contain
    them.
    """

    id: str
    telefone: str
    cliente_id: str | None
    regra: str
    texto: str | None  # None if the message was deleted
    desde: datetime


@dataclass(frozen=True, slots=True)
class DoubtQueries:
    open: Query
    one: Query
    decide: Query
    waiting: Query


class DuvidasDeOptout:
    def __init__(self, database: Database, conversas: Conversas, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._conversas = conversas
        self._audit = AuditLog(database.dialect, ids)
        self._clock = clock
        self._queries = load_queries(DoubtQueries, "sql/duvidas.sql", database.dialect)

    async def listar(self, *, limite: int) -> Sequence[Duvida]:
        return [
            Duvida(
                id=str(row["id"]),
                telefone=row["telefone"],
                cliente_id=row["cliente_id"],
                regra=row["regra"],
                texto=row["conteudo"],
                desde=row["created_at"],
            )
            for row in await self._database.all(self._queries.open, limite=limite)
        ]

    async def exigir_aberta(self, id: str) -> None:
        """Raise DuvidaDesconhecida unless the probable opt-out is awaiting a decision."""
        row = await self._database.one(self._queries.one, id=id)
        if row is None or row["decisao"] is not None:
            raise DuvidaDesconhecida(id=id)

    async def decidir(self, id: str, decisao: Decisao, *, por: str, motivo: str) -> int:
        """Store an operator's decision about a probable opt-out, and return the number of queued messages that the
        decision cancelled. Raises DuvidaDesconhecida if the probable opt-out is not awaiting a decision.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            row = await transaction.one(self._queries.one, id=id)
            decided = row is not None and await transaction.run(
                self._queries.decide, id=id, decisao=decisao.value, por=por, motivo=motivo, now=now
            )
            if row is None or not decided:
                raise DuvidaDesconhecida(id=id)
            cancelled = 0
            if decisao is Decisao.PARAR:
                _, cancelled = await self._conversas.parar_numero(
                    transaction, row["telefone"], origem=f"duvida:{id}", now=now
                )
            await self._audit.note(
                transaction,
                actor=por,
                action="optout.decidir",
                subject=f"duvida:{id}",
                before=None,
                after={"decisao": decisao.value, "motivo": motivo, "canceladas": cancelled},
                now=now,
            )
        return cancelled

    async def ask(self) -> Report:
        row = await self._database.one(self._queries.waiting)
        assert row is not None
        return report_count(Severity.WARNING, "conversas", "optouts_provaveis", row["items"], row["desde"], lost=2)

    async def quantas(self) -> int:
        row = await self._database.one(self._queries.waiting)
        assert row is not None
        return int(row["items"])

    @property
    def check(self) -> Check:
        return Check(name="conversas", section=QUEUES, ask=self.ask)
