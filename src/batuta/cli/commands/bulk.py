"""The ``batuta bulk`` commands, which change every queue item that matches a filter. A worker makes the changes."""

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import typer

from batuta.cli.context import FAILED, CliContext, JsonFlag, cli_context, current_user
from batuta.engine.batuta import Batuta
from batuta.kernel.spans import read_span
from batuta.kernel.suggestions import unknown
from batuta.queue.inspection import STATE_OF, BulkChange, BulkOperation, ItemFilter
from batuta.stores.sql.tables.history import full_id

COLUMNS = ("id", "change", "state", "changed", "expected", "by", "created")
MOST_LISTED = 20
NameOption: TypeAlias = Annotated[str | None, typer.Option("--name")]
ErrorOption: TypeAlias = Annotated[str | None, typer.Option("--error")]
KeyOption: TypeAlias = Annotated[str | None, typer.Option("--key")]
TagOption: TypeAlias = Annotated[str | None, typer.Option("--tag")]
AgeOption: TypeAlias = Annotated[str | None, typer.Option("--older-than")]


def list_operations(context: typer.Context, queue: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    _require_queue(ctx, queue)
    found = ctx.ask(lambda work: work.bulk.recent(queue, MOST_LISTED))
    document = {"operations": [_describe(ctx, each) for each in found]}
    ctx.show(document, as_json, lambda: _print_operations(ctx, queue, found))


def _starter(change: BulkChange) -> Callable[..., None]:
    def start(
        context: typer.Context,
        queue: str,
        item_name: NameOption = None,
        error_group: ErrorOption = None,
        key: KeyOption = None,
        tag: TagOption = None,
        older_than: AgeOption = None,
        as_json: JsonFlag = False,
    ) -> None:
        _begin(cli_context(context), change, queue, (item_name, error_group, key, tag), older_than, as_json)

    return start


retry, discard, cancel = _starter(BulkChange.RETRY), _starter(BulkChange.DISCARD), _starter(BulkChange.CANCEL)


def stop(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)

    async def act(work: Batuta) -> bool:
        whole = await full_id(work.database, "bulk_operations", id)
        return whole is not None and await work.bulk.stop(whole, by=current_user())

    is_stopped = ctx.ask(act)
    key = "cli.bulk.stopped" if is_stopped else "cli.bulk.not_stopped"
    ctx.show({"id": id, "stopped": is_stopped}, as_json, lambda: ctx.say(ctx.texts()(key, id=id)))
    if not is_stopped:
        raise typer.Exit(FAILED)


def _begin(
    ctx: CliContext,
    change: BulkChange,
    queue: str,
    criteria: tuple[str | None, str | None, str | None, str | None],
    older_than: str | None,
    as_json: bool,
) -> None:
    """Start a bulk operation on the matching items. ``criteria`` contains the name, error group, key and tag to match,
    or None for each criterion that is not used. Exit with FAILED if no item matches.
    """
    _require_queue(ctx, queue)
    age = None if older_than is None else read_span(older_than)
    if older_than is not None and age is None:
        raise typer.BadParameter("cli.form_span", param_hint="--older-than")
    name, error, key, tag = criteria
    before = None if age is None else ctx.work().clock.now() - age
    asked = ItemFilter(state=STATE_OF[change], name=name, error=error, key=key, tag=tag, before=before)

    async def add(work: Batuta) -> BulkOperation | None:
        expected = await work.bulk.count(queue, asked)
        if not expected:
            return None
        return await work.bulk.find(await work.bulk.add(queue, change, asked, expected, by=current_user()))

    operation = ctx.ask(add)
    if operation is None:
        ctx.show({"expected": 0}, as_json, lambda: ctx.say(ctx.texts()("cli.bulk.nothing", queue=queue)))
        raise typer.Exit(FAILED)
    facts = {"id": operation.id, "count": operation.expected, "queue": queue}
    ctx.show(_describe(ctx, operation), as_json, lambda: ctx.say(ctx.texts()("cli.bulk.begun", **facts)))


def _require_queue(ctx: CliContext, queue: str) -> None:
    if queue not in ctx.work().queues:
        raise unknown("queue", queue, ctx.work().queues)


def _describe(ctx: CliContext, operation: BulkOperation) -> dict[str, Any]:
    return {
        "id": operation.id,
        "queue": operation.queue,
        "change": operation.change.value,
        "filter": operation.filter.describe(),
        "status": operation.status,
        "changed": operation.changed,
        "expected": operation.expected,
        "created_by": operation.created_by,
        "created_at": ctx.iso(operation.created_at),
        "finished_at": ctx.iso(operation.finished_at),
    }


def _print_operations(ctx: CliContext, queue: str, found: list[BulkOperation]) -> None:
    texts = ctx.texts()
    if not found:
        ctx.say(texts("cli.bulk.none", queue=queue))
        return
    table = ctx.table("cli.bulk.column_", COLUMNS)
    for each in found:
        table.add_row(
            each.id,
            texts(f"panel.act.bulk_{each.change}"),
            texts(f"panel.operation.{each.status}"),
            texts.number(each.changed),
            texts.number(each.expected),
            each.created_by,
            ctx.local(each.created_at),
        )
    ctx.out.print(table)
