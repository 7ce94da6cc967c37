"""SQL statements for the send protocol. Every statement runs in the caller's transaction."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from app.contexts.campanhas.api import Alcance
from app.contexts.comum.telefone import chave, other_form
from app.contexts.conversas.api import Resumos
from app.contexts.conversas.service import Conversas, Saida
from app.contexts.mensagens.api import (
    BY_PERSON,
    Desfecho,
    Medico,
    MensagemEncerrada,
    PedidoDeEnvio,
    StatusDaMensagem,
    gatilho_de,
)
from app.contexts.mensagens.service import Mensagens
from app.contexts.operacao.service import Eventos
from batuta.guards import Rates
from batuta.kernel import Ids, dataclass, mask_text
from batuta.queues import LONGEST_ERROR, Lease
from batuta.reasons import define, encode
from batuta.sql import Dialect, Query, Reading, Row, Transaction, load_queries

FOUND_AGAIN = define("achada", "the message was found later")

WEEK = timedelta(days=7)
# On Telegram, a message waits for an earlier message in the same chat if the earlier one is due within this time.
IN_ORDER = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class SendQueries:
    facts: Query
    intend: Query
    park_unproven: Query
    was_decided: Query
    take_back: Query
    doubt: Query
    left: Query
    ended: Query
    add_dead_letter: Query
    dead: Query
    name_outcome: Query
    remove_dead_letters: Query
    in_doubt: Query
    doubts: Query
    looked: Query
    park: Query
    absent: Query
    witness: Query
    claimed: Query
    message: Query
    expired: Query
    expire: Query
    count_on_chip: Query
    count_on_doctor: Query
    count_on_conversation: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Mensagem:
    """A queued message. ``fence`` is the number of its claim: a write with the number of an older claim changes
    nothing.
    """

    id: str
    fence: int
    cliente_id: str
    conversa_id: str | None
    campanha_id: int | None
    telefone: str
    texto: str
    tipo: str
    metadata: Mapping[str, Any]
    chip_id: str | None = None
    conta_id: str | None = None  # the account of Telegram; None on WhatsApp
    reserva: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fatos:
    mensagem: Mensagem
    pedido: PedidoDeEnvio
    medico: Medico
    janela: str | None  # the type of campaign or trigger whose sending window applies to the message
    gatilho: str | None  # name of the switch for the trigger that queued the message
    last_try: bool
    tried_by: str | None  # the gateway instance that may have sent the message before, or None if no attempt was made


@dataclass(frozen=True, slots=True)
class Achada:
    """Proof that a message was sent: the message's id at the gateway."""

    message_id: str
    jid: str
    em: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvioEmDuvida:
    """A message that may or may not have been sent."""

    mensagem: Mensagem
    since: datetime
    hash: str
    instance: str | None
    looks: int
    last_try: bool
    cancelled: bool


class Testemunha(NamedTuple):
    """A message that was certainly sent. If the gateway still stores this message, it has deleted no later message; so
    a later message that is missing was never sent.
    """

    telefone: str
    message_id: str
    em: datetime


class Registro:
    def __init__(
        self,
        dialect: Dialect,
        ids: Ids,
        mensagens: Mensagens,
        conversas: Conversas,
        eventos: Eventos,
        rates: Rates,
        resumos: Resumos,
    ) -> None:
        """Build the statements. ``resumos`` computes the digest of a phone number, by which an opt-out is found even if
        the phone number itself is not stored.
        """
        self._resumos = resumos
        self._queries = load_queries(SendQueries, "sql/envio.sql", dialect)
        self._alcance = Alcance(dialect)
        self._ids = ids
        self._mensagens = mensagens
        self._conversas = conversas
        self._eventos = eventos
        self._rates = rates

    async def alone(self, transaction: Transaction, cliente_id: str) -> None:
        """Lock one doctor until the transaction ends, so that decisions about two messages to the same doctor cannot
        overlap.
        """
        await self._mensagens.travar(transaction, cliente_id)

    async def facts(self, reading: Reading, lease: Lease, hash: str, *, now: datetime) -> Fatos | None:
        """Return the facts that decide whether a message may be sent, or None if the lease on the message is lost."""
        inbound, telefone = lease.row["metadata"].get("inbound_message_id"), lease.row["telefone_destino"]
        row = await reading.one(
            self._queries.facts,
            id=lease.id,
            fence=lease.fence,
            hash=hash,
            inbound=inbound if isinstance(inbound, str) else None,
            other_form=other_form(telefone),
            chave=chave(telefone),
            digest=await self._resumos.read(reading, telefone),
            week_ago=now - WEEK,
            soon=now + IN_ORDER,
            now=now,
        )
        return None if row is None else _facts(lease, row)

    async def intend(
        self, transaction: Transaction, lease: Lease, mensagem: Mensagem, hash: str, *, now: datetime
    ) -> bool:
        """Store the intent to send a message. Returns False if the lease is lost, or if an operator requested that the
        message be cancelled.
        """
        return bool(
            await transaction.run(
                self._queries.intend,
                id=lease.id,
                fence=lease.fence,
                hash=hash,
                reserva=mensagem.reserva,
                chip_id=mensagem.chip_id,
                conta_id=mensagem.conta_id,
                conversa_id=mensagem.conversa_id,
                now=now,
            )
        )

    async def take_back(self, transaction: Transaction, lease: Lease, mensagem: Mensagem, *, now: datetime) -> None:
        if mensagem.reserva is not None:
            await self._rates.release(mensagem.reserva, within=transaction)
        await transaction.run(self._queries.take_back, id=lease.id, fence=lease.fence, now=now)

    async def doubt(self, transaction: Transaction, lease: Lease, why: str, *, now: datetime) -> None:
        await transaction.run(
            self._queries.doubt,
            id=lease.id,
            fence=lease.fence,
            reason=encode(mask_text(why, LONGEST_ERROR), LONGEST_ERROR),
            now=now,
        )

    async def record_delivery(
        self,
        transaction: Transaction,
        mensagem: Mensagem,
        achada: Achada,
        *,
        now: datetime,
        bypass: str | None = None,
        reason: str | None = None,
        is_proof: bool = False,
    ) -> bool:
        """Record a sent message and its consequences once. Returns False if the message is already recorded.

        ``is_proof`` means that the message was found at the gateway. The message is then recorded even if a worker
        holds its lease and has not yet stored an intent.
        """
        outcome = Desfecho.SENT if bypass is None else Desfecho.BYPASS
        written = await transaction.run(
            self._queries.left,
            id=mensagem.id,
            fence=mensagem.fence,
            message_id=achada.message_id,
            em=achada.em,
            outcome=outcome.value,
            reason=encode(bypass or reason, LONGEST_ERROR),
            is_proof=is_proof,
            now=now,
        )
        if not written:
            return False
        if mensagem.reserva is not None:
            await self._rates.confirm(mensagem.reserva, within=transaction)
        await self._conversas.saiu(transaction, _saida(mensagem, achada))
        await self._count(transaction, mensagem, achada.message_id, achada.em, now)
        if bypass is not None:
            await self._record_outcome(transaction, mensagem, "envio_com_bypass", outcome, now)
        await self._mensagens.ouvintes.enviada(transaction, _describe_end(mensagem, outcome, achada.em))
        return True

    async def record_end(
        self,
        transaction: Transaction,
        mensagem: Mensagem,
        status: StatusDaMensagem,
        desfecho: Desfecho,
        reason: str,
        *,
        now: datetime,
    ) -> bool:
        """Record that a message will never be sent. A failed message becomes a dead letter.

        Returns False if another process has already settled the message.
        """
        why = encode(mask_text(reason, LONGEST_ERROR), LONGEST_ERROR)
        key = {"id": mensagem.id, "fence": mensagem.fence}
        if not await transaction.run(
            self._queries.ended, **key, status=status.value, outcome=desfecho.value, reason=why, now=now
        ):
            return False
        if status is StatusDaMensagem.ERRO:
            await self._store_dead_letter(transaction, mensagem.id, why or "", desfecho.value, now)
        if mensagem.reserva is not None:
            await self._rates.release(mensagem.reserva, within=transaction)
        await self._record_outcome(transaction, mensagem, "envio_bloqueado", desfecho, now)
        await self._mensagens.ouvintes.encerrada(transaction, _describe_end(mensagem, desfecho, now))
        return True

    async def in_doubt(self, reading: Reading, fila: str, *, limit: int) -> list[EnvioEmDuvida]:
        return [_doubt(row) for row in await reading.all(self._queries.in_doubt, fila=fila, limit=limit)]

    async def doubts(self, reading: Reading, *, limit: int) -> list[Row]:
        """List, for operators, the messages that may or may not have been sent. Phone numbers and texts are omitted."""
        return await reading.all(self._queries.doubts, limit=limit)

    async def record_look(self, transaction: Transaction, mensagem: Mensagem, *, now: datetime) -> None:
        await transaction.run(self._queries.looked, id=mensagem.id, fence=mensagem.fence, now=now)

    async def park(self, transaction: Transaction, mensagem: Mensagem, reason: str, *, now: datetime) -> bool:
        key = {"id": mensagem.id, "fence": mensagem.fence}
        if not await transaction.run(
            self._queries.park, **key, reason=encode(mask_text(reason, LONGEST_ERROR), LONGEST_ERROR), now=now
        ):
            return False
        await self._announce_parking(transaction, mensagem, now)
        return True

    async def _announce_parking(self, transaction: Transaction, mensagem: Mensagem, now: datetime) -> None:
        await self._eventos.record(
            transaction,
            "envio_para_decisao",
            now=now,
            dedupe_key=None,
            cliente_id=mensagem.cliente_id,
            props={"fila_mensagem_id": mensagem.id},
        )

    async def park_unproven(
        self, transaction: Transaction, lease: Lease, mensagem: Mensagem, hash: str, reason: str, *, now: datetime
    ) -> None:
        """Park a message for an operator's decision, because nothing proves whether the message was sent before the
        restore.
        """
        parked = await transaction.run(
            self._queries.park_unproven,
            id=lease.id,
            fence=lease.fence,
            hash=hash,
            reason=encode(reason, LONGEST_ERROR),
            now=now,
        )
        if parked:
            await self._announce_parking(transaction, mensagem, now)

    async def was_decided(self, reading: Reading, id: str, *, since: datetime) -> bool:
        return await reading.one(self._queries.was_decided, id=id, since=since) is not None

    async def absent(self, transaction: Transaction, mensagem: Mensagem, *, now: datetime) -> bool:
        if not await transaction.run(self._queries.absent, id=mensagem.id, fence=mensagem.fence, now=now):
            return False
        if mensagem.reserva is not None:
            await self._rates.release(mensagem.reserva, within=transaction)
        return True

    async def echo(
        self, reading: Reading, mensagem: Mensagem, hash: str, instance: str | None, *, since: datetime
    ) -> Achada | None:
        """Return the gateway's report that a chip sent a message's text to its recipient, which proves the send.
        Reports that belong to another queued message are ignored.
        """
        for echo in await self._conversas.ecos(reading, mensagem.telefone, hash, since=since):
            if echo.fila_id is None and echo.instance == instance:
                return Achada(echo.provider_message_id, echo.jid or mensagem.telefone, echo.em)
        return None

    async def witness(self, reading: Reading, instance: str, *, before: datetime, since: datetime) -> Testemunha | None:
        """Return the last message that a chip certainly sent in the given period.

        If even that message is missing at the gateway, the gateway deletes messages, so the absence of another message
        proves nothing.
        """
        row = await reading.one(self._queries.witness, instance=instance, before=before, since=since)
        return (
            None if row is None else Testemunha(row["telefone_destino"], row["provider_message_id"], row["enviada_em"])
        )

    async def is_taken(self, reading: Reading, mensagem: Mensagem, message_id: str) -> bool:
        """Return whether a message id of the gateway is already recorded for another queued message."""
        return await reading.one(self._queries.claimed, id=mensagem.id, message_id=message_id) is not None

    async def message(self, reading: Reading, id: str) -> tuple[Mensagem, str | None] | None:
        """Return a message with its ``envio_estado`` (the state of its send), or None if the message does not exist."""
        row = await reading.one(self._queries.message, id=id)
        return None if row is None else (_message(row), row["envio_estado"])

    async def waiting_long(self, reading: Reading, *, before: datetime, now: datetime, limit: int) -> list[Row]:
        return await reading.all(self._queries.expired, before=before, now=now, limit=limit)

    async def expire(self, transaction: Transaction, id: str, reason: str, *, now: datetime) -> bool:
        expired = await transaction.all(self._queries.expire, id=id, reason=encode(reason, LONGEST_ERROR), now=now)
        await self._mensagens.ouvintes.encerradas(transaction, expired, Desfecho.FAILED_EXPIRED, now=now)
        return bool(expired)

    async def store_dead_letters(self, transaction: Transaction, *, now: datetime, limit: int) -> int:
        """Store the missing dead letters of messages that failed because their workers died. If a message was retried,
        mark its dead letter as done.
        """
        await transaction.run(self._queries.remove_dead_letters, now=now)
        dead = await transaction.all(self._queries.dead, limit=limit)
        for row in dead:
            outcome = str(row["outcome"])
            await transaction.run(self._queries.name_outcome, id=row["id"], outcome=outcome, now=now)
            await self._store_dead_letter(transaction, row["id"], row["erro"], outcome, now)
            await self._mensagens.ouvintes.encerradas(transaction, [row], Desfecho(outcome), now=now)
        return len(dead)

    async def _store_dead_letter(
        self, transaction: Transaction, id: str, reason: str, outcome: str, now: datetime
    ) -> None:
        await transaction.run(
            self._queries.add_dead_letter, new_id=self._ids.new(), id=id, reason=reason, outcome=outcome, now=now
        )

    async def _count(
        self, transaction: Transaction, mensagem: Mensagem, message_id: str, em: datetime, now: datetime
    ) -> None:
        doctor = {"cliente_id": mensagem.cliente_id, "campanha_id": mensagem.campanha_id}
        await transaction.run(self._queries.count_on_doctor, **doctor, em=em, tipo=mensagem.tipo, now=now)
        if mensagem.conversa_id is not None:
            await transaction.run(
                self._queries.count_on_conversation,
                conversa_id=mensagem.conversa_id,
                campanha_id=mensagem.campanha_id,
                em=em,
                tipo=mensagem.tipo,
                now=now,
            )
        if mensagem.campanha_id is not None:
            await self._alcance.enviada(
                transaction, mensagem.campanha_id, mensagem.cliente_id, message_id, em=em, now=now
            )
        if mensagem.chip_id is not None:
            await transaction.run(self._queries.count_on_chip, chip_id=mensagem.chip_id, now=now)

    async def _record_outcome(
        self, transaction: Transaction, mensagem: Mensagem, event: str, desfecho: Desfecho, now: datetime
    ) -> None:
        await self._eventos.record(
            transaction,
            event,
            now=now,
            dedupe_key=f"{event}:{mensagem.id}",
            cliente_id=mensagem.cliente_id,
            conversation_id=mensagem.conversa_id,
            props={"desfecho": desfecho.value, "tipo": mensagem.tipo, "fila_mensagem_id": mensagem.id},
        )


def _describe_end(mensagem: Mensagem, desfecho: Desfecho, em: datetime) -> MensagemEncerrada:
    return MensagemEncerrada(
        id=mensagem.id,
        tipo=mensagem.tipo,
        cliente_id=mensagem.cliente_id,
        conversa_id=mensagem.conversa_id,
        metadata=mensagem.metadata,
        desfecho=desfecho,
        em=em,
    )


def _saida(mensagem: Mensagem, achada: Achada) -> Saida:
    return Saida(
        message_id=achada.message_id,
        jid=achada.jid,
        telefone=mensagem.telefone,
        cliente_id=mensagem.cliente_id,
        conversation_id=mensagem.conversa_id,
        chip_id=mensagem.chip_id,
        campaign_id=mensagem.campanha_id,
        texto=mensagem.texto,
        autor="humano" if mensagem.tipo == BY_PERSON else "julia",
        em=achada.em,
    )


def _facts(lease: Lease, row: Row) -> Fatos:
    metadata = row["metadata"] or {}
    bypass = metadata.get("bypass_motivo")
    gatilho = gatilho_de(row["tipo"], metadata, is_campaign=row["campanha_status"] is not None)
    return Fatos(
        mensagem=Mensagem(
            id=lease.id,
            fence=lease.fence,
            cliente_id=row["cliente_id"],
            conversa_id=row["conversa_id"],
            campanha_id=row["campanha_id"],
            telefone=row["telefone_destino"],
            texto=row["conteudo"],
            tipo=row["tipo"],
            metadata=metadata,
            chip_id=row["chip_id"],
            conta_id=row["conta_id"],
        ),
        pedido=PedidoDeEnvio(
            tipo=row["tipo"],
            telefone=row["telefone_destino"],
            texto=row["conteudo"],
            created_at=row["created_at"],
            due_at=row["devida_em"],
            cancel_requested=row["cancelamento_pedido"] or row["deleted_at"] is not None,
            is_obsolete=row["sem_assunto"],
            vacancy_taken=row["vaga_ocupada"],
            followup_superseded=row["followup_superado"],
            behind_another=row["atras_de_outra"],
            campaign_status=row["campanha_status"],
            same_words_at=row["mesmas_palavras_em"],
            proves_inbound=row["prova_entrada"],
            after_hours_at=row["fora_horario_em"],
            bypass=bypass if isinstance(bypass, str) and bypass.strip() else None,
        ),
        medico=Medico(
            opted_out=row["opt_out"]
            or row["opted_out"]
            or row["externo_parou"]
            or row["permission_state"] == "opted_out",
            opt_out_in_doubt=row["optout_em_duvida"],
            is_cooling_off=row["permission_state"] == "cooling_off",
            cooling_off_until=row["cooling_off_until"],
            # The pause after the last follow-up holds back messages of automatic triggers too. People may still write.
            next_allowed_at=_later(row["next_allowed_at"], None if gatilho is None else row["pausado_ate"]),
            last_inbound_at=row["last_inbound_at"],
            contacts_7d=row["contatos_7d"],
            other_campaign_at=row["outra_campanha_em"],
            with_person=row["com_pessoa"],
        ),
        janela=row["tipo_campanha"] or (None if gatilho is None else row["tipo"]),
        gatilho=gatilho,
        tried_by=row["tentada_por"],
        last_try=row["tentativas"] >= row["max_tentativas"],
    )


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    known = [each for each in (first, second) if each is not None]
    return max(known, default=None)


def _message(row: Row) -> Mensagem:
    return Mensagem(
        id=row["id"],
        fence=row["fence"],
        cliente_id=row["cliente_id"],
        conversa_id=row["conversa_id"],
        campanha_id=row["campanha_id"],
        telefone=row["telefone_destino"],
        texto=row["conteudo"],
        tipo=row["tipo"],
        metadata=row["metadata"] or {},
        chip_id=row["chip_id"],
        conta_id=row["conta_id"],
        reserva=row["envio_reserva"],
    )


def _doubt(row: Row) -> EnvioEmDuvida:
    return EnvioEmDuvida(
        mensagem=_message(row),
        since=row["envio_desde"],
        hash=row["envio_hash"],
        instance=row["instance_name"],
        looks=row["envio_buscas"],
        last_try=row["tentativas"] >= row["max_tentativas"],
        cancelled=row["cancelamento_pedido"],
    )
