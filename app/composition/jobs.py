"""The job catalogue, with the handler, the guards and the schedule of each job.

To add a job, add one line to ``CATALOGUE`` and one handler to a context. There are two timetables: ``continuo`` runs
the campaigns all day; ``janelas`` runs them in three windows, and runs the other jobs less often.
"""

from collections.abc import Mapping, Sequence
from datetime import time, timedelta
from pathlib import Path
from typing import Final, Literal, TypeAlias

from app.contexts.handoffs.model import SWITCH as HANDOFFS
from app.contexts.mensagens.interruptores import CAMPAIGNS, SAFE_MODE
from app.contexts.operacao.jobs import Upkeep
from app.settings import Settings
from batuta import Batuta, Outcome, Skipped
from batuta.guards import Hold, SwitchGuard, SwitchRule
from batuta.jobs import CatchUp, JobCall, JobHandler, Window
from batuta.kernel import dataclass
from batuta.reasons import hold_reason
from batuta.sql import Retention, keep_for, retentions_in

CONTEXTS: Final = Path(__file__).parents[1] / "contexts"
HISTORY: Final = sorted(CONTEXTS.glob("*/sql/history.sql"))
# For each context with personal data: the setting that says how many days the data is kept.
KEPT: Final = {
    "conversas": "keep_conversations_days",
    "grupos": "keep_group_messages_days",
    "agendamentos": "keep_appointments_days",
}
Profile: TypeAlias = Literal["continuo", "janelas"]
PROFILES: Final[tuple[Profile, ...]] = ("continuo", "janelas")
# Number of concurrent runs reserved for each of these job categories. Operators wait for the results of these jobs, so
# the jobs must not wait for jobs of other categories.
RESERVED: Final = {"critico": 8}
WINDOWS: Final = {
    "manha": Window(opens=time(10), lasts=timedelta(hours=2)),  # campaigns of the types discovery and reativação
    "tarde": Window(opens=time(14), lasts=timedelta(hours=2)),  # campaigns of the type oferta
    "fim": Window(opens=time(17), lasts=timedelta(hours=2)),  # campaigns of the types follow-up and feedback
}
SAME: Final = "same"
# The SLA agreed with operators for every daily job. It also applies to a job that runs twice a day.
DAILY_SLA: Final = timedelta(hours=25)


@dataclass(frozen=True, slots=True)
class Entry:
    """A job in the catalogue. ``continuo`` and ``janelas`` are the job's schedules in the timetables of the same names.
    If a schedule is None, the job is not in that timetable.
    """

    name: str
    categoria: str
    continuo: str | None
    janelas: str | None = SAME
    endpoint: str | None = None  # path under ``/jobs/``; None means the name with hyphens
    critical: bool = False
    # for a job that acts without an operator: it runs only if pilot mode is off and this flag is on
    flag: str | None = None
    window: str | None = None
    replaces: str | None = None  # the job in the other timetable that this job replaces
    catch_up: CatchUp = CatchUp.LATEST
    sla: timedelta | None = None  # None means that the SLA follows from the time between two fires

    @property
    def path(self) -> str:
        return f"/jobs/{self.endpoint or self.name.replace('_', '-')}"

    def schedule(self, profile: Profile) -> str | None:
        return self.continuo if profile == "continuo" or self.janelas == SAME else self.janelas


def campanha(window: str, janelas: str) -> Entry:
    """Return a catalogue entry for the job that starts campaigns during one window of the day."""
    whole = "processar_campanhas_agendadas"
    return Entry(
        f"processar_campanhas_{window}", "campanha", None, janelas, whole.replace("_", "-"), critical=True, window=window,
        replaces=whole,
    )  # fmt: skip


def followup(part: str, janelas: str) -> Entry:
    whole = "processar_followups"
    return Entry(f"{whole}_{part}", "followup", None, janelas, whole.replace("_", "-"), replaces=whole)


def gatilho(name: str, continuo: str, flag: str, endpoint: str | None = None, sla: timedelta | None = None) -> Entry:
    """Return a catalogue entry for a job that acts without an operator. A missed fire is skipped, because a late run
    would contact people at an unintended hour.
    """
    endpoint = endpoint or f"executar-{name.replace('_', '-')}"
    return Entry(name, "gatilho", continuo, endpoint=endpoint, flag=flag, catch_up=CatchUp.SKIP, sla=sla)


# fmt: off
CATALOGUE: Final = (
    # Jobs whose results operators wait for
    Entry("heartbeat", "critico", "* * * * *"),
    Entry("processar_mensagens_agendadas", "critico", "* * * * *", critical=True),
    # Campaigns: every minute, or in windows
    Entry("processar_campanhas_agendadas", "campanha", "* * * * *", None, critical=True),
    campanha("manha", "0 10 * * 1-5"),
    campanha("tarde", "0 14 * * 1-5"),
    campanha("fim", "0 17 * * 1-5"),
    # Follow-ups and pauses
    Entry("processar_followups", "followup", "0 10 * * *", None),
    followup("manha", "0 10 * * 1-5"),
    followup("tarde", "0 16 * * 1-5"),
    Entry("processar_pausas_expiradas", "followup", "0 6 * * *"),
    # Groups
    Entry("processar_grupos", "grupos", "* * * * *", "*/15 * * * *", critical=True),
    Entry("sincronizar_grupos", "grupos", "35 * * * *"),
    # Monitoring
    Entry("verificar_whatsapp", "monitoramento", "*/5 * * * *", critical=True),
    Entry("verificar_alertas", "monitoramento", "*/15 * * * *", "*/30 * * * *"),
    Entry("verificar_alertas_grupos", "monitoramento", "*/15 * * * *", "*/30 * * * *"),
    # Chips
    Entry("sincronizar_chips", "chips", "*/5 * * * *"),
    Entry("atualizar_trust_scores", "chips", "*/15 * * * *"),
    Entry("snapshot_chips_diario", "chips", "55 23 * * *"),
    Entry("resetar_contadores_chips", "chips", "5 0 * * *"),
    Entry("validar_telefones", "validacao", "*/5 8-19 * * *"),
    # Operators
    Entry("processar_handoffs", "handoff", "*/10 * * * *", "*/15 * * * *"),
    Entry("processar_retomadas", "retomada", "0 8 * * 1-5"),
    Entry("processar_confirmacao_plantao", "confirmacao", "0 * * * *"),
    # Jobs that act without an operator
    gatilho("oferta_autonoma", "0 * * * *", "oferta_automatica_enabled"),
    gatilho("discovery_autonomo", "0 9,14 * * 1-5", "discovery_automatico_enabled", sla=DAILY_SLA),
    gatilho("reativacao_autonoma", "0 10 * * 1", "reativacao_automatica_enabled"),
    gatilho("feedback_autonomo", "0 11 * * *", "feedback_automatico_enabled"),
    gatilho(
        "recovery_vagas_incompletas", "0,30 9-19 * * 1-5", "recuperacao_automatica_enabled", "recovery-vagas-incompletas",
    ),
    # Synchronisation with documents and other services
    Entry("sincronizar_briefing", "sync", "0 * * * *"),
    Entry("sincronizar_templates", "sync", "0 6 * * *", endpoint="sync-templates"),
    # Cleaning and consolidation
    Entry("consolidar_metricas_grupos", "manutencao", "0 1 * * *"),
    Entry("avaliar_conversas_pendentes", "manutencao", "0 2 * * *"),
    Entry("atualizar_prompt_feedback", "manutencao", "0 2 * * 0"),
    Entry("doctor_state_manutencao_diaria", "manutencao", "0 3 * * *"),
    Entry("limpar_grupos_finalizados", "manutencao", "0 3 * * *"),
    Entry("limpeza_hospitais", "manutencao", "0 4 * * 0"),
    Entry("canario_grupos", "manutencao", "0 7 * * *"),
    Entry("doctor_state_manutencao_semanal", "manutencao", "0 4 * * 1"),
    Entry("limpar_historico", "manutencao", "20 * * * *"),
    # Reports
    Entry("report_manha", "report", "0 10 * * *", endpoint="report-periodo?tipo=manha"),
    Entry("report_almoco", "report", None, "0 13 * * *", endpoint="report-periodo?tipo=almoco"),
    Entry("report_tarde", "report", None, "0 17 * * *", endpoint="report-periodo?tipo=tarde"),
    Entry("report_fim_dia", "report", "0 20 * * *", endpoint="report-periodo?tipo=fim_dia"),
    Entry("report_semanal", "report", "0 9 * * 1"),
)
# fmt: on


def timetable(profile: Profile) -> list[dict[str, str]]:
    """Return the name, endpoint, schedule and category of every job in a timetable."""
    return [
        {"name": entry.name, "endpoint": entry.path, "schedule": schedule, "categoria": entry.categoria}
        for entry in CATALOGUE
        if (schedule := entry.schedule(profile)) is not None
    ]


def pilot_rules(settings: Settings, flag: str) -> tuple[SwitchRule, ...]:
    """Return the switch rules for a job that acts without an operator: pilot mode must be off and the job's flag on."""
    return (
        SwitchRule(key="pilot_mode", hold_when=True, default=settings.pilot_mode),
        SwitchRule(key=flag, hold_when=False, default=bool(getattr(settings, flag))),
    )


def add_endpoints(work: Batuta, settings: Settings, handlers: Mapping[str, JobHandler]) -> None:
    """Register each handler at the path ``/jobs/`` followed by the handler's name. Every job in the catalogue needs a
    handler.
    """
    for endpoint, entry in _endpoints().items():
        guards = [] if entry.flag is None else pilot_rules(settings, entry.flag)
        work.endpoints.add(
            endpoint,
            _guard(work, guards, handlers[endpoint]),
            apart_by=("tipo",) if endpoint == "report-periodo" else (),
        )


def upkeep_handlers(work: Batuta, settings: Settings, requested: Retention) -> Mapping[str, JobHandler]:
    """Return the handlers for the cleaning jobs. ``requested`` erases the data of people who requested erasure."""
    upkeep = Upkeep(work.beats, [requested, *history(work, settings)], work.clock)
    return {"heartbeat": upkeep.heartbeat, "limpar-historico": upkeep.limpar_historico}


def history(work: Batuta, settings: Settings) -> list[Retention]:
    """Return the retentions that the job `limpar_historico` applies: those for runs, for circuit-breaker transitions
    and for the tables in each context's `history.sql`. The retentions for personal data (`retencao.sql`) are added for
    each context whose setting is a number of days and not "off".
    """
    age, database, clock = timedelta(days=settings.batuta_keep_executions_days), work.database, work.clock
    kept = {context: getattr(settings, name) for context, name in KEPT.items()}
    return [
        keep_for(age, "job_executions", work.executions, work.clock),
        keep_for(age, "circuit_transitions", work.circuit_store, work.clock),
        *(each for file in HISTORY for each in retentions_in(file, age, database, clock)),
        *(
            each
            for context, days in kept.items()
            if days != "off"
            for each in retentions_in(
                CONTEXTS / context / "sql" / "retencao.sql", timedelta(days=days), database, clock
            )
        ),
    ]


def add_jobs(work: Batuta, settings: Settings) -> None:
    """Add every job of the catalogue to the scheduler. A job has one schedule for each profile (``continuo`` and
    ``janelas``) in which it runs. When a job is due, the scheduler calls the job's endpoint in Julia's API.
    """
    token = None if settings.api_token is None else settings.api_token.get_secret_value()
    for entry in CATALOGUE:
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
                    sla=entry.sla,
                )


def trigger_rules(settings: Settings) -> Mapping[str, Sequence[SwitchRule]]:
    """Map the switch of each automatic trigger to all switches that can hold back the trigger's messages."""
    flags = sorted({entry.flag for entry in CATALOGUE if entry.flag is not None})
    return {flag: pilot_rules(settings, flag) for flag in flags} | {HANDOFFS.key: (HANDOFFS,)}


def switches(settings: Settings) -> Mapping[str, SwitchRule]:
    """Return the switches that operators set, by name."""
    pilot = {rule.key: rule for rules in trigger_rules(settings).values() for rule in rules}
    return {"campanhas": CAMPAIGNS, "modo-seguro": SAFE_MODE, **pilot}


def _holds(entry: Entry, settings: Settings) -> tuple[SwitchRule, ...]:
    if entry.flag is not None:
        return pilot_rules(settings, entry.flag)
    return (CAMPAIGNS,) if entry.categoria == "campanha" else ()


def _endpoints() -> dict[str, Entry]:
    """Map each path under ``/jobs/`` to the catalogue's jobs that use it. Several jobs may share a path."""
    return {entry.path.removeprefix("/jobs/").partition("?")[0]: entry for entry in CATALOGUE}


def _guard(work: Batuta, rules: Sequence[SwitchRule], handler: JobHandler) -> JobHandler:
    """Return a handler that checks the switches before it runs ``handler``, because a manual HTTP call bypasses the
    scheduler and its checks.
    """
    if not rules:
        return handler

    async def ask_first(call: JobCall) -> Outcome:
        for rule in rules:
            guard = SwitchGuard(switches=work.switches, key=rule.key, hold_when=rule.hold_when, default=rule.default)
            if isinstance(hold := await guard.admit(work.clock.now()), Hold):
                return Skipped(hold_reason(hold.reason))
        return await handler(call)

    return ask_first
