"""``batuta chips`` and ``batuta chip``."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from app.contexts.chips.jobs import last_digits
from app.contexts.chips.pool import Pool
from app.contexts.chips.service import Decisao, Fase, Status, Tipo
from batuta.cli.context import REFUSED, Desk, JsonFlag, desk_of, wait_for, who


def chips(context: typer.Context, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    found = wait_for(_chips(desk))
    desk.show({"chips": found}, as_json, lambda: _tell_chips(desk, found))


def chip(
    context: typer.Context,
    instance: str,
    status: Annotated[Status | None, typer.Option("--status")] = None,
    tipo: Annotated[Tipo | None, typer.Option("--tipo")] = None,
    fase: Annotated[Fase | None, typer.Option("--fase")] = None,
    reason: Annotated[str, typer.Option("--reason")] = "",
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    what = Decisao(status=status, tipo=tipo, fase=fase)
    if what == Decisao() or not reason.strip():
        desk.say_wrong(desk.texts()("cli.chip.what"))
        raise typer.Exit(REFUSED)
    after = wait_for(_decide(desk, instance, what, reason))
    document = {"instance": instance, **after}
    desk.show(document, as_json, lambda: desk.say(desk.texts()("cli.chip.done", **document)))


async def _decide(desk: Desk, instance: str, what: Decisao, why: str) -> dict[str, str]:
    from app.composition.julia import contexts

    async with desk.work() as work, work.database.transaction() as transaction:
        return await contexts(work).chips.decidir(transaction, instance, what, why, by=who(), now=work.clock.now())


async def _chips(desk: Desk) -> list[dict[str, Any]]:
    async with desk.work() as work:
        rows = await Pool(work.database.dialect, work.ids).shown(work.database)
    return [
        {
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
            "descansa_ate": None if row["cooldown_until"] is None else desk.local(row["cooldown_until"]),
        }
        for row in rows
    ]


def _tell_chips(desk: Desk, found: Sequence[Mapping[str, Any]]) -> None:
    texts = desk.texts()
    if not found:
        desk.say(texts("cli.chips.none"))
        return
    columns = ("instance", "telefone", "tipo", "status", "connected", "trust", "pode", "enviadas_hoje", "erros_24h")
    table = Table(*(texts(f"cli.chips.column_{column}") for column in columns), box=None, pad_edge=False)
    for each in found:
        told = {
            **each,
            "connected": texts("cli.chips.yes" if each["connected"] else "cli.chips.no"),
            "trust": f"{each['trust']} ({each['nivel']})",
            "pode": ", ".join(each["pode"]) or "–",
            "enviadas_hoje": f"{each['enviadas_hoje']}/{each['limite_dia']}",
        }
        table.add_row(*("" if told[column] is None else str(told[column]) for column in columns))
    desk.out.print(table)
