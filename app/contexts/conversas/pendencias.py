"""The pending list: inbound messages that are waiting for a team member, because Julia did not answer them.

    no listener acts, an answer is not sent, or a person has the conversation ──▶ open ──▶ resolved by an operator, or
                                                                                         by a person's answer

Each sender has at most one open entry; further messages from the sender increase its count.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from app.contexts.comum.saude import report_count
from app.contexts.comum.telefone import chave
from app.contexts.conversas.chamados import Chamado, Chamados
from app.contexts.mensagens.api import MensagemEncerrada
from batuta import BatutaError
from batuta.health import QUEUES, Check, Report, Severity
from batuta.kernel import Clock, Ids, dataclass
from batuta.sql import AuditLog, Database, Dialect, Query, Reading, Row, Transaction, load_queries

SISTEMA: Final = "sistema"
ANSWERED: Final = "respondida"


class PendenciaDesconhecida(BatutaError):
    sentence = "message {id} is not on the pending list: `batuta conversas pendencias` shows the list"


class MotivoDaPendencia(StrEnum):
    SEM_RESPOSTA = "sem_resposta"  # no rule answers the message
    COM_PESSOA = "com_pessoa"  # a team member is handling the conversation
    PEDE_PESSOA = "pede_pessoa"  # the sender asks for a team member
    RESPOSTA_NAO_SAIU = "resposta_nao_saiu"  # Julia's answer was blocked, cancelled or failed
    OBJECAO_GRAVE = "objecao_grave"  # the sender accuses or threatens
    ACEITE_INCERTO = "aceite_incerto"  # probably an acceptance; a person must read it before a vacancy is reserved
    AVALIACAO_NEGATIVA = "avaliacao_negativa"  # a doctor describes a bad shift
    CONFIRMAR_VAGA = "confirmar_vaga"  # a doctor accepted a group's vacancy, and its author must confirm the doctor


# Reasons that need a person soon. If an open entry gets such a reason, the team is notified again.
URGENTES: Final = (MotivoDaPendencia.PEDE_PESSOA, MotivoDaPendencia.OBJECAO_GRAVE)


def chave_do_chamado(pendencia_id: str, *, urgente: bool) -> str:
    """Return the deduplication key for the notice that tells the team about a pending entry. An entry that becomes
    urgent gets a second key, so that the team receives a second notice.
    """
    return f"pendencia:{pendencia_id}:urgente" if urgente else f"pendencia:{pendencia_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pendencia:
    """An entry in the pending list. ``texto`` and ``telefone`` are personal data: operators may see them, but logs
    never contain them.
    """

    id: str
    telefone: str | None  # None for a hidden address
    cliente_id: str | None
    conversa_id: str | None
    motivo: str
    classe: str | None
    mensagens: int
    texto: str | None  # text of the sender's first waiting message, or None if it was deleted
    desde: datetime
    ultima_em: datetime


@dataclass(frozen=True, slots=True)
class PendingQueries:
    open: Query
    open_of: Query
    resolve: Query
    resolve_of_doctor: Query
    listed: Query
    waiting: Query


class Pendencias:
    """Writes and reads the pending list. Writes happen in the caller's transaction."""

    def __init__(self, dialect: Dialect, ids: Ids, chamados: Chamados | None = None) -> None:
        self._queries = load_queries(PendingQueries, "sql/pendencias.sql", dialect)
        self._ids = ids
        self._chamados = chamados or Chamados()

    async def abrir(
        self,
        transaction: Transaction,
        motivo: MotivoDaPendencia,
        *,
        message_id: str,
        telefone: str | None,
        endereco: str,
        cliente_id: str | None,
        conversa_id: str | None,
        em: datetime,
        now: datetime,
    ) -> None:
        """Add an inbound message to the pending list, and notify the team unless a person is handling the conversation.

        ``endereco`` identifies the sender if the phone number is unknown.
        """
        who = endereco if telefone is None else chave(telefone)
        await transaction.run(
            self._queries.open,
            id=self._ids.new(),
            quem=who,
            telefone=telefone,
            cliente_id=cliente_id,
            conversa_id=conversa_id,
            message_id=message_id,
            motivo=motivo.value,
            urgente=motivo in URGENTES,
            em=em,
            now=now,
        )
        if motivo is not MotivoDaPendencia.COM_PESSOA:
            await self._call(transaction, who, now)

    async def _call(self, transaction: Transaction, quem: str, now: datetime) -> None:
        row = await transaction.one(self._queries.open_of, quem=quem)
        assert row is not None
        chamado = Chamado(
            chave=chave_do_chamado(str(row["id"]), urgente=row["motivo"] in URGENTES),
            motivo=row["motivo"],
            conversa_id=row["conversa_id"],
            pendencia_id=str(row["id"]),
        )
        await self._chamados.chamar(transaction, chamado, now=now)

    async def resolver(self, transaction: Transaction, id: str, *, por: str, motivo: str, now: datetime) -> bool:
        """Resolve an entry in the pending list. Returns False if the entry is not open."""
        return bool(await transaction.run(self._queries.resolve, id=id, por=por, resolucao=motivo, now=now))

    async def resolver_do_medico(
        self, transaction: Transaction, cliente_id: str, *, por: str, motivo: str, now: datetime
    ) -> bool:
        """Resolve the doctor's open entry in the pending list. Returns False if the doctor has no open entry."""
        values = {"cliente_id": cliente_id, "por": por, "resolucao": motivo}
        return bool(await transaction.run(self._queries.resolve_of_doctor, **values, now=now))

    async def listar(self, reading: Reading, *, limite: int) -> Sequence[Pendencia]:
        return [_pending(row) for row in await reading.all(self._queries.listed, limite=limite)]

    async def contar(self, reading: Reading) -> tuple[int, datetime | None]:
        """Return the number of open entries in the pending list, and the time of the oldest one."""
        row = await reading.one(self._queries.waiting)
        assert row is not None
        return int(row["items"]), row["desde"]

    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Resolve the doctor's open entry in the pending list after a team member's answer was sent."""
        await self.resolver_do_medico(transaction, mensagem.cliente_id, por=SISTEMA, motivo=ANSWERED, now=mensagem.em)

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Do nothing: if a team member's answer is not sent, the doctor's entry stays in the pending list."""


class PendenciasAbertas:
    """Operators' actions on the pending list."""

    def __init__(self, database: Database, pendencias: Pendencias, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._pendencias = pendencias
        self._audit = AuditLog(database.dialect, ids)
        self._clock = clock

    async def listar(self, *, limite: int) -> Sequence[Pendencia]:
        return await self._pendencias.listar(self._database, limite=limite)

    async def resolver(self, id: str, *, por: str, motivo: str) -> None:
        """Resolve an entry in the pending list on behalf of an operator. Raises PendenciaDesconhecida if the entry is
        not open.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            if not await self._pendencias.resolver(transaction, id, por=por, motivo=motivo, now=now):
                raise PendenciaDesconhecida(id=id)
            await self._audit.note(
                transaction,
                actor=por,
                action="pendencia.resolver",
                subject=f"pendencia:{id}",
                before=None,
                after={"motivo": motivo},
                now=now,
            )

    async def quantas(self) -> int:
        return (await self._pendencias.contar(self._database))[0]

    async def ask(self) -> Report:
        count, since = await self._pendencias.contar(self._database)
        return report_count(Severity.WARNING, "conversas", "pendencias", count, since, lost=2)

    @property
    def check(self) -> Check:
        return Check(name="pendencias", section=QUEUES, ask=self.ask)


def _pending(row: Row) -> Pendencia:
    return Pendencia(
        id=str(row["id"]),
        telefone=row["telefone"],
        cliente_id=row["cliente_id"],
        conversa_id=row["conversa_id"],
        motivo=row["motivo"],
        classe=row["classe"],
        mensagens=row["mensagens"],
        texto=row["conteudo"],
        desde=row["created_at"],
        ultima_em=row["ultima_em"],
    )
