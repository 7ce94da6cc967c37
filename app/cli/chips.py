"""``batuta chips`` lists the WhatsApp numbers. ``batuta chip`` changes one of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from app.cli.shared import DAY, ask, word
from app.composition.julia import Julia
from app.contexts.chips.relato import chip_em_palavras
from app.contexts.chips.service import DecisaoDoChip, Fase, StatusDoChip, TipoDeChip
from batuta.cli import REFUSED, CliContext, JsonFlag, cli_context, current_user

# Prefixes of the text keys for the values of a chip's columns.
WORDS = {"status": "chip", "tipo": "tipo_de_chip", "fase": "fase"}


def chips(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    rows = ask(ctx, lambda julia: julia.chips.pool.list_chips(julia.work.database))
    found = [chip_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"chips": found}, as_json, lambda: _print_chips(ctx, found))


def chip(
    context: typer.Context,
    instancia: str,
    status: Annotated[StatusDoChip | None, typer.Option("--status")] = None,
    tipo: Annotated[TipoDeChip | None, typer.Option("--tipo")] = None,
    fase: Annotated[Fase | None, typer.Option("--fase")] = None,
    em_uso_desde: Annotated[datetime | None, typer.Option("--em-uso-desde", formats=DAY)] = None,
    motivo: Annotated[str, typer.Option("--motivo")] = "",
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    since = None if em_uso_desde is None else em_uso_desde.replace(tzinfo=ctx.work().zone)
    what = DecisaoDoChip(status=status, tipo=tipo, fase=fase, em_uso_desde=since)
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
