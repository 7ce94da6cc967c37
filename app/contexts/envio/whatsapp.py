"""WhatsApp as a channel of the send protocol: chips send through the gateway.

A message in doubt (it may or may not have been sent) is treated as not sent if three conditions hold (decision 0016):
two minutes have passed since the attempt, the instance is online, and the gateway has the chip's previous message but
not the message in doubt.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, assert_never

from app.contexts.chips.api import Emissor, Emissores, rank
from app.contexts.comum.disjuntor import GATEWAY
from app.contexts.comum.whatsapp import (
    Banned,
    Disconnected,
    EstadoDaConexao,
    NotOnWhatsApp,
    RateLimited,
    Refused,
    SendResult,
    Sent,
    Unavailable,
    Unknown,
    WhatsApp,
    circuit_of,
)
from app.contexts.envio.canal import (
    BEFORE,
    ECHO_PENDING,
    OLDER_THAN_A_COPY,
    Ausente,
    Duvidosa,
    Enviada,
    Incerta,
    Lembrada,
    NaoEnviada,
    Recusada,
    Resposta,
    SemProva,
    Suspensa,
    blind_since,
)
from app.contexts.envio.registro import Achada, EnvioEmDuvida, Fatos, Mensagem, Registro
from app.contexts.mensagens.api import Desfecho, TipoDeMensagem
from batuta import Snooze
from batuta.guards import WORKED, Admit, Circuits, Effect, EffectReport, Hold, Limit, Ticket
from batuta.kernel import Clock, dataclass
from batuta.reasons import define
from batuta.sql import Database, Transaction

NO_CHIP: Final = timedelta(seconds=60)
# Wait before a missing message counts as proof, because the echo and the gateway's message store may lag behind the
# send.
PROOF_AFTER: Final = timedelta(minutes=2)
# A gateway may delete messages older than this.
REMEMBERED: Final = timedelta(days=3)
REST: Final = {400: timedelta(minutes=15), 429: timedelta(minutes=5), 503: timedelta(minutes=5)}
GATEWAY_UNSURE = define(
    "gateway_sem_resposta", "the gateway does not report whether the message was already sent: {why}"
)
NO_CHIP_FREE = define("sem_chip", "no chip may send now")
NOT_ON_WHATSAPP = define("sem_whatsapp", "this number has no WhatsApp account")
CHIP_BANNED = define("chip_banido", "the chip was banned ({status})")
CHIP_REFUSED = define("chip_recusado", "refused: {why}")
CHIP_RESTS = define("chip_descansa", "the chip must rest")
LINE_DOWN_AT_SEND = define("linha_caiu", "the instance was offline during the send")
FORGETS = define(
    "gateway_esquece",
    "the gateway has neither this message nor the one sent before it: it deletes messages and may have deleted this one",
)
CHIP_GONE = define("chip_sumiu", "the message's chip no longer exists")
GATEWAY_AWAY = define("gateway_fora", "the gateway does not answer: {why}")
LINE_DOWN = define(
    "linha_fora", "the gateway does not have the message, but the instance is offline and the answer may be incomplete"
)


class Bans(Protocol):
    async def banir(
        self, transaction: Any, chip_id: str, status: str, code: int, *, by: str, now: datetime
    ) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CanalWhatsApp:
    """Sends messages with chips, and searches the gateway for messages that were sent.

    ``since`` is the time at which this process opened its database. The database cannot have been restored after that
    time, because a restore requires that all processes are stopped.
    """

    database: Database
    line: WhatsApp
    registro: Registro
    emissores: Emissores
    bans: Bans
    circuits: Circuits
    clock: Clock
    since: Callable[[], datetime]

    async def prepare(self, fatos: Fatos, tipo: TipoDeMensagem, hash: str) -> "PorChip | Lembrada | SemProva | Snooze":
        chips = await self.emissores.all(
            self.database,
            cliente_id=fatos.mensagem.cliente_id,
            conversa_id=fatos.mensagem.conversa_id,
            now=self.clock.now(),
        )
        if (found := await self._find_earlier_send(fatos, hash, chips)) is not None:
            return found
        excluded = fatos.mensagem.metadata.get("chips_excluidos")
        ranked = rank(chips, tipo, self.clock.now(), excluded=excluded if isinstance(excluded, list) else ())
        return await self._admit(ranked)

    async def _find_earlier_send(
        self, fatos: Fatos, hash: str, chips: Sequence[Emissor]
    ) -> Lembrada | SemProva | Snooze | None:
        """Search for a queued message at the gateway, because any chip may have sent it before the database was
        restored.

        A message that was queued before this process started waits until the gateway answers. After a restore that lost
        sent messages, a message is sent only if the gateway proves that it was not sent earlier; otherwise an operator
        decides.
        """
        created_at, now = fatos.pedido.created_at, self.clock.now()
        blind = await blind_since(self.database, created_at, now)
        is_older = created_at < self.since() or blind is not None
        if not is_older and now - created_at < OLDER_THAN_A_COPY and fatos.tried_by is None:
            return None
        since = created_at if blind is None else min(created_at, blind.taken_at)
        proven = True
        for chip in chips:
            sent = await self.line.list_sent(chip.instance, fatos.mensagem.telefone, since=since - BEFORE)
            if isinstance(sent, Unavailable):
                if is_older and not sent.permanent:
                    return Snooze(NO_CHIP, GATEWAY_UNSURE(why=sent.why))
                proven = False
                continue
            for each in sent:
                if each.conteudo_hash == hash and not await self.registro.is_taken(
                    self.database, fatos.mensagem, each.id
                ):
                    mensagem = replace(fatos.mensagem, chip_id=chip.id)
                    return Lembrada(mensagem, Achada(each.id, each.jid, each.em))
            proven = proven and (blind is None or await self._remembers(chip.instance, blind.taken_at))
        if blind is None or proven or created_at >= blind.restored_at:
            return None
        decided = await self.registro.was_decided(self.database, fatos.mensagem.id, since=blind.restored_at)
        return None if decided else SemProva()

    async def _admit(self, chips: Sequence[Emissor]) -> "PorChip | Snooze":
        now = self.clock.now()
        gateway = await self.circuits.breaker(GATEWAY).admit(now)
        if isinstance(gateway, Hold):
            return Snooze(gateway.until, gateway.reason)
        for chip in chips:
            own = await self.circuits.breaker(circuit_of(chip.instance)).admit(now)
            if isinstance(own, Admit):
                return PorChip(canal=self, chip=chip, tickets={GATEWAY: gateway.ticket, "chip": own.ticket})
        await gateway.ticket.give_back()
        return Snooze(NO_CHIP, NO_CHIP_FREE(outcome=Desfecho.FAILED_NO_CAPACITY.value))

    async def look_up(self, doubt: EnvioEmDuvida) -> Achada | Ausente | Incerta:
        if self.clock.now() - doubt.since < PROOF_AFTER:
            return Incerta(ECHO_PENDING())
        if (instance := doubt.instance) is None:
            return Incerta(CHIP_GONE())
        sent = await self.line.list_sent(instance, doubt.mensagem.telefone, since=doubt.since - BEFORE)
        if isinstance(sent, Unavailable):
            return Incerta(GATEWAY_AWAY(why=sent.why))
        for each in sent:
            if each.conteudo_hash == doubt.hash and not await self.registro.is_taken(
                self.database, doubt.mensagem, each.id
            ):
                return Achada(each.id, each.jid, each.em)
        connection = await self.line.connection(instance)
        if connection is not EstadoDaConexao.OPEN:
            return Incerta(LINE_DOWN())
        return Ausente() if await self._remembers(instance, doubt.since) else Incerta(FORGETS())

    async def _remembers(self, instance: str, before: datetime) -> bool:
        """Return whether the gateway still has the last message that a chip's instance sent before the instant
        ``before``. If that message is missing, the gateway deletes messages, so the absence of another message proves
        nothing.
        """
        witness = await self.registro.witness(self.database, instance, before=before, since=before - REMEMBERED)
        if witness is None:
            return True  # this chip sent no earlier message that the gateway could have deleted
        sent = await self.line.list_sent(instance, witness.telefone, since=witness.em - BEFORE)
        return not isinstance(sent, Unavailable) and witness.message_id in {each.id for each in sent}

    async def rest_chip(self, chip_id: str, until: datetime, why: str) -> None:
        async with self.database.transaction() as transaction:
            await self.emissores.rest(transaction, chip_id, why, until=until, now=self.clock.now())

    async def ban_chip(self, chip_id: str, code: int) -> None:
        async with self.database.transaction() as transaction:
            status = await self.emissores.status(transaction, chip_id)
            await self.bans.banir(transaction, chip_id, status or "active", code, by="envio", now=self.clock.now())


@dataclass(frozen=True, slots=True, kw_only=True)
class PorChip:
    """One attempt to send a message with one chip."""

    canal: CanalWhatsApp
    chip: Emissor
    tickets: dict[str, Ticket]

    @property
    def limits(self) -> Sequence[Limit]:
        return self.chip.limits

    async def still_may(self, transaction: Transaction, *, now: datetime) -> bool:
        return await self.canal.emissores.still_may(transaction, self.chip.id, now=now)

    def assign(self, mensagem: Mensagem) -> Mensagem:
        return replace(mensagem, chip_id=self.chip.id)

    async def give_back(self) -> None:
        for ticket in self.tickets.values():
            await ticket.give_back()

    async def send(self, mensagem: Mensagem) -> Resposta:
        result = await self.canal.line.send_text(self.chip.instance, mensagem.telefone, mensagem.texto)
        for name, ticket in self.tickets.items():
            await ticket.report(_report_of(name, result, self.canal.clock.now()))
        return await self._answer(result)

    async def _answer(self, result: SendResult) -> Resposta:
        canal, now = self.canal, self.canal.clock.now()
        match result:
            case Sent(id=message_id, jid=jid):
                return Enviada(message_id, jid)
            case NotOnWhatsApp():
                return Recusada(Desfecho.FAILED_VALIDATION, NOT_ON_WHATSAPP())
            case RateLimited(retry_after=after):
                limited = Desfecho.FAILED_RATE_LIMIT.value
                await canal.rest_chip(self.chip.id, now + (after or REST[429]), limited)
                return Suspensa(timedelta(0), CHIP_RESTS(outcome=limited))
            case Banned(code=code):
                await canal.ban_chip(self.chip.id, code)
                return NaoEnviada(Desfecho.FAILED_BANNED, CHIP_BANNED(status=code))
            case Refused(why=why, permanent=True):
                # If other sends succeed, a refusal without a reason means that WhatsApp restricts this number.
                await canal.circuits.breaker(circuit_of(self.chip.instance)).trip(CHIP_REFUSED(why=why))
                await canal.rest_chip(self.chip.id, now + REST[400], "refused")
                return NaoEnviada(Desfecho.FAILED_PROVIDER, why)
            case Refused(why=why, needs_person=True):
                # The configuration is wrong. The message waits until an operator corrects it, and no attempt is
                # counted.
                return Suspensa(NO_CHIP, why)
            case Refused(why=why):
                return NaoEnviada(Desfecho.FAILED_PROVIDER, why)
            case Disconnected():
                await canal.rest_chip(self.chip.id, now + REST[503], "disconnected")
                return Duvidosa(LINE_DOWN_AT_SEND())
            case Unknown(why=why):
                return Duvidosa(why)
            case _:
                assert_never(result)


def _report_of(name: str, result: SendResult, now: datetime) -> EffectReport:
    """Translate an answer from the gateway into a report for the circuit breaker of the gateway or of the chip."""
    is_gateway = name == GATEWAY
    match result:
        case Sent() | NotOnWhatsApp():
            return WORKED
        case RateLimited(retry_after=after):
            retry_at = None if after is None or is_gateway else now + after
            return EffectReport(Effect.MISTAKE if is_gateway else Effect.BROKE, "429", retry_at)
        case Banned(code=code):
            return EffectReport(Effect.MISTAKE if is_gateway else Effect.BROKE, str(code))
        case Refused(permanent=True) | Refused(needs_person=True):
            return EffectReport(Effect.MISTAKE, "refused")
        case Refused():
            return EffectReport(Effect.UNREACHED if is_gateway else Effect.MISTAKE, "unreachable")
        case Disconnected():
            return EffectReport(Effect.MISTAKE if is_gateway else Effect.BROKE, "disconnected")
        case Unknown():
            return EffectReport(Effect.TIMED_OUT, "unknown")
        case _:
            assert_never(result)
