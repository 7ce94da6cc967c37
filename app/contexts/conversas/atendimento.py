"""State machine of a conversation: either Julia or a team member handles it.

    Julia handles it ──escalar──▶ a person is needed ──assumir──▶ a person handles it ──devolver──▶ Julia handles it
          └───────────────────────assumir────────────────────────▲
    each of these states ──encerrar──▶ completed; the doctor's next message opens another conversation

Messages that Julia queued are held while a person is handling the conversation or is needed. One transaction writes each
change to the conversation, to ``conversas_historico`` and to the audit log.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from app.contexts.comum.saude import report_count
from app.contexts.conversas.chamados import Chamado, Chamados
from app.contexts.conversas.pendencias import URGENTES, Pendencias, chave_do_chamado
from app.contexts.mensagens.service import Mensagens, NaDevolucao
from batuta import BatutaError
from batuta.health import QUEUES, Check, Report, Severity
from batuta.kernel import Clock, Ids, dataclass
from batuta.sql import AuditLog, Database, Dialect, Query, Row, Transaction, load_queries

LONGEST_MOTIVO: Final = 500
# Number of messages and of queued messages that ``ver`` returns.
SHOWN: Final = 20
PERSON: Final = "human"
OPEN: Final = ("active", "paused", "escalated")
# Sort positions before and after every row. A position is a time and an id.
BEFORE_ALL: Final = (datetime(1970, 1, 1, tzinfo=UTC), "00000000-0000-0000-0000-000000000000")
AFTER_ALL: Final = (datetime(9999, 1, 1, tzinfo=UTC), "ffffffff-ffff-ffff-ffff-ffffffffffff")


class ConversaDesconhecida(BatutaError):
    sentence = "conversation {id} does not exist: `batuta conversas listar` lists the open ones"


class ConversaEncerrada(BatutaError):
    sentence = "conversation {id} has ended: `batuta conversas listar` lists the open ones"


class ConversaComPessoa(BatutaError):
    sentence = "{responsavel} handles conversation {id}: return it first with `batuta conversas devolver {id}`"


class ConversaSemPessoa(BatutaError):
    sentence = "Julia already handles conversation {id}: `batuta conversas ver {id}` shows its history"


class Acao(StrEnum):
    ESCALAR = "escalar"
    ASSUMIR = "assumir"
    DEVOLVER = "devolver"
    ENCERRAR = "encerrar"
    PAUSAR = "pausar"  # no follow-ups until an instant
    RETOMAR = "retomar"


class EstagioDaConversa(StrEnum):
    NOVO = "novo"
    MSG_ENVIADA = "msg_enviada"
    FOLLOWUP_1_ENVIADO = "followup_1_enviado"
    FOLLOWUP_2_ENVIADO = "followup_2_enviado"
    NAO_RESPONDEU = "nao_respondeu"
    RECONTATO = "recontato"
    RESPONDEU = "respondeu"
    QUALIFICADO = "qualificado"
    NEGOCIANDO = "negociando"
    FECHOU = "fechou"
    OPTOUT = "optout"


class Com(StrEnum):
    """Who handles a conversation (Julia or a person), as stored in the column ``controlled_by``."""

    JULIA = "ai"
    PESSOA = "human"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mudada:
    """The result of changing a conversation. ``mensagens`` is the number of Julia's messages that the change holds
    back, releases or cancels.
    """

    id: str
    acao: Acao
    mensagens: int = 0
    repetida: bool = False  # the conversation already had the requested state, and nothing was written


@dataclass(frozen=True, slots=True, kw_only=True)
class VistaDaConversa:
    """One conversation with its messages. The texts in ``mensagens`` are personal data: operators may see them, but
    logs never contain them.
    """

    conversa: Row
    mensagens: Sequence[Row]
    na_fila: Sequence[Row]
    historico: Sequence[Row]


@dataclass(frozen=True, slots=True)
class CareQueries:
    one: Query
    listed: Query
    ended: Query
    waiting: Query
    count_waiting: Query
    said: Query
    queued: Query
    history: Query
    note: Query
    take: Query
    let_go: Query
    give_back: Query
    finish: Query
    escalate: Query
    move: Query
    need: Query
    led: Query
    advance: Query
    pause: Query
    resume: Query
    end_pauses: Query
    unclaimed: Query


class Estagios:
    """Changes that other contexts make to a conversation. Each change runs in the caller's transaction."""

    def __init__(self, dialect: Dialect, chamados: Chamados | None = None) -> None:
        self._chamados = chamados or Chamados()
        self._queries = load_queries(CareQueries, "sql/atendimento.sql", dialect)

    async def travar(self, transaction: Transaction, mensagens: Mensagens, conversa_id: str) -> Row:
        """Lock an open conversation's doctor until the transaction ends. Return the conversation.

        Raises ConversaDesconhecida or ConversaEncerrada.
        """
        found = await transaction.one(self._queries.one, id=conversa_id)
        if found is None:
            raise ConversaDesconhecida(id=conversa_id)
        await mensagens.travar(transaction, found["cliente_id"])
        locked = await transaction.one(self._queries.one, id=conversa_id)
        if locked is None or locked["status"] not in OPEN:
            raise ConversaEncerrada(id=conversa_id)
        return locked

    async def mover(
        self, transaction: Transaction, conversa_id: str, para: EstagioDaConversa, *, now: datetime
    ) -> bool:
        """Set a conversation's stage. Return False if the conversation has ended, already has this stage, or has the
        stage optout.
        """
        return bool(await transaction.run(self._queries.move, id=conversa_id, para=para.value, now=now))

    async def escalar(
        self, transaction: Transaction, conversa_id: str, *, por: str, motivo: str, now: datetime
    ) -> bool:
        """Record that the conversation needs a person. From then on, Julia's messages to the doctor are held back.

        Return False if Julia is not handling the conversation.
        """
        if not await transaction.run(self._queries.escalate, id=conversa_id, now=now):
            return False
        await self._note(transaction, conversa_id, Acao.ESCALAR, por, motivo, now)
        await self._call(transaction, conversa_id, motivo, now)
        await self._chamados.mudar(transaction, conversa_id, now=now)
        return True

    async def avancar(
        self,
        transaction: Transaction,
        conversa_id: str,
        *,
        de: EstagioDaConversa,
        para: EstagioDaConversa,
        now: datetime,
    ) -> bool:
        """Move an open conversation from the stage ``de`` to the stage ``para``. Return False if it is not in the stage
        ``de``.
        """
        query = self._queries.advance
        return bool(await transaction.run(query, id=conversa_id, de=de.value, para=para.value, now=now))

    async def pausar(
        self, transaction: Transaction, conversa_id: str, ate: datetime, *, por: str, motivo: str, now: datetime
    ) -> bool:
        """Pause the follow-ups of an open conversation until ``ate``. Return False if the conversation has ended."""
        if not await transaction.run(self._queries.pause, id=conversa_id, ate=ate, now=now):
            return False
        await self._note(transaction, conversa_id, Acao.PAUSAR, por, motivo, now)
        return True

    async def retomar(
        self, transaction: Transaction, conversa_id: str, *, por: str, motivo: str, now: datetime
    ) -> bool:
        """End an open conversation's pause. If its stage is nao_respondeu (not answered), the stage becomes recontato
        (contact again).

        Return False if the conversation has ended.
        """
        if not await transaction.run(self._queries.resume, id=conversa_id, now=now):
            return False
        await self._note(transaction, conversa_id, Acao.RETOMAR, por, motivo, now)
        return True

    async def retomar_vencidas(
        self, transaction: Transaction, *, limite: int, por: str, motivo: str, now: datetime
    ) -> Sequence[Row]:
        """Move conversations from the stage nao_respondeu (not answered) to recontato (contact again) if their pause
        has expired. At most ``limite`` conversations are moved.

        Return their rows with the columns id and cliente_id.
        """
        ended = await transaction.all(self._queries.end_pauses, limite=limite, now=now)
        for row in ended:
            await self._note(transaction, row["id"], Acao.RETOMAR, por, motivo, now)
        return ended

    async def _note(
        self, transaction: Transaction, conversa_id: str, acao: Acao, por: str, motivo: str, now: datetime
    ) -> None:
        line = {"acao": acao.value, "por": por, "motivo": motivo[:LONGEST_MOTIVO], "mensagens": 0}
        await transaction.run(self._queries.note, id=conversa_id, **line, now=now)

    async def _call(self, transaction: Transaction, conversa_id: str, motivo: str, now: datetime) -> None:
        """Notify the team that an escalated conversation needs a person. Do nothing if the doctor has an urgent entry
        in the pending list, because the team was already notified of that entry.
        """
        row = await transaction.one(self._queries.need, id=conversa_id)
        assert row is not None
        pending = None if row["pendencia_id"] is None else str(row["pendencia_id"])
        if pending is not None and row["motivo"] in URGENTES:
            return
        await self._chamados.chamar(
            transaction,
            Chamado(
                chave=f"conversa:{conversa_id}:{row['ordem']}"
                if pending is None
                else chave_do_chamado(pending, urgente=True),
                motivo=motivo,
                conversa_id=conversa_id,
                pendencia_id=pending,
            ),
            now=now,
        )


class Atendimento:
    """Operators' actions on conversations."""

    def __init__(
        self,
        database: Database,
        mensagens: Mensagens,
        pendencias: Pendencias,
        ids: Ids,
        clock: Clock,
        chamados: Chamados | None = None,
    ) -> None:
        self._chamados = chamados or Chamados()
        self._database = database
        self._mensagens = mensagens
        self._pendencias = pendencias
        self._estagios = Estagios(database.dialect)
        self._audit = AuditLog(database.dialect, ids)
        self._clock = clock
        self._queries = load_queries(CareQueries, "sql/atendimento.sql", database.dialect)

    async def listar(
        self,
        *,
        com: Com | None = None,
        estagio: EstagioDaConversa | None = None,
        encerradas: bool = False,
        limite: int,
        pular: int = 0,
        antes: tuple[datetime, str] = AFTER_ALL,
    ) -> Sequence[Row]:
        """List conversations, most recently changed first. ``encerradas`` adds ended conversations to the list.

        ``antes`` has a conversation's id and the time of its last change; the list begins after this conversation.
        """
        return await self._database.all(
            self._queries.listed,
            com=com,
            estagio=estagio,
            encerradas=encerradas,
            limite=limite,
            pular=pular,
            antes_em=antes[0],
            antes_de=antes[1],
        )

    async def encerradas(self, *, limite: int, antes: tuple[datetime, str] = AFTER_ALL) -> Sequence[Row]:
        """List ended conversations, most recently ended first."""
        query = self._queries.ended
        return await self._database.all(query, limite=limite, antes_em=antes[0], antes_de=antes[1])

    async def esperam(self, *, limite: int, depois: tuple[datetime, str] = BEFORE_ALL) -> Sequence[Row]:
        """List what is waiting for a person, longest wait first: the entries of the pending list, and the escalated
        conversations that no person has taken over.
        """
        query = self._queries.waiting
        return await self._database.all(query, limite=limite, depois_em=depois[0], depois_de=depois[1])

    async def quantos_esperam(self) -> int:
        row = await self._database.one(self._queries.count_waiting)
        return 0 if row is None else int(row["items"])

    async def ver(self, id: str) -> VistaDaConversa:
        async with self._database.snapshot() as reading:
            if (conversa := await reading.one(self._queries.one, id=id)) is None:
                raise ConversaDesconhecida(id=id)
            return VistaDaConversa(
                conversa=conversa,
                mensagens=await reading.all(self._queries.said, id=id, limite=SHOWN),
                na_fila=await reading.all(self._queries.queued, cliente_id=conversa["cliente_id"], limite=SHOWN),
                historico=await reading.all(self._queries.history, id=id),
            )

    async def assumir(self, id: str, *, por: str, motivo: str) -> Mudada:
        """Let the person ``por`` take over a conversation, and hold back the messages that Julia queued for it. Raises
        ConversaComPessoa if another person is handling the conversation.
        """
        async with self._database.transaction() as transaction:
            return await self.assumir_em(transaction, id, por=por, motivo=motivo)

    async def assumir_em(self, transaction: Transaction, id: str, *, por: str, motivo: str) -> Mudada:
        """Let the person ``por`` take over a conversation, in the caller's transaction."""
        now, conversa = self._clock.now(), await self._estagios.travar(transaction, self._mensagens, id)
        if not await transaction.run(self._queries.take, id=id, por=por, now=now):
            if conversa["responsavel"] == por:
                return Mudada(id=id, acao=Acao.ASSUMIR, repetida=True)
            raise ConversaComPessoa(id=id, responsavel=conversa["responsavel"] or "-")
        held = await transaction.all(self._queries.queued, cliente_id=conversa["cliente_id"], limite=1000)
        done = Mudada(id=id, acao=Acao.ASSUMIR, mensagens=len(held))
        await self._record(transaction, conversa, done, por, motivo, now)
        return done

    async def liberar_em(self, transaction: Transaction, id: str, *, por: str, motivo: str) -> Mudada:
        """Record that the person ``por`` is no longer handling a conversation, so that the conversation waits for
        another person.

        If a person other than ``por`` is handling the conversation, nothing changes.
        """
        now, conversa = self._clock.now(), await self._estagios.travar(transaction, self._mensagens, id)
        is_changed = await transaction.run(self._queries.let_go, id=id, por=por, now=now)
        done = Mudada(id=id, acao=Acao.ESCALAR, repetida=not is_changed)
        if is_changed:
            await self._record(transaction, conversa, done, por, motivo, now)
        return done

    async def devolver(self, id: str, decisao: NaDevolucao, *, por: str, motivo: str) -> Mudada:
        """Hand the conversation back to Julia. ``decisao`` says whether the messages that were held back are now sent
        or cancelled.

        Raises ConversaSemPessoa if Julia is already handling the conversation.
        """
        async with self._database.transaction() as transaction:
            return await self.devolver_em(transaction, id, decisao, por=por, motivo=motivo)

    async def devolver_em(
        self, transaction: Transaction, id: str, decisao: NaDevolucao, *, por: str, motivo: str
    ) -> Mudada:
        """Hand a conversation back to Julia, in the caller's transaction."""
        now, conversa = self._clock.now(), await self._estagios.travar(transaction, self._mensagens, id)
        count = await self._mensagens.devolver(transaction, conversa["cliente_id"], decisao, now=now)
        if not await transaction.run(self._queries.give_back, id=id, now=now):
            raise ConversaSemPessoa(id=id)
        done = Mudada(id=id, acao=Acao.DEVOLVER, mensagens=count)
        await self._record(transaction, conversa, done, por, f"{decisao.value}: {motivo}", now)
        return done

    async def encerrar(self, id: str, *, por: str, motivo: str) -> Mudada:
        """End the conversation. Cancel Julia's waiting messages to the doctor, and resolve the doctor's entry in the
        pending list.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            conversa = await self._estagios.travar(transaction, self._mensagens, id)
            doctor = conversa["cliente_id"]
            count = await self._mensagens.devolver(transaction, doctor, NaDevolucao.CANCELAR, now=now)
            await transaction.run(self._queries.finish, id=id, now=now)
            await self._pendencias.resolver_do_medico(transaction, doctor, por=por, motivo=motivo, now=now)
            done = Mudada(id=id, acao=Acao.ENCERRAR, mensagens=count)
            await self._record(transaction, conversa, done, por, motivo, now)
        return done

    async def contagem(self) -> Row:
        """Count the open conversations that a person is handling (``com_pessoa``), and those that need a person but
        have none (``sem_responsavel``).
        """
        row = await self._database.one(self._queries.led)
        assert row is not None
        return row

    async def ask(self) -> Report:
        row = await self._database.one(self._queries.unclaimed)
        assert row is not None
        return report_count(Severity.WARNING, "conversas", "sem_responsavel", row["items"], row["desde"], lost=2)

    @property
    def check(self) -> Check:
        return Check(name="atendimento", section=QUEUES, ask=self.ask)

    async def _record(
        self, transaction: Transaction, before: Row, done: Mudada, por: str, motivo: str, now: datetime
    ) -> None:
        line = {"acao": done.acao.value, "por": por, "motivo": motivo[:LONGEST_MOTIVO], "mensagens": done.mensagens}
        await transaction.run(self._queries.note, id=done.id, **line, now=now)
        await self._audit.note(
            transaction,
            actor=por,
            action=f"conversa.{done.acao.value}",
            subject=f"conversa:{done.id}",
            before={name: before[name] for name in ("status", "controlled_by", "responsavel")},
            after={"motivo": motivo[:LONGEST_MOTIVO], "mensagens": done.mensagens},
            now=now,
        )
        await self._chamados.mudar(transaction, done.id, now=now)
