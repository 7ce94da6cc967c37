"""The commands ``batuta schedule`` (prints the fires of a day), ``schedule use``, ``schedule compare`` and ``batuta
windows list | set``.
"""

from datetime import date, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from batuta.cli.context import DONE, FAILED, CliContext, JsonFlag, cli_context, current_user
from batuta.dispatch.plan import Change, Comparison, Fire, compare, day_of
from batuta.runlog.log import Controls
from batuta.schedule.window import decode_window, encode_window
from batuta.texts import Texts

# A job with more fires per day than this is shown with its schedule instead of a list of times.
MOST_LISTED = 6
# Limits of ``--day``. The next fire of a schedule may be decades later, so the range ends long before the end of
# Python's calendar.
FIRST_DAY, LAST_DAY = date(2, 1, 1), date(9899, 12, 31)
DAY = ["%Y-%m-%d", "%d/%m/%Y"]
ProfileOption = Annotated[str | None, typer.Option("--profile")]


def show(
    context: typer.Context,
    profile: ProfileOption = None,
    day: Annotated[datetime | None, typer.Option("--day", formats=DAY)] = None,
    as_json: JsonFlag = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    ctx = cli_context(context)
    work = ctx.work()
    controls = _controls(ctx, profile)
    jobs = work.registry.timetable(controls).values()
    chosen = _within_calendar(ctx, day.date()) if day else work.clock.now().astimezone(work.zone).date()
    fires = day_of(list(jobs), chosen, work.zone)
    if as_json:
        ctx.print_json([{"job": fire.job.name, "at": fire.at.astimezone(work.zone).isoformat()} for fire in fires])
        return
    _print_day(ctx, chosen, work.registry.profile(controls), fires)


def use(context: typer.Context, profile: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    known = ctx.work().registry.require_profile(profile)
    ctx.ask(lambda work: work.controls.use_profile(known, by=current_user(), now=work.clock.now()))
    ctx.show({"profile": profile}, as_json, lambda: ctx.say(ctx.texts()("cli.schedule.used", profile=profile)))


def compare_profiles(
    context: typer.Context,
    before: str,
    after: str,
    at_least: Annotated[
        float,
        typer.Option(
            "--at-least",
            help="minimum reduction of fires in per cent; exit code 1 if the changed jobs reduce them by less",
        ),
    ] = 50,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    registry = ctx.work().registry
    old, new = (
        list(registry.timetable(Controls(profile=registry.require_profile(each))).values()) for each in (before, after)
    )
    found = compare(old, new)
    document = {
        **_figures(found.changed),
        "all": _figures(found.all),
        "per_job": [{"job": change.job, **_figures(change)} for change in found.per_job],
        "per_hour": [{"hour": change.job, **_figures(change)} for change in found.per_hour],
    }
    ctx.show(document, as_json, lambda: _print_comparison(ctx, found, before, after))
    raise typer.Exit(DONE if found.changed.reduction * 100 >= at_least else FAILED)


def list_windows(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    windows = ctx.work().registry.windows_now(_controls(ctx, None))
    listed = [{"name": name, **encode_window(window)} for name, window in windows.items()]
    ctx.show({"windows": listed}, as_json, lambda: ctx.out.print(_windows_table(ctx, listed)))


def set_window(
    context: typer.Context,
    name: str,
    opens: str,
    minutes: Annotated[int, typer.Option("--minutes")] = 120,
    days: Annotated[str, typer.Option("--days", help="days of the week as in cron, for example 1-5 or 0,6")] = "1-5",
    on_holidays: Annotated[bool, typer.Option("--on-holidays/--not-on-holidays")] = True,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    window = decode_window(
        ctx.work().registry.require_window(name), opens=opens, minutes=minutes, days=days, on_holidays=on_holidays
    )
    ctx.ask(lambda work: work.controls.set_window(name, window, by=current_user(), now=work.clock.now()))
    document = {"name": name, **encode_window(window)}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.windows.done", name=name, cron=window.cron)))


def _controls(ctx: CliContext, profile: str | None) -> Controls:
    known = None if profile is None else ctx.work().registry.require_profile(profile)
    now = ctx.ask(lambda work: work.controls.read())
    return Controls(profile=known or now.profile, windows=now.windows)


def _within_calendar(ctx: CliContext, day: date) -> date:
    if not FIRST_DAY <= day <= LAST_DAY:
        first, last = map(ctx.texts().day, (FIRST_DAY, LAST_DAY))
        raise typer.BadParameter(f"{first} … {last}", param_hint="--day")
    return day


def _print_day(ctx: CliContext, day: date, profile: str, fires: list[Fire]) -> None:
    texts, zone = ctx.texts(), ctx.work().zone
    by_job: dict[str, list[Fire]] = {}
    for fire in fires:
        by_job.setdefault(fire.job.name, []).append(fire)
    often = {name: each for name, each in by_job.items() if len(each) > MOST_LISTED}
    at: dict[str, list[str]] = {}
    for fire in fires:
        if fire.job.name not in often:
            at.setdefault(f"{fire.at.astimezone(zone):%H:%M}", []).append(fire.job.name)
    ctx.say(texts("cli.schedule.title", day=texts.day(day), profile=profile, fires=texts.number(len(fires))))
    for when, names in at.items():
        ctx.say(f"{when}  {', '.join(names)}")
    ctx.say("")
    ctx.say(texts("cli.schedule.all_day"))
    for name, each in sorted(often.items(), key=lambda pair: -len(pair[1])):
        ctx.say(f"  {name} ({each[0].job.cron.text}): {texts('cli.schedule.times', count=len(each))}")


def _print_comparison(ctx: CliContext, found: Comparison, before: str, after: str) -> None:
    texts = ctx.texts()
    table = Table(texts("cli.schedule.column_job"), before, after, "%", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for change in (*found.per_job, found.changed, found.all):
        is_sum = change in (found.changed, found.all)
        name = texts(f"cli.schedule.{change.job}") if is_sum else change.job
        table.add_row(name, *_numbers(texts, change), style="bold" if is_sum else None)
    ctx.out.print(table)
    ctx.say("")
    hours = Table(texts("cli.schedule.column_hour"), before, after, box=None, pad_edge=False)
    for change in found.per_hour:
        hours.add_row(f"{change.job}h", texts.number(change.before, 1), texts.number(change.after, 1))
    ctx.out.print(hours)


def _numbers(texts: Texts, change: Change) -> tuple[str, str, str]:
    share = 0.0 - 100 * change.reduction
    sign = "+" if share >= 0 else ""
    percent = f"{sign}{texts.number(share, 1)}" if change.before else ""
    return texts.number(change.before, 1), texts.number(change.after, 1), percent


def _figures(change: Change) -> dict[str, float]:
    return {
        "before": round(change.before, 2),
        "after": round(change.after, 2),
        "reduction": round(change.reduction, 4),
    }


def _windows_table(ctx: CliContext, listed: list[dict[str, Any]]) -> Table:
    texts = ctx.texts()
    columns = ("name", "opens", "minutes", "days", "on_holidays")
    table = ctx.table("cli.windows.column_", columns)
    for each in listed:
        holidays = texts("reference.yes" if each["on_holidays"] else "reference.no")
        table.add_row(each["name"], each["opens"], str(each["minutes"]), each["days"], holidays)
    return table
