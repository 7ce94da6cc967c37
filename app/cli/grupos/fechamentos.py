"""``batuta grupos fechamentos | fechar | manter``: decide whether a group message such as "taken" closes a vacancy."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from app.cli.shared import ask, cell, id_of, read_personal, word
from app.composition.julia import Julia
from app.contexts.grupos.recebidas import motivo_em_palavras
from app.contexts.grupos.relato import aviso_em_palavras
from app.contexts.vagas.fechamentos import Fechado, FechamentoInexistente, VagaDeOutro
from batuta.cli import CliContext, JsonFlag, cli_context, current_user
from batuta.sql import Row


def fechamentos(
    context: typer.Context,
    limite: Annotated[int, typer.Option("--limite", min=1, max=1000)] = 20,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    found = ask(ctx, lambda julia: _read(julia, limite))
    avisos = [aviso_em_palavras(row, vagas, ctx.work().zone) for row, vagas in found]
    ctx.show({"avisos": avisos}, as_json, lambda: _print(ctx, avisos))


def fechar(
    context: typer.Context, id: str, vagas: Annotated[list[str], typer.Option("--vaga")], as_json: JsonFlag = False
) -> None:
    ctx = cli_context(context)
    _show_resolution(ctx, ask(ctx, lambda julia: _resolve(julia, id, vagas)), as_json)


def manter(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    _show_resolution(ctx, ask(ctx, lambda julia: _resolve(julia, id, ())), as_json)


COMMANDS: dict[str, Callable[..., None]] = {"fechamentos": fechamentos, "fechar": fechar, "manter": manter}


async def _read(julia: Julia, limite: int) -> Sequence[tuple[Row, Sequence[Row]]]:
    return await read_personal(julia, "grupos fechamentos", julia.groups.fechamentos.pendentes(limite=limite))


async def _resolve(julia: Julia, id: str, vagas: Sequence[str]) -> Fechado:
    notice = await id_of(julia, ["fechamentos_grupo"], id, FechamentoInexistente(id=id))
    meant = [await id_of(julia, ("vagas_grupo", "vagas"), each, VagaDeOutro(id=id, vaga=each)) for each in vagas]
    return await julia.groups.fechamentos.resolver(notice, meant, por=current_user())


def _show_resolution(ctx: CliContext, done: Fechado, as_json: bool) -> None:
    document = {"id": done.id, "status": done.status, "vagas": list(done.vagas)}
    ctx.show(document, as_json, lambda: _print_decided(ctx, done))


def _print_decided(ctx: CliContext, done: Fechado) -> None:
    ctx.say(ctx.texts()("cli.grupos.decided", id=done.id, status=word(ctx, "vaga", done.status)))


def _print(ctx: CliContext, avisos: list[dict[str, Any]]) -> None:
    if not avisos:
        ctx.say(ctx.texts()("cli.grupos.no_notice"))
    for each in avisos:
        ctx.say(f"{each['id']}  {motivo_em_palavras(ctx.texts(), each['motivo'])}".rstrip())
        ctx.out.print(each["texto"], markup=False, highlight=False)
        for vaga in each["vagas"]:
            columns = ("id", "hospital", "especialidade", "data", "periodo", "status")
            words = (cell(ctx, name, vaga[name]) for name in columns)
            ctx.out.print("  " + "  ".join(words), markup=False, highlight=False, soft_wrap=True)
