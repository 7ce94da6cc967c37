"""``batuta grupos carregar | nomes | esquecer``: load names, show which hospital a name belongs to, and remove a wrong
name.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from app.cli.grupos import avaliar
from app.cli.shared import ask, id_of, word
from app.composition.julia import Julia
from app.contexts.nomes.ensino import Ensinado, NomeDesconhecido
from batuta.cli import REFUSED, CliContext, JsonFlag, cli_context, current_user


def carregar(
    context: typer.Context,
    arquivo: Annotated[Path, typer.Argument(dir_okay=False, exists=True, readable=True)],
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    try:
        names = avaliar.nomes_de(ctx, arquivo)
    except avaliar.BadInput as wrong:
        ctx.say_wrong(str(wrong))
        raise typer.Exit(REFUSED) from wrong
    loaded = ask(ctx, lambda julia: julia.groups.dicionario.carregar(names, now=julia.work.clock.now()))
    ctx.show(loaded, as_json, lambda: ctx.say(ctx.texts()("cli.grupos.loaded", **loaded)))


def nomes(context: typer.Context, nome: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found = ask(ctx, lambda julia: julia.groups.ensino.de_quem(nome))
    ctx.show({"nomes": [asdict(each) for each in found]}, as_json, lambda: _print(ctx, found))


def esquecer(
    context: typer.Context,
    nome: str,
    id: Annotated[str | None, typer.Option("--id")] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    gone = ask(ctx, lambda julia: _forget(julia, nome, id))
    words = ctx.texts()("cli.grupos.forgotten", tipo=word(ctx, "tipo_de_nome", gone.tipo), id=gone.id)
    ctx.show(asdict(gone), as_json, lambda: ctx.say(words))


async def _forget(julia: Julia, nome: str, id: str | None) -> Ensinado:
    """Remove an alias of a hospital or speciality. ``id`` is the id of that hospital or speciality, or the first
    characters of the id.
    """
    whole = None if id is None else await id_of(julia, ("hospitais", "especialidades"), id, NomeDesconhecido())
    return await julia.groups.ensino.esquecer(nome, por=current_user(), id=whole)


def _print(ctx: CliContext, found: list[Ensinado]) -> None:
    if not found:
        ctx.say(ctx.texts()("cli.grupos.nobodys_name"))
    for each in found:
        place = "" if each.cidade is None else f"  {each.cidade}/{each.uf or '?'}"
        tipo, origem = word(ctx, "tipo_de_nome", each.tipo), word(ctx, "origem_do_nome", each.origem)
        ctx.say(f"{tipo}  {each.id}  {each.nome}{place}  {origem}  {each.por or ''}".rstrip())
