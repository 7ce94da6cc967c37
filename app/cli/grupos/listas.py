"""``batuta grupos mensagens | vagas``: list group messages with their results, and open vacancies."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from app.cli.shared import DAY, ask, cell, read_personal, word
from app.composition.julia import Julia
from app.contexts.grupos.recebidas import MotivoDoDescarte, mensagem_em_palavras, motivo_em_palavras
from app.contexts.vagas.abertas import aberta_em_palavras
from batuta.cli import CliContext, JsonFlag, cli_context
from batuta.sql import Row

Limite = Annotated[int, typer.Option("--limite", min=1, max=1000)]
Pular = Annotated[int, typer.Option("--pular", min=0, max=1_000_000)]
# Number of characters of a text that a table shows; --json prints the whole text.
SHOWN = 80


def mensagens(
    context: typer.Context,
    descartadas: Annotated[bool, typer.Option("--descartadas")] = False,
    motivo: Annotated[MotivoDoDescarte | None, typer.Option("--motivo")] = None,
    limite: Limite = 20,
    pular: Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    page = {"limite": limite, "pular": pular}

    async def read(julia: Julia) -> Sequence[Row]:
        reading = julia.groups.recebidas.lista(**page, descartadas=descartadas, motivo=motivo)
        return await read_personal(julia, "grupos mensagens", reading)

    rows = ask(ctx, read)
    shown = [mensagem_em_palavras(row, ctx.work().zone, com_texto=True) for row in rows]
    ctx.show({"mensagens": shown}, as_json, lambda: _print_messages(ctx, shown))


def vagas(
    context: typer.Context,
    dia: Annotated[datetime | None, typer.Option("--dia", formats=DAY)] = None,
    fechadas: Annotated[bool, typer.Option("--fechadas")] = False,
    limite: Limite = 20,
    pular: Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    ctx, day = cli_context(context), None if dia is None else dia.date()
    page = {"limite": limite, "pular": pular}

    async def read(julia: Julia) -> Sequence[Row]:
        return await read_personal(
            julia, "grupos vagas", julia.groups.abertas.lista(**page, dia=day, fechadas=fechadas)
        )

    rows = ask(ctx, read)
    shown = [aberta_em_palavras(row, ctx.work().zone, com_contato=True) for row in rows]
    ctx.show({"vagas": shown}, as_json, lambda: _print_vacancies(ctx, shown, "no_closed" if fechadas else "no_open"))


COMMANDS: dict[str, Callable[..., None]] = {"mensagens": mensagens, "vagas": vagas}


def _print_messages(ctx: CliContext, shown: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not shown:
        ctx.say(texts("cli.grupos.no_message"))
        return
    columns = ("enviada_em", "grupo", "estagio", "score", "lida_como", "motivo", "texto")
    table = ctx.table("cli.grupos.message_", columns)
    for each in shown:
        why = motivo_em_palavras(texts, each["motivo"]) or word(ctx, "mensagem_de_grupo", each["status"])
        row = {**each, "enviada_em": ctx.moment(each["enviada_em"]), "motivo": why, "texto": _shorten(each)}
        row["estagio"] = word(ctx, "estagio", each["estagio"])
        row["score"] = None if each["score"] is None else texts.number(each["score"], 2)
        row["lida_como"] = motivo_em_palavras(texts, each["lida_como"])
        table.add_row(*(cell(ctx, column, row[column]) for column in columns))
    ctx.out.print(table)


def _print_vacancies(ctx: CliContext, shown: list[dict[str, Any]], nothing: str) -> None:
    texts = ctx.texts()
    if not shown:
        ctx.say(texts(f"cli.grupos.{nothing}"))
        return
    columns = ("data", "periodo", "hospital", "especialidade", "valor", "status", "vaga_id", "revisao_id")
    table = ctx.table("cli.grupos.open_", columns)
    for each in shown:
        table.add_row(*(cell(ctx, column, each[column]) for column in columns))
    ctx.out.print(table)


def _shorten(message: dict[str, Any]) -> str:
    words = " ".join(message["texto"].split())
    return words if len(words) <= SHOWN else f"{words[: SHOWN - 1]}…"
