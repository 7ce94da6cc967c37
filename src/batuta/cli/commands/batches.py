"""The ``batuta batches`` commands. A batch is a set of tasks that are counted and cancelled together."""

from typing import Annotated, Any

import typer
from rich.table import Table

from batuta.cli.context import FAILED, CliContext, JsonFlag, cli_context, current_user
from batuta.engine.batuta import Batuta
from batuta.kernel.suggestions import unknown
from batuta.queue.outcome import CANCELLED_BY
from batuta.stores.sql.tables.history import full_id
from batuta.tasks.batch import Batch, BatchProgress

COLUMNS = ("id", "name", "state", "progress", "failed", "cancelled", "created", "ended")
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1000)]


def list_batches(context: typer.Context, limit: LimitOption = 20, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found = ctx.ask(lambda work: work.batches.newest(limit))
    ctx.show(
        {"batches": [each.as_json() for each in found]},
        as_json,
        lambda: ctx.print_table(_table(ctx, found), "cli.batches.none"),
    )


def show(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)

    async def read(work: Batuta) -> BatchProgress:
        return await (await _find(work, id)).progress()

    found = ctx.ask(read)
    ctx.show(found.as_json(), as_json, lambda: _describe(ctx, found))


def cancel(
    context: typer.Context,
    id: str,
    reason: Annotated[str | None, typer.Option("--reason")] = None,
    as_json: JsonFlag = False,
) -> None:
    _change(cli_context(context), id, "cancel", as_json, reason=reason or CANCELLED_BY(by=current_user()))


def close(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    _change(cli_context(context), id, "close", as_json)


def _change(ctx: CliContext, id: str, change: str, as_json: bool, **values: Any) -> None:
    async def act(work: Batuta) -> tuple[bool, BatchProgress]:
        batch = await _find(work, id)
        is_done: bool = await getattr(batch, change)(by=current_user(), **values)
        return is_done, await batch.progress()

    is_done, progress = ctx.ask(act)
    key = f"cli.batches.{change}_done" if is_done else f"cli.batches.{change}_refused"
    state = ctx.texts()(f"batch_state.{progress.state}")
    ctx.show(progress.as_json(), as_json, lambda: ctx.say(ctx.texts()(key, id=progress.id, state=state)))
    if not is_done:
        raise typer.Exit(FAILED)


async def _find(work: Batuta, id: str) -> Batch:
    whole = await full_id(work.database, "batches", id)
    if whole is None:
        raise unknown("batch", id, ())
    return work.batches.handle(whole)


def _describe(ctx: CliContext, batch: BatchProgress) -> None:
    texts = ctx.texts()
    ctx.out.print(_table(ctx, [batch]))
    ctx.say(texts("cli.batches.counts", waiting=batch.waiting, running=batch.running, succeeded=batch.succeeded))
    if batch.reason is not None:
        ctx.say(texts("cli.batches.reason", reason=texts.reason(batch.reason)))


def _table(ctx: CliContext, batches: list[BatchProgress]) -> Table:
    texts, table = ctx.texts(), ctx.table("cli.batches.column_", COLUMNS)
    for each in batches:
        progress = f"{texts.number(each.done)}/{texts.number(each.total)}"
        ends = (texts.number(each.failed), texts.number(each.cancelled))
        ended = "-" if each.ended_at is None else ctx.local(each.ended_at)
        state = texts(f"batch_state.{each.state}")
        table.add_row(each.id, each.name, state, progress, *ends, ctx.local(each.created_at), ended)
    return table
