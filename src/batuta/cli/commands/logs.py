"""The command ``batuta logs``, which prints the stored log lines of a task, an item or a run."""

from dataclasses import asdict
from datetime import timedelta
from itertools import count
from typing import Annotated, Final

import typer

from batuta.cli.context import CliContext, JsonFlag, cli_context, wait_for
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import AmbiguousId
from batuta.runlog.lines import CUT, LogLine
from batuta.stores.sql.tables.history import id_range, is_uuid

LOOK_EVERY: Final = timedelta(seconds=1)
ENDED: Final = ("complete", "failed", "cancelled")


def logs(
    context: typer.Context,
    id: str,
    follow: Annotated[bool, typer.Option("--follow", "-f")] = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    wait_for(_show(ctx, id, follow=follow, as_json=as_json))


async def _show(ctx: CliContext, id: str, *, follow: bool, as_json: bool) -> None:
    async with ctx.work() as work:
        whole = await _whole_id(work, id)
        lines = await work.log_lines.of_item(whole)
        if as_json and not follow:
            document = {"id": whole, "lines": [_describe(ctx, line) for line in lines]}
            ctx.show(document, as_json, lambda: None)
            return
        if not lines and not follow:
            ctx.say(ctx.texts()("cli.logs.none", id=id))
        for line in lines:
            _print(ctx, line)
        if follow:
            await _follow(ctx, work, whole, lines[-1].id if lines else None)


async def _follow(ctx: CliContext, work: Batuta, id: str, after: str | None) -> None:
    """Print new log lines until the task or run has ended, or until the operator presses Ctrl-C."""
    for _ in count():
        has_ended = await _has_ended(work, id)
        # Wait once more, because the lines of the last second are stored after the task or run has ended.
        await work.clock.sleep(LOOK_EVERY.total_seconds())
        for line in await work.log_lines.of_item(id, after=after):
            _print(ctx, line)
            after = line.id
        if has_ended:
            return


async def _has_ended(work: Batuta, id: str) -> bool:
    if (status := await work.status(id)) is not None:
        return status.status in ENDED
    run = await work.reports.execution(id)
    return run is not None and run.finished_at is not None


async def _whole_id(work: Batuta, written: str) -> str:
    """Return the full id of the item whose id begins with ``written``. Only items with stored log lines are searched.
    If none matches, return ``written`` unchanged.
    """
    between = id_range(written)
    if is_uuid(written) or between is None:
        return written
    found = await work.log_lines.items_between(*between)
    if len(found) > 1:
        raise AmbiguousId(id=written, candidates=", ".join(found))
    return found[0] if found else written


def _describe(ctx: CliContext, line: LogLine) -> dict[str, object]:
    shown = {name: value for name, value in asdict(line).items() if name not in ("id", "item_id")}
    return {**shown, "at": ctx.iso(line.at)}


def _print(ctx: CliContext, line: LogLine) -> None:
    text = ctx.texts()("cli.logs.cut") if line.level == CUT else f"{line.level:7} {line.logger}: {line.line}"
    ctx.say(f"{ctx.moment(ctx.iso(line.at))} #{line.attempt} {text}")
