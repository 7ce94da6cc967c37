"""The commands ``batuta queue list | show | cancel | retry | discard | edit | rehome | unstick``."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.table import Table

from batuta.cli.context import FAILED, CliContext, JsonFlag, as_typed, cli_context, current_user, wait_for
from batuta.engine.batuta import Batuta
from batuta.engine.edits import enqueue_edited, read_changes
from batuta.health.workers import FORGOTTEN_AFTER
from batuta.kernel import reasons
from batuta.kernel.errors import ConfigError
from batuta.kernel.reasons import Reason, decode
from batuta.kernel.suggestions import unknown
from batuta.queue.item import ItemState, QueueTable
from batuta.queue.outcome import CANCELLED_BY
from batuta.stores.sql.database import Row
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.history import full_id
from batuta.tasks.ends import HELD_UNTIL, hide_unknown_due
from batuta.tasks.registry import TASKS
from batuta.texts import Texts

# Number of items changed in one transaction, and maximum number of transactions per command.
ACTION_BATCH = 1000
MOST_STEPS = 10_000


def list_queues(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found, unserved = wait_for(_count_queues(ctx))
    document = {"queues": found, "unserved": unserved}
    ctx.show(document, as_json, lambda: ctx.out.print(_queues_table(ctx, found, unserved)))


def show(
    context: typer.Context,
    queue: str,
    state: Annotated[str | None, typer.Option("--state")] = None,
    tag: Annotated[str | None, typer.Option("--tag")] = None,
    key: Annotated[str | None, typer.Option("--key")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000)] = 20,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    if tag is not None or key is not None:
        _show_found(ctx, queue, wait_for(_find_items(ctx, queue, tag, key, limit)), as_json)
        return
    asked, items = wait_for(_list_items(ctx, queue, state, limit))

    def tell() -> None:
        if items:
            ctx.out.print(_items_table(ctx, items))
            return
        texts = ctx.texts()
        others = ", ".join(as_typed(state_word(texts, each)) for each in ItemState if each != asked)
        ctx.say(texts("cli.queue.none", state=state_word(texts, asked), queue=queue, others=others))

    ctx.show({"queue": queue, "items": items}, as_json, tell)


def _show_found(ctx: CliContext, queue: str, items: list[dict[str, Any]], as_json: bool) -> None:
    def tell() -> None:
        if items:
            ctx.out.print(_items_table(ctx, items, with_state=True))
        else:
            ctx.say(ctx.texts()("cli.queue.none_found", queue=queue))

    ctx.show({"queue": queue, "items": items}, as_json, tell)


def cancel(
    context: typer.Context,
    queue: str,
    id: Annotated[list[str], typer.Argument()],
    reason: Annotated[str | None, typer.Option("--reason")] = None,
    as_json: JsonFlag = False,
) -> None:
    def act(found: SqlQueue, whole: str) -> Awaitable[bool]:
        return found.cancel(whole, reason or CANCELLED_BY(by=current_user()), by=current_user())

    _act(cli_context(context), queue, id, "cancelled", act, as_json)


def retry(
    context: typer.Context, queue: str, id: Annotated[list[str], typer.Argument()], as_json: JsonFlag = False
) -> None:
    _act(
        cli_context(context), queue, id, "retried", lambda found, whole: found.revive(whole, by=current_user()), as_json
    )


def discard(
    context: typer.Context,
    queue: str,
    id: Annotated[list[str] | None, typer.Argument()] = None,
    is_waiting: Annotated[bool, typer.Option("--waiting")] = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    if bool(id) == is_waiting:
        raise ConfigError(
            problem=Reason("discard_what", "it is not clear what to discard"),
            next_step=Reason(
                "discard_what_next",
                "give the id of a dead item, or --waiting to cancel the items waiting in a queue that no worker serves",
            ),
        )
    if id:
        _act(ctx, queue, id, "discarded", lambda found, whole: found.discard(whole, by=current_user()), as_json)
        return
    count = wait_for(
        _repeat_step(ctx, queue, lambda through: through.discard_waiting(queue, ACTION_BATCH, by=current_user()))
    )
    document = {"queue": queue, "cancelled": count}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.queue.dropped", queue=queue, count=count)))


def edit(
    context: typer.Context,
    queue: str,
    id: str,
    arg: Annotated[list[str], typer.Option("--arg")],
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    found, changes = _find_queue(ctx, queue), read_changes("\n".join(arg))

    async def enqueue(work: Batuta) -> str | None:
        whole = await full_id(work.database, found.table.name, id, column=found.table.id)
        return None if whole is None else await enqueue_edited(work, queue, whole, changes, by=current_user())

    new = ctx.ask(enqueue)
    key = "cli.queue.not_dead" if new is None else "cli.queue.edited"
    document = {"queue": queue, "id": id, "new": new}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()(key, id=id, queue=queue, new=new)))
    if new is None:
        raise typer.Exit(FAILED)


def rehome(
    context: typer.Context, queue: str, target: Annotated[str, typer.Option("--to")], as_json: JsonFlag = False
) -> None:
    ctx = cli_context(context)
    count = wait_for(_rehome(ctx, queue, target))
    document = {"queue": queue, "to": target, "moved": count}
    facts = {"queue": queue, "target": target, "count": count}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.queue.rehomed", **facts)))


def unstick(context: typer.Context, queue: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    rescued, dead = wait_for(_unstick(ctx, queue))
    document = {"queue": queue, "rescued": rescued, "dead": dead}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.queue.unstuck", rescued=rescued, dead=dead)))


def _act(
    ctx: CliContext,
    queue: str,
    ids: Sequence[str],
    done: str,
    act: Callable[[SqlQueue, str], Awaitable[bool]],
    as_json: bool,
) -> None:
    """Change items in a queue, print the result of each change, and exit with FAILED if any item was not changed."""
    found = _find_queue(ctx, queue)

    async def change(work: Batuta) -> dict[str, bool]:
        results = {}
        for id in ids:
            whole = await full_id(work.database, found.table.name, id, column=found.table.id)
            results[id] = whole is not None and await act(found, whole)
        return results

    results = ctx.ask(change)
    items = [{"id": id, done: is_done} for id, is_done in results.items()]
    refused = "not_cancelled" if done == "cancelled" else "not_dead"

    def tell() -> None:
        for id, is_done in results.items():
            ctx.say(ctx.texts()(f"cli.queue.{done if is_done else refused}", id=id, queue=queue))

    ctx.show({"queue": queue, **(items[0] if len(items) == 1 else {"items": items})}, as_json, tell)
    if not all(results.values()):
        raise typer.Exit(FAILED)


def _find_queue(ctx: CliContext, name: str) -> SqlQueue:
    queues = ctx.work().queues
    if name not in queues:
        raise unknown("queue", name, queues)
    return queues[name]


async def _count_queues(ctx: CliContext) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    async with ctx.work() as work:
        queues = [
            {
                "queue": name,
                "states": await queue.counts(),
                "next_at": ctx.iso(await queue.next_at()),
            }
            for name, queue in work.queues.items()
        ]
        return queues, [
            {
                "queue": items.queue,
                "name": items.name,
                "count": items.count,
                "oldest": ctx.iso(items.oldest),
            }
            for items, _ in await work.unserved.all()
        ]


async def _list_items(ctx: CliContext, queue: str, state: str | None, limit: int) -> tuple[str, list[dict[str, Any]]]:
    """Return a pair: an item state, and the queue's items in that state.

    ``state`` is either a state that every queue has or a state that only this queue's table uses. If ``state`` is None,
    choose dead items, or ready items if this release does not contain the queue.
    """
    async with ctx.work() as work:
        unserved = None if queue in work.queues else await _open_unserved(ctx, queue)
        found = unserved or _find_queue(ctx, queue)
        state = state or (ItemState.DEAD if unserved is None else ItemState.READY)
        known = [*ItemState, *await found.counts()]
        if state not in known:
            raise unknown("state", state, dict.fromkeys(as_typed(state_word(ctx.texts(), each)) for each in known))
        rows = await found.list_items(state, limit, of=None if unserved is None else queue)
        waits = await work.explain_waits(found, rows)
    return state, _describe_rows(ctx, found.table, rows, waits)


async def _find_items(
    ctx: CliContext, queue: str, tag: str | None, key: str | None, limit: int
) -> list[dict[str, Any]]:
    found = _find_queue(ctx, queue)
    if found.table.name != TASKS.name:
        raise ConfigError(
            problem=Reason("queue_untagged", "items in queue {queue} have no task tags or keys", queue=queue),
            next_step=Reason("queue_untagged_next", "omit --tag and --key, or name a queue that holds tasks"),
        )
    async with ctx.work() as work:
        rows = await work.find_tasks(queue, limit, tag=tag, key=key)
        waits = await work.explain_waits(found, [dict(row) for row in rows])
    return _describe_rows(ctx, found.table, rows, waits)


async def _open_unserved(ctx: CliContext, source: str) -> SqlQueue:
    """Return an object with which operators list and change the items of ``source``, a queue that this release does not
    serve.
    """
    unserved = {items.queue: through for items, through in await ctx.work().unserved.all()}
    if source not in unserved:
        raise unknown("queue", source, [*ctx.work().queues, *unserved])
    return unserved[source]


async def _rehome(ctx: CliContext, source: str, target: str) -> int:
    work = ctx.work()

    def moves(through: SqlQueue) -> Awaitable[int]:
        of_table = [name for name, queue in work.queues.items() if queue.table.name == through.table.name]
        if target not in of_table:
            raise unknown("queue", target, of_table)
        return through.rehome(source, target, ACTION_BATCH, by=current_user())

    return await _repeat_step(ctx, source, moves)


async def _repeat_step(ctx: CliContext, source: str, step: Callable[[SqlQueue], Awaitable[int]]) -> int:
    async with ctx.work() as work:
        living = (await work.beats.read_signs(within=FORGOTTEN_AFTER, now=work.now())).living_loops
        if source in work.queues or f"worker:{source}" in living:
            raise ConfigError(
                problem=Reason("queue_served", "a worker serves queue {queue}", queue=source),
                next_step=Reason(
                    "queue_served_next",
                    "only items of a queue that no worker serves can be moved or cancelled; `batuta queue list` lists such queues",
                ),
            )
        through, total = await _open_unserved(ctx, source), 0
        for _ in range(MOST_STEPS):
            changed = await step(through)
            total += changed
            if changed < ACTION_BATCH:
                break
        return total


async def _unstick(ctx: CliContext, queue: str) -> tuple[int, int]:
    _find_queue(ctx, queue)

    def waits(length: timedelta) -> None:
        ctx.err.print(ctx.texts()("cli.queue.unsticking", length=length))

    async with ctx.work() as work:
        rescued = await work.rescue(queue, waits)
    return len(rescued), sum(each.state is ItemState.DEAD for each in rescued)


def _describe_rows(
    ctx: CliContext, table: QueueTable, rows: Iterable[Row], waits: Mapping[str, Reason]
) -> list[dict[str, Any]]:
    """Describe items for output. ``waits`` maps the id of each waiting item to the reason why it is waiting."""
    columns = _columns_of(table)
    shown = [{name: row[column] for name, column in columns.items() if column in row.keys()} for row in rows]  # noqa: SIM118
    return [_describe_item(ctx, each, waits.get(str(each["id"]))) for each in shown]


def _columns_of(table: QueueTable) -> dict[str, str]:
    """Return the columns of an item that operators may see, under the names that the engine uses for them. The payload
    is omitted, because it may contain personal data.
    """
    named = {
        "id": table.id,
        "name": "name",
        "status": table.state,
        "attempts": table.attempts,
        "crashes": table.crashes,
        "priority": table.priority,
        "created_at": table.created_at,
        "available_at": table.available_at,
        "finished_at": table.finished_at,
        "error": table.error,
        "doubt": table.doubt,
    }
    return {name: column for name, column in named.items() if column is not None}


def _describe_item(ctx: CliContext, item: dict[str, Any], waits_for: Reason | None) -> dict[str, Any]:
    """Describe an item for output. ``waits_for`` is the limit, task or batch that the item is waiting for, if any."""
    error = decode(item.get("error"))
    item = {**item, "available_at": hide_unknown_due(item.get("available_at"))}
    shown = {name: ctx.iso(value) if isinstance(value, datetime) else value for name, value in item.items()}
    shown |= {"error": error and ctx.texts().reason(error), **reasons.describe_reason(error, "error")}
    if waits_for is not None:
        shown |= {"waits_for": ctx.texts().reason(waits_for), **reasons.describe_reason(waits_for, "waits_for")}
    return shown


def _queues_table(ctx: CliContext, found: list[dict[str, Any]], unserved: list[dict[str, Any]]) -> Table:
    texts = ctx.texts()
    table = ctx.table("cli.queue.column_", ("queue", "states", "next"))
    for each in found:
        states = ", ".join(
            f"{state_word(texts, state)} {texts.number(count)}" for state, count in sorted(each["states"].items())
        )
        held = texts("cli.queue.held") if each["next_at"] == ctx.iso(HELD_UNTIL) else None
        table.add_row(each["queue"], states or "-", held or ctx.moment(each["next_at"]) or "-")
    for each in unserved:
        table.add_row(each["queue"], texts("cli.queue.not_served", count=each["count"]), ctx.moment(each["oldest"]))
    return table


def state_word(texts: Texts, state: str) -> str:
    """Return the name of an item's state in the operator's language. If there is no translation, return the state as it
    is stored.
    """
    return texts.get(f"item_state.{state}", state)


def _items_table(ctx: CliContext, items: list[dict[str, Any]], *, with_state: bool = False) -> Table:
    state = ("state",) if with_state else ()
    table = ctx.table("cli.queue.column_", ("id", "name", *state, "attempts", "when", "error"))
    for item in items:
        when = ctx.moment(item.get("finished_at") or item.get("available_at")) or "-"
        word = (state_word(ctx.texts(), item["status"]),) if with_state else ()
        attempts, error = str(item.get("attempts", "")), item.get("waits_for") or item.get("error") or ""
        table.add_row(item["id"], str(item.get("name", "")), *word, attempts, when, error)
    return table
