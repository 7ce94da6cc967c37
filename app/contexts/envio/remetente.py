"""The send protocol: a message is neither lost nor sent twice.

    pendente ─claim─▶ allowed? which chip? ─▶ INTENT, in one transaction ─▶ the call ─▶ enviada
                          │                     │ hours, pause, limits,       ├─ provably not sent ──▶ pendente, later
                          │                     │ opt-out and fence are        ├─ can never be sent ──▶ erro
                          ▼                     │ checked here                 └─ answer lost ────────▶ UNKNOWN
                     later, or never            ▼
                                      a crash here leaves a doubt, never a second message

The intent is stored before the call. The call must begin within two seconds of the decision; otherwise it is not
made.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeAlias, assert_never

from app.contexts.chips.api import Emissor, Emissores, rank
from app.contexts.comum.conteudo import hash_do_texto
from app.contexts.comum.disjuntor import GATEWAY
from app.contexts.comum.whatsapp import (
    Banned,
    Disconnected,
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
from app.contexts.conversas.service import Conversas
from app.contexts.envio.registro import FOUND_AGAIN, Achada, Fatos, Mensagem, Registro
from app.contexts.envio.testemunho import BEFORE, remembers
from app.contexts.mensagens.api import (
    LEAVES_WITHIN,
    Adia,
    Bloqueia,
    DecisaoDeEnvio,
    Desfecho,
    Libera,
    Limites,
    RegrasDeEnvio,
    StatusDaMensagem,
    TipoDeMensagem,
    decide,
)
from batuta import Done, Failed, Outcome, Snooze
from batuta.guards import WORKED, Admit, Circuits, Effect, EffectReport, Hold, Rates, Ticket
from batuta.kernel import Clock
from batuta.queues import ItemHandler, Lease, after_seconds
from batuta.reasons import RATE_LIMIT, Reason, define
from batuta.sql import Database, Restored, Transaction, blind_restores

# How long a decision is valid. A call that has not begun after this time is not made, and its intent is deleted.
CALL_WITHIN: Final = LEAVES_WITHIN
# Longer than a send may take. A reservation counts against the limits until then.
USE_WITHIN: Final = timedelta(seconds=60)
TIMEOUT: Final = timedelta(seconds=120)
RETRY: Final = after_seconds([120, 240, 480, 900, 1800])
NO_CHIP: Final = timedelta(seconds=60)
# A message that has waited this long, or is older than this process, may have been sent before the database was
# restored from a backup. The sender searches for it at the gateway first.
OLDER_THAN_A_COPY: Final = timedelta(minutes=5)
# After a restore without the replaced database, the sender searches for new messages too: their text may have been sent
# in rows that are lost. A week, because the same text is not sent twice in a week.
LOOKED_FOR_AFTER_RESTORE: Final = timedelta(days=7)
UNPROVEN = define(
    "sem_prova", "the database was restored, and the gateway cannot prove that the message was not sent before"
)
TAKEN = define("em_outro_processo", "another process is sending the message")
GATEWAY_UNSURE = define(
    "gateway_sem_resposta", "the gateway does not report whether the message was already sent: {why}"
)
BEGAN_LATE = define("comecou_tarde", "the call did not begin in time")
NO_CHIP_FREE = define("sem_chip", "{outcome}: no chip may send now")
NO_LONGER_ALLOWED = define("nao_pode_mais", "the chip may no longer send the message, or its type changed")
NOT_ON_WHATSAPP = define("sem_whatsapp", "this number has no WhatsApp account")
CHIP_BANNED = define("chip_banido", "the chip was banned ({status})")
CHIP_REFUSED = define("chip_recusado", "refused: {why}")
LINE_DOWN = define("linha_caiu", "the instance was offline during the send")
NOT_SENT = define("nao_enviada", "{outcome}: {why}")
CHIP_RESTS = define("chip_descansa", "{outcome}: the chip must rest")
UNKNOWN_WHETHER_SENT = define("envio_incerto", "it is unknown whether the message was sent: {why}")
FOUND_AT_GATEWAY = define("achada_no_gateway", "found at the gateway")
REST: Final = {400: timedelta(minutes=15), 429: timedelta(minutes=5), 503: timedelta(minutes=5)}


class Bans(Protocol):
    async def banir(
        self, transaction: Any, chip_id: str, status: str, code: int, *, by: str, now: datetime
    ) -> bool: ...


RulesNow: TypeAlias = Callable[[Transaction | Database, str | None, str | None], Awaitable[RegrasDeEnvio]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intencao:
    """The stored intent to send this message by this chip."""

    mensagem: Mensagem
    emissor: Emissor
    bypass: str | None
    last_try: bool
    at: float


@dataclass(frozen=True, slots=True)
class Perdida:
    """The lease is lost, or the chip may no longer send, so the message is not sent now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderParts:
    """The services that a sender uses.

    ``since`` is the time at which this process opened its database. No restore happened later, because a restore
    requires that all processes are stopped. ``call_within`` is how long a decision is valid; a call that has not
    begun after that time is not made.
    """

    database: Database
    line: WhatsApp
    registro: Registro
    emissores: Emissores
    conversas: Conversas
    bans: Bans
    circuits: Circuits
    rates: Rates
    limites: Limites
    rules: RulesNow
    clock: Clock
    since: Callable[[], datetime]
    call_within: timedelta = CALL_WITHIN


class Remetente:
    def __init__(self, parts: SenderParts) -> None:
        self._database = parts.database
        self._line = parts.line
        self._registro = parts.registro
        self._emissores = parts.emissores
        self._conversas = parts.conversas
        self._bans = parts.bans
        self._circuits = parts.circuits
        self._rates = parts.rates
        self._limites = parts.limites
        self._rules = parts.rules
        self._clock = parts.clock
        self._since = parts.since
        self._call_within = parts.call_within
        # A limit that holds every message of a type: the next messages of that type wait without querying the store.
        self._full: dict[TipoDeMensagem, Hold] = {}

    def handler(self) -> ItemHandler:
        return ItemHandler(handle=self.handle, timeout=TIMEOUT, retry=RETRY, retry_timeout=True)

    async def handle(self, lease: Lease) -> Outcome:
        hash = hash_do_texto(lease.row["conteudo"])
        fatos, decision = await self._decide_now(self._database, lease, hash)
        if fatos is None or not isinstance(decision, Libera):
            return self._put_aside(lease, fatos, decision)
        if (full := self._full.get(decision.tipo)) is not None and full.until > self._clock.now():
            return Snooze(full.until, full.reason)
        chips = await self._emissores.all(
            self._database,
            cliente_id=fatos.mensagem.cliente_id,
            conversa_id=fatos.mensagem.conversa_id,
            now=self._clock.now(),
        )
        if (found := await self._find_earlier_send(lease, fatos, hash, chips)) is not None:
            return found
        return await self._send_by_chip(
            lease, fatos, decision.tipo, hash, self._rank_chips(fatos, decision.tipo, chips)
        )

    async def _decide_now(
        self, reading: Transaction | Database, lease: Lease, hash: str
    ) -> tuple[Fatos | None, DecisaoDeEnvio | Achada | None]:
        now = self._clock.now()
        fatos = await self._registro.facts(reading, lease, hash, now=now)
        if fatos is None:
            return None, None
        if fatos.tried_by is not None:
            # The message was proved absent after that attempt. A late echo refutes such a proof.
            since = fatos.pedido.created_at - BEFORE
            if echo := await self._registro.echo(reading, fatos.mensagem, hash, fatos.tried_by, since=since):
                return fatos, echo
        rules = await self._rules(reading, fatos.janela, fatos.gatilho)
        return fatos, decide(fatos.pedido, fatos.medico, rules, self._clock.now())

    def _put_aside(
        self, lease: Lease, fatos: Fatos | None, decision: DecisaoDeEnvio | Achada | Perdida | None
    ) -> Outcome:
        match decision:
            case Achada(message_id=message_id, jid=jid, em=em) if fatos is not None:
                return Done(effect=self._delivery_record(fatos.mensagem, message_id, jid, em, reason=FOUND_AGAIN()))
            case Adia(until=until, reason=reason):
                return Snooze(until, reason)
            case Bloqueia(desfecho=desfecho, reason=reason, cancels=cancels) if fatos is not None:
                failed = StatusDaMensagem.ERRO if desfecho is Desfecho.FAILED_VALIDATION else StatusDaMensagem.BLOQUEADA
                return self._end_as(fatos.mensagem, StatusDaMensagem.CANCELADA if cancels else failed, desfecho, reason)
            case _:
                return Snooze(timedelta(0), TAKEN())

    def _rank_chips(self, fatos: Fatos, tipo: TipoDeMensagem, chips: Sequence[Emissor]) -> list[Emissor]:
        excluded = fatos.mensagem.metadata.get("chips_excluidos")
        return rank(chips, tipo, self._clock.now(), excluded=excluded if isinstance(excluded, list) else ())

    async def _find_earlier_send(
        self, lease: Lease, fatos: Fatos, hash: str, chips: Sequence[Emissor]
    ) -> Outcome | None:
        """Search for the message at the gateway, because any chip may have sent it before the database was restored.

        A message older than this process waits until the gateway answers. After a restore without the facts since
        the backup, a message is sent only if the gateway proves that it was not sent; otherwise an operator decides.
        """
        created_at, now = fatos.pedido.created_at, self._clock.now()
        blind = await self._blind_since(created_at, now)
        is_older = created_at < self._since() or blind is not None
        if not is_older and now - created_at < OLDER_THAN_A_COPY and fatos.tried_by is None:
            return None
        since = created_at if blind is None else min(created_at, blind.taken_at)
        proven = True
        for chip in chips:
            sent = await self._line.list_sent(chip.instance, fatos.mensagem.telefone, since=since - BEFORE)
            if isinstance(sent, Unavailable):
                if is_older and not sent.permanent:
                    return Snooze(NO_CHIP, GATEWAY_UNSURE(why=sent.why))
                proven = False
                continue
            for each in sent:
                if each.conteudo_hash == hash and not await self._registro.is_taken(
                    self._database, fatos.mensagem, each.id
                ):
                    mensagem = replace(fatos.mensagem, chip_id=chip.id)
                    return Done(
                        effect=self._delivery_record(mensagem, each.id, each.jid, each.em, reason=FOUND_AT_GATEWAY())
                    )
            proven = proven and (blind is None or await self._remembers(chip.instance, blind.taken_at))
        if blind is None or proven or created_at >= blind.restored_at:
            return None
        return await self._park_unproven(lease, fatos.mensagem, hash, blind)

    async def _blind_since(self, created_at: datetime, now: datetime) -> Restored | None:
        """Return the earliest restore that lost the record of sent messages, if it can concern this message."""
        for restored in await blind_restores(self._database):
            if created_at < restored.restored_at or now < restored.restored_at + LOOKED_FOR_AFTER_RESTORE:
                return restored
        return None

    async def _remembers(self, instance: str, before: datetime) -> bool:
        return await remembers(self._database, self._registro, self._line, instance, before)

    async def _park_unproven(self, lease: Lease, mensagem: Mensagem, hash: str, blind: Restored) -> Outcome | None:
        """Park the message for an operator, unless an operator has decided since the restore that it was not sent."""
        if await self._registro.was_decided(self._database, mensagem.id, since=blind.restored_at):
            return None
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            await self._registro.park_unproven(transaction, lease, mensagem, hash, UNPROVEN(), now=now)
        return Snooze(timedelta(0), UNPROVEN())

    async def _send_by_chip(
        self, lease: Lease, fatos: Fatos, tipo: TipoDeMensagem, hash: str, chips: Sequence[Emissor]
    ) -> Outcome:
        passed = await self._admit(chips)
        if isinstance(passed, Snooze):
            return passed
        emissor, tickets = passed
        try:
            intent = await self._intend(lease, fatos.mensagem, tipo, hash, emissor)
        except BaseException:
            await _give_back(tickets)
            raise
        if not isinstance(intent, Intencao):
            await _give_back(tickets)
            return self._put_aside(lease, fatos, intent)
        if timedelta(seconds=self._clock.monotonic() - intent.at) > self._call_within:
            await _give_back(tickets)
            return await self._take_back(lease, intent, Snooze(timedelta(0), BEGAN_LATE()))
        result = await self._line.send_text(emissor.instance, intent.mensagem.telefone, intent.mensagem.texto)
        for name, ticket in tickets.items():
            await ticket.report(_report_of(name, result, self._clock.now()))
        return await self._settle_answer(lease, intent, result)

    async def _admit(self, chips: Sequence[Emissor]) -> tuple[Emissor, dict[str, Ticket]] | Snooze:
        now = self._clock.now()
        gateway = await self._circuits.breaker(GATEWAY).admit(now)
        if isinstance(gateway, Hold):
            return Snooze(gateway.until, gateway.reason)
        for chip in chips:
            own = await self._circuits.breaker(circuit_of(chip.instance)).admit(now)
            if isinstance(own, Admit):
                return chip, {GATEWAY: gateway.ticket, "chip": own.ticket}
        await gateway.ticket.give_back()
        return Snooze(NO_CHIP, NO_CHIP_FREE(outcome=Desfecho.FAILED_NO_CAPACITY.value))

    async def _intend(
        self, lease: Lease, seen: Mensagem, tipo: TipoDeMensagem, hash: str, emissor: Emissor
    ) -> "Intencao | DecisaoDeEnvio | Achada | Perdida":
        """Check every condition again in the transaction that stores the intent, so that the decision is still true at
        the send.

        The limits are reserved first: a reservation may wait for others, and an earlier decision would be out of
        date.
        """
        wanted = self._limites.de(tipo, medico=seen.cliente_id, telefone=seen.telefone)
        async with self._database.transaction() as transaction:
            reserved = await self._rates.reserve((*wanted, *emissor.limits), use_within=USE_WITHIN, within=transaction)
            if isinstance(reserved, Hold):
                self._remember_full_limit(tipo, reserved)
                return Adia(reserved.until, reserved.reason)
            began = self._clock.monotonic()
            await self._registro.alone(transaction, seen.cliente_id)
            fatos, decision = await self._decide_now(transaction, lease, hash)
            if fatos is None or not isinstance(decision, Libera):
                await self._rates.release(reserved.id, within=transaction)
                return decision or Perdida()
            now = self._clock.now()
            if decision.tipo is not tipo or not await self._emissores.still_may(transaction, emissor.id, now=now):
                await self._rates.release(reserved.id, within=transaction)
                return Adia(now, NO_LONGER_ALLOWED())
            mensagem = fatos.mensagem
            conversa_id = mensagem.conversa_id or await self._conversas.conversa(
                transaction, mensagem.cliente_id, emissor.id, now=now
            )
            mensagem = replace(mensagem, conversa_id=conversa_id, chip_id=emissor.id, reserva=reserved.id)
            if not await self._registro.intend(transaction, lease, mensagem, hash, now=now):
                await self._rates.release(reserved.id, within=transaction)
                return Perdida()
        return Intencao(
            mensagem=mensagem,
            emissor=emissor,
            bypass=decision.bypass,
            last_try=fatos.last_try,
            at=began,
        )

    def _remember_full_limit(self, tipo: TipoDeMensagem, hold: Hold) -> None:
        """Remember a full limit that all messages, or all messages of this type, share, because that limit holds the
        next message too.
        """
        reason = hold.reason
        shared = {limit.name for limit in self._limites.de_todos(tipo)}
        if isinstance(reason, Reason) and reason.code == RATE_LIMIT and reason.facts["limit"] in shared:
            self._full[tipo] = hold

    async def _settle_answer(self, lease: Lease, intent: Intencao, result: SendResult) -> Outcome:
        now, mensagem = self._clock.now(), intent.mensagem
        match result:
            case Sent(id=message_id, jid=jid):
                return Done(effect=self._delivery_record(mensagem, message_id, jid, now, bypass=intent.bypass))
            case NotOnWhatsApp():
                return self._end_as(mensagem, StatusDaMensagem.ERRO, Desfecho.FAILED_VALIDATION, NOT_ON_WHATSAPP())
            case RateLimited(retry_after=after):
                return await self._put_off_and_rest_chip(
                    lease, intent, now + (after or REST[429]), Desfecho.FAILED_RATE_LIMIT
                )
            case Banned(code=code):
                await self._ban_chip(intent.emissor.id, code)
                return await self._try_again_or_end(lease, intent, Desfecho.FAILED_BANNED, CHIP_BANNED(status=code))
            case Refused(why=why, permanent=True):
                # If other sends succeed, a refusal without a reason means that WhatsApp restricts the number.
                await self._circuits.breaker(circuit_of(intent.emissor.instance)).trip(CHIP_REFUSED(why=why))
                await self._rest_chip(intent.emissor.id, now + REST[400], "refused")
                return await self._try_again_or_end(lease, intent, Desfecho.FAILED_PROVIDER, why)
            case Refused(why=why, needs_person=True):
                # A configuration problem: snooze, without counting an attempt, until an operator fixes it.
                return await self._take_back(lease, intent, Snooze(NO_CHIP, why))
            case Refused(why=why):
                return await self._try_again_or_end(lease, intent, Desfecho.FAILED_PROVIDER, why)
            case Disconnected():
                await self._rest_chip(intent.emissor.id, now + REST[503], "disconnected")
                return await self._leave_in_doubt(lease, LINE_DOWN())
            case Unknown(why=why):
                return await self._leave_in_doubt(lease, why)
            case _:
                assert_never(result)

    async def _try_again_or_end(self, lease: Lease, intent: Intencao, desfecho: Desfecho, why: str) -> Outcome:
        """Retry a message that provably was not sent, by another chip if there is one. End it after the last attempt."""
        if intent.last_try:
            return self._end_as(intent.mensagem, StatusDaMensagem.ERRO, desfecho, why)
        return await self._take_back(lease, intent, Failed(NOT_SENT(outcome=desfecho.value, why=why)))

    async def _put_off_and_rest_chip(
        self, lease: Lease, intent: Intencao, until: datetime, desfecho: Desfecho
    ) -> Outcome:
        await self._rest_chip(intent.emissor.id, until, desfecho.value)
        return await self._take_back(lease, intent, Snooze(timedelta(0), CHIP_RESTS(outcome=desfecho.value)))

    async def _take_back(self, lease: Lease, intent: Intencao, outcome: Outcome) -> Outcome:
        async with self._database.transaction() as transaction:
            await self._registro.take_back(transaction, lease, intent.mensagem, now=self._clock.now())
        return outcome

    async def _leave_in_doubt(self, lease: Lease, why: str) -> Outcome:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            await self._registro.doubt(transaction, lease, why, now=now)
        return Snooze(timedelta(0), UNKNOWN_WHETHER_SENT(why=why))

    async def _rest_chip(self, chip_id: str, until: datetime, why: str) -> None:
        async with self._database.transaction() as transaction:
            await self._emissores.rest(transaction, chip_id, why, until=until, now=self._clock.now())

    async def _ban_chip(self, chip_id: str, code: int) -> None:
        async with self._database.transaction() as transaction:
            status = await self._emissores.status(transaction, chip_id)
            await self._bans.banir(transaction, chip_id, status or "active", code, by="envio", now=self._clock.now())

    def _delivery_record(
        self,
        mensagem: Mensagem,
        message_id: str,
        jid: str,
        em: datetime,
        *,
        bypass: str | None = None,
        reason: str | None = None,
    ) -> Callable[[Any], Awaitable[None]]:
        async def write(transaction: Transaction) -> None:
            now = self._clock.now()
            await self._registro.record_delivery(
                transaction, mensagem, message_id, jid, em=em, now=now, bypass=bypass, reason=reason
            )

        return write

    def _end_as(self, mensagem: Mensagem, status: StatusDaMensagem, desfecho: Desfecho, reason: str) -> Done:
        async def write(transaction: Transaction) -> None:
            await self._registro.record_end(transaction, mensagem, status, desfecho, reason, now=self._clock.now())

        return Done(effect=write)


async def _give_back(tickets: dict[str, Ticket]) -> None:
    for ticket in tickets.values():
        await ticket.give_back()


def _report_of(name: str, result: SendResult, now: datetime) -> EffectReport:
    """Translate an answer into a report for the circuit breaker of the gateway or of the chip."""
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
