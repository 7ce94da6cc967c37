"""Resolve messages in doubt: the channel's answer was lost, so it is unknown whether the message was sent.

in doubt ─▶ an echo or the channel's search finds it ──▶ enviada
         ─▶ the channel proves that it was not sent ────▶ pendente: it may be sent again
         ─▶ no proof within half an hour ───────────────▶ parked: an operator decides
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from app.contexts.envio.canal import BEFORE, Ausente, Canal, Incerta
from app.contexts.envio.registro import FOUND_AGAIN, Achada, EnvioEmDuvida, Mensagem, Registro
from app.contexts.mensagens.api import Desfecho, EnvioEstado, StatusDaMensagem
from batuta import Again, BatutaError, Idle
from batuta.errors import StoreUnavailable
from batuta.events import Events, ItemCrashed
from batuta.kernel import Clock, Late, Raised, Returned, call_with_deadline, name_of
from batuta.loops import Pace, Wakeup
from batuta.reasons import define
from batuta.sql import AuditLog, Database, Transaction, is_uuid

GIVE_UP_AFTER: Final = timedelta(minutes=30)
LOOK_EVERY: Final = timedelta(seconds=10)
# Time limit of a search. A search that takes longer is stopped and repeated at the next tick, so that other messages in
# doubt do not wait.
ONE_WITHIN: Final = timedelta(minutes=1)
BATCH: Final = 50
SAID_BY_PERSON = define("dito_por_pessoa", "decided by an operator")
CRASHED = define("busca_falhou", "{error} during the search")
STOPPED = define("interrompida", "interrupted")
NEVER_ARRIVED = define("nunca_chegou", "the message never reached the gateway")


class NotInDoubt(BatutaError):
    sentence = "message {id} is not parked: an operator decides only about parked messages; `batuta duvidas` lists them"


class Reconciliador:
    """Loop that resolves messages in doubt (messages that may or may not have been sent).

    Several processes may run this loop at the same time. The first process to settle a message wins; the others then
    change nothing.
    """

    def __init__(
        self,
        database: Database,
        canal: Canal,
        fila: str,
        registro: Registro,
        audit: AuditLog,
        clock: Clock,
        events: Events,
        on_return: Callable[[], None] = lambda: None,
        name: str = "reconciliador",
    ) -> None:
        """Build the loop that resolves messages in doubt (messages that may or may not have been sent). ``on_return`` is
        called when a message returns to the queue.
        """
        self.name = name
        self.wakeup = Wakeup()
        self._database = database
        self._canal = canal
        self._fila = fila
        self._registro = registro
        self._audit = audit
        self._clock = clock
        self._events = events
        self._on_return = on_return

    async def tick(self) -> Pace:
        settled = await self.look()
        return Again() if settled == BATCH else Idle(self._clock.now() + LOOK_EVERY)

    async def look(self) -> int:
        """Examine one batch of messages that may or may not have been sent, and return how many were resolved."""
        by_sender: dict[str | None, list[EnvioEmDuvida]] = {}
        for doubt in await self._registro.in_doubt(self._database, self._fila, limit=BATCH):
            by_sender.setdefault(doubt.instance, []).append(doubt)
        # The searches of different senders run concurrently, so that a chip or account that does not answer delays only
        # its own messages.
        searches = await asyncio.gather(*map(self._reconcile_all, by_sender.values()), return_exceptions=True)
        if failed := [each for each in searches if isinstance(each, BaseException)]:
            raise failed[0]
        return sum(each for each in searches if isinstance(each, int))

    async def _reconcile_all(self, doubts: Sequence[EnvioEmDuvida]) -> int:
        return sum([await self._reconcile_one(doubt) for doubt in doubts])

    async def decide(self, id: str, *, sent: bool, by: str) -> None:
        """Settle a parked message as the operator ``by`` decided, and record the decision in the audit log."""
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
                    Achada(f"decidida:{id}", mensagem.telefone, now),
                    now=now,
                    reason=SAID_BY_PERSON(),
                )
            else:
                done = await self._registro.absent(transaction, mensagem, now=now)
            if not done:  # another operator or the loop decided first
                raise NotInDoubt(id=id)
        if not sent:
            self._on_return()

    async def _reconcile_one(self, doubt: EnvioEmDuvida) -> bool:
        """Resolve one message that may or may not have been sent. An error or a timeout does not affect the batch's
        other messages.
        """
        deadline = self._clock.now() + ONE_WITHIN
        match await call_with_deadline(partial(self._settle, doubt), deadline, self._clock, "a doubt"):
            case Returned(value=ended):
                return bool(ended)
            case Raised(error=StoreUnavailable() as away):
                raise away  # the database is unreachable, so every other doubt would fail too
            case Raised(error=error):
                self._events.emit(ItemCrashed(self._fila, doubt.mensagem.id, error))
                why = CRASHED(error=name_of(error))
            case Late(error=why):
                pass
        async with self._database.transaction() as transaction:
            return await self._postpone_or_park(transaction, doubt, why, self._clock.now())

    async def _settle(self, doubt: EnvioEmDuvida) -> bool:
        found = await self._look_up(doubt)
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            match found:
                case Achada() as achada:
                    return await self._registro.record_delivery(
                        transaction, doubt.mensagem, achada, now=now, reason=FOUND_AGAIN(), is_proof=True
                    )
                case Ausente():
                    return await self._retry_or_end(transaction, doubt, now)
                case Incerta(why=why):
                    return await self._postpone_or_park(transaction, doubt, why, now)

    async def _postpone_or_park(self, transaction: Transaction, doubt: EnvioEmDuvida, why: str, now: datetime) -> bool:
        if now - doubt.since >= GIVE_UP_AFTER:
            return await self._registro.park(transaction, doubt.mensagem, why, now=now)
        await self._registro.record_look(transaction, doubt.mensagem, now=now)
        return False

    async def _retry_or_end(self, transaction: Transaction, doubt: EnvioEmDuvida, now: datetime) -> bool:
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

    async def _look_up(self, doubt: EnvioEmDuvida) -> Achada | Ausente | Incerta:
        since = doubt.since - BEFORE
        if echo := await self._registro.echo(self._database, doubt.mensagem, doubt.hash, doubt.instance, since=since):
            return echo
        return await self._canal.look_up(doubt)
