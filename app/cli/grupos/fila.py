"""``batuta grupos status | reprocessar | backfill``: the queue of the pipeline."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from app.cli.shared import ask
from app.composition.julia import Julia
from app.contexts.esteira.operacao import Operacao
from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.recebidas import motivo_em_palavras
from batuta.cli.context import Desk, JsonFlag, desk_of, who

BATCH = 100
Limite = Annotated[int, typer.Option("--limite", min=1, max=100_000)]


def status(context: typer.Context, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    found, reasons = ask(desk, _counts)
    document = {"fila": found, "descartadas_por_motivo": reasons}
    desk.show(document, as_json, lambda: _tell_counts(desk, found, reasons))


def reprocessar(
    context: typer.Context,
    estagio: Annotated[Estagio | None, typer.Option("--estagio")] = None,
    limite: Limite = 100,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    revived = ask(desk, lambda julia: _revive(desk, julia.groups.operacao, estagio, limite))
    told = desk.texts()("cli.grupos.revived", count=revived)
    document = {"sucesso": True, "reprocessados": revived, "mensagem": told}
    desk.show(document, as_json, lambda: desk.say(told))


def backfill(
    context: typer.Context,
    limite: Limite = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    found, added = ask(desk, lambda julia: _backfill(desk, julia.groups.operacao, limite, dry_run))
    document = {"encontradas": found, "enfileiradas": added, "dry_run": dry_run}
    key = "would_enqueue" if dry_run else "enqueued"
    desk.show(document, as_json, lambda: desk.say(desk.texts()(f"cli.grupos.{key}", found=found, added=added)))


COMMANDS: dict[str, Callable[..., None]] = {"status": status, "reprocessar": reprocessar, "backfill": backfill}


async def _revive(desk: Desk, operacao: Operacao, estagio: Estagio | None, limite: int) -> int:
    dead = await operacao.mortas(estagio, limite)
    revived = 0
    with _bar(desk) as bar:
        task = bar.add_task(desk.texts()("cli.grupos.reviving"), total=len(dead))
        async for was_dead in operacao.reprocessar(dead, por=who()):
            revived += was_dead
            bar.advance(task)
    return revived


async def _backfill(desk: Desk, operacao: Operacao, limite: int, dry_run: bool) -> tuple[int, int]:
    found = await operacao.esquecidas(limite)
    added = 0
    with _bar(desk) as bar:
        task = bar.add_task(desk.texts()("cli.grupos.enqueueing"), total=len(found))
        for first in range(0, 0 if dry_run else len(found), BATCH):
            some = found[first : first + BATCH]
            added += await operacao.enfileirar(some)
            bar.advance(task, len(some))
    return len(found), added


def _bar(desk: Desk) -> Progress:
    return Progress(console=desk.err, transient=True, disable=not desk.err.is_terminal)


async def _counts(julia: Julia) -> tuple[dict[str, Any], dict[str, int]]:
    return await julia.groups.operacao.fila(), await julia.groups.recebidas.motivos()


def _tell_counts(desk: Desk, found: dict[str, Any], reasons: dict[str, int]) -> None:
    texts = desk.texts()
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, count in found.items():
        table.add_row(name, str(count))
    desk.out.print(table)
    if reasons:
        desk.say(texts("cli.grupos.discarded"))
    for reason, count in reasons.items():
        words = motivo_em_palavras(texts, reason)
        desk.say(texts("cli.grupos.discarded_line", count=count, motivo=reason, words=words))
