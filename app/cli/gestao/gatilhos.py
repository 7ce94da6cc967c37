"""``batuta gatilhos``: list the automatic triggers, and show which doctors the next run would select."""

from collections.abc import Callable, Mapping
from typing import Any

import typer

from app.cli.shared import ask, word
from app.contexts.gatilhos.model import Gatilho
from app.contexts.gatilhos.relato import gatilho_em_palavras, simulacao_em_palavras
from batuta.cli import CliContext, JsonFlag, cli_context

COLUMNS = ("nome", "situacao", "limite", "na_fila", "enfileiradas", "enviados", "respondidos")


def listar(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    shown = [gatilho_em_palavras(each) for each in ask(ctx, lambda julia: julia.triggers.gatilhos.listar())]
    ctx.show({"gatilhos": shown}, as_json, lambda: _print_all(ctx, shown))


def simular(context: typer.Context, nome: Gatilho, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    document = simulacao_em_palavras(ask(ctx, lambda julia: julia.triggers.gatilhos.simular(nome)))
    ctx.show(document, as_json, lambda: _print(ctx, document))


COMMANDS: dict[str, Callable[..., None]] = {"listar": listar, "simular": simular}


def _print_all(ctx: CliContext, shown: list[dict[str, Any]]) -> None:
    table = ctx.table("cli.gatilhos.column_", COLUMNS)
    for each in shown:
        figures = each["ultimos_7_dias"]
        counts = (each["limite"], each["na_fila"], *(figures[name] for name in COLUMNS[4:]))
        table.add_row(each["nome"], _describe_switch(ctx, each["suspenso_por"]), *map(str, counts))
    ctx.out.print(table)
    for each in shown:
        marks = ", ".join(
            f"{word(ctx, 'avaliacao', kind)} {count}" for kind, count in each["ultimos_7_dias"]["avaliacoes"].items()
        )
        if marks:
            ctx.say(ctx.texts()("cli.gatilhos.marks", nome=each["nome"], avaliacoes=marks))


def _print(ctx: CliContext, document: dict[str, Any]) -> None:
    texts = ctx.texts()
    ctx.say(texts("cli.gatilhos.head", nome=document["nome"], situacao=_describe_switch(ctx, document["suspenso_por"])))
    if (why := document["sem_selecao"]) is not None:
        ctx.say(texts("cli.gatilhos.nothing", motivo=word(ctx, "sem_selecao", why)))
    for id in document["selecionados"]:
        ctx.say(f"  {id}")
    for offer in document["vagas"]:
        ctx.say(texts("cli.gatilhos.vaga", vaga=offer["vaga"], count=len(offer["medicos"])))
        for id in offer["medicos"]:
            ctx.say(f"    {id}")
        _print_reasons(ctx, offer["por_motivo"], {}, "    ")
    ctx.say(texts("cli.gatilhos.rest", encontrados=document["encontrados"], restantes=document["restantes"]))
    _print_reasons(ctx, document["por_motivo"], document["exemplos"], "  ")


def _print_reasons(ctx: CliContext, reasons: Mapping[str, int], examples: Mapping[str, list[str]], indent: str) -> None:
    for reason, count in reasons.items():
        ctx.say(f"{indent}{word(ctx, 'impedimento', reason)}: {count}")
        for id in examples.get(reason, ()):
            ctx.say(f"{indent}  {id}")


def _describe_switch(ctx: CliContext, switch: str | None) -> str:
    texts = ctx.texts()
    return texts("cli.gatilhos.on") if switch is None else texts("cli.gatilhos.held", chave=switch)
