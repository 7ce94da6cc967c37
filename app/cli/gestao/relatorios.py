"""``batuta relatorios``: list, show and resend reports."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from app.cli.grupos.listas import Limite, Pular
from app.cli.shared import ask, id_of, word
from app.composition.julia import Julia
from app.contexts.relatorios.periodos import TipoDeRelatorio
from app.contexts.relatorios.relato import linhas, relatorio_em_palavras, titulo
from app.contexts.relatorios.service import Relatorio, RelatorioDesconhecido
from batuta.cli import CliContext, JsonFlag, cli_context

COLUMNS = ("id", "relatorio", "enviadas", "recebidas", "reservados", "envios")


def listar(
    context: typer.Context,
    tipo: Annotated[TipoDeRelatorio | None, typer.Option("--tipo")] = None,
    limite: Limite = 20,
    pular: Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    found = ask(ctx, lambda julia: julia.reports.relatorios.listar(tipo, limite=limite, pular=pular))
    document = {"relatorios": [_document(ctx, each) for each in found]}
    ctx.show(document, as_json, lambda: _print_all(ctx, found))


def ver(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    relatorio = ask(ctx, lambda julia: _see(julia, id))
    ctx.show(_document(ctx, relatorio), as_json, lambda: _print(ctx, relatorio))


def reenviar(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    relatorio = ask(ctx, lambda julia: _resend(julia, id))
    ctx.show(_document(ctx, relatorio), as_json, lambda: _print_deliveries(ctx, relatorio))


COMMANDS: dict[str, Callable[..., None]] = {"listar": listar, "ver": ver, "reenviar": reenviar}


async def _see(julia: Julia, written: str) -> Relatorio:
    id = await id_of(julia, ["relatorios"], written, RelatorioDesconhecido(id=written))
    return await julia.reports.relatorios.ver(id)


async def _resend(julia: Julia, written: str) -> Relatorio:
    return await julia.reports.relatorios.reenviar((await _see(julia, written)).id)


def _document(ctx: CliContext, relatorio: Relatorio) -> dict[str, Any]:
    return relatorio_em_palavras(relatorio, ctx.work().zone)


def _print_all(ctx: CliContext, found: list[Relatorio]) -> None:
    if not found:
        ctx.say(ctx.texts()("cli.relatorios.none"))
        return
    table, zone = ctx.table("cli.relatorios.column_", COLUMNS), ctx.work().zone
    for each in found:
        figures = each.metricas["periodo"]
        states = ", ".join(f"{name} {word(ctx, 'relatorio', state)}" for name, state in each.envios.items()) or "-"
        counts = (str(figures[name]) for name in ("enviadas", "recebidas", "plantoes_reservados"))
        table.add_row(each.id, titulo(each, ctx.texts(), zone), *counts, states)
    ctx.out.print(table)


def _print(ctx: CliContext, relatorio: Relatorio) -> None:
    for line in linhas(relatorio, ctx.texts(), ctx.work().zone):
        ctx.say(line)
    _print_deliveries(ctx, relatorio)


def _print_deliveries(ctx: CliContext, relatorio: Relatorio) -> None:
    if not relatorio.envios:
        ctx.say(ctx.texts()("cli.relatorios.not_sent"))
    for name, state in relatorio.envios.items():
        why = f" ({relatorio.erros[name]})" if name in relatorio.erros else ""
        ctx.say(f"{name}: {word(ctx, 'relatorio', state)}{why}")
