"""The send protocol: no message is lost or sent twice. Every channel uses it.

    pendente ─claim─▶ allowed? which sender? ─▶ INTENT, in one transaction ─▶ the call ─▶ enviada
                          │                     │ hours, pause, limits,       ├─ provably not sent ──▶ pendente, later
                          │                     │ opt-out and fence are        ├─ can never be sent ──▶ erro
                          ▼                     │ checked here                 └─ answer lost ────────▶ UNKNOWN
                     later, or never            ▼
                                      a crash here leaves a doubt, never a second message

The intent is stored before the call to the channel. If the call does not begin within two seconds of the decision, it
is not made.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeAlias, assert_never

from app.contexts.comum.conteudo import hash_do_texto
from app.contexts.conversas.service import Conversas
from app.contexts.envio.canal import (
    BEFORE,
    Canal,
    Duvidosa,
    Enviada,
    Lembrada,
    NaoEnviada,
    Recusada,
    Remessa,
    Resposta,
    SemProva,
    Suspensa,
)
from app.contexts.envio.registro import FOUND_AGAIN, Achada, Fatos, Mensagem, Registro
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
from batuta.guards import Hold, Rates
from batuta.kernel import Clock, dataclass
from batuta.queues import ItemHandler, Lease, RetryPolicy, after_seconds
from batuta.reasons import RATE_LIMIT, Reason, define
from batuta.sql import Database, Transaction

# How long a decision is valid. If the call has not begun after this time, the sender does not make it and deletes the
# intent.
CALL_WITHIN: Final = LEAVES_WITHIN
# How long a reservation counts against the limits. It is longer than a send may take.
USE_WITHIN: Final = timedelta(seconds=60)
TIMEOUT: Final = timedelta(seconds=120)
RETRY: Final = after_seconds([120, 240, 480, 900, 1800])
UNPROVEN = define(
    "sem_prova", "the database was restored, and the gateway cannot prove that the message was not sent before"
)
TAKEN = define("em_outro_processo", "another process is sending the message")
BEGAN_LATE = define("comecou_tarde", "the call did not begin in time")
NO_LONGER_ALLOWED = define("nao_pode_mais", "the chip may no longer send the message, or its type changed")
NOT_SENT = define("nao_enviada", "{why}")
UNKNOWN_WHETHER_SENT = define("envio_incerto", "it is unknown whether the message was sent: {why}")
FOUND_AT_GATEWAY = define("achada_no_gateway", "the message was found at the gateway")


RulesNow: TypeAlias = Callable[[Transaction | Database, str | None, str | None], Awaitable[RegrasDeEnvio]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intencao:
    """The stored intent to send a message with the chosen chip or account."""

    mensagem: Mensagem
    remessa: Remessa
    bypass: str | None
    last_try: bool
    at: float


@dataclass(frozen=True, slots=True)
class Perdida:
    """Result of an attempt that must not send its message now, because the lease on the message is lost, or because the
    chosen chip or account may no longer send.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderParts:
    """The services that a sender uses. ``call_within`` is how long the decision to send stays valid. A call that has
    not begun by then is not made.
    """

    database: Database
    canal: Canal
    registro: Registro
    conversas: Conversas
    rates: Rates
    limites: Limites
    rules: RulesNow
    clock: Clock
    call_within: timedelta = CALL_WITHIN
    retry: RetryPolicy = RETRY
    timeout: timedelta = TIMEOUT


class Remetente:
    def __init__(self, parts: SenderParts) -> None:
        self._database = parts.database
        self._canal = parts.canal
        self._registro = parts.registro
        self._conversas = parts.conversas
        self._rates = parts.rates
        self._limites = parts.limites
        self._rules = parts.rules
        self._clock = parts.clock
        self._call_within = parts.call_within
        self._retry = parts.retry
        self._timeout = parts.timeout
        # For each type of message: the limit that was found full, and the instant (``Hold.until``) until which messages
        # of that type wait without a database query.
        self._full: dict[TipoDeMensagem, Hold] = {}

    def handler(self) -> ItemHandler:
        return ItemHandler(handle=self.handle, timeout=self._timeout, retry=self._retry, retry_timeout=True)

    async def handle(self, lease: Lease) -> Outcome:
        hash = hash_do_texto(lease.row["conteudo"])
        fatos, decision = await self._decide_now(self._database, lease, hash)
        if fatos is None or not isinstance(decision, Libera):
            return self._put_aside(lease, fatos, decision)
        if (full := self._full.get(decision.tipo)) is not None and full.until > self._clock.now():
            return Snooze(full.until, full.reason)
        match await self._canal.prepare(fatos, decision.tipo, hash):
            case Snooze() as later:
                return later
            case Lembrada(mensagem=mensagem, achada=achada):
                return Done(effect=self._delivery_record(mensagem, achada, reason=FOUND_AT_GATEWAY()))
            case Recusada(desfecho=desfecho, why=why):
                return self._end_as(fatos.mensagem, StatusDaMensagem.ERRO, desfecho, why)
            case SemProva():
                return await self._park_unproven(lease, fatos.mensagem, hash)
            case remessa:
                return await self._send(lease, fatos, decision.tipo, hash, remessa)

    async def _decide_now(
        self, reading: Transaction | Database, lease: Lease, hash: str
    ) -> tuple[Fatos | None, DecisaoDeEnvio | Achada | None]:
        now = self._clock.now()
        fatos = await self._registro.facts(reading, lease, hash, now=now)
        if fatos is None:
            return None, None
        if fatos.tried_by is not None:
            # The earlier attempt was recorded as not sent. A late echo shows that the message was sent.
            since = fatos.pedido.created_at - BEFORE
            if echo := await self._registro.echo(reading, fatos.mensagem, hash, fatos.tried_by, since=since):
                return fatos, echo
        rules = await self._rules(reading, fatos.janela, fatos.gatilho)
        return fatos, decide(fatos.pedido, fatos.medico, rules, self._clock.now())

    def _put_aside(
        self, lease: Lease, fatos: Fatos | None, decision: DecisaoDeEnvio | Achada | Perdida | None
    ) -> Outcome:
        match decision:
            case Achada() as achada if fatos is not None:
                return Done(effect=self._delivery_record(fatos.mensagem, achada, reason=FOUND_AGAIN()))
            case Adia(until=until, reason=reason):
                return Snooze(until, reason)
            case Bloqueia(desfecho=desfecho, reason=reason, cancels=cancels) if fatos is not None:
                failed = StatusDaMensagem.ERRO if desfecho is Desfecho.FAILED_VALIDATION else StatusDaMensagem.BLOQUEADA
                return self._end_as(fatos.mensagem, StatusDaMensagem.CANCELADA if cancels else failed, desfecho, reason)
            case _:
                return Snooze(timedelta(0), TAKEN())

    async def _park_unproven(self, lease: Lease, mensagem: Mensagem, hash: str) -> Outcome:
        async with self._database.transaction() as transaction:
            await self._registro.park_unproven(transaction, lease, mensagem, hash, UNPROVEN(), now=self._clock.now())
        return Snooze(timedelta(0), UNPROVEN())

    async def _send(self, lease: Lease, fatos: Fatos, tipo: TipoDeMensagem, hash: str, remessa: Remessa) -> Outcome:
        try:
            intent = await self._intend(lease, fatos.mensagem, tipo, hash, remessa)
        except BaseException:
            await remessa.give_back()
            raise
        if not isinstance(intent, Intencao):
            await remessa.give_back()
            return self._put_aside(lease, fatos, intent)
        if timedelta(seconds=self._clock.monotonic() - intent.at) > self._call_within:
            await remessa.give_back()
            return await self._take_back(lease, intent, Snooze(timedelta(0), BEGAN_LATE()))
        return await self._settle_answer(lease, intent, await remessa.send(intent.mensagem))

    async def _intend(
        self, lease: Lease, seen: Mensagem, tipo: TipoDeMensagem, hash: str, remessa: Remessa
    ) -> "Intencao | DecisaoDeEnvio | Achada | Perdida":
        """Check again every condition for sending a message, in the transaction that stores the intent to send. The
        decision is then still valid when the message is sent.

        The rate limits are reserved before the checks, because a reservation may take time, and earlier checks would
        then be out of date.
        """
        wanted = self._limites.de(tipo, medico=seen.cliente_id, telefone=seen.telefone)
        async with self._database.transaction() as transaction:
            reserved = await self._rates.reserve((*wanted, *remessa.limits), use_within=USE_WITHIN, within=transaction)
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
            if decision.tipo is not tipo or not await remessa.still_may(transaction, now=now):
                await self._rates.release(reserved.id, within=transaction)
                return Adia(now, NO_LONGER_ALLOWED())
            mensagem = remessa.assign(fatos.mensagem)
            conversa_id = mensagem.conversa_id or await self._conversas.conversa(
                transaction, mensagem.cliente_id, mensagem.chip_id, now=now
            )
            mensagem = replace(mensagem, conversa_id=conversa_id, reserva=reserved.id)
            if not await self._registro.intend(transaction, lease, mensagem, hash, now=now):
                await self._rates.release(reserved.id, within=transaction)
                return Perdida()
        return Intencao(
            mensagem=mensagem,
            remessa=remessa,
            bypass=decision.bypass,
            last_try=fatos.last_try,
            at=began,
        )

    def _remember_full_limit(self, tipo: TipoDeMensagem, hold: Hold) -> None:
        """Remember that a rate limit is full if it applies to all messages of one type. The next message of this type
        then waits without a database query.
        """
        reason = hold.reason
        shared = {limit.name for limit in self._limites.de_todos(tipo)}
        if isinstance(reason, Reason) and reason.code == RATE_LIMIT and reason.facts["limit"] in shared:
            self._full[tipo] = hold

    async def _settle_answer(self, lease: Lease, intent: Intencao, answer: Resposta) -> Outcome:
        match answer:
            case Enviada(message_id=message_id, jid=jid):
                sent = Achada(message_id, jid, self._clock.now())
                return Done(effect=self._delivery_record(intent.mensagem, sent, bypass=intent.bypass))
            case NaoEnviada(desfecho=desfecho, why=why):
                if intent.last_try:
                    return self._end_as(intent.mensagem, StatusDaMensagem.ERRO, desfecho, why)
                return await self._take_back(lease, intent, Failed(NOT_SENT(outcome=desfecho.value, why=why)))
            case Suspensa(until=until, why=why):
                return await self._take_back(lease, intent, Snooze(until, why))
            case Recusada(desfecho=desfecho, why=why):
                return self._end_as(intent.mensagem, StatusDaMensagem.ERRO, desfecho, why)
            case Duvidosa(why=why):
                return await self._leave_in_doubt(lease, why)
            case _:
                assert_never(answer)

    async def _take_back(self, lease: Lease, intent: Intencao, outcome: Outcome) -> Outcome:
        async with self._database.transaction() as transaction:
            await self._registro.take_back(transaction, lease, intent.mensagem, now=self._clock.now())
        return outcome

    async def _leave_in_doubt(self, lease: Lease, why: str) -> Outcome:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            await self._registro.doubt(transaction, lease, why, now=now)
        return Snooze(timedelta(0), UNKNOWN_WHETHER_SENT(why=why))

    def _delivery_record(
        self, mensagem: Mensagem, achada: Achada, *, bypass: str | None = None, reason: str | None = None
    ) -> Callable[[Any], Awaitable[None]]:
        async def write(transaction: Transaction) -> None:
            now = self._clock.now()
            await self._registro.record_delivery(transaction, mensagem, achada, now=now, bypass=bypass, reason=reason)

        return write

    def _end_as(self, mensagem: Mensagem, status: StatusDaMensagem, desfecho: Desfecho, reason: str) -> Done:
        async def write(transaction: Transaction) -> None:
            await self._registro.record_end(transaction, mensagem, status, desfecho, reason, now=self._clock.now())

        return Done(effect=write)
