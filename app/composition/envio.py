"""Build the services that send messages: the sender, its limits, and the loop that resolves messages in doubt (the
gateway's answer was lost, so the message may or may not have been sent).
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from urllib.parse import urlsplit

from app.composition.conversas import Messages
from app.composition.development.simulator import SIMULATED
from app.composition.jobs import trigger_rules
from app.contexts.chips.selecao import Emissores
from app.contexts.chips.service import Chips
from app.contexts.comum.whatsapp import NoLine, WhatsApp
from app.contexts.envio.envios_em_duvida import LOOK_EVERY, Reconciliador
from app.contexts.envio.jobs import Contagem, MessageJobs
from app.contexts.envio.registro import Registro
from app.contexts.envio.remetente import CALL_WITHIN, Remetente, SenderParts
from app.contexts.envio.saude import LIMITS, SaudeDaFila
from app.contexts.envio.whatsapp import CanalWhatsApp
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.guardrails import LONGEST, LONGEST_ON_TELEGRAM
from app.contexts.mensagens.limites import A_QUALQUER_HORA, HORARIO, Limites, limites
from app.contexts.mensagens.regras import PAUSES, PAUSES_OF_TELEGRAM, RegrasAgora
from app.contexts.mensagens.tipos import Tipo
from app.integrations.evolution.client import EvolutionClient
from app.integrations.evolution.http import Gateway
from app.settings import Settings
from batuta import Batuta
from batuta.extension import Scope
from batuta.jobs import JobHandler, Window
from batuta.kernel import Clock, dataclass
from batuta.loops import LoopPolicy
from batuta.sql import AuditLog

# Number of messages that one worker sends concurrently. The limits decide how many messages may be sent.
SENDS_AT_A_TIME = 10
RECONCILING = LoopPolicy(every=LOOK_EVERY, stuck_after=timedelta(minutes=5), max_failures=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The sending limits, and how long a decision to send is valid. If ``limites`` is None, the limits in the settings
    apply. Tests with a fast clock use other values.
    """

    limites: Limites | None = None
    call_within: timedelta = CALL_WITHIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    limites: Limites
    remetente: Remetente
    reconciliador: Reconciliador
    registro: Registro
    health: SaudeDaFila
    jobs: MessageJobs

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {"processar-mensagens-agendadas": self.jobs.processar_mensagens_agendadas}


def build_sending(
    work: Batuta, settings: Settings, messages: Messages, chips: Chips, line: WhatsApp | None, pace: Pace | None = None
) -> Sending:
    """Build the services that send messages. The queue FILA_MENSAGENS may be registered with ``work`` later. ``line``
    is None if no gateway is configured.
    """
    pace, dialect = pace or Pace(), work.database.dialect
    limites = pace.limites or limits(settings)
    registro = Registro(
        dialect, work.ids, messages.mensagens, messages.conversas, messages.eventos, work.rates, messages.resumos
    )
    canal = CanalWhatsApp(
        database=work.database,
        line=line or NoLine(),
        registro=registro,
        emissores=Emissores(dialect, work.ids),
        bans=chips,
        circuits=work.circuits,
        clock=work.clock,
        since=lambda: work.opened_at,
    )
    parts = SenderParts(
        database=work.database,
        canal=canal,
        registro=registro,
        conversas=messages.conversas,
        rates=work.rates,
        limites=limites,
        rules=rules_now(work, settings, has_line=line is not None),
        clock=work.clock,
        call_within=pace.call_within,
    )
    again, audit = partial(work.wakeups.wake, FILA_MENSAGENS.name), AuditLog(dialect, work.ids)
    reconciliador = Reconciliador(
        work.database, canal, FILA_MENSAGENS.name, registro, audit, work.clock, work.events, again
    )
    send, rescue = partial(work.work_once, FILA_MENSAGENS.name), partial(work.rescue, FILA_MENSAGENS.name)
    contagem = Contagem()
    messages.ouvintes.registrar(list(Tipo), contagem)
    return Sending(
        limites=limites,
        remetente=Remetente(parts),
        reconciliador=reconciliador,
        registro=registro,
        health=queue_health(work),
        jobs=MessageJobs(work.database, registro, reconciliador, send, rescue, contagem, work.zone, work.clock),
    )


def add_sending(work: Batuta, sending: Sending) -> None:
    """Register the message queue, the loop that resolves messages in doubt (messages that may or may not have been
    sent), and the health checks for both.
    """
    handler = sending.remetente.handler()
    work.add_queue(FILA_MENSAGENS, lambda lease: handler, concurrency=SENDS_AT_A_TIME, scope=Scope.SEND)
    work.add_loop(sending.reconciliador, RECONCILING)
    work.observability.watch_queue(work.queues[FILA_MENSAGENS.name], LIMITS)
    work.health.add(sending.health.check)
    work.health.add_page(sending.health.page)


def queue_health(work: Batuta) -> SaudeDaFila:
    return SaudeDaFila(
        work.database,
        work.beats,
        lambda: work.queues[FILA_MENSAGENS.name].pulse(),
        work.now,
        lambda instant: instant.astimezone(work.zone),
    )


def rules_now(work: Batuta, settings: Settings, *, has_line: bool = True, telegram: bool = False) -> RegrasAgora:
    """Return the sending rules that currently apply: Telegram's rules if ``telegram`` is true, otherwise WhatsApp's."""
    return RegrasAgora(
        switches=work.switches,
        controls=work.controls,
        registry=work.registry,
        clock=work.clock,
        zone=work.zone,
        is_production=settings.in_production,
        is_simulated=is_simulated_telegram(settings) if telegram else is_simulated(settings),
        has_line=has_line,
        longest=LONGEST_ON_TELEGRAM if telegram else LONGEST,
        pauses=PAUSES_OF_TELEGRAM if telegram else PAUSES,
        allowlist=settings.send_allowlist,
        hours=hours(settings),
        triggers=trigger_rules(settings),
    )


def limits(settings: Settings) -> Limites:
    return limites(
        por_hora=settings.rate_limit_per_hour,
        por_dia=settings.rate_limit_per_day,
        por_medico=settings.rate_limit_per_doctor_hour,
        intervalo=timedelta(seconds=settings.send_min_gap_seconds),
    )


def hours(settings: Settings) -> Window:
    """Return the hours in which Julia may start a conversation. If all recipients are synthetic, any hour is allowed."""
    return A_QUALQUER_HORA if is_demonstration(settings) else HORARIO


def is_demonstration(settings: Settings) -> bool:
    """Return whether a demonstration is running and all recipients are synthetic."""
    return settings.is_demo and is_simulated(settings)


def is_simulated(settings: Settings) -> bool:
    """Return whether messages can reach only the simulator, never a person.

    A gateway on loopback is treated as the simulator only if it uses the simulator's key.
    """
    key = settings.evolution_api_key
    is_here = urlsplit(settings.evolution_api_url or "").hostname in ("127.0.0.1", "localhost", "::1")
    return not settings.in_production and is_here and (key is None or key.get_secret_value() == SIMULATED)


def is_simulated_telegram(settings: Settings) -> bool:
    """Return whether Telegram messages go to the simulated Telegram."""
    return (
        not settings.in_production and settings.telegram_api_id is None and settings.telegram_simulador_url is not None
    )


def whatsapp(settings: Settings, clock: Clock) -> EvolutionClient | None:
    """Return the WhatsApp gateway's client, or None if no gateway is configured."""
    if settings.evolution_api_url is None or settings.evolution_api_key is None:
        return None
    gateway = Gateway(settings.evolution_api_url, settings.evolution_api_key.get_secret_value(), clock)
    return EvolutionClient(gateway, clock)
