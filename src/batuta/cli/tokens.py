"""The commands ``batuta token create | list | revoke``."""

import secrets
from typing import Annotated, Any

import typer
from rich.table import Table

from batuta.access import Scope, Token, mint
from batuta.cli.context import FAILED, CliContext, JsonFlag, cli_context, current_user
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import AmbiguousId


def create(
    context: typer.Context,
    scope: Annotated[list[Scope], typer.Option("--scope", help="read | operate | send | pii")],
    name: Annotated[str, typer.Option("--name")],
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    token, text = mint(name, scope, by=current_user(), now=ctx.work().clock.now(), chance=secrets.token_hex)
    ctx.ask(lambda work: work.tokens.keep(token))
    document = {"id": token.id, "name": token.name, "scopes": sorted(token.scopes), "token": text}
    ctx.show(document, as_json, lambda: _print_once(ctx, text))


def show(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    tokens = ctx.ask(lambda work: work.tokens.all())
    ctx.show({"tokens": [_describe(token) for token in tokens]}, as_json, lambda: ctx.out.print(_table(ctx, tokens)))


def revoke(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    revoked = ctx.ask(lambda work: _revoke(work, id))
    key = "cli.token.revoked" if revoked else "cli.token.unknown"
    ctx.show({"id": id, "revoked": revoked}, as_json, lambda: ctx.say(ctx.texts()(key, id=id)))
    if not revoked:
        raise typer.Exit(FAILED)


async def _revoke(work: Batuta, id: str) -> bool:
    """Revoke a token and return whether it existed. ``id`` is the token's id, or its first characters."""
    found = [token.id for token in await work.tokens.all() if id and token.id[: len(id)] == id]
    if len(found) > 1:
        raise AmbiguousId(id=id, candidates=", ".join(found))
    return await work.tokens.revoke(found[0] if found else id, by=current_user(), now=work.clock.now())


def _print_once(ctx: CliContext, text: str) -> None:
    ctx.err.print(ctx.texts()("cli.token.once"))
    ctx.say(text)


def _describe(token: Token) -> dict[str, Any]:
    revoked = token.revoked_at.isoformat() if token.revoked_at else None
    return {
        "id": token.id,
        "name": token.name,
        "scopes": sorted(token.scopes),
        "created_by": token.created_by,
        "created_at": token.created_at.isoformat(),
        "revoked_at": revoked,
    }


def _table(ctx: CliContext, tokens: list[Token]) -> Table:
    columns = ("id", "name", "scopes", "created", "revoked")
    table = ctx.table("cli.token.column_", columns)
    for token in tokens:
        times = [ctx.local(instant) if instant else "" for instant in (token.created_at, token.revoked_at)]
        table.add_row(token.id, token.name, " ".join(sorted(token.scopes)), *times)
    return table
