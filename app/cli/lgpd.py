"""``batuta lgpd``: export or erase all data about one person, and list the export and erasure requests."""

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer

from app.cli.grupos.listas import Limite
from app.cli.shared import Saida, ask, read_personal, word, write_private
from app.contexts.lgpd.relato import pedido_em_palavras, recibo_em_palavras
from batuta.cli import FAILED, CliContext, JsonFlag, cli_context, current_user

Pessoa = Annotated[str, typer.Argument(metavar="PESSOA")]
Motivo = Annotated[str, typer.Option("--motivo")]


def exportar(
    context: typer.Context, pessoa: Pessoa, saida: Saida, motivo: Motivo = "-", as_json: JsonFlag = False
) -> None:
    ctx = cli_context(context)
    found = ask(ctx, lambda julia: julia.personal_data.lgpd.exportar(pessoa, por=current_user(), motivo=motivo))
    write_private(saida, json.dumps(found, ensure_ascii=False, indent=2) + "\n")
    tables: Any = found["tabelas"]
    counts = {name: len(rows) for name, rows in tables.items()}
    linhas, document = sum(counts.values()), {"pedido": found["pedido"], "saida": str(saida), "contagens": counts}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.lgpd.exported", linhas=linhas, saida=str(saida))))


def apagar(context: typer.Context, pessoa: Pessoa, motivo: Motivo = "-", as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    done = ask(ctx, lambda julia: julia.personal_data.lgpd.apagar(pessoa, por=current_user(), motivo=motivo))
    ctx.show(recibo_em_palavras(done), as_json, lambda: _print_receipt(ctx, recibo_em_palavras(done)))
    if not done.completo:
        raise typer.Exit(FAILED)


def pedidos(context: typer.Context, limite: Limite = 20, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    rows = ask(ctx, lambda julia: read_personal(julia, "lgpd pedidos", julia.personal_data.lgpd.pedidos(limite=limite)))
    shown = [pedido_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"pedidos": shown}, as_json, lambda: _print_requests(ctx, shown))


COMMANDS: dict[str, Callable[..., None]] = {"exportar": exportar, "apagar": apagar, "pedidos": pedidos}


def _print_receipt(ctx: CliContext, document: dict[str, Any]) -> None:
    texts = ctx.texts()
    for table, items in document["contagens"].items():
        ctx.say(f"  {table}: {items}")
    ctx.say(texts("cli.lgpd.complete" if document["completo"] else "cli.lgpd.incomplete", **document))
    for table, items in document["restam"].items():
        ctx.say(texts("cli.lgpd.left", tabela=table, linhas=items))
    if document["na_central"]:
        ctx.say(texts("cli.lgpd.in_help_desk", conversas=", ".join(map(str, document["na_central"]))))


def _print_requests(ctx: CliContext, shown: list[dict[str, Any]]) -> None:
    if not shown:
        ctx.say(ctx.texts()("cli.lgpd.none"))
    for each in shown:
        state = word(ctx, "lgpd", "completo" if each["completo"] else "incompleto")
        facts = {"criado_em": ctx.moment(each["criado_em"]), "linhas": sum(each["contagens"].values())}
        ctx.say(ctx.texts()("cli.lgpd.request", **each | facts | {"situacao": state}))
