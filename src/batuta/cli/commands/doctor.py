"""The command ``batuta doctor``, which checks everything that the application needs in order to start, and shows the
next step for each problem.
"""

import platform
from collections.abc import Iterator
from dataclasses import asdict
from typing import Literal, TypeAlias

import typer

from batuta.cli.context import FAILED, CliContext, JsonFlag, cli_context, wait_for
from batuta.cli.output import answers
from batuta.config import EngineSettings, names, near_misses, unset
from batuta.engine.batuta import Batuta
from batuta.environment import ENV_FILE, in_file
from batuta.health.aggregator import State, look
from batuta.health.checks import join_names
from batuta.kernel.errors import AddressTaken, BatutaError
from batuta.kernel.identity import identity
from batuta.kernel.values import dataclass
from batuta.processes.address import listen
from batuta.texts import Texts

Mark: TypeAlias = Literal["ok", "warning", "wrong"]
SIGNS: dict[Mark, tuple[str, str]] = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "wrong": ("✗", "red")}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One line that `batuta doctor` prints: the result of one check, and the next step if something is wrong."""

    mark: Mark
    what: str
    next_step: str | None = None


def doctor(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    findings = wait_for(examine(ctx))
    healthy = all(finding.mark != "wrong" for finding in findings)
    document = {"healthy": healthy, "findings": [asdict(finding) for finding in findings]}
    ctx.show(document, as_json, lambda: _print(ctx, findings))
    if not healthy:
        raise typer.Exit(FAILED)


async def examine(ctx: CliContext) -> list[Diagnosis]:
    texts = ctx.texts()
    findings = [Diagnosis("ok", texts("doctor.python", version=platform.python_version()))]
    try:
        settings, work = ctx.settings(), ctx.work()
    except BatutaError as error:
        return [*findings, Diagnosis("wrong", texts("doctor.settings_wrong"), texts.error(error))]
    findings += _settings(ctx, settings, work, ctx.texts())
    findings += _address(settings, ctx.texts())
    findings += await examine_database(work, ctx.texts())
    findings += _crash_detection(work, ctx.texts())
    seen = as_it_runs(ctx, settings, work)
    if seen is not work:
        findings.append(Diagnosis("ok", ctx.texts()("doctor.as_it_runs")))
    try:
        findings += await _examine_services(seen, ctx.texts())
        findings += await _examine_application(seen, ctx.texts())
    finally:
        await seen.close()
    return findings


def as_it_runs(ctx: CliContext, settings: EngineSettings, work: Batuta) -> Batuta:
    """Return the application with the settings that the running `batuta up` passed to its children, because this
    terminal may have other settings. If `batuta up` is not running, return ``work`` unchanged.
    """
    child_env = unset(work.extension.child_env, ctx.env, ENV_FILE)
    places = [role.listens for role in work.extension.roles if role.in_up and role.listens is not None]
    is_up = answers(f"http://{settings.host}:{settings.port}") and all(_is_taken(*place) for place in places)
    if not child_env or not is_up or work.extension.rebuilt is None:
        return work
    rebuilt: Batuta = work.extension.rebuilt(child_env)
    return rebuilt


def _is_taken(host: str, port: int, name: str) -> bool:
    try:
        listen(host, port, name).close()
    except AddressTaken:
        return True
    return False


def _settings(ctx: CliContext, settings: EngineSettings, work: Batuta, texts: Texts) -> Iterator[Diagnosis]:
    if settings.app_env is None:
        yield Diagnosis("ok", texts("doctor.settings_no_env"))
    else:
        yield Diagnosis("ok", texts("doctor.settings", env=settings.app_env))
    for name, nearest in near_misses({**in_file(ENV_FILE), **ctx.env}, names(type(settings))):
        yield Diagnosis(
            "warning", texts("doctor.near_miss", name=name), texts("doctor.near_miss_step", nearest=nearest)
        )
    local = work.clock.now().astimezone(work.zone)
    yield Diagnosis("ok", texts("doctor.time", time=texts.second(local), zone=work.zone.key))
    try:
        settings.require_access()
    except BatutaError as error:
        yield Diagnosis("warning", texts("doctor.api_refused"), texts.error(error))
    if settings.in_development and settings.api_token is None:
        yield Diagnosis("ok", texts("doctor.no_token"))


def _address(settings: EngineSettings, texts: Texts) -> Iterator[Diagnosis]:
    where = {"host": settings.host, "port": settings.port}
    try:
        listen(settings.host, settings.port).close()
        yield Diagnosis("ok", texts("doctor.port_free", **where))
    except AddressTaken as error:
        if answers(f"http://{settings.host}:{settings.port}"):
            yield Diagnosis("ok", texts("doctor.port_ours", **where))
        else:
            yield Diagnosis("warning", texts("doctor.port_taken", **where), texts.error(error))


def _crash_detection(work: Batuta, texts: Texts) -> Iterator[Diagnosis]:
    if not identity().is_provable:
        yield Diagnosis("ok", texts("doctor.crashes_by_lease"))
    elif work.presence.is_usable():
        yield Diagnosis("ok", texts("doctor.crashes"))
    else:
        folder = work.presence.folder
        yield Diagnosis("warning", texts("doctor.crashes_no_folder"), texts("doctor.crashes_step", folder=folder))


async def examine_database(work: Batuta, texts: Texts) -> list[Diagnosis]:
    where = work.database.where
    if not await work.database.exists():
        step = texts("doctor.database_missing_step")
        return [Diagnosis("wrong", texts("doctor.database_missing", where=where), step)]
    try:
        await work.connections.open()
    except BatutaError as error:
        return [Diagnosis("wrong", texts("doctor.database_wrong", where=where), texts.error(error))]
    reached = Diagnosis("ok", texts("doctor.database", where=where))
    way = [*_report_connection(work, texts)]
    try:
        await work.check()
        return [reached, *way, Diagnosis("ok", texts("doctor.schema")), *await _jobs(work, texts)]
    except BatutaError as error:
        return [reached, *way, Diagnosis("wrong", texts("doctor.schema_wrong"), texts.error(error))]
    finally:
        await work.close()


def _report_connection(work: Batuta, texts: Texts) -> Iterator[Diagnosis]:
    """Report whether PostgreSQL is reached directly or through a transaction pooler, which does not keep session
    state.
    """
    way = work.connections.way
    if way != "file":
        step = texts("doctor.way_pooler_polled_step") if way == "pooler_polled" else None
        yield Diagnosis("ok", texts(f"doctor.way_{way}"), step)


async def _jobs(work: Batuta, texts: Texts) -> list[Diagnosis]:
    if not len(work.registry):
        return []
    seen = await work.job_health.look()
    late = [health.job.name for health in seen.jobs if health.is_stale]
    if late:
        return [
            Diagnosis(
                "warning",
                texts("doctor.jobs_late", count=len(late), names=join_names(late)),
                texts("doctor.jobs_step"),
            )
        ]
    return [Diagnosis("ok", texts("doctor.jobs", count=len(seen.jobs), profile=seen.profile))]


async def _examine_services(work: Batuta, texts: Texts) -> list[Diagnosis]:
    probes = {name: probe for name, probe in work.probes.items() if name != "database"}
    findings = []
    for name, part in (await look(probes, work.clock)).items():
        mark: Mark = "ok" if part.state in (State.OK, State.UNKNOWN) else "warning"
        # The application's own text can name the setting to correct.
        step = texts.get(f"doctor.part_step_{name}", texts("doctor.part_step", part=name))
        reason = None if part.why is None else texts.reason(part.why)
        why = reason if mark == "ok" or reason is None else f"{reason}: {step}"
        findings.append(Diagnosis(mark, texts(f"doctor.part_{part.state}", part=name), why))
    return findings


async def _examine_application(work: Batuta, texts: Texts) -> list[Diagnosis]:
    if work.extension.examine is None:
        return []
    return [
        Diagnosis(
            "ok" if each.is_well else "warning",
            texts(each.what, **each.facts),
            None if each.step is None else texts(each.step, **each.facts),
        )
        for each in await work.extension.examine()
    ]


def _print(ctx: CliContext, findings: list[Diagnosis]) -> None:
    for finding in findings:
        sign, colour = SIGNS[finding.mark]
        ctx.out.print(sign, style=colour, end=" ")
        ctx.say(finding.what)
        if finding.next_step:
            ctx.say(f"  → {finding.next_step}")
