"""The only place that knows concretes: settings in, a Batuta with everything of Julia's out."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.cli import agendamentos, campanhas
from app.cli import chips as cli_chips
from app.cli import mensagens as cli
from app.cli import mensagens as cli_optout
from app.cli.grupos import avaliar
from app.cli.grupos import fila as cli_grupos_fila
from app.composition.appointments import add_appointments
from app.composition.boards import appointments_board, groups_board
from app.composition.groups import add_groups, group_line
from app.composition.simulator import SIMULATED, simulated, simulator, told_besides
from app.contexts.campanhas.inicio import Inicio
from app.contexts.campanhas.jobs import LOOK_EVERY as CAMPAIGNS_EVERY
from app.contexts.campanhas.jobs import CampaignJobs, CampaignLoop
from app.contexts.campanhas.service import Campanhas
from app.contexts.chips.jobs import ChipJobs
from app.contexts.chips.pool import Pool
from app.contexts.chips.saude import ChipHealth
from app.contexts.chips.selecao import Emissores
from app.contexts.chips.service import Chips
from app.contexts.comum.whatsapp import NoLine, WhatsApp
from app.contexts.conversas.diario import Diario
from app.contexts.conversas.service import Conversas
from app.contexts.envio.duvida import LOOK_EVERY, Reconciliador
from app.contexts.envio.jobs import MessageJobs
from app.contexts.envio.registro import Registro
from app.contexts.envio.remetente import CALL_WITHIN, Remetente
from app.contexts.envio.restauracao import Restauracao
from app.contexts.envio.saude import LIMITS, SaudeDaFila
from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.service import Grupos
from app.contexts.medicos.validacao import Validacao
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.limites import A_QUALQUER_HORA, HORARIO, Limites, limites
from app.contexts.mensagens.regras import BOUND, CAMPAIGNS, SAFE_MODE, WINDOW_OF, RegrasAgora
from app.contexts.mensagens.service import Mensagens
from app.contexts.operacao.service import Eventos
from app.contexts.webhooks.inbox import WEBHOOK_INBOX, InboxWork
from app.integrations.evolution import probe as evolution
from app.integrations.evolution.client import EvolutionClient
from app.integrations.evolution.doctor import examine
from app.integrations.evolution.events import facts_of
from app.integrations.evolution.http import Gateway
from app.integrations.redis import probe as redis
from app.integrations.redis.arq import UNDER_WAY, add_arq
from app.settings import Settings
from app.web.boards import Quadro
from app.web.routes.jobs import add_endpoints, pilot_rules
from app.workers.scheduler import CATALOGUE, PROFILES, WINDOWS, Entry
from batuta.dispatch.plan import held_by_switch
from batuta.engine.batuta import Batuta
from batuta.engine.extension import Command, Examined, Extension, Role
from batuta.guard.switches import SwitchRule
from batuta.health.ready import Probe
from batuta.kernel.clock import Clock
from batuta.receive.endpoints import Handler
from batuta.schedule.window import Window
from batuta.stores.backup.restoring import Restoring
from batuta.stores.sql.audit import AuditLog
from batuta.stores.sql.migrations import Migration, read_folder
from batuta.supervise.loop import LoopPolicy

APP = Path(__file__).parents[1]
# Deliveries worked on at once in one worker: two starved under a group's chatter.
INBOX_AT_A_TIME = 10
# Keys of the simulated outside. They guard nothing real.
# Messages on their way at once in one worker: what may leave is decided by the limits, not by this.
SENDS_AT_A_TIME = 10
GOING_OUT = LoopPolicy(every=CAMPAIGNS_EVERY, stuck_after=timedelta(minutes=5), max_failures=20)
RECONCILING = LoopPolicy(every=LOOK_EVERY, stuck_after=timedelta(minutes=5), max_failures=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast messages may leave; None: as the settings say. A rehearsal, whose clock may run fast, has its own."""

    limites: Limites | None = None
    call_within: timedelta = CALL_WITHIN


def build(settings: Settings, clock: Clock | None = None, pace: Pace | None = None) -> Batuta:
    work = Batuta(
        settings.database_url.get_secret_value(),
        timezone=settings.timezone,
        settings=settings,
        clock=clock,
        migrate=not settings.in_production,
        concurrency=settings.arq_max_jobs * (UNDER_WAY if settings.tasks_backend == "arq" else 1),
        extension=Extension(
            service="julia",
            migrations=migrations(),
            texts=[APP / "texts"],
            roles=roles(settings, lambda: work),
            commands=commands(settings),
            examine=lambda: _examine(work, settings),
            later=["telegram"],
            profiles=PROFILES,
            first_profile=settings.schedule_profile,
            windows=WINDOWS,
            switches=switches(settings),
            api=lambda: _api(work, settings),
            boards=[
                lambda: board(work, settings)(),
                lambda: groups_board(work, settings)(),
                lambda: appointments_board(work, settings)(),
            ],
            child_env={} if settings.in_production else simulated(settings),
            rebuilt=lambda told: build(told_besides(settings, told)),
            restoring=lambda: restoring(work),
            marked=settings.in_production,
            project=settings.supabase_project_ref,
        ),
    )
    add_guards(work, settings)
    groups = add_groups(work, settings)
    add_inbox(work)
    line = whatsapp(settings, work.clock)
    if line is not None:
        work.closers.append(line.close)
    made = add_sending(work, settings, line or NoLine(), pace or Pace())
    add_chips(work, line)
    going = {**add_campaigns(work, settings), **group_line(work, line)}
    add_appointments(work, settings)
    if settings.tasks_backend == "arq":
        add_arq(work, settings)
    add_endpoints(work, settings, {**made.handlers, **chip_handlers(work, line), **going, **groups})
    add_jobs(work, settings)
    work.probes["evolution"] = Probe(lambda: evolution.answers(settings.evolution_api_url), needed=False)
    if settings.redis_url is not None:
        work.probes["redis"] = Probe(lambda: redis.answers(settings.redis_url, settings.redis_password), needed=False)
    return work


def roles(settings: Settings, work: Callable[[], Batuta]) -> Sequence[Role]:
    """What Julia is besides the engine's own: the simulator in development, and who runs tasks where they are on ARQ."""

    async def run_tasks(stop: asyncio.Event) -> None:
        from app.workers.config import run_role

        await run_role(settings, work(), stop)

    made = [] if settings.in_production else [simulator(settings, build)]
    return [*made, Role("arq", run_tasks)] if settings.tasks_backend == "arq" else made


def commands(settings: Settings) -> Mapping[str, Command]:
    """Julia's own words for ``batuta``."""
    words: dict[str, Command] = {
        "chips": cli_chips.chips,
        "chip": cli_chips.chip,
        "set-webhook": cli.set_webhook,
        "duvidas": cli.duvidas,
        "decidir": cli.decidir,
        "optout": cli_optout.optout,
        "remover": cli_optout.remover,
        "campanhas": campanhas.COMMANDS,
        "agendamentos": agendamentos.COMMANDS,
        "grupos": {**avaliar.COMMANDS, **cli_grupos_fila.COMMANDS},
    }
    return words if settings.in_production else words | {"seed-demo": cli.seed_demo}


def add_guards(work: Batuta, settings: Settings) -> None:
    """The services Julia depends on, each behind its breaker, and what she may send."""
    work.circuit("evolution", failures=5, reset=300, longest_reset=1800, probe_within=60)
    work.circuit("claude", failures=3, reset=60, longest_reset=300, probe_within=60)
    work.circuit("supabase", failures=5, reset=30, longest_reset=120, probe_within=30)
    work.circuit("chip:*", failures=3, reset=300, longest_reset=1800, probe_within=60)
    work.watching.behind["chip"] = "evolution"
    for limit in limits(settings).todos:
        work.limit(limit)


def limits(settings: Settings) -> Limites:
    return limites(
        por_hora=settings.rate_limit_per_hour,
        por_dia=settings.rate_limit_per_day,
        por_medico=settings.rate_limit_per_doctor_hour,
        intervalo=timedelta(seconds=settings.send_min_gap_seconds),
    )


def migrations() -> list[Migration]:
    return read_folder("app", APP / "schema")


@dataclass(frozen=True, slots=True)
class Contexts:
    """What the contexts offer each other."""

    eventos: Eventos
    mensagens: Mensagens
    conversas: Conversas
    grupos: Grupos
    chips: Chips


def contexts(work: Batuta) -> Contexts:
    dialect, ids = work.database.dialect, work.ids
    eventos, mensagens = Eventos(dialect, ids), Mensagens(dialect)
    conversas = Conversas(dialect, ids, mensagens, eventos, diario(work))
    return Contexts(
        eventos=eventos,
        mensagens=mensagens,
        conversas=conversas,
        grupos=Grupos(dialect, ids, conversas, work.queues[Estagio.PENDENTE]),
        chips=Chips(dialect, ids, eventos),
    )


def diario(work: Batuta) -> Diario | None:
    """The journal of opt-outs; None: the database is a server, and no file is named."""
    named = work.settings.optout_journal if isinstance(work.settings, Settings) else None
    if named is None and work.database.dialect != "sqlite":
        return None
    return Diario(Path(named or f"{work.database.where}.optouts"), work.database.dialect, work.ids)


def restoring(work: Batuta) -> Sequence[Restoring]:
    """What of Julia's survives a restore."""
    return [Restauracao(work.database.dialect, contexts(work).conversas, diario(work))]


def add_inbox(work: Batuta) -> None:
    """What the gateway told us is worked on by the worker."""
    julia = contexts(work)
    inbox = InboxWork(
        lambda evento, payload: facts_of(evento, payload, work.clock.now()),
        julia.conversas,
        julia.grupos,
        julia.chips,
        work.clock.now,
    )
    recipe = inbox.recipe()
    work.add_queue(WEBHOOK_INBOX, lambda lease: recipe, concurrency=INBOX_AT_A_TIME)


@dataclass(frozen=True, slots=True)
class Sending:
    remetente: Remetente
    reconciliador: Reconciliador
    registro: Registro
    jobs: MessageJobs

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {"processar-mensagens-agendadas": self.jobs.processar_mensagens_agendadas}


def rules(work: Batuta, settings: Settings, *, has_line: bool = True) -> RegrasAgora:
    return RegrasAgora(
        switches=work.switches,
        controls=work.controls,
        book=work.book,
        clock=work.clock,
        zone=work.zone,
        is_production=settings.in_production,
        is_simulated=is_simulated(settings),
        has_line=has_line,
        allowlist=settings.send_allowlist,
        hours=hours(settings),
    )


def sending(work: Batuta, settings: Settings, line: WhatsApp, pace: Pace | None = None) -> Sending:
    pace = pace or Pace()
    julia = contexts(work)
    registro = Registro(work.database.dialect, work.ids, julia.conversas, julia.eventos, work.rates, diario(work))
    remetente = Remetente(
        work.database,
        line,
        registro,
        Emissores(work.database.dialect, work.ids),
        julia.conversas,
        julia.chips,
        circuits=work.circuits,
        rates=work.rates,
        limites=pace.limites or limits(settings),
        rules=rules(work, settings, has_line=not isinstance(line, NoLine)),
        clock=work.clock,
        since=lambda: work.opened_at,
        call_within=pace.call_within,
    )
    again, audit = partial(work.ears.ring, FILA_MENSAGENS.name), AuditLog(work.database.dialect, work.ids)
    reconciliador = Reconciliador(work.database, line, registro, audit, work.clock, work.events, again)
    send = partial(work.work_once, FILA_MENSAGENS.name)
    rescue = partial(work.rescue, FILA_MENSAGENS.name)
    jobs = MessageJobs(work.database, registro, reconciliador, send, rescue, work.zone, work.clock)
    return Sending(remetente, reconciliador, registro, jobs)


def add_sending(work: Batuta, settings: Settings, line: WhatsApp, pace: Pace) -> Sending:
    """Messages leave by the worker; what became of a lost answer is found out by it too."""
    made = sending(work, settings, line, pace)
    recipe = made.remetente.recipe()
    work.add_queue(FILA_MENSAGENS, lambda lease: recipe, concurrency=SENDS_AT_A_TIME)
    work.add_loop(made.reconciliador, RECONCILING)
    saude = queue_health(work)
    work.watching.watch_queue(work.queues[FILA_MENSAGENS.name], LIMITS)
    work.health.add(saude.check)
    work.health.add_page(saude.page)
    return made


def queue_health(work: Batuta) -> SaudeDaFila:
    fila, here = work.queues[FILA_MENSAGENS.name], lambda instant: instant.astimezone(work.zone)
    return SaudeDaFila(work.database, work.beats, fila.pulse, work.now, here)


def board(work: Batuta, settings: Settings) -> Quadro:
    chips = chip_health(work, has_gateway=settings.evolution_api_url is not None)
    return Quadro(
        fila=queue_health(work).medidas,
        chips=chips.document,
        campanhas=campaigns(work, settings),
        rates=work.rates,
        limites=limits(settings),
    )


def add_chips(work: Batuta, line: WhatsApp | None) -> None:
    """How the chips are is part of health."""
    health = chip_health(work, has_gateway=line is not None)
    work.health.add(health.check())
    work.health.add_page(health.page())


def chip_health(work: Batuta, *, has_gateway: bool) -> ChipHealth:
    pool = Pool(work.database.dialect, work.ids)
    return ChipHealth(work.database, pool, work.circuits, work.zone, work.clock, has_gateway=has_gateway)


def chip_handlers(work: Batuta, line: WhatsApp | None) -> Mapping[str, Handler]:
    """``line``: None where no gateway is set."""
    julia, pool = contexts(work), Pool(work.database.dialect, work.ids)
    jobs = ChipJobs(work.database, line, pool, julia.chips, julia.eventos, work.zone, work.clock)
    phones = Validacao(work.database, line, work.circuits, work.switches, work.zone, work.clock)
    return {
        "sincronizar-chips": jobs.sincronizar_chips,
        "verificar-whatsapp": jobs.verificar_whatsapp,
        "atualizar-trust-scores": jobs.atualizar_trust_scores,
        "snapshot-chips-diario": jobs.snapshot_chips_diario,
        "resetar-contadores-chips": jobs.resetar_contadores_chips,
        "validar-telefones": phones.validar_telefones,
    }


def starting(work: Batuta, settings: Settings) -> Inicio:
    eventos = Eventos(work.database.dialect, work.ids)
    return Inicio(work.database, work.queues[FILA_MENSAGENS.name], rules(work, settings), eventos, work.clock)


def campaigns(work: Batuta, settings: Settings) -> Campanhas:
    mensagens, wake = Mensagens(work.database.dialect), partial(work.ears.ring, FILA_MENSAGENS.name)
    return Campanhas(work.database, mensagens, starting(work, settings), work.ids, work.clock, wake)


def add_campaigns(work: Batuta, settings: Settings) -> Mapping[str, Handler]:
    """Campaigns go out by their job; between its fires the worker looks after them."""
    inicio = starting(work, settings)
    work.add_loop(CampaignLoop(inicio, partial(_held_types, work)), GOING_OUT)
    return {"processar-campanhas-agendadas": CampaignJobs(inicio).processar_campanhas_agendadas}


async def _held_types(work: Batuta) -> frozenset[str]:
    """Types of campaign whose job somebody holds: the loop must not do what he holds."""
    controls, switches = await work.controls.read(), await work.switches.all()
    jobs, now = work.book.timetable(controls), work.clock.now()
    is_bound = work.book.profile(controls) == BOUND
    held = {name for name, job in jobs.items() if held_by_switch(job, switches, now) is not None}
    job_of = {tipo: f"processar_campanhas_{window if is_bound else 'agendadas'}" for tipo, window in WINDOW_OF.items()}
    return frozenset(tipo for tipo, name in job_of.items() if name in held)


def hours(settings: Settings) -> Window:
    """When Julia may begin to speak."""
    return A_QUALQUER_HORA if settings.is_demo else HORARIO


def is_simulated(settings: Settings) -> bool:
    """Whether whatever leaves can reach nobody. A gateway on this machine is the simulator only if it has the simulator's key."""
    key = settings.evolution_api_key
    is_here = urlsplit(settings.evolution_api_url or "").hostname in ("127.0.0.1", "localhost", "::1")
    return not settings.in_production and is_here and (key is None or key.get_secret_value() == SIMULATED)


def whatsapp(settings: Settings, clock: Clock) -> EvolutionClient | None:
    """The line to WhatsApp; None: no gateway is set."""
    if settings.evolution_api_url is None or settings.evolution_api_key is None:
        return None
    gateway = Gateway(settings.evolution_api_url, settings.evolution_api_key.get_secret_value(), clock)
    return EvolutionClient(gateway, clock)


async def _examine(work: Batuta, settings: Settings) -> Sequence[Examined]:
    line, journal = whatsapp(settings, work.clock), [_examine_journal(work)]
    if line is None:
        return journal
    try:
        return journal + await examine(line, settings.webhook_address, has_secret=settings.webhook_secret is not None)
    finally:
        await line.close()


def _examine_journal(work: Batuta) -> Examined:
    if (journal := diario(work)) is None:
        return Examined(False, "doctor.diario.none", "doctor.diario.none_step")
    facts = {"file": str(journal.file)}
    if journal.is_writable:
        return Examined(True, "doctor.diario.writable", facts=facts)
    return Examined(False, "doctor.diario.broken", "doctor.diario.broken_step", facts)


def switches(settings: Settings) -> Mapping[str, SwitchRule]:
    """What people can turn, by the word they use."""
    flags = {entry.flag for entry in CATALOGUE if entry.flag is not None}
    pilot = {rule.key: rule for flag in sorted(flags) for rule in pilot_rules(settings, flag)}
    return {"campanhas": CAMPAIGNS, "modo-seguro": SAFE_MODE, **pilot}


def add_jobs(work: Batuta, settings: Settings) -> None:
    token = None if settings.api_token is None else settings.api_token.get_secret_value()
    for entry in CATALOGUE:
        endpoint = work.endpoints.find(entry.path.removeprefix("/jobs/").partition("?")[0])
        for profile in PROFILES:
            if (schedule := entry.schedule(profile)) is not None:
                work.add_job(
                    entry.name,
                    schedule,
                    work.http_target(f"{settings.api_url}{entry.path}", token, entry.name),
                    entry.categoria,
                    profiles=[profile],
                    critical=entry.critical,
                    autonomous=entry.flag is not None,
                    holds=_holds(entry, settings),
                    window=entry.window,
                    replaces=entry.replaces,
                    catch_up=entry.catch_up,
                    finished=endpoint is not None and endpoint.finished,
                )


def _holds(entry: Entry, settings: Settings) -> tuple[SwitchRule, ...]:
    if entry.flag is not None:
        return pilot_rules(settings, entry.flag)
    return (CAMPAIGNS,) if entry.categoria == "campanha" else ()


def _api(work: Batuta, settings: Settings) -> Any:
    from app.main import create_app

    return create_app(settings, work)
