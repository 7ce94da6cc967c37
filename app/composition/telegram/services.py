"""Build the Telegram services: the accounts and their connections, the channel for sending, the inbox, and the queues
that the role ``telegram`` works on.
"""

from datetime import timedelta
from functools import partial

from app.composition.conversas import Messages
from app.composition.envio import RECONCILING, Sending, rules_now
from app.composition.grupos import Groups
from app.composition.telegram.port import build_port, build_sessions
from app.composition.telegram.role import ROLE
from app.contexts.comum.fila import Fila
from app.contexts.envio.envios_em_duvida import Reconciliador
from app.contexts.envio.remetente import Remetente, SenderParts
from app.contexts.mensagens.fila import FILA_MENSAGENS, FILA_TELEGRAM, TELEGRAM_SAIDA
from app.contexts.mensagens.saidas import Saidas
from app.contexts.telegram.arquivos import Arquivos
from app.contexts.telegram.canal import CanalTelegram
from app.contexts.telegram.conexoes import EVERY, Conexoes
from app.contexts.telegram.contas import Contas
from app.contexts.telegram.entidades import EntidadesConhecidas
from app.contexts.telegram.entrada import TELEGRAM_ENTRADA, Entrada, EntradaWork
from app.contexts.telegram.porta import Telegram as Port
from app.contexts.telegram.prazo import Prazos
from app.contexts.telegram.saude import LIMITS, SaudeDoTelegram
from app.contexts.telegram.service import ServicoTelegram
from app.contexts.telegram.sessoes import Sessoes
from app.contexts.telegram.tarefas import TELEGRAM_ACOES, TELEGRAM_HISTORICO, Tarefas
from app.settings import Settings
from batuta import Batuta
from batuta.extension import Scope
from batuta.kernel import dataclass
from batuta.loops import LoopPolicy
from batuta.queues import after_seconds
from batuta.sql import AuditLog

# The first retries come soon. Retries are harmless, because every attempt has the same random_id.
RETRY = after_seconds([2, 5, 15, 60, 300, 900, 1800])
TASKS_AT_A_TIME = 8
INBOX_AT_A_TIME = 10
# After this time without progress the supervisor restarts the loop ``sync``. The time is short, because a tick of that
# loop waits only for the database and never for Telegram.
STUCK_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramServices:
    contas: Contas
    sessoes: Sessoes
    entidades: EntidadesConhecidas
    conexoes: Conexoes  # connected only in the worker ``telegram``
    entrada: Entrada
    remetente: Remetente
    reconciliador: Reconciliador
    servico: ServicoTelegram
    saidas: Saidas
    health: SaudeDoTelegram


def add_telegram(
    work: Batuta,
    settings: Settings,
    messages: Messages,
    groups: Groups,
    sending: Sending,
    port: Port | None = None,
) -> TelegramServices:
    """Build the Telegram services, and register their queues, loops, circuit breakers and health checks. If ``port`` is
    given, it replaces the Telegram client that the settings select.
    """
    database, clock = work.database, work.clock
    work.circuit("telegram:*", failures=5, reset=60, longest_reset=3600, probe_within=120)
    contas, entidades = Contas(database, work.ids, clock), EntidadesConhecidas(database, clock)
    sessoes, limits = build_sessions(settings, database, clock), prazos(settings)
    entrada = Entrada(database, contas, entidades, messages.conversas, work.ids, clock)
    conexoes = Conexoes(
        telegram=port or build_port(settings, sessoes, entidades, clock),
        contas=contas,
        sessoes=sessoes,
        recebedor=entrada,
        prazos=limits,
        clock=clock,
    )
    arquivos = Arquivos(database, clock)
    canal = _channel(work, messages, sending, conexoes, entidades, arquivos)
    remetente, reconciliador = _sender(work, settings, messages, sending, canal), _reconciler(work, sending, canal)
    conexoes.on_connect = partial(_send_again, work, reconciliador)
    saida = _add_outbound(work, remetente, at_a_time=settings.telegram_sends_at_a_time)
    tarefas = Tarefas(
        database=database,
        conexoes=conexoes,
        contas=contas,
        entidades=entidades,
        entrada=entrada,
        saida=saida,
        prazos=limits,
        clock=clock,
    )
    health = SaudeDoTelegram(database, contas, work.beats, work.now, clock, work.zone)
    historico, acoes = _add_queues(work, messages, groups, tarefas)
    syncing = LoopPolicy(every=EVERY, stuck_after=STUCK_AFTER, longest_call=limits.database, max_failures=20)
    work.add_loop(conexoes, syncing, role=ROLE)
    work.add_loop(reconciliador, RECONCILING, role=ROLE)
    work.health.add(health.check)
    work.health.add_page(health.page)
    return TelegramServices(
        contas=contas,
        sessoes=sessoes,
        entidades=entidades,
        conexoes=conexoes,
        entrada=entrada,
        remetente=remetente,
        reconciliador=reconciliador,
        servico=ServicoTelegram(
            database, contas, entidades, arquivos, messages.conversas, saida, historico, acoes, work.ids, clock
        ),
        saidas=Saidas(database, work.queues[FILA_MENSAGENS.name], saida),
        health=health,
    )


def _send_again(work: Batuta, reconciliador: Reconciliador) -> None:
    """After an account has reconnected, wake two loops: the loop that sends messages, and the loop that finds out
    whether messages with an unknown result were sent.
    """
    work.wakeups.wake(TELEGRAM_SAIDA)
    reconciliador.wakeup.set()


def _channel(
    work: Batuta,
    messages: Messages,
    sending: Sending,
    conexoes: Conexoes,
    entidades: EntidadesConhecidas,
    arquivos: Arquivos,
) -> CanalTelegram:
    return CanalTelegram(
        database=work.database,
        conexoes=conexoes,
        contas=conexoes.contas,
        entidades=entidades,
        arquivos=arquivos,
        conversas=messages.conversas,
        registro=sending.registro,
        circuits=work.circuits,
        prazos=conexoes.prazos,
        clock=work.clock,
        since=lambda: work.opened_at,
    )


def _sender(work: Batuta, settings: Settings, messages: Messages, sending: Sending, canal: CanalTelegram) -> Remetente:
    return Remetente(
        SenderParts(
            database=work.database,
            canal=canal,
            registro=sending.registro,
            conversas=messages.conversas,
            rates=work.rates,
            limites=sending.limites,
            rules=rules_now(work, settings, telegram=True),
            clock=work.clock,
            retry=RETRY,
            timeout=canal.prazos.cycle,
        )
    )


def _reconciler(work: Batuta, sending: Sending, canal: CanalTelegram) -> Reconciliador:
    audit, wake = AuditLog(work.database.dialect, work.ids), partial(work.wakeups.wake, TELEGRAM_SAIDA)
    parts = (work.database, canal, TELEGRAM_SAIDA, sending.registro, audit, work.clock, work.events, wake)
    return Reconciliador(*parts, name="reconciliador_telegram")


def _add_outbound(work: Batuta, remetente: Remetente, *, at_a_time: int) -> Fila:
    send = remetente.handler()
    return work.add_queue(
        FILA_TELEGRAM,
        lambda lease: send,
        queue=TELEGRAM_SAIDA,
        concurrency=at_a_time,
        role=ROLE,
        loop="outbound",
        scope=Scope.SEND,
    )


def _add_queues(work: Batuta, messages: Messages, groups: Groups, tarefas: Tarefas) -> tuple[Fila, Fila]:
    """Register all Telegram queues except the queue for outbound messages. Return two of them: the queue of backfills,
    which read old messages, and the queue of actions on existing messages.
    """
    read, act = tarefas.historico(), tarefas.acoes()
    receive = EntradaWork(messages.conversas, groups.grupos, work.clock).handler()
    historico = work.add_queue(
        TELEGRAM_HISTORICO, lambda lease: read, concurrency=TASKS_AT_A_TIME, role=ROLE, loop="history"
    )
    acoes = work.add_queue(TELEGRAM_ACOES, lambda lease: act, concurrency=TASKS_AT_A_TIME, role=ROLE, loop="jobs")
    work.add_queue(TELEGRAM_ENTRADA, lambda lease: receive, concurrency=INBOX_AT_A_TIME)
    watched = {TELEGRAM_SAIDA: "outbound", TELEGRAM_HISTORICO.name: "history", TELEGRAM_ACOES.name: "jobs"}
    for name, loop in watched.items():
        work.observability.watch_queue(work.queues[name], LIMITS, loop)
    work.observability.watch_queue(work.queues[TELEGRAM_ENTRADA.name], LIMITS)
    return historico, acoes


def prazos(settings: Settings) -> Prazos:
    return Prazos(
        send=timedelta(seconds=settings.telegram_timeout_send),
        entity=timedelta(seconds=settings.telegram_timeout_entity),
        media=timedelta(seconds=settings.telegram_timeout_media),
        database=timedelta(seconds=settings.telegram_timeout_db),
        cycle=timedelta(seconds=settings.telegram_timeout_cycle),
    )
