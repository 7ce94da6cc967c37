"""``batuta grupos bloquear | liberar | bloqueados``: block authors who post no offers, and unblock them."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import typer

from app.cli.shared import ask, id_of, read_personal
from app.composition.julia import Julia
from app.contexts.grupos.autores import Autor, AutorInexistente
from app.contexts.grupos.relato import autor_bloqueado, autor_em_palavras
from app.contexts.vagas.revisao import VagaInexistente
from batuta.cli import CliContext, JsonFlag, cli_context, current_user
from batuta.sql import Row

MOST: Final = 1_000


def bloquear(context: typer.Context, vaga: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    _print(ctx, ask(ctx, lambda julia: _block(julia, vaga)), "blocked", as_json)


def liberar(context: typer.Context, autor: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    _print(ctx, ask(ctx, lambda julia: _lift(julia, autor)), "lifted", as_json)


def bloqueados(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    rows = ask(ctx, _read)
    autores = [autor_bloqueado(row, ctx.work().zone) for row in rows]
    ctx.show({"autores": autores}, as_json, lambda: _show_authors(ctx, autores))


COMMANDS: dict[str, Callable[..., None]] = {"bloquear": bloquear, "liberar": liberar, "bloqueados": bloqueados}


async def _read(julia: Julia) -> Sequence[Row]:
    return await read_personal(julia, "grupos bloqueados", julia.groups.autores.bloqueados(limite=MOST))


async def _block(julia: Julia, vaga: str) -> Autor:
    id = await id_of(julia, ("vagas_grupo", "vagas"), vaga, VagaInexistente(id=vaga))
    return await julia.groups.autores.bloquear(id, por=current_user())


async def _lift(julia: Julia, autor: str) -> Autor:
    id = await id_of(julia, ["contatos_grupo"], autor, AutorInexistente(id=autor))
    return await julia.groups.autores.liberar(id, por=current_user())


def _show_authors(ctx: CliContext, autores: list[dict[str, Any]]) -> None:
    if not autores:
        ctx.say(ctx.texts()("cli.grupos.none_blocked"))
    for each in autores:
        ctx.say(f"{each['id']}  {ctx.moment(each['bloqueado_em'])}  {each['bloqueado_por']}")


def _print(ctx: CliContext, autor: Autor, key: str, as_json: bool) -> None:
    document = autor_em_palavras(autor)
    words = ctx.texts()(f"cli.grupos.{key}", id=autor.id, count=autor.rejeitadas)
    ctx.show(document, as_json, lambda: ctx.say(words))
