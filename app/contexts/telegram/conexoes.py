"""The loop ``sync``: keeps one connection per active account, stores updates, and finds dead connections.

    active account ─▶ connect ─▶ receive … receive ─▶ probe, every 45 s ─▶ receive …
                         │ failure: a pause that doubles up to five minutes
                         └ revoked or banned: the account waits for a person

A step is one action in the diagram: connect, receive or probe (a request that checks whether the connection is alive).
Each account runs at most one step at a time, in a separate task with a deadline. A tick of the loop starts the due
steps and does not wait for them, so an account that hangs delays only itself. If a step or the closing of a connection
ignores its cancellation, the tick requests a restart of the process, because nothing else can stop it.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from app.contexts.telegram.contas import ContaAtiva, Contas, EstadoDaConta
from app.contexts.telegram.porta import (
    Falha,
    FloodWait,
    Linha,
    Metodo,
    Novidades,
    OwnedElsewhere,
    PeerBlocked,
    PeerFlood,
    PeerUnknown,
    Refused,
    SessionRevoked,
    SlowMode,
    Telegram,
    Unavailable,
    Unknown,
    Vivo,
    reason_of,
)
from app.contexts.telegram.prazo import MARGIN, Prazos, chamar, log_timeout
from app.contexts.telegram.sessoes import Sessoes
from batuta import Idle
from batuta.errors import CancelIgnored, DeadlineExceeded, StoreTimeout
from batuta.kernel import Clock, Late, Raised, call_with_deadline, dataclass, name_of, with_timeout
from batuta.loops import Pace, Wakeup, task_stack
from batuta.reasons import define

T = TypeVar("T")
# With this interval and the time limit of a probe, a dead connection is found within 90 seconds, and missed updates
# within 60.
PROBE_EVERY: Final = timedelta(seconds=45)
# Shortest wait for updates, so that a receive just before a probe is not a busy loop.
SHORTEST_RECEIVE: Final = timedelta(seconds=1)
# Time that a step has to end after its cancellation.
CANCEL_GRACE: Final = timedelta(seconds=10)
FIRST_RECEIVE: Final = timedelta(seconds=1)
FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(minutes=5)
EVERY: Final = timedelta(seconds=5)
# Waits before a request that found no connection is made again. If the account is connecting, the wait is
# WITHOUT_CONNECTION. If the account pauses, the request is made AFTER_PAUSE after the pause, but after LONGEST_WAIT at
# the latest.
WITHOUT_CONNECTION: Final = timedelta(seconds=5)
AFTER_PAUSE: Final = timedelta(seconds=1)
LONGEST_WAIT: Final = timedelta(minutes=1)
FLOOD = define("telegram_flood", "Telegram accepts no {metodo} from this account for {seconds}s")
REVOKED = define("telegram_revogada", "the session ended ({why}): run `batuta telegram login`")
NOT_YET = define("telegram_ainda_nao", "not connected yet")
ELSEWHERE = define("telegram_fora_do_processo", "no connection in this process")
OFFLINE = define("telegram_offline", "the account is not connected: {why}")
OWNED = define("telegram_outro_dono", "another process owns the session")
SYSTEM: Final = "telegram"


class Recebedor(Protocol):
    async def guardar(self, conta: str, recebidas: Novidades) -> None:
        """Store an account's updates and, in the same transaction, the position after them in the stream of updates."""


@dataclass(slots=True)
class Conexao:
    """One account's connection in this process. ``until`` is the end of the pause after a failure. ``began`` is the
    start of the current step, and ``closed_at`` is the start of ``closing``, both on the monotonic clock.

    ``closing`` is the task that closes the previous connection. A new connection is opened only after this task has
    released the session.
    """

    conta: ContaAtiva
    linha: Linha | None = None
    step: asyncio.Task[None] | None = None
    began: float = 0.0
    probed_at: datetime | None = None
    until: datetime | None = None
    failures: int = 0
    why: str = field(default_factory=NOT_YET)
    closing: asyncio.Task[None] | None = None
    closed_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class Conexoes:
    """Loop that keeps all active accounts connected. ``on_connect`` is called when an account can send again."""

    telegram: Telegram
    contas: Contas
    sessoes: Sessoes
    recebedor: Recebedor
    prazos: Prazos
    clock: Clock
    on_connect: Callable[[], None] = lambda: None
    chance: Callable[[], float] = random.random
    name: str = "sync"
    wakeup: Wakeup = field(default_factory=Wakeup)
    _open: dict[str, Conexao] = field(default_factory=dict)

    def linha(self, conta: str) -> Linha | None:
        known = self._open.get(conta)
        return None if known is None else known.linha

    def why(self, conta: str) -> str:
        known = self._open.get(conta)
        return ELSEWHERE() if known is None else known.why

    @property
    def is_busy(self) -> bool:
        """Whether any account is currently connecting, receiving or probing."""
        return any(each.step is not None for each in self._open.values())

    def retry_at(self, conta: str) -> datetime:
        """Return when to retry a request that failed because its account had no connection."""
        known, now = self._open.get(conta), self.clock.now()
        if known is None or known.until is None or known.until <= now:
            return now + WITHOUT_CONNECTION
        return min(known.until + AFTER_PAUSE, now + LONGEST_WAIT)

    async def tick(self) -> Pace:
        found = await self._await_database(self.contas.ativas())
        active = {each.id: each for each in found}
        for id in [id for id in self._open if id not in active]:
            self._end(id)
        now = self.clock.now()
        for id, conta in active.items():
            known = self._open.setdefault(id, Conexao(conta))
            known.conta = conta
            if known.closing is not None:
                self._require_end(
                    known.closing, known.closed_at, self.prazos.entity + MARGIN, "the close of a connection"
                )
            if known.step is not None:
                self._require_end(known.step, known.began, self.prazos.step, "a step of an account")
            elif (step := self._next_step(known, now)) is not None:
                self._start(known, step)
        return Idle(self._next_look(now))

    def _require_end(self, task: asyncio.Task[None], began: float, limit: timedelta, what: str) -> None:
        """Raise CancelIgnored if an account's task reached its time limit, was cancelled, and is still running long
        afterwards. The error restarts the process.
        """
        if self.clock.monotonic() - began > (limit + CANCEL_GRACE).total_seconds():
            raise CancelIgnored(loop=self.name, what=what, stack=task_stack(task))

    async def finish_steps(self) -> None:
        """Wait until every account's current step (connect, receive or probe) has ended."""
        await asyncio.gather(*(each.step for each in self._open.values() if each.step is not None))

    def _next_look(self, now: datetime) -> datetime:
        pauses = [each.until for each in self._open.values() if each.step is None and each.until is not None]
        return min([*(each for each in pauses if each > now), now + EVERY])

    def _next_step(self, known: Conexao, now: datetime) -> Coroutine[Any, Any, None] | None:
        """Return the account's next step: connect, receive or probe. Return None if the account must wait because of a
        pause, a flood wait, or an old connection that is still being closed.
        """
        if known.closing is not None or (known.until is not None and known.until > now):
            return None
        if known.linha is None:
            return self._connect(known) if _is_over(known.conta.connect_after, now) else None
        if known.probed_at is None or now - known.probed_at >= PROBE_EVERY:
            is_flooded = not _is_over(known.conta.probe_after, now)
            return self._renew(known) if is_flooded else self._probe(known, known.linha)
        until_probe = known.probed_at + PROBE_EVERY - now
        return self._receive(known, known.linha, max(SHORTEST_RECEIVE, min(self.prazos.receive, until_probe)))

    def _start(self, known: Conexao, step: Coroutine[Any, Any, None]) -> None:
        def over(task: asyncio.Task[None]) -> None:
            known.step = None
            self.wakeup.set()

        known.began = self.clock.monotonic()
        known.step = asyncio.create_task(self._run(known, step), name=f"telegram:{known.conta.id}")
        known.step.add_done_callback(over)

    async def _run(self, known: Conexao, step: Coroutine[Any, Any, None]) -> None:
        """Run one step of an account (connect, receive or probe) within its time limit. If the step fails or takes too
        long, close the connection, because it may have delivered updates that are not stored. The next connection
        delivers them again.
        """
        limit = self.prazos.step
        match await call_with_deadline(lambda: step, self.clock.now() + limit, self.clock, "a step"):
            case Raised(error=error):
                why = name_of(error)
            case Late(error=why):
                log_timeout("sync", limit)
            case _:
                return
        known.began = self.clock.monotonic()  # ending the connection has a time limit of its own
        limit = self.prazos.database
        await call_with_deadline(lambda: self._drop(known, why), self.clock.now() + limit, self.clock, "a step")

    async def _connect(self, known: Conexao) -> None:
        conta, limit = known.conta, self.prazos.connect
        made = await chamar(
            lambda limit: self.telegram.connect(conta.id, marca=conta.marca, limit=limit), limit, self.clock, "connect"
        )
        if isinstance(made, Falha):
            await self._fail(known, made)
            return
        known.linha, known.failures, known.until, known.why = made, 0, None, ""
        # Connecting has already probed the server. The first receive stores the position from which updates count.
        known.probed_at = self.clock.now()
        await self._await_database(self.contas.conectada(conta.id))
        self.on_connect()
        await self._receive(known, made, FIRST_RECEIVE)

    async def _probe(self, known: Conexao, linha: Linha) -> None:
        known.probed_at = self.clock.now()
        alive = await chamar(lambda limit: linha.probe(limit=limit), self.prazos.entity, self.clock, "probe")
        if isinstance(alive, Vivo):
            await self.contas.respondeu(known.conta.id, alive.eu)
            return
        await self._fail(known, alive)

    async def _renew(self, known: Conexao) -> None:
        """Renew the ownership of the session without a probe. This is needed while Telegram accepts no probe from the
        account.
        """
        known.probed_at = self.clock.now()
        lost = await chamar(
            lambda _: self.sessoes.renew(known.conta.id), self.prazos.database, self.clock, "telegram_sessoes"
        )
        if lost is not None:
            await self._fail(known, lost)

    async def _receive(self, known: Conexao, linha: Linha, limit: timedelta) -> None:
        got = await chamar(lambda limit: linha.receive(limit=limit), limit, self.clock, "receive")
        if not isinstance(got, Novidades):
            await self._fail(known, got)
            return
        if got.atualizacoes or got.marca != known.conta.marca:
            conta = known.conta.id
            kept = await chamar(
                lambda _: self.recebedor.guardar(conta, got), self.prazos.database, self.clock, "guardar"
            )
            if isinstance(kept, Unknown):
                # The position is not stored, so the next connection delivers these updates again.
                await self._drop(known, kept.why)

    async def handle_failure(self, linha: Linha, failure: Falha) -> None:
        """Apply a failed request's consequence to the account. Several requests may report the loss of the same
        connection, so a failure is ignored if its connection has already been replaced.
        """
        known = self._open.get(linha.conta)
        if known is not None and known.linha is linha:
            await self._fail(known, failure)

    async def _fail(self, known: Conexao, failure: Falha) -> None:
        """Apply a failure's consequence to an account: store a flood wait, pause and reconnect, or end the session. A
        failure that concerns only one request has no consequence.
        """
        conta = known.conta.id
        match failure:
            case SlowMode() | PeerFlood() | PeerUnknown() | PeerBlocked() | Refused() if known.linha is None:
                # The connection was refused.
                await self._drop(known, reason_of(failure))
            case SlowMode() | PeerUnknown() | PeerBlocked() | Refused():
                return  # this failure concerns one request, not the account
            case FloodWait(metodo=metodo, wait=wait):
                # While the account connects, a flood wait of any method delays the next attempt to connect.
                await self.esperar(conta, Metodo.CONNECT if known.linha is None else metodo, wait)
            case PeerFlood():
                return  # the sender opens the circuit breaker of the account
            case SessionRevoked(why=why, banned=banned):
                state = EstadoDaConta.BANIDA if banned else EstadoDaConta.REVOGADA
                await self.contas.mudar(conta, state, by=SYSTEM, erro=REVOKED(why=why))
                await self._drop(known, REVOKED(why=why))
            case OwnedElsewhere(until=until) if known.linha is None:
                self._pause(known, OWNED(), until)  # the owner records whether the account is connected
            case OwnedElsewhere(until=until):
                await self._drop(known, OWNED(), until=until)
            case Unavailable(why=why) | Unknown(why=why):
                await self._drop(known, why)

    async def esperar(self, conta: str, metodo: Metodo, wait: timedelta) -> datetime:
        """Store a flood wait (a period in which Telegram accepts no call of one method from an account), extended by a
        random amount of up to a tenth of its length. Return the time at which the wait ends.
        """
        until = self.clock.now() + wait * (1 + self.chance() / 10)
        await self.contas.esperar(conta, metodo, until, FLOOD(metodo=metodo.value, seconds=round(wait.total_seconds())))
        return until

    async def _drop(self, known: Conexao, why: str, *, until: datetime | None = None) -> None:
        """Close the connection of an account and connect again after a pause."""
        self._pause(known, why, until)
        self._close(known)
        await self._await_database(self.contas.caiu(known.conta.id, why))

    async def _await_database(self, work: Awaitable[T]) -> T:
        """Await a call to the database and return its result. Raise StoreTimeout if the call takes too long. The
        message that needs the result then waits for the database, and no attempt is counted.
        """
        try:
            return await with_timeout(self.prazos.database, work, self.clock, "telegram_contas")
        except DeadlineExceeded as late:
            raise StoreTimeout(where=self.contas.where, why="telegram_contas") from late

    def _close(self, known: Conexao) -> None:
        """Start closing an account's connection. The account reconnects only after the connection is closed."""
        if (linha := known.linha) is None:
            return

        def over(task: asyncio.Task[None]) -> None:
            known.closing = None
            self.wakeup.set()

        known.linha, known.closed_at = None, self.clock.monotonic()
        known.closing = asyncio.create_task(self._close_line(linha), name=f"telegram:{known.conta.id}:close")
        known.closing.add_done_callback(over)

    async def _close_line(self, linha: Linha) -> None:
        await chamar(lambda limit: linha.close(limit=limit), self.prazos.entity, self.clock, "close")

    def _pause(self, known: Conexao, why: str, until: datetime | None = None) -> None:
        longest = min(FIRST_PAUSE * 2**known.failures, LONGEST_PAUSE)
        known.failures = min(known.failures + 1, 16)
        known.until = until or self.clock.now() + longest * (0.5 + self.chance() / 2)
        known.why = why

    def _end(self, id: str) -> None:
        """Close the connection of an account that is no longer active. Once the connection is closed, forget the
        account.
        """
        known = self._open[id]
        self._close(known)
        if known.step is not None:
            if not known.step.cancelling():  # a second cancellation would interrupt the close
                known.step.cancel()
        elif known.closing is None:
            del self._open[id]

    async def drain(self, grace: timedelta) -> None:
        """Close all connections. Connections that are still open after ``grace`` are closed when the process exits."""
        await call_with_deadline(self._end_all, self.clock.now() + grace, self.clock, "drain")
        self._open.clear()

    async def _end_all(self) -> None:
        while self._open:
            for id in list(self._open):
                self._end(id)
            if tasks := [task for each in self._open.values() for task in (each.step, each.closing) if task]:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


def _is_over(wait: datetime | None, now: datetime) -> bool:
    return wait is None or wait <= now
