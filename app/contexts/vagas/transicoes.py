"""The states of a vacancy, and the only service that changes them.

    aberta ──▶ anunciada ──▶ reservada ──▶ pendente_confirmacao ──▶ realizada | cancelada
       │           │  ▲          │
       │           │  └─ liberar ┘  (aberta, if it was offered to no doctor)
       └─────┬─────┘
             ├──▶ fechada        a group says that it is taken
             ├──▶ cancelada      withdrawn, or vencida: its start passed
             └──▶ aguardando_confirmacao ──▶ aberta | anunciada | reservada | fechada   (external hand-off)

A change locks the vacancy and checks its state. Then it writes the new state, a line of ``vagas_historico`` and a
business event in the caller's transaction. ``confirmada`` is a state of old data and has no transitions.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from app.contexts.operacao.service import Eventos
from batuta.kernel import Ids, dataclass
from batuta.sql import Dialect, Query, Row, Transaction, load_queries

LONGEST_REASON: Final = 500


class StatusDaVaga(StrEnum):
    ABERTA = "aberta"
    ANUNCIADA = "anunciada"
    RESERVADA = "reservada"
    AGUARDANDO_CONFIRMACAO = "aguardando_confirmacao"
    PENDENTE_CONFIRMACAO = "pendente_confirmacao"
    CONFIRMADA = "confirmada"
    REALIZADA = "realizada"
    CANCELADA = "cancelada"
    FECHADA = "fechada"


# States in which a vacancy still needs a doctor.
PROCURA: Final = (StatusDaVaga.ABERTA, StatusDaVaga.ANUNCIADA)
_TABELA: Final = {
    "aberta": "anunciada reservada aguardando_confirmacao cancelada fechada",
    "anunciada": "reservada aguardando_confirmacao cancelada fechada",
    "reservada": "aberta anunciada pendente_confirmacao",
    "aguardando_confirmacao": "aberta anunciada reservada fechada",
    "pendente_confirmacao": "realizada cancelada",
}
PERMITIDAS: Final[Mapping[StatusDaVaga, frozenset[StatusDaVaga]]] = {
    de: frozenset(StatusDaVaga(para) for para in _TABELA.get(de, "").split()) for de in StatusDaVaga
}


@dataclass(frozen=True, slots=True)
class TransitionQueries:
    hold: Query
    change: Query
    note: Query
    begin: Query


class Transicoes:
    def __init__(self, dialect: Dialect, ids: Ids) -> None:
        self._eventos = Eventos(dialect, ids)
        self._queries = load_queries(TransitionQueries, "sql/transicoes.sql", dialect)

    async def travar(self, transaction: Transaction, id: str) -> Row | None:
        """Lock a vacancy until the transaction ends. Return the vacancy, or None if it does not exist."""
        return await transaction.one(self._queries.hold, id=id)

    async def mudar(
        self,
        transaction: Transaction,
        vaga: Row,
        para: StatusDaVaga,
        *,
        por: str,
        motivo: str,
        now: datetime,
        cliente_id: str | None = None,
    ) -> bool:
        """Change the state of a vacancy that ``travar`` has locked. Returns False if the current state does not permit
        the change. ``cliente_id`` is the doctor for whom the vacancy is reserved.
        """
        id, de = str(vaga["id"]), StatusDaVaga(vaga["status"])
        if para not in PERMITIDAS[de]:
            return False
        doctor = cliente_id or vaga["cliente_id"]
        change = {"id": id, "de": de.value, "para": para.value, "por": por, "motivo": motivo[:LONGEST_REASON]}
        if not await transaction.run(self._queries.change, **change, cliente_id=doctor, now=now):
            return False
        line = await transaction.one(self._queries.note, **change, cliente_id=doctor, now=now)
        assert line is not None
        await self._eventos.record(
            transaction,
            f"vaga_{para}",
            now=now,
            dedupe_key=f"vaga:{id}:{line['ordem']}",
            cliente_id=doctor,
            vaga_id=id,
            hospital_id=vaga["hospital_id"],
            props={"de": de.value, "para": para.value, "por": por},
        )
        return True

    def comecar(self, id: str, *, por: str, motivo: str, now: datetime) -> tuple[Query, dict[str, object]]:
        """Return the statement that writes the first line of a vacancy's history. It must run after the statement that
        inserts the vacancy.
        """
        return self._queries.begin, {"id": id, "por": por, "motivo": motivo, "now": now}
