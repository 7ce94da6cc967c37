"""Answer each inbound message once, in the transaction that records it.

    inside the sending hours   ──▶ an answer by class, a pending entry for a person, or both
    outside the sending hours  ──▶ a row of ``mensagens_fora_horario`` and at most one acknowledgement in six hours
    an acceptance, at any hour ──▶ an attempt to reserve the vacancy, and an answer that states its result

If no rule answers a message, or if its answer cannot be sent, the message enters the pending list.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.comum.fila import Fila
from app.contexts.comum.texto import chamado
from app.contexts.conversas.api import Estagios, MensagemRecebida, MotivoDaPendencia, Pendencias
from app.contexts.handoffs.api import Aberto, Handoffs
from app.contexts.leitura_conversas.api import Classe
from app.contexts.mensagens.api import Desfecho, MensagemEncerrada, NovaMensagem, Tipo
from app.contexts.plantoes.api import Plantoes, turno_de
from app.contexts.respostas import textos
from app.contexts.respostas.decisao import (
    FROM_GROUP,
    Fatos,
    Reacao,
    Reservar,
    Vaga,
    a_confirmar,
    decidir,
    recebimento,
    reservada,
)
from batuta.jobs import Window
from batuta.kernel import Ids, Json, dataclass
from batuta.sql import Dialect, Query, Row, Transaction, load_queries

JULIA: Final = "julia"
ACKNOWLEDGE_EVERY: Final = timedelta(hours=6)
# Age of the inbound message up to which a message counts as its answer. An older inbound message must be in
# ``mensagens_fora_horario``.
LIVE: Final = timedelta(minutes=30)
ANSWERED: Final = "respondida"
SENT: Final = "sucesso"
SEEKS: Final = ("aberta", "anunciada")
# Reasons for which an entry is added to the pending list at night too.
AT_ANY_HOUR: Final = (
    MotivoDaPendencia.PEDE_PESSOA,
    MotivoDaPendencia.OBJECAO_GRAVE,
    MotivoDaPendencia.ACEITE_INCERTO,
)
# Keys of the metadata of an answer.
ESCALATES: Final = "escala"
# Outcomes that need no person: the same text has just been sent, or the doctor opted out.
NEEDS_NO_PERSON: Final = (Desfecho.DEDUPED, Desfecho.BLOCKED_OPTED_OUT)


@dataclass(frozen=True, slots=True)
class AnswerQueries:
    doctor: Query
    last: Query
    vacancies: Query
    keep: Query
    acknowledged: Query
    acknowledge: Query
    unacknowledge: Query
    waiting: Query
    night: Query
    resume: Query
    close: Query
    settle: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class PartesDaResposta:
    """Services for answering messages. ``hours`` are the sending hours."""

    dialect: Dialect
    ids: Ids
    fila: Fila
    plantoes: Plantoes
    handoffs: Handoffs
    pendencias: Pendencias
    estagios: Estagios
    hours: Window
    zone: ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class MensagemDoMedico:
    """The fields of a doctor's inbound message that Julia needs to answer it."""

    message_id: str
    cliente_id: str
    conversa_id: str
    telefone: str
    em: datetime


class Respostas:
    def __init__(self, parts: PartesDaResposta) -> None:
        self._parts = parts
        self.queries = load_queries(AnswerQueries, "sql/respostas.sql", parts.dialect)

    def is_open(self, at: datetime) -> bool:
        """Return whether ``at`` is inside the sending hours."""
        return self._parts.hours.next_open(at, self._parts.zone) == at

    async def recebida(self, transaction: Transaction, mensagem: MensagemRecebida, *, now: datetime) -> str | None:
        """Answer or acknowledge a doctor's message, and return the name of the action. Return None if a person has to
        read the message.
        """
        came = _came(mensagem)
        if came is None:
            return None
        fatos = await self.fatos(transaction, came.cliente_id, now)
        decided = decidir(mensagem.leitura, mensagem.texto, fatos)
        if isinstance(decided, Reservar):
            decided = await self.reservar(transaction, came, decided.vaga, fatos)
        elif not self.is_open(now):
            return await self._acknowledge(transaction, came, mensagem.leitura.classe, decided, fatos, now)
        if decided is None:
            return None
        if not self.is_open(now) or now - came.em > LIVE:
            await self._keep(transaction, came, mensagem.leitura.classe, now, resultado=ANSWERED)
        await self.aplicar(transaction, came, decided, now)
        await self._queue(transaction, Tipo.RESPOSTA, came, decided.texto, now, {ESCALATES: decided.escala})
        return "resposta"

    async def reservar(self, transaction: Transaction, came: MensagemDoMedico, vaga: Vaga, fatos: Fatos) -> Reacao:
        """Try to reserve the vacancy for the doctor. Return the answer that states the result.

        If the vacancy comes from a group, the person who posted it must first confirm the doctor. If Julia cannot ask
        that person, the vacancy is reserved immediately, and a team member asks that person instead.
        """
        motivo = f"aceite:{came.message_id}"
        if vaga["origem"] == FROM_GROUP:
            opened = await self._parts.handoffs.aceitar_em(
                transaction, str(vaga["id"]), came.cliente_id, came.conversa_id, por=JULIA, motivo=motivo
            )
            if isinstance(opened, Aberto):
                return a_confirmar(vaga, fatos, ate=opened.ate.astimezone(self._parts.zone))
        result = await self._parts.plantoes.reservar_em(
            transaction, str(vaga["id"]), came.cliente_id, por=JULIA, motivo=motivo
        )
        return reservada(result, vaga, fatos)

    async def fatos(self, transaction: Transaction, cliente_id: str, now: datetime) -> Fatos:
        """Read the facts on which the answer to a doctor depends."""
        doctor = await transaction.one(self.queries.doctor, cliente_id=cliente_id)
        last = await transaction.one(self.queries.last, cliente_id=cliente_id)
        offered = None if last is None else last["vaga_id"]
        today = now.astimezone(self._parts.zone).date()
        rows = await transaction.all(self.queries.vacancies, cliente_id=cliente_id, vaga_id=offered, hoje=today)
        can_take = [row for row in rows if self._can_take(row, now)]
        mine = [row for row in rows if row["cliente_id"] == cliente_id and row["status"] == "reservada"]
        return Fatos(
            nome=None if doctor is None else doctor["primeiro_nome"],
            oferta=next((row for row in rows if row["id"] == offered), None),
            oferta_aberta=any(row["id"] == offered for row in can_take),
            abertas=len(can_take),
            reserva=next((row for row in mine if turno_de(row, self._parts.zone).fim > now), None),
            a_confirmar=next((row for row in rows if row["a_confirmar"]), None),
        )

    async def aplicar(self, transaction: Transaction, came: MensagemDoMedico, reacao: Reacao, now: datetime) -> None:
        """Store the effects of Julia's decision about an inbound message: an entry in the pending list, and the
        conversation's stage.
        """
        if reacao.motivo is not None:
            await self.pedir_pessoa(transaction, came, reacao.motivo, now)
        if reacao.estagio is not None:
            await self._parts.estagios.mover(transaction, came.conversa_id, reacao.estagio, now=now)

    async def pedir_pessoa(
        self, transaction: Transaction, came: MensagemDoMedico, motivo: MotivoDaPendencia, now: datetime
    ) -> None:
        await self._parts.pendencias.abrir(
            transaction,
            motivo,
            message_id=came.message_id,
            telefone=came.telefone,
            endereco=came.telefone,
            cliente_id=came.cliente_id,
            conversa_id=came.conversa_id,
            em=came.em,
            now=now,
        )

    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Record that the answer to messages received outside the sending hours was sent, and escalate the conversation
        if it needs a person.
        """
        if mensagem.tipo == Tipo.RETOMADA.value:
            await transaction.run(self.queries.settle, retomada_id=mensagem.id, resultado=SENT, now=mensagem.em)
        await self._escalate(transaction, mensagem)

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Ask a team member to answer, because Julia's answer will not be sent."""
        await self._escalate(transaction, mensagem)
        if mensagem.tipo == Tipo.RECEBIMENTO.value:
            await transaction.run(self.queries.unacknowledge, id=mensagem.id)
            return
        if mensagem.tipo == Tipo.RETOMADA.value:
            result = f"bloqueado: {mensagem.desfecho.value}"
            await transaction.run(self.queries.settle, retomada_id=mensagem.id, resultado=result, now=mensagem.em)
        doctor = await transaction.one(self.queries.doctor, cliente_id=mensagem.cliente_id)
        if doctor is None or mensagem.desfecho in NEEDS_NO_PERSON:
            return
        await self._parts.pendencias.abrir(
            transaction,
            MotivoDaPendencia.RESPOSTA_NAO_SAIU,
            message_id=str(mensagem.metadata.get("inbound_message_id") or mensagem.id),
            telefone=doctor["telefone"],
            endereco=doctor["telefone"],
            cliente_id=mensagem.cliente_id,
            conversa_id=mensagem.conversa_id,
            em=mensagem.em,
            now=mensagem.em,
        )

    async def retomar(
        self,
        transaction: Transaction,
        came: MensagemDoMedico,
        nights: Sequence[Row],
        reacoes: Sequence[Reacao],
        now: datetime,
    ) -> None:
        """Queue one answer to all messages in a conversation that arrived outside the sending hours. ``came`` is the
        last of these messages.
        """
        for each in reacoes:
            await self.aplicar(transaction, came, each, now)
        local, first = now.astimezone(self._parts.zone), nights[0]["recebida_em"].astimezone(self._parts.zone)
        doctor = await transaction.one(self.queries.doctor, cliente_id=came.cliente_id)
        texto = textos.RETOMADA.format(
            nome=chamado(None if doctor is None else doctor["primeiro_nome"]),
            quando=textos.quando_veio(first.date(), local.date()),
            respostas="\n".join(dict.fromkeys(each.texto for each in reacoes)),
        )
        escalates = any(each.escala for each in reacoes)
        id = await self._queue(transaction, Tipo.RETOMADA, came, texto, now, {ESCALATES: escalates})
        until = nights[-1]["recebida_em"]
        await transaction.run(self.queries.resume, conversa_id=came.conversa_id, retomada_id=id, until=until)

    def _can_take(self, vaga: Row, now: datetime) -> bool:
        is_wanted = vaga["status"] in SEEKS and vaga["oferecida"] and not vaga["bloqueado"]
        return is_wanted and turno_de(vaga, self._parts.zone).inicio > now

    async def _acknowledge(
        self,
        transaction: Transaction,
        came: MensagemDoMedico,
        classe: Classe,
        reacao: Reacao | None,
        fatos: Fatos,
        now: datetime,
    ) -> str:
        """Record a message that arrived outside the sending hours, and acknowledge it unless the conversation was
        acknowledged recently.
        """
        escalates = reacao is not None and reacao.escala
        if reacao is not None and reacao.motivo in AT_ANY_HOUR:
            await self.aplicar(transaction, came, reacao, now)
        await self._keep(transaction, came, classe, now)
        since = now - ACKNOWLEDGE_EVERY
        if await transaction.one(self.queries.acknowledged, conversa_id=came.conversa_id, since=since) is not None:
            return "fora_horario"
        qual, zone = recebimento(classe, fatos), self._parts.zone
        opens = self._parts.hours.next_open(now, zone).astimezone(zone)
        texto = textos.RECEBIMENTO[qual].format(
            nome=chamado(fatos.nome), quando=textos.abertura(opens, now.astimezone(zone).date())
        )
        id = await self._queue(transaction, Tipo.RECEBIMENTO, came, texto, now, {ESCALATES: escalates})
        await transaction.run(self.queries.acknowledge, id=id, message_id=came.message_id, qual=qual, now=now)
        return "recebimento"

    async def _keep(
        self,
        transaction: Transaction,
        came: MensagemDoMedico,
        classe: Classe,
        now: datetime,
        resultado: str | None = None,
    ) -> None:
        """Record a message that arrived outside the sending hours. ``resultado`` is given if Julia answers the message
        now; without it, the morning job answers.
        """
        await transaction.run(
            self.queries.keep,
            id=self._parts.ids.new(),
            cliente_id=came.cliente_id,
            conversa_id=came.conversa_id,
            message_id=came.message_id,
            classe=classe.value,
            em=now if self.is_open(came.em) and not self.is_open(now) else came.em,
            processada_em=None if resultado is None else now,
            resultado=resultado,
            now=now,
        )

    async def _queue(
        self,
        transaction: Transaction,
        tipo: Tipo,
        came: MensagemDoMedico,
        texto: str,
        now: datetime,
        metadata: dict[str, Json],
    ) -> str:
        item = NovaMensagem(
            tipo=tipo,
            cliente_id=came.cliente_id,
            telefone=came.telefone,
            texto=texto,
            chave=f"{tipo.value}:{came.message_id}",
            conversa_id=came.conversa_id,
            responde_a=came.message_id,
            metadata=metadata,
        ).item(now=now)
        (id,) = await self._parts.fila.put([item], within=transaction)
        assert id is not None  # each inbound message is recorded once
        return id

    async def _escalate(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Hand a conversation to a person because the doctor asks for one. This method is called only after Julia's
        acknowledgement was sent or will certainly not be sent, because an earlier escalation would hold back the
        acknowledgement.
        """
        if mensagem.metadata.get(ESCALATES) and mensagem.conversa_id is not None:
            motivo = MotivoDaPendencia.PEDE_PESSOA.value
            await self._parts.estagios.escalar(
                transaction, mensagem.conversa_id, por=JULIA, motivo=motivo, now=mensagem.em
            )


def _came(mensagem: MensagemRecebida) -> MensagemDoMedico | None:
    """Return the message if Julia may answer it, otherwise None.

    Julia does not answer strangers, media without text, opt-outs, messages in a conversation that a person is handling,
    or messages that an earlier listener has handled.
    """
    if mensagem.feitos or mensagem.com_pessoa or not mensagem.texto.strip() or mensagem.tipo_cliente != "medico":
        return None
    if mensagem.cliente_id is None or mensagem.conversa_id is None or mensagem.telefone is None:
        return None
    return MensagemDoMedico(
        message_id=mensagem.message_id,
        cliente_id=mensagem.cliente_id,
        conversa_id=mensagem.conversa_id,
        telefone=mensagem.telefone,
        em=mensagem.em,
    )
