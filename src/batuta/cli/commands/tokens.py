"""The commands ``batuta token create | list | rotate | revoke``."""

import secrets
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.table import Table

from batuta.access import Scope, Token, UserRole, mint, mint_successor
from batuta.cli.commands.controls import parse_span
from batuta.cli.context import FAILED, CliContext, JsonFlag, as_typed, cli_context, current_user
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import AmbiguousId


def create(
    context: typer.Context,
    name: Annotated[str, typer.Option("--name")],
    role: Annotated[UserRole | None, typer.Option("--role", help="reader | operator | admin")] = None,
    scope: Annotated[
        list[Scope] | None, typer.Option("--scope", help="read | operate | send | tokens | pii | metrics")
    ] = None,
    span: Annotated[str | None, typer.Option("--for")] = None,
    network: Annotated[list[str] | None, typer.Option("--network")] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    now = ctx.work().clock.now()
    expires = None if span is None else now + parse_span(span)
    token, text = mint(
        name,
        {*(role.scopes if role else ()), *(scope or ())},
        by=current_user(),
        now=now,
        chance=secrets.token_hex,
        expires_at=expires,
        networks=network or (),
    )
    ctx.ask(lambda work: work.tokens.keep(token))
    _show_once(ctx, token, text, as_json)


def rotate(
    context: typer.Context,
    id: str,
    span: Annotated[str, typer.Option("--for")] = "1d",
    as_json: JsonFlag = False,
) -> None:
    """Create the successor of a token. The old token stays valid for some time, so that programs can switch to the new
    token.
    """
    ctx = cli_context(context)
    overlap = parse_span(span)
    made = ctx.ask(lambda work: _rotate(work, id, overlap))
    if made is None:
        ctx.say(ctx.texts()("cli.token.unknown", id=id))
        raise typer.Exit(FAILED)
    _show_once(ctx, *made, as_json)


def show(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    tokens = ctx.ask(lambda work: work.tokens.all())
    document = {"tokens": [_describe(token) for token in tokens]}
    ctx.show(document, as_json, lambda: ctx.print_table(_table(ctx, tokens), "cli.token.none"))


def revoke(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    revoked = ctx.ask(lambda work: _revoke(work, id))
    key = "cli.token.revoked" if revoked else "cli.token.unknown"
    ctx.show({"id": id, "revoked": revoked}, as_json, lambda: ctx.say(ctx.texts()(key, id=id)))
    if not revoked:
        raise typer.Exit(FAILED)


async def _revoke(work: Batuta, id: str) -> bool:
    """Revoke a token and return whether it existed."""
    found = await _find(work, id)
    return found is not None and await work.tokens.revoke(found.id, by=current_user(), now=work.clock.now())


async def _rotate(work: Batuta, id: str, overlap: timedelta) -> tuple[Token, str] | None:
    """Create the successor of a valid token. Return None if the token is unknown or no longer valid."""
    old, now = await _find(work, id), work.clock.now()
    if old is None or not old.is_valid(now):
        return None
    new, text = mint_successor(old, by=current_user(), now=now, chance=secrets.token_hex)
    await work.tokens.rotate(old, new, until=now + overlap)
    return new, text


async def _find(work: Batuta, id: str) -> Token | None:
    """Return the token whose id begins with ``id``, or None. Raises AmbiguousId if several ids match."""
    found = [token for token in await work.tokens.all() if id and token.id[: len(id)] == id]
    if len(found) > 1:
        raise AmbiguousId(id=id, candidates=", ".join(token.id for token in found))
    return found[0] if found else None


def _show_once(ctx: CliContext, token: Token, text: str, as_json: bool) -> None:
    document = {"id": token.id, "name": token.name, "scopes": sorted(token.scopes), "token": text}
    ctx.show(document, as_json, lambda: _print_once(ctx, text))


def _print_once(ctx: CliContext, text: str) -> None:
    ctx.err.print(ctx.texts()("cli.token.once"))
    ctx.say(text)


TIMES = ("created", "expires", "last_used", "revoked")


def _describe(token: Token) -> dict[str, Any]:
    times = {f"{name}_at": getattr(token, f"{name}_at") for name in TIMES}
    return {
        "id": token.id,
        "name": token.name,
        "scopes": sorted(token.scopes),
        "networks": [*token.networks],
        "created_by": token.created_by,
        **{name: instant.isoformat() if instant else None for name, instant in times.items()},
    }


def _table(ctx: CliContext, tokens: list[Token]) -> Table:
    texts, table = ctx.texts(), ctx.table("cli.token.column_", ("id", "name", "scopes", "networks", *TIMES))
    for token in tokens:
        instants = [getattr(token, f"{name}_at") for name in TIMES]
        times = [ctx.local(instant) if instant else "" for instant in instants]
        scopes = sorted(as_typed(texts(f"scope_word.{scope}")) for scope in token.scopes)
        table.add_row(token.id, token.name, " ".join(scopes), " ".join(token.networks), *times)
    return table
