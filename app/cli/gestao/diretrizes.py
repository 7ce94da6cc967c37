"""``batuta diretrizes``: show the directives (rules from the team's briefing and templates) and their versions."""

import json
from collections.abc import Callable
from typing import Any

import typer

from app.cli.shared import ask
from app.contexts.diretrizes.relato import diretriz_em_palavras
from batuta.cli import CliContext, JsonFlag, cli_context


def listar(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    rows = ask(ctx, lambda julia: julia.directives.diretrizes.ativas())
    found = [diretriz_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"diretrizes": found}, as_json, lambda: _print(ctx, found))


def ver(context: typer.Context, tipo: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    rows = ask(ctx, lambda julia: julia.directives.diretrizes.versoes(tipo))
    found = [diretriz_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"versoes": found}, as_json, lambda: _print(ctx, found))


COMMANDS: dict[str, Callable[..., None]] = {"listar": listar, "ver": ver}


def _print(ctx: CliContext, found: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not found:
        ctx.say(texts("cli.diretrizes.none"))
    for each in found:
        key = "active" if each["ate"] is None else "ended"
        ctx.say(texts(f"cli.diretrizes.{key}", **{**each, "desde": ctx.moment(each["desde"])}))
        ctx.say(f"  {json.dumps(each['conteudo'], ensure_ascii=False)}")
