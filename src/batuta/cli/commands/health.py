"""The commands ``batuta health``, which prints score, findings and next steps, and ``batuta incidents``, which prints
the periods of critical health and their causes.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

import typer

from batuta.cli.context import FAILED, CliContext, JsonFlag, cli_context, wait_for
from batuta.health.alerts import Incident, IncidentStats, stats
from batuta.health.finding import WHOLE, Assessment, Grade, Severity
from batuta.kernel.clock import brief
from batuta.texts.findings import causes_of, describe_findings, message_of, next_step_of

COLOURS = {Grade.HEALTHY: "green", Grade.ATTENTION: "yellow", Grade.DEGRADED: "dark_orange", Grade.CRITICAL: "red"}
SIGNS = {
    Severity.CRITICAL: ("✗", "red"),
    Severity.ERROR: ("✗", "red"),
    Severity.WARNING: ("!", "yellow"),
    Severity.INFO: ("·", "dim"),
}


def health(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    assessment = ctx.ask(lambda work: work.health.look(fresh=True))
    ctx.show(_document(ctx, assessment), as_json, lambda: _print(ctx, assessment))
    if assessment.is_critical:
        raise typer.Exit(FAILED)


def _document(ctx: CliContext, assessment: Assessment) -> dict[str, Any]:
    return {
        "score": assessment.score,
        "max_score": WHOLE,
        "level": assessment.grade.value,
        "breakdown": {
            label: {"score": section.points, "max": section.most} for label, section in assessment.sections.items()
        },
        "findings": describe_findings(assessment, ctx.texts(), ctx.iso),
        "timestamp": ctx.iso(assessment.at),
    }


def _print(ctx: CliContext, assessment: Assessment) -> None:
    texts, grade = ctx.texts(), assessment.grade
    ctx.out.print(f"{assessment.score}/{WHOLE}", style=f"bold {COLOURS[grade]}", end=" ")
    ctx.say(texts(f"grade.{grade.value}"))
    labels = {label: texts.get(f"section.{label}", label) for label in assessment.sections}
    width = max(map(len, labels.values()), default=0)
    for label, section in assessment.sections.items():
        ctx.say(f"  {labels[label]:<{width}} {section.points:>3}/{section.most}")
    if not assessment.findings:
        ctx.say(texts("cli.health.nothing"))
    for finding in assessment.findings:
        sign, colour = SIGNS[finding.severity]
        ctx.out.print(sign, style=colour, end=" ")
        ctx.say(message_of(finding, texts))
        root = assessment.silenced.get(finding.cause)
        step = next_step_of(finding, texts) if root is None else texts("cli.health.explained", cause=root)
        ctx.say(f"  → {step}")


MOST = 100_000


def incidents(
    context: typer.Context,
    days: Annotated[int, typer.Option("--days", min=1, max=3650)] = 30,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000)] = 20,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    found, figures = wait_for(_read_incidents(ctx, days))
    document = {
        "period_days": days,
        **figures.describe(),
        "incidents": [_incident_document(ctx, each) for each in found[:limit]],
    }
    ctx.show(document, as_json, lambda: _print_incidents(ctx, found[:limit], figures, days))


async def _read_incidents(ctx: CliContext, days: int) -> tuple[Sequence[Incident], IncidentStats]:
    async with ctx.work() as work:
        now = work.clock.now()
        since = now - timedelta(days=days)
        found = await work.observability.incidents.list_between(since, now, MOST)
    return found, stats(found, since, now)


def _incident_document(ctx: CliContext, incident: Incident) -> dict[str, Any]:
    return {
        "id": incident.id,
        "from_status": incident.from_status,
        "to_status": incident.to_status,
        "trigger_source": incident.trigger_source,
        "causes": incident.details.get("causes", []),
        "started_at": ctx.iso(incident.started_at),
        "resolved_at": ctx.iso(incident.resolved_at),
        "duration_seconds": incident.duration_seconds,
    }


def _print_incidents(ctx: CliContext, found: Sequence[Incident], figures: IncidentStats, days: int) -> None:
    texts = ctx.texts()
    if not found:
        ctx.say(texts("cli.incidents.none", days=days))
        return
    columns = ("started", "lasted", "status", "source", "causes")
    table = ctx.table("cli.incidents.column_", columns)
    for each in found:
        lasted = None if each.duration_seconds is None else brief(timedelta(seconds=each.duration_seconds))
        causes = "; ".join(causes_of(each, texts))
        still = texts("cli.incidents.still")
        table.add_row(
            ctx.local(each.started_at),
            lasted or still,
            texts.get(f"grade.{each.to_status}", each.to_status),
            texts.get(f"cli.incidents.source_{each.trigger_source}", each.trigger_source),
            causes,
        )
    ctx.out.print(table)
    mttr = "-" if figures.mttr_seconds is None else brief(timedelta(seconds=figures.mttr_seconds))
    facts = {
        "total": figures.total,
        "open": figures.open,
        "uptime": texts.number(figures.uptime_percent, 2),
        "mttr": mttr,
    }
    ctx.say(texts("cli.incidents.summary", days=days, **facts))
