"""What became of messages of which nobody knows whether they left.

in doubt ─▶ an echo, or the gateway's own store, has it ──▶ enviada
         ─▶ two minutes later the line lives and has not,
            but what left before it is still there ──────▶ pendente: it may be tried again
         ─▶ nobody can tell for half an hour ────────────▶ parked: a person decides
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

# The gateway's echo and its own store may lag behind.
PROOF_AFTER: Final = timedelta(minutes=2)
GIVE_UP_AFTER: Final = timedelta(minutes=30)
LOOK_EVERY: Final = timedelta(seconds=10)
# One that takes longer is looked for again the next time: others wait behind it.
ONE_WITHIN: Final = timedelta(minutes=1)
BATCH: Final = 50
FORGETS = define(
    "gateway_esquece", "the gateway has neither it nor what left before it: it forgets, and may have forgotten this"
)
SAID_BY_PERSON = define("dito_por_pessoa", "a person says so")
CRASHED = define("busca_falhou", "{error} while it was looked for")
STOPPED = define("interrompida", "stopped")
NEVER_ARRIVED = define("nunca_chegou", "never arrived")
ECHO_PENDING = define("eco_pendente", "its echo may still come")
CHIP_GONE = define("chip_sumiu", "its chip is gone")
GATEWAY_AWAY = define("gateway_fora", "the gateway cannot be asked: {why}")
LINE_DOWN = define("linha_fora", "the gateway has not got it, but its line is down: it may not know")


@dataclass(frozen=True, slots=True)
class Ausente:
    """It is proved that it did not leave."""


@dataclass(frozen=True, slots=True)
class Incerta:
    """Nobody can tell yet."""

    why: str


class NotInDoubt(BatutaError):
    sentence = "message {id} is not parked: only what nobody could find out is decided by a person; `batuta duvidas` lists them"


class Reconciliador:
    """A loop. Several may run at once: what one has settled is in doubt no more, and the others change nothing."""

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
        """``on_return`` is told when something may be sent again."""
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
        """How many doubts were ended."""
        doubts = await self._registro.in_doubt(self._database, limit=BATCH)
        return sum([await self._reconcile_one(doubt) for doubt in doubts])

    async def decide(self, id: str, *, sent: bool, by: str) -> None:
        """A person says what became of a parked message, and is named."""
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
            if not done:  # somebody else decided a moment ago
                raise NotInDoubt(id=id)
        if not sent:
            self._on_return()

    async def _reconcile_one(self, doubt: Duvida) -> bool:
        """Whatever is met with one, the others are looked for."""
        deadline = self._clock.now() + ONE_WITHIN
        match await call_with_deadline(partial(self._settle, doubt), deadline, self._clock, "a doubt"):
            case Returned(value=ended):
                return bool(ended)
            case Raised(error=StoreUnavailable() as away):
                raise away  # and so it would be with every other
            case Raised(error=error):
                self._events.emit(ItemCrashed(FILA_MENSAGENS.name, doubt.mensagem.id, error))
                why = CRASHED(error=name_of(error))
            case Late(error=why):
                pass
        async with self._database.transaction() as transaction:
            return await self._not_found_out(transaction, doubt, why, self._clock.now())

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
                    return await self._may_again(transaction, doubt, now)
                case Incerta(why=why):
                    return await self._not_found_out(transaction, doubt, why, now)

    async def _not_found_out(self, transaction: Transaction, doubt: Duvida, why: str, now: datetime) -> bool:
        if now - doubt.since >= GIVE_UP_AFTER:
            return await self._registro.park(transaction, doubt.mensagem, why, now=now)
        await self._registro.record_look(transaction, doubt.mensagem, now=now)
        return False

    async def _may_again(self, transaction: Transaction, doubt: Duvida, now: datetime) -> bool:
        if doubt.cancelled:
            what = self._ends(
                transaction, doubt.mensagem, StatusDaMensagem.CANCELADA, Desfecho.FAILED_EXPIRED, STOPPED(), now
            )
        elif doubt.last_try:
            what = self._ends(
                transaction, doubt.mensagem, StatusDaMensagem.ERRO, Desfecho.FAILED_TIMEOUT, NEVER_ARRIVED(), now
            )
        else:
            what = self._registro.absent(transaction, doubt.mensagem, now=now)
        if not await what:
            return False
        self._on_return()
        return True

    async def _ends(
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
