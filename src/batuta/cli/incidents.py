"""``batuta incidents``: when health was critical, for how long and why."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.table import Table

from batuta.cli.desk import Desk, JsonFlag, desk_of, wait_for
from batuta.health.incidents import Incident, IncidentStats, stats
from batuta.kernel.durations import brief
from batuta.texts import Texts

MOST = 100_000


def add_to(cli: typer.Typer, texts: Texts) -> None:
    cli.command("incidents", help=texts("cli.incidents.help"))(incidents)


def incidents(
    context: typer.Context,
    days: Annotated[int, typer.Option("--days", min=1, max=3650)] = 30,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000)] = 20,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    found, figures = wait_for(_found(desk, days))
    document = {
        "period_days": days,
        "total": figures.total,
        "open": figures.open,
        "by_severity": dict(figures.by_severity),
        "mttr_seconds": figures.mttr_seconds,
        "uptime_percent": figures.uptime_percent,
        "incidents": [_plain(desk, each) for each in found[:limit]],
    }
    desk.show(document, as_json, lambda: _tell(desk, found[:limit], figures, days))


async def _found(desk: Desk, days: int) -> tuple[Sequence[Incident], IncidentStats]:
    async with desk.work() as work:
        now = work.clock.now()
        since = now - timedelta(days=days)
        found = await work.watching.incidents.within(since, now, MOST)
    return found, stats(found, since, now)


def _plain(desk: Desk, incident: Incident) -> dict[str, Any]:
    def local(instant: datetime | None) -> str | None:
        return None if instant is None else instant.astimezone(desk.work().zone).isoformat(timespec="seconds")

    return {
        "id": incident.id,
        "from_status": incident.from_status,
        "to_status": incident.to_status,
        "trigger_source": incident.trigger_source,
        "causes": incident.details.get("causes", []),
        "started_at": local(incident.started_at),
        "resolved_at": local(incident.resolved_at),
        "duration_seconds": incident.duration_seconds,
    }


def _tell(desk: Desk, found: Sequence[Incident], figures: IncidentStats, days: int) -> None:
    texts = desk.texts()
    if not found:
        desk.say(texts("cli.incidents.none", days=days))
        return
    columns = ("started", "lasted", "status", "source", "causes")
    table = Table(*(texts(f"cli.incidents.column_{each}") for each in columns), box=None, pad_edge=False)
    for each in found:
        lasted = None if each.duration_seconds is None else brief(timedelta(seconds=each.duration_seconds))
        causes = ", ".join(str(cause) for cause in each.details.get("causes", []))
        still = texts("cli.incidents.still")
        table.add_row(desk.local(each.started_at), lasted or still, each.to_status, each.trigger_source, causes)
    desk.out.print(table)
    mttr = "-" if figures.mttr_seconds is None else brief(timedelta(seconds=figures.mttr_seconds))
    facts = {"total": figures.total, "open": figures.open, "uptime": f"{figures.uptime_percent:g}", "mttr": mttr}
    desk.say(texts("cli.incidents.summary", days=days, **facts))
