"""Build the object graph for one process: all of Julia's services, from the settings and a Batuta engine."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.composition.agendamentos import Appointments, add_appointments
from app.composition.campanhas import Campaigns, add_campaigns, build_campaigns
from app.composition.chips import ChipServices, add_chips, build_chips
from app.composition.conversas import Doctors, FollowUps, Messages, add_followups, build_doctors, build_messages
from app.composition.envio import Pace, Sending, add_sending, build_sending, limits, whatsapp
from app.composition.gestao.diretrizes import Directives, add_directives
from app.composition.gestao.equipe import Team, add_team
from app.composition.gestao.gatilhos import Triggers, add_triggers
from app.composition.gestao.lgpd import PersonalData, add_personal_data
from app.composition.gestao.qualidade import Quality, add_quality
from app.composition.gestao.relatorios import Reports, add_reports
from app.composition.grupos import GroupContacts, Groups, add_groups, build_group_contacts
from app.composition.jobs import add_endpoints, add_jobs, upkeep_handlers
from app.composition.llm import CIRCUIT, build_llm
from app.composition.plantoes import Answers, ExternalHandoffs, Shifts, add_answers, add_handoffs, add_shifts
from app.composition.telegram.services import TelegramServices, add_telegram
from app.contexts.mensagens.tipos import Tipo
from app.contexts.telegram.porta import Telegram as Port
from app.contexts.webhooks.api import Fato
from app.contexts.webhooks.inbox import WEBHOOK_INBOX, Inbox, InboxWork
from app.integrations.chatwoot import events as chatwoot
from app.integrations.evolution import probe as evolution
from app.integrations.evolution.client import EvolutionClient
from app.integrations.evolution.events import facts_of
from app.integrations.redis import probe as redis
from app.settings import Settings
from batuta import Batuta, Done, Outcome
from batuta.health import Probe
from batuta.jobs import JobCall, JobHandler
from batuta.kernel import Json, dataclass
from batuta.sql import Retention

if TYPE_CHECKING:
    from batuta.arq import ArqRelay

# Number of deliveries that one worker processes concurrently. With only two, the deliveries of one busy group delayed
# all others.
INBOX_AT_A_TIME = 10
# Jobs that first process up to INBOX_PER_JOB stored deliveries. In an installation without a worker no other process
# does that.
READ_INBOX_FIRST = ("processar-mensagens-agendadas", "processar-grupos")
INBOX_PER_JOB = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Julia:
    """All services in one process. ``compose`` builds each service once; commands, routes, boards, jobs and workers
    share them.
    """

    settings: Settings
    work: Batuta
    line: EvolutionClient | None  # None if no gateway is configured
    messages: Messages
    doctors: Doctors
    chips: ChipServices
    sending: Sending
    telegram: TelegramServices
    campaigns: Campaigns
    groups: Groups
    group_contacts: GroupContacts
    shifts: Shifts
    handoffs: ExternalHandoffs
    answers: Answers
    followups: FollowUps
    triggers: Triggers
    appointments: Appointments
    reports: Reports
    directives: Directives
    team: Team
    quality: Quality
    personal_data: PersonalData
    inbox: Inbox
    relay: "ArqRelay | None"  # None if tasks run on the engine's queue


def compose(work: Batuta, settings: Settings, pace: Pace | None = None, port: Port | None = None) -> Julia:
    """Build every service in the process, and register the queues, pipelines, loops, health checks and jobs with
    ``work``. If ``port`` is given, it replaces the Telegram client that the settings select.
    """
    add_guards(work, settings)
    messages, llm = build_messages(work, settings), build_llm(work, settings)
    work.health.add(messages.duvidas.check)
    work.health.add(messages.pendencias.check)
    work.health.add(messages.atendimento.check)
    groups = add_groups(work, settings, messages.conversas, llm)
    if (line := whatsapp(settings, work.clock)) is not None:
        work.closers.append(line.close)
    chips = build_chips(work, messages, line)
    sending = build_sending(work, settings, messages, chips.chips, line, pace)
    add_sending(work, sending)
    telegram = add_telegram(work, settings, messages, groups, sending, port)
    team = add_team(work, settings, messages, telegram.saidas)
    inbox = add_inbox(work, messages, groups, chips, team)
    add_chips(work, chips)
    campaigns = build_campaigns(work, settings, messages)
    add_campaigns(work, campaigns)
    shifts, handoffs = add_shifts(work, groups.dicionario), add_handoffs(work, settings, messages, telegram.saidas)
    julia = Julia(
        settings=settings,
        work=work,
        line=line,
        messages=messages,
        doctors=build_doctors(work),
        chips=chips,
        sending=sending,
        telegram=telegram,
        campaigns=campaigns,
        groups=groups,
        group_contacts=build_group_contacts(work, groups.dicionario, line),
        shifts=shifts,
        handoffs=handoffs,
        answers=add_answers(work, settings, messages, shifts, handoffs.handoffs, telegram.saidas),
        followups=add_followups(work, messages, groups.dicionario),
        triggers=add_triggers(work, settings, messages, shifts, telegram.saidas),
        appointments=add_appointments(work, settings, llm),
        reports=add_reports(work, settings),
        directives=add_directives(work, settings, shifts.urgencias, team.avisos),
        team=team,
        quality=add_quality(work, settings, llm),
        personal_data=add_personal_data(work, messages, shifts.plantoes),
        inbox=inbox,
        relay=add_relay(work, settings),
    )
    _add_listeners(julia)
    _add_jobs(julia)
    _add_probes(julia)
    return julia


def julia_of(work: Batuta) -> Julia:
    """Return the services that ``compose`` built for ``work``."""
    build = work.extension.application
    julia = None if build is None else build()
    if not isinstance(julia, Julia):
        raise TypeError("this Batuta was built without Julia: build it with app.main.build")
    return julia


def add_guards(work: Batuta, settings: Settings) -> None:
    """Declare the circuit breakers for the services that Julia calls, and the limits on Julia's messages."""
    work.circuit("evolution", failures=5, reset=300, longest_reset=1800, probe_within=60)
    work.circuit(CIRCUIT, failures=3, reset=60, longest_reset=300, probe_within=60)
    work.circuit("chip:*", failures=3, reset=300, longest_reset=1800, probe_within=60)
    work.observability.behind["chip"] = "evolution"
    for limit in limits(settings).todos:
        work.limit(limit)


def add_inbox(work: Batuta, messages: Messages, groups: Groups, chips: ChipServices, team: Team) -> Inbox:
    """Register the queue for webhook deliveries. The api stores each delivery from the gateway or the help desk. The
    worker processes the stored deliveries.
    """

    def read(evento: str, payload: Json) -> Sequence[Fato]:
        if evento.startswith(chatwoot.PREFIX):
            return chatwoot.facts_of(evento, payload)
        return facts_of(evento, payload, work.clock.now())

    handling = InboxWork(
        read,
        messages.conversas,
        groups.grupos,
        chips.chips,
        work.clock.now,
        team.recados,
    )
    handler = handling.handler()
    work.add_queue(WEBHOOK_INBOX, lambda lease: handler, concurrency=INBOX_AT_A_TIME)
    return Inbox(work.queues[WEBHOOK_INBOX.name])


def add_relay(work: Batuta, settings: Settings) -> "ArqRelay | None":
    if settings.tasks_backend != "arq":
        return None
    # Only this configuration imports the ARQ and Redis clients, because the import would cost every other one memory.
    from app.integrations.redis.arq import add_arq

    return add_arq(work, settings)


def _add_listeners(julia: Julia) -> None:
    """Register the contexts' functions that react to three events: a message was sent, a message failed for good, or a
    message arrived.

    Listeners for inbound messages are called in the order of registration. Each listener sees the effects of the
    listeners called before it.
    """
    sent, conversas = julia.messages.ouvintes, julia.messages.conversas
    sent.registrar([Tipo.MANUAL], conversas.pendencias)
    sent.registrar(list(Tipo), julia.doctors.estado)
    conversas.ao_receber(julia.doctors.estado)
    conversas.ao_receber(julia.handoffs.externos)
    conversas.ao_receber(julia.triggers.contatos)
    # Registered last, because it answers the messages that no other listener handled.
    conversas.ao_receber(julia.answers.respostas)


def _add_jobs(julia: Julia) -> None:
    handlers = {
        **upkeep_handlers(julia.work, julia.settings, Retention("lgpd_pedidos", julia.personal_data.lgpd.retomar)),
        **julia.sending.handlers,
        **julia.chips.handlers,
        **julia.campaigns.handlers,
        **julia.group_contacts.handlers,
        **julia.groups.handlers,
        **julia.shifts.handlers,
        **julia.doctors.handlers,
        **julia.handoffs.handlers,
        **julia.answers.handlers,
        **julia.followups.handlers,
        **julia.triggers.handlers,
        **julia.reports.handlers,
        **julia.directives.handlers,
        **julia.quality.handlers,
    }
    first = {name: _read_inbox_first(julia.work, handlers[name]) for name in READ_INBOX_FIRST}
    add_endpoints(julia.work, julia.settings, handlers | first)
    add_jobs(julia.work, julia.settings)


def _read_inbox_first(work: Batuta, handler: JobHandler) -> JobHandler:
    """Return a handler that processes the stored webhook deliveries, including those that a dead process had claimed,
    and then runs ``handler``.
    """

    async def run(call: JobCall) -> Outcome:
        await work.rescue(WEBHOOK_INBOX.name)
        read = await work.work_once(WEBHOOK_INBOX.name, INBOX_PER_JOB)
        outcome = await handler(call)
        if isinstance(outcome, Done) and isinstance(outcome.result, dict):
            return replace(outcome, result={**outcome.result, "webhooks": read})
        return outcome

    return run


def _add_probes(julia: Julia) -> None:
    work, settings = julia.work, julia.settings
    work.probes["evolution"] = Probe(lambda: evolution.answers(settings.evolution_api_url), needed=False)
    if settings.redis_url is not None:
        work.probes["redis"] = Probe(lambda: redis.answers(settings.redis_url, settings.redis_password), needed=False)
