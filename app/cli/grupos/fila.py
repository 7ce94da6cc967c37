"""``batuta grupos``: count the queued messages (``status``), retry rows whose processing failed (``reprocessar``),
enqueue messages that have no row in the queue (``backfill``), and read processed messages again (``reler``).
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from app.cli.shared import DAY, ask, word
from app.composition.julia import Julia
from app.contexts.esteira.operacao import Operacao
from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.recebidas import motivo_em_palavras
from batuta.cli import CliContext, JsonFlag, cli_context, current_user

BATCH = 100
Limite = Annotated[int, typer.Option("--limite", min=1, max=100_000)]


def status(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found, reasons = ask(ctx, _counts)
    document = {"fila": found, "descartadas_por_motivo": reasons}
    ctx.show(document, as_json, lambda: _print_counts(ctx, found, reasons))


def reprocessar(
    context: typer.Context,
    estagio: Annotated[Estagio | None, typer.Option("--estagio")] = None,
    limite: Limite = 100,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    revived = ask(ctx, lambda julia: _revive(ctx, julia.groups.operacao, estagio, limite))
    message = ctx.texts()("cli.grupos.revived", count=revived)
    document = {"sucesso": True, "reprocessados": revived, "mensagem": message}
    ctx.show(document, as_json, lambda: ctx.say(message))


def backfill(
    context: typer.Context,
    limite: Limite = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    found, added = ask(ctx, lambda julia: _backfill(ctx, julia.groups.operacao, limite, dry_run))
    document = {"encontradas": found, "enfileiradas": added, "dry_run": dry_run}
    key = "would_enqueue" if dry_run else "enqueued"
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()(f"cli.grupos.{key}", found=found, added=added)))


def reler(
    context: typer.Context,
    desde: Annotated[datetime, typer.Option("--desde", formats=DAY)],
    ate: Annotated[datetime, typer.Option("--ate", formats=DAY)],
    limite: Limite = 1000,
    enfileirar: Annotated[bool, typer.Option("--enfileirar")] = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    zone = ctx.work().zone
    since, until = desde.replace(tzinfo=zone), (ate + timedelta(days=1)).replace(tzinfo=zone)
    found, added = ask(ctx, lambda julia: _read_again(ctx, julia.groups.operacao, since, until, limite, enfileirar))
    document = {"encontradas": found, "enfileiradas": added}
    key = "enqueued" if enfileirar else "would_read_again"
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()(f"cli.grupos.{key}", found=found, added=added)))


COMMANDS: dict[str, Callable[..., None]] = {
    "status": status,
    "reprocessar": reprocessar,
    "backfill": backfill,
    "reler": reler,
}


async def _revive(ctx: CliContext, operacao: Operacao, estagio: Estagio | None, limite: int) -> int:
    dead = await operacao.mortas(estagio, limite)
    revived = 0
    with _bar(ctx) as bar:
        task = bar.add_task(ctx.texts()("cli.grupos.reviving"), total=len(dead))
        async for was_dead in operacao.reprocessar(dead, por=current_user()):
            revived += was_dead
            bar.advance(task)
    return revived


async def _backfill(ctx: CliContext, operacao: Operacao, limite: int, dry_run: bool) -> tuple[int, int]:
    found = await operacao.esquecidas(limite)
    return len(found), await _enqueue(ctx, [] if dry_run else found, operacao.enfileirar)


async def _read_again(
    ctx: CliContext, operacao: Operacao, since: datetime, until: datetime, limite: int, enfileirar: bool
) -> tuple[int, int]:
    found = await operacao.passadas(since, until, limite)
    return len(found), await _enqueue(ctx, found if enfileirar else [], operacao.reler)


async def _enqueue(ctx: CliContext, ids: list[str], put: Callable[[list[str]], Awaitable[int]]) -> int:
    added = 0
    with _bar(ctx) as bar:
        task = bar.add_task(ctx.texts()("cli.grupos.enqueueing"), total=len(ids))
        for first in range(0, len(ids), BATCH):
            some = ids[first : first + BATCH]
            added += await put(some)
            bar.advance(task, len(some))
    return added


def _bar(ctx: CliContext) -> Progress:
    return Progress(console=ctx.err, transient=True, disable=not ctx.err.is_terminal)


async def _counts(julia: Julia) -> tuple[dict[str, Any], dict[str, int]]:
    return await julia.groups.operacao.fila(), await julia.groups.recebidas.motivos()


def _print_counts(ctx: CliContext, found: dict[str, Any], reasons: dict[str, int]) -> None:
    texts = ctx.texts()
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, count in found.items():
        table.add_row(word(ctx, "estagio", name), ctx.texts().number(count))
    ctx.out.print(table)
    if reasons:
        ctx.say(texts("cli.grupos.discarded"))
    for reason, count in reasons.items():
        words = motivo_em_palavras(texts, reason)
        ctx.say(texts("cli.grupos.discarded_line", count=count, motivo=reason, words=words))
