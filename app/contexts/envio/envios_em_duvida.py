"""Resolve messages in doubt. The answer of the gateway was lost, so these messages may or may not have been sent.

in doubt ─▶ an echo or the gateway's message store has it ──▶ enviada
         ─▶ after two minutes the instance is online and does
            not have it, but has the message sent before it ─▶ pendente: it may be sent again
         ─▶ no proof within half an hour ───────────────────▶ parked: an operator decides
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from app.contexts.comum.whatsapp import Conexao, Unavailable, WhatsApp
from app.contexts.envio.registro import FOUND_AGAIN, Achada, Duvida, Mensagem, Registro
from app.contexts.envio.testemunho import BEFORE, remembers
from app.contexts.mensagens.api import FILA_MENSAGENS, Desfecho, EnvioEstado, StatusDaMensagem
from batuta import Again, BatutaError, Idle
from batuta.errors import StoreUnavailable
from batuta.events import Events, ItemCrashed
from batuta.kernel import Clock, Late, Raised, Returned, call_with_deadline, name_of
from batuta.loops import Pace, Wakeup
from batuta.reasons import define
from batuta.sql import AuditLog, Database, Transaction, is_uuid

# The echo and the gateway's message store may lag behind the send.
PROOF_AFTER: Final = timedelta(minutes=2)
GIVE_UP_AFTER: Final = timedelta(minutes=30)
LOOK_EVERY: Final = timedelta(seconds=10)
# A search that takes longer is stopped and repeated at the next tick, because other doubts wait behind it.
ONE_WITHIN: Final = timedelta(minutes=1)
BATCH: Final = 50
FORGETS = define(
    "gateway_esquece",
    "the gateway has neither this message nor the one sent before it: it deletes messages and may have deleted this one",
)
SAID_BY_PERSON = define("dito_por_pessoa", "decided by an operator")
CRASHED = define("busca_falhou", "{error} during the search")
STOPPED = define("interrompida", "stopped")
NEVER_ARRIVED = define("nunca_chegou", "the message never reached the gateway")
ECHO_PENDING = define("eco_pendente", "the confirmation of the send may still arrive")
CHIP_GONE = define("chip_sumiu", "the chip of the message no longer exists")
GATEWAY_AWAY = define("gateway_fora", "the gateway does not answer: {why}")
LINE_DOWN = define(
    "linha_fora", "the gateway does not have the message, but the instance is offline and the answer may be incomplete"
)


@dataclass(frozen=True, slots=True)
class Ausente:
    """Proof that the message was not sent."""


@dataclass(frozen=True, slots=True)
class Incerta:
    """No proof yet whether the message was sent."""

    why: str


class NotInDoubt(BatutaError):
    sentence = "message {id} is not parked: an operator decides only about parked messages; `batuta duvidas` lists them"


class Reconciliador:
    """Loop that resolves messages in doubt.

    Several processes may run it at the same time: the first to settle a doubt wins, and the others change nothing.
    """

    def __init__(
        self,
        database: Database,
        line: WhatsApp,
        registro: Registro,
        audit: AuditLog,
        clock: Clock,
        events: Events,
        on_return: Callable[[], None] = lambda: None,
    ) -> None:
        """Build the loop. It calls ``on_return`` when a message may be sent again."""
        self.name = "reconciliador"
        self.wakeup = Wakeup()
        self._database = database
        self._line = line
        self._registro = registro
        self._audit = audit
        self._clock = clock
        self._events = events
        self._on_return = on_return

    async def tick(self) -> Pace:
        settled = await self.look()
        return Again() if settled == BATCH else Idle(self._clock.now() + LOOK_EVERY)

    async def look(self) -> int:
        """Examine one batch of messages in doubt, and return how many of them were resolved."""
        doubts = await self._registro.in_doubt(self._database, limit=BATCH)
        return sum([await self._reconcile_one(doubt) for doubt in doubts])

    async def decide(self, id: str, *, sent: bool, by: str) -> None:
        """Settle a parked message as the operator ``by`` decides. The decision is written to the audit log."""
        found = await self._registro.message(self._database, id) if is_uuid(id) else None
        if found is None or found[1] != EnvioEstado.PARKED:
            raise NotInDoubt(id=id)
        mensagem, now = found[0], self._clock.now()
        async with self._database.transaction() as transaction:
            await self._audit.note(
                transaction,
                actor=by,
                action="mensagem.decidir",
                subject=id,
                before=EnvioEstado.PARKED,
                after="enviada" if sent else "nao-enviada",
                now=now,
            )
            if sent:
                done = await self._registro.record_delivery(
                    transaction,
                    mensagem,
                    f"decidida:{id}",
                    mensagem.telefone,
                    em=now,
                    now=now,
                    reason=SAID_BY_PERSON(),
                )
            else:
                done = await self._registro.absent(transaction, mensagem, now=now)
            if not done:  # another operator or the loop decided first
                raise NotInDoubt(id=id)
        if not sent:
            self._on_return()

    async def _reconcile_one(self, doubt: Duvida) -> bool:
        """Resolve one doubt. An error or a timeout does not stop the rest of the batch."""
        deadline = self._clock.now() + ONE_WITHIN
        match await call_with_deadline(partial(self._settle, doubt), deadline, self._clock, "a doubt"):
            case Returned(value=ended):
                return bool(ended)
            case Raised(error=StoreUnavailable() as away):
                raise away  # every other doubt would fail too
            case Raised(error=error):
                self._events.emit(ItemCrashed(FILA_MENSAGENS.name, doubt.mensagem.id, error))
                why = CRASHED(error=name_of(error))
            case Late(error=why):
                pass
        async with self._database.transaction() as transaction:
            return await self._postpone_or_park(transaction, doubt, why, self._clock.now())

    async def _settle(self, doubt: Duvida) -> bool:
        found = await self._look_up(doubt)
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            match found:
                case Achada(message_id=message_id, jid=jid, em=em):
                    return await self._registro.record_delivery(
                        transaction,
                        doubt.mensagem,
                        message_id,
                        jid,
                        em=em,
                        now=now,
                        reason=FOUND_AGAIN(),
                        is_proof=True,
                    )
                case Ausente():
                    return await self._retry_or_end(transaction, doubt, now)
                case Incerta(why=why):
                    return await self._postpone_or_park(transaction, doubt, why, now)

    async def _postpone_or_park(self, transaction: Transaction, doubt: Duvida, why: str, now: datetime) -> bool:
        if now - doubt.since >= GIVE_UP_AFTER:
            return await self._registro.park(transaction, doubt.mensagem, why, now=now)
        await self._registro.record_look(transaction, doubt.mensagem, now=now)
        return False

    async def _retry_or_end(self, transaction: Transaction, doubt: Duvida, now: datetime) -> bool:
        if doubt.cancelled:
            what = self._end(
                transaction, doubt.mensagem, StatusDaMensagem.CANCELADA, Desfecho.FAILED_EXPIRED, STOPPED(), now
            )
        elif doubt.last_try:
            what = self._end(
                transaction, doubt.mensagem, StatusDaMensagem.ERRO, Desfecho.FAILED_TIMEOUT, NEVER_ARRIVED(), now
            )
        else:
            what = self._registro.absent(transaction, doubt.mensagem, now=now)
        if not await what:
            return False
        self._on_return()
        return True

    async def _end(
        self,
        transaction: Transaction,
        mensagem: Mensagem,
        status: StatusDaMensagem,
        desfecho: Desfecho,
        why: str,
        now: datetime,
    ) -> bool:
        return await self._registro.record_end(transaction, mensagem, status, desfecho, why, now=now)

    async def _look_up(self, doubt: Duvida) -> Achada | Ausente | Incerta:
        since = doubt.since - BEFORE
        if echo := await self._registro.echo(self._database, doubt.mensagem, doubt.hash, doubt.instance, since=since):
            return echo
        if self._clock.now() - doubt.since < PROOF_AFTER:
            return Incerta(ECHO_PENDING())
        if doubt.instance is None:
            return Incerta(CHIP_GONE())
        return await self._ask_gateway(doubt, doubt.instance, since)

    async def _ask_gateway(self, doubt: Duvida, instance: str, since: datetime) -> Achada | Ausente | Incerta:
        sent = await self._line.list_sent(instance, doubt.mensagem.telefone, since=since)
        if isinstance(sent, Unavailable):
            return Incerta(GATEWAY_AWAY(why=sent.why))
        for each in sent:
            if each.conteudo_hash == doubt.hash and not await self._registro.is_taken(
                self._database, doubt.mensagem, each.id
            ):
                return Achada(each.id, each.jid, each.em)
        connection = await self._line.connection(instance)
        if connection is not Conexao.OPEN:
            return Incerta(LINE_DOWN())
        is_proof = await remembers(self._database, self._registro, self._line, instance, doubt.since)
        return Ausente() if is_proof else Incerta(FORGETS())
