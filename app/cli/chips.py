"""``batuta chips`` and ``batuta chip``."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from app.cli.shared import ask, word
from app.composition.julia import Julia
from app.contexts.chips.jobs import last_digits
from app.contexts.chips.service import DecisaoDoChip, Fase, StatusDoChip, TipoDeChip
from batuta.cli import REFUSED, CliContext, JsonFlag, cli_context, current_user
from batuta.sql import Row

# Prefixes of the text keys for the values of a chip's columns.
WORDS = {"status": "chip", "tipo": "tipo_de_chip", "fase": "fase"}


def chips(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found = [
        _chip_document(ctx, row) for row in ask(ctx, lambda julia: julia.chips.pool.list_chips(julia.work.database))
    ]
    ctx.show({"chips": found}, as_json, lambda: _print_chips(ctx, found))


def chip(
    context: typer.Context,
    instancia: str,
    status: Annotated[StatusDoChip | None, typer.Option("--status")] = None,
    tipo: Annotated[TipoDeChip | None, typer.Option("--tipo")] = None,
    fase: Annotated[Fase | None, typer.Option("--fase")] = None,
    motivo: Annotated[str, typer.Option("--motivo")] = "",
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    what = DecisaoDoChip(status=status, tipo=tipo, fase=fase)
    if what == DecisaoDoChip() or not motivo.strip():
        ctx.say_wrong(ctx.texts()("cli.chip.what"))
        raise typer.Exit(REFUSED)
    after = ask(ctx, lambda julia: _decide(julia, instancia, what, motivo))
    shown = {column: word(ctx, kind, after[column]) for column, kind in WORDS.items()}
    sentence = ctx.texts()("cli.chip.done", instance=instancia, **shown)
    ctx.show({"instance": instancia, **after}, as_json, lambda: ctx.say(sentence))


async def _decide(julia: Julia, instance: str, what: DecisaoDoChip, why: str) -> dict[str, str]:
    now = julia.work.clock.now()
    async with julia.work.database.transaction() as transaction:
        return await julia.chips.chips.decidir(transaction, instance, what, why, by=current_user(), now=now)


def _chip_document(ctx: CliContext, row: Row) -> dict[str, Any]:
    return {
        "instance": row["instance_name"],
        "telefone": last_digits(row["telefone"]),
        "tipo": row["tipo"],
        "status": row["status"],
        "connected": row["evolution_connected"],
        "trust": row["trust_score"],
        "nivel": row["trust_level"],
        "fase": row["fase_warmup"],
        "pode": [word for word in ("prospectar", "followup", "responder") if row[f"pode_{word}"]],
        "enviadas_hoje": row["msgs_enviadas_hoje"],
        "recebidas_hoje": row["msgs_recebidas_hoje"],
        "limite_hora": row["limite_hora"],
        "limite_dia": row["limite_dia"],
        "erros_24h": row["erros_ultimas_24h"],
        "descansa_ate": None if row["cooldown_until"] is None else ctx.local(row["cooldown_until"]),
    }


def _print_chips(ctx: CliContext, found: Sequence[Mapping[str, Any]]) -> None:
    texts = ctx.texts()
    if not found:
        ctx.say(texts("cli.chips.none"))
        return
    columns = ("instance", "telefone", "tipo", "status", "connected", "trust", "pode", "enviadas_hoje", "erros_24h")
    table = ctx.table("cli.chips.column_", columns)
    for each in found:
        cells = {
            **each,
            "connected": texts("cli.chips.yes" if each["connected"] else "cli.chips.no"),
            "trust": f"{each['trust']} ({word(ctx, 'nivel', each['nivel'])})",
            "tipo": word(ctx, "tipo_de_chip", each["tipo"]),
            "status": word(ctx, "chip", each["status"]),
            "pode": ", ".join(word(ctx, "pode", action) for action in each["pode"]) or "–",
            "enviadas_hoje": f"{each['enviadas_hoje']}/{each['limite_dia']}",
        }
        table.add_row(*("" if cells[column] is None else str(cells[column]) for column in columns))
    ctx.out.print(table)
