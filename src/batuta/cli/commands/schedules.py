"""The ``batuta schedules`` commands, which list and change the schedules in the database."""

import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any, Final

import typer
from rich.table import Table

from batuta.cli.context import CliContext, JsonFlag, cli_context, current_user
from batuta.dispatch.job import Overlap
from batuta.dispatch.task_schedules import TaskSchedule
from batuta.engine.batuta import Batuta
from batuta.engine.declarations.schedules import describe, state_of
from batuta.schedule.cron import first_instant
from batuta.schedule.due import CatchUp

MOMENT: Final = ["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%d/%m/%Y %H:%M"]
Name = Annotated[str, typer.Argument()]
ArgOption = Annotated[list[str] | None, typer.Option("--arg")]
CronOption = Annotated[str | None, typer.Option("--cron")]
EveryOption = Annotated[int | None, typer.Option("--every", min=1)]
AtOption = Annotated[datetime | None, typer.Option("--at", formats=MOMENT)]
ZoneOption = Annotated[str | None, typer.Option("--timezone")]
JitterOption = Annotated[float | None, typer.Option("--jitter", min=0)]
OverlapOption = Annotated[Overlap | None, typer.Option("--overlap")]
CatchUpOption = Annotated[CatchUp | None, typer.Option("--catch-up")]
COLUMNS = ("name", "schedule", "timezone", "task", "state", "next")


def show(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found = ctx.ask(lambda work: work.schedules.all())
    ctx.show(
        {"schedules": [describe(each) for each in found]},
        as_json,
        lambda: ctx.print_table(_table(ctx, found), "cli.schedules.none"),
    )


def create(
    context: typer.Context,
    schedule_name: Name,
    task: Annotated[str, typer.Option("--task")],
    arg: ArgOption = None,
    cron: CronOption = None,
    every: EveryOption = None,
    at: AtOption = None,
    timezone: ZoneOption = None,
    jitter: JitterOption = None,
    overlap: OverlapOption = None,
    catch_up: CatchUpOption = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    options = _collect_options(ctx, arg or [], cron, every, at, timezone, jitter, overlap, catch_up)
    _change(
        ctx,
        as_json,
        "created",
        lambda work: work.schedules.create(schedule_name, task=task, by=current_user(), **options),
    )


def edit(
    context: typer.Context,
    schedule_name: Name,
    task: Annotated[str | None, typer.Option("--task")] = None,
    arg: ArgOption = None,
    cron: CronOption = None,
    every: EveryOption = None,
    at: AtOption = None,
    timezone: ZoneOption = None,
    jitter: JitterOption = None,
    overlap: OverlapOption = None,
    catch_up: CatchUpOption = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    options = _collect_options(ctx, arg, cron, every, at, timezone, jitter, overlap, catch_up)
    _change(
        ctx, as_json, "edited", lambda work: work.schedules.edit(schedule_name, task=task, by=current_user(), **options)
    )


def pause(context: typer.Context, schedule_name: Name, as_json: JsonFlag = False) -> None:
    act = lambda work: work.schedules.pause(schedule_name, by=current_user())  # noqa: E731
    _change(cli_context(context), as_json, "paused", act)


def resume(context: typer.Context, schedule_name: Name, as_json: JsonFlag = False) -> None:
    act = lambda work: work.schedules.resume(schedule_name, by=current_user())  # noqa: E731
    _change(cli_context(context), as_json, "resumed", act)


def delete(context: typer.Context, schedule_name: Name, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    ctx.ask(lambda work: work.schedules.delete(schedule_name, by=current_user()))
    document = {"name": schedule_name, "deleted": True}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.schedules.deleted", name=schedule_name)))


def backfill(
    context: typer.Context,
    schedule_name: Name,
    since: Annotated[datetime, typer.Option("--since", formats=MOMENT)],
    until: Annotated[datetime, typer.Option("--until", formats=MOMENT)],
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    zone = ctx.work().zone
    span = first_instant(since, zone), first_instant(until, zone)
    count = ctx.ask(lambda work: work.schedules.backfill(schedule_name, *span, by=current_user()))
    ctx.show(
        {"name": schedule_name, "fires": count},
        as_json,
        lambda: ctx.say(ctx.texts()("cli.schedules.backfilled", name=schedule_name, count=count)),
    )


def _change(ctx: CliContext, as_json: bool, done: str, act: Callable[[Batuta], Awaitable[TaskSchedule]]) -> None:
    changed = ctx.ask(act)
    following = "" if changed.next_at is None else ctx.local(changed.next_at)
    text = ctx.texts()(f"cli.schedules.{done}", name=changed.name, next=following or "-")
    ctx.show(describe(changed), as_json, lambda: ctx.say(text))


def _collect_options(
    ctx: CliContext,
    arg: list[str] | None,
    cron: str | None,
    every: int | None,
    at: datetime | None,
    timezone: str | None,
    jitter: float | None,
    overlap: Overlap | None,
    catch_up: CatchUp | None,
) -> dict[str, Any]:
    given = {
        "args": None if arg is None else dict(_argument(each) for each in arg),
        "cron": cron,
        "every": every,
        "at": None if at is None else first_instant(at, ctx.work().zone),
        "timezone": timezone,
        "jitter": jitter,
        "overlap": overlap,
        "catch_up": catch_up,
    }
    return {name: value for name, value in given.items() if value is not None}


def _argument(given: str) -> tuple[str, Any]:
    """Split ``name=value`` into name and value. A value that is valid JSON is parsed as JSON; any other value is text."""
    name, separator, value = given.partition("=")
    if not separator:
        raise typer.BadParameter("cli.form_pair", param_hint="--arg")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _table(ctx: CliContext, schedules: list[TaskSchedule]) -> Table:
    texts, table = ctx.texts(), ctx.table("cli.schedules.column_", COLUMNS)
    for each in schedules:
        following = "-" if each.next_at is None else ctx.local(each.next_at)
        state = texts(f"cli.schedules.state_{state_of(each)}")
        table.add_row(each.name, each.schedule, each.timezone, each.task, state, following)
    return table
