"""The commands ``batuta keys list | rotate``."""

from typing import Any

import typer
from rich.table import Table

from batuta.cli.context import FAILED, CliContext, JsonFlag, cli_context, current_user
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import ConfigError
from batuta.kernel.reasons import Reason
from batuta.stores.sql.encrypted import KeyUse

COLUMNS = ("column", "key", "position", "values")


def show(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Print the number of encrypted values for each column and encryption key."""
    ctx = cli_context(context)
    uses = ctx.ask(_count)
    names = ctx.work().encryption.names
    document = {"keys": [*names], "columns": [_describe(column, use) for column, use in uses.items()]}
    ctx.show(document, as_json, lambda: ctx.out.print(_table(ctx, uses, names)))
    if any(key not in names for use in uses.values() for key in use.by_key):
        raise typer.Exit(FAILED)


def rotate(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Re-encrypt all stored values with the first configured key. An interrupted rotation can be resumed."""
    ctx = cli_context(context)
    if not ctx.work().encryption.is_on:
        raise ConfigError(
            problem=Reason("no_keys", "no encryption key is set"),
            next_step=Reason("no_keys_next", "set BATUTA_KEYS, or BATUTA_KEYS_FILE, and repeat"),
        )
    rotated, unknown = ctx.ask(_rotate)
    document = {"rotated": rotated, "unknown_key": unknown}
    ctx.show(document, as_json, lambda: _tell(ctx, rotated, unknown))
    if unknown:
        raise typer.Exit(FAILED)


async def _count(work: Batuta) -> dict[str, KeyUse]:
    columns = work.encrypted_columns
    return {column.about: await columns.count(column) for column in columns.columns}


async def _rotate(work: Batuta) -> tuple[int, int]:
    """Re-encrypt the stored values with the first configured key. Return the number of changed values, and the number
    of values whose key is unknown.
    """
    columns, rotated = work.encrypted_columns, 0
    for column in columns.columns:
        async for changed in columns.rotate(column):
            rotated += changed
    names = work.encryption.names
    uses = await _count(work)
    await work.access.note(actor=current_user(), action="keys.rotate", subject=f"key:{names[0]}", values=rotated)
    return rotated, sum(count for use in uses.values() for key, count in use.by_key.items() if key not in names)


def _describe(column: str, use: KeyUse) -> dict[str, Any]:
    return {"column": column, "plain": use.plain, "by_key": dict(use.by_key)}


def _table(ctx: CliContext, uses: dict[str, KeyUse], names: tuple[str, ...]) -> Table:
    texts, table = ctx.texts(), ctx.table("cli.keys.column_", COLUMNS)
    for column, use in uses.items():
        if use.plain:
            table.add_row(column, "–", texts("cli.keys.plain"), str(use.plain))
        for key, count in use.by_key.most_common():
            place = "missing" if key not in names else "first" if key == names[0] else "older"
            table.add_row(column, key, texts(f"cli.keys.{place}"), str(count))
    return table


def _tell(ctx: CliContext, rotated: int, unknown: int) -> None:
    texts = ctx.texts()
    ctx.say(texts("cli.keys.rotated", count=rotated))
    if unknown:
        ctx.say(texts("cli.keys.unknown", count=unknown))
