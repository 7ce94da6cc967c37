"""The commands ``batuta jobs``, ``batuta run`` and ``batuta executions``."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from batuta.cli.context import FAILED, INTERRUPTED, CliContext, JsonFlag, cli_context, wait_for
from batuta.health.jobs import LOOKED_AT, JobHealth, JobsSeen, JobState
from batuta.kernel import reasons
from batuta.kernel.errors import BatutaError
from batuta.kernel.events import Event, ExecutionStarted
from batuta.runlog.execution import Status
from batuta.runlog.history import Recorded
from batuta.runlog.log import Timetable
from batuta.runlog.reasons import is_unfinished
from batuta.texts import Texts, Wording

STYLES = {
    JobState.STALE: "bold red",
    JobState.FAILING: "red",
    JobState.UNFINISHED: "dim",
    JobState.HELD: "yellow",
    JobState.DEGRADED: "yellow",
    JobState.RUNNING: "cyan",
    JobState.WAITING: "dim",
    JobState.OK: "green",
}
ENDINGS = {
    "success": "green",
    "error": "red",
    "timeout": "red",
    "abandoned": "red",
    "missed": "yellow",
    "running": "cyan",
}
# An instant that is later than every stored instant and valid in every time zone.
EVER = datetime.max.replace(tzinfo=UTC)
LongestList = Annotated[int, typer.Option("--limit", min=1, max=1000)]


def jobs(
    context: typer.Context, profile: Annotated[str | None, typer.Option("--profile")] = None, as_json: JsonFlag = False
) -> None:
    ctx = cli_context(context)
    seen, rival = wait_for(_look(ctx, profile))
    wording = ctx.catalogue().extension.wording
    document = {
        "profile": seen.profile,
        "fires": rival is None,
        "jobs": [describe_job(health, ctx.texts(), wording) for health in seen.jobs],
    }

    def tell() -> None:
        ctx.out.print(_jobs_table(ctx, seen))
        if rival is not None:
            ctx.say(ctx.texts()("cli.jobs.stands_by", active=rival.release or rival.fingerprint))

    ctx.show(document, as_json, tell)


def run(
    context: typer.Context,
    name: str,
    param: Annotated[list[str] | None, typer.Option("--param", help="name=value")] = None,
    even_if_held: Annotated[bool, typer.Option("--even-if-held")] = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    params = dict(_pair(each) for each in param or ())
    begun: list[str] = []

    def notice(event: Event) -> None:
        if isinstance(event, ExecutionStarted):
            begun.append(event.execution)

    ctx.work().events.subscribe(notice)
    try:
        ran = wait_for(_run(ctx, name, params, even_if_held))
    except KeyboardInterrupt:
        ctx.say_wrong(_describe_interruption(ctx, name, begun))
        raise typer.Exit(INTERRUPTED) from None
    ctx.show(row(ran, ctx.texts(), ctx.work().extension.wording), as_json, lambda: ctx.say(_sentence(ctx, ran)))
    if ran.status not in (Status.SUCCESS, Status.SKIPPED) or is_unfinished(ran.reason):
        raise typer.Exit(FAILED)


def executions(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument()] = None,
    status: Annotated[Status | None, typer.Option("--status")] = None,
    limit: LongestList = 20,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    found = wait_for(_recent(ctx, name, None if status is None else status.value, limit))
    wording = ctx.catalogue().extension.wording
    document = {"executions": [row(each, ctx.texts(), wording) for each in found]}
    ctx.show(document, as_json, lambda: ctx.out.print(_executions_table(ctx, found)))


async def _look(ctx: CliContext, profile: str | None) -> tuple[JobsSeen, Timetable | None]:
    """Return this release's jobs with their health. If the active timetable belongs to another release, return that
    timetable too; otherwise return None in its place.
    """
    work = ctx.catalogue()
    known = None if profile is None else work.registry.require_profile(profile)
    async with work:
        seen = await work.job_health.look(known)
        active = next((each for each in await work.observability.timetables.newest(LOOKED_AT) if each.is_active), None)
    # Compute the fingerprint of this release with the release name of the active timetable, because an operator's shell
    # may not set the name.
    is_ours = active is None or work.registry.own(active.release).fingerprint == active.fingerprint
    return seen, None if is_ours else active


async def _run(ctx: CliContext, name: str, params: dict[str, str], even_if_held: bool) -> Recorded:
    work = ctx.work()
    async with work:
        return await work.run_job(name, params, even_if_held=even_if_held)


async def _recent(ctx: CliContext, name: str | None, status: str | None, limit: int) -> list[Recorded]:
    work = ctx.catalogue()
    async with work:
        found = list(await work.reports.recent(job=name, status=status, before=EVER, limit=limit))
        # A deleted schedule, or a job that a program declared while it ran, is known only from its executions.
        if found or name is None or name in {each.name for each in await work.schedules.all()}:
            return found
        exact = work.registry.find(name, await work.controls.read()).name
        return list(await work.reports.recent(job=exact, status=status, before=EVER, limit=limit))


def _describe_interruption(ctx: CliContext, name: str, begun: list[str]) -> str:
    texts = ctx.texts()
    try:
        left = ctx.ask(lambda work: work.reports.execution(begun[-1])) if begun else None
    except BatutaError:
        left = None
    if left is None:
        return texts("cli.run.interrupted", job=name)
    facts = {"job": name, "status": status_word(texts, left.status), "id": left.id}
    if left.finished_at is None:
        return texts("cli.run.interrupted_running", **facts)
    return texts("cli.run.interrupted_ended", **facts, why=texts.reason(left.error or left.reason or "-"))


def describe_job(health: JobHealth, texts: Texts, wording: Wording) -> dict[str, Any]:
    job, last = health.job, health.facts.last
    return {
        "name": job.name,
        wording.rename("category"): job.category,
        "schedule": job.cron.text,
        "endpoint": job.target.address,
        "state": health.state.value,
        "why": health.why and texts.reason(health.why),
        **reasons.describe_reason(health.why, "why"),
        "critical": job.critical,
        "autonomous": job.autonomous,
        "implemented": job.finished,
        "sla_seconds": int(job.sla.total_seconds()),
        "timeout_seconds": int(job.timeout.total_seconds()),
        "catch_up": job.catch_up.value,
        "overlap": job.overlap.value,
        "window": job.window,
        "last_run": last.started_at.astimezone(job.zone).isoformat() if last else None,
        "last_status": last.status if last else None,
        "next_run": health.next_at.astimezone(job.zone).isoformat(),
        "runs_24h": health.facts.counts.rows,
    }


def row(recorded: Recorded, texts: Texts, wording: Wording) -> dict[str, Any]:
    return {
        "id": recorded.id,
        "job": recorded.job,
        wording.rename("category"): recorded.category,
        "trigger": recorded.trigger,
        "scheduled_for": recorded.scheduled_for.isoformat() if recorded.scheduled_for else None,
        "started_at": recorded.started_at.isoformat(),
        "finished_at": recorded.finished_at.isoformat() if recorded.finished_at else None,
        "status": recorded.status,
        "reason": recorded.reason and texts.reason(recorded.reason),
        **reasons.describe_reason(recorded.reason),
        "error": recorded.error and texts.reason(recorded.error),
        **reasons.describe_reason(recorded.error, "error"),
        "duration_ms": recorded.duration_ms,
        "response_code": recorded.response_code,
        "items_processed": recorded.items,
        "attempt": recorded.attempt,
        "result": recorded.result,
    }


def _jobs_table(ctx: CliContext, seen: JobsSeen) -> Table:
    texts = ctx.texts()
    columns = ("job", "category", "schedule", "state", "last", "next", "why")
    table = ctx.table("cli.jobs.column_", columns)
    ctx.say(texts("cli.jobs.title", profile=seen.profile, count=len(seen.jobs)))
    for column in table.columns[:-1]:
        column.no_wrap = True
    for health in seen.jobs:
        job, last = health.job, health.facts.last
        table.add_row(
            Text(job.name, "bold" if job.critical else ""),
            texts.category(job.category),
            job.cron.text,
            Text(texts(f"state.{health.state.value}"), STYLES[health.state]),
            f"{ctx.local(last.started_at)} {status_word(texts, last.status)}" if last else "-",
            ctx.local(health.next_at),
            texts.reason(health.why or ""),
        )
    return table


def _executions_table(ctx: CliContext, found: list[Recorded]) -> Table:
    texts = ctx.texts()
    columns = ("started", "fire", "job", "trigger", "status", "took", "items", "why")
    table = ctx.table("cli.executions.column_", columns)
    for column in table.columns[:-1]:
        column.no_wrap = True
    for each in found:
        table.add_row(
            ctx.local(each.started_at),
            ctx.local(each.scheduled_for) if each.scheduled_for else "",
            each.job,
            texts(f"panel.trigger_word.{each.trigger}"),
            Text(status_word(texts, each.status), ENDINGS.get(each.status, "")),
            "" if each.duration_ms is None else texts.took(each.duration_ms),
            "" if each.items is None else texts.number(each.items),
            texts.reason(each.error or each.reason or ""),
        )
    return table


def _sentence(ctx: CliContext, ran: Recorded) -> str:
    texts, why = ctx.texts(), ran.error or ran.reason
    facts = {"job": ran.job, "status": status_word(texts, ran.status), "id": ran.id}
    items = "-" if ran.items is None else texts.number(ran.items)
    summary = texts("cli.run.done", items=items, took=texts.took(ran.duration_ms or 0), **facts)
    return f"{summary}\n{texts.reason(why)}" if why else summary


def status_word(texts: Texts, status: str) -> str:
    return texts(f"panel.status_word.{status}")


def _pair(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name:
        raise typer.BadParameter("cli.form_pair", param_hint="--param")
    return name, value
