"""The commands ``batuta migrate``, ``batuta backup FILE``, ``batuta restore FILE`` and ``batuta sql QUERY``."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from batuta.cli.context import CliContext, JsonFlag, cli_context, current_user, wait_for
from batuta.engine import backup as backups
from batuta.engine.backup import PAGES, Progress, RestoreReport
from batuta.engine.batuta import Batuta
from batuta.stores.backup.archive import Manifest
from batuta.stores.sql.migrations import Migration
from batuta.stores.sql.operators import read_for_operators

File = Annotated[Path, typer.Argument(metavar="FILE", dir_okay=False)]
QueryText = Annotated[str, typer.Argument(metavar="QUERY")]
Force = Annotated[bool, typer.Option("--force", help="restore even if processes seem to be running")]


def backup(context: typer.Context, file: File, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    made = wait_for(backups.take(ctx.work(), file, _progress(ctx, as_json), by=current_user()))
    document = {"file": str(file), "bytes": file.stat().st_size, **_describe(made)}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.backup.done", **document)))


def restore(context: typer.Context, file: File, force: Force = False, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    report = wait_for(
        backups.restore(ctx.work(), file, by=current_user(), force=force, progress=_progress(ctx, as_json))
    )
    ctx.show(_document(ctx, file, report), as_json, lambda: _print(ctx, file, report))


def sql(context: typer.Context, query: QueryText, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    rows = ctx.ask(lambda work: _read(work, query))
    ctx.show({"rows": [_plain(ctx, row) for row in rows]}, as_json, lambda: _print_rows(ctx, rows))


async def _read(work: Batuta, query: str) -> list[dict[str, Any]]:
    """Run a query and return its rows. Record the access in the audit log, because any row may contain personal data.
    The query itself is not recorded, because it may contain personal data too.
    """
    rows = await read_for_operators(work.database, query, work.zone)
    if rows:
        await work.access.note(actor=current_user(), action="access.read", subject="batuta sql", count=len(rows))
    return rows


def _plain(ctx: CliContext, row: dict[str, Any]) -> dict[str, Any]:
    return {name: ctx.iso(value) if isinstance(value, datetime) else value for name, value in row.items()}


def _print_rows(ctx: CliContext, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        ctx.say(ctx.texts()("cli.sql.nothing"))
        return
    table = Table(*rows[0], box=None, pad_edge=False)
    for row in rows:
        values = (ctx.local(value) if isinstance(value, datetime) else value for value in row.values())
        table.add_row(*("" if value is None else str(value) for value in values))
    ctx.out.print(table)


def _progress(ctx: CliContext, as_json: bool) -> Progress:
    """Return a function that prints progress to standard error, so that the result on standard output can be piped."""

    def show(what: str, count: int) -> None:
        if count and not as_json:
            text = "cli.backup.pages" if what == PAGES else "cli.backup.table"
            ctx.err.print(ctx.texts()(text, what=what, count=count), soft_wrap=True)

    return show


def _describe(manifest: Manifest) -> dict[str, Any]:
    return {
        "database": manifest.dialect,
        "taken_at": manifest.taken_at.isoformat(timespec="seconds"),
        "version": manifest.version,
        "tables": len(manifest.tables),
        "rows": manifest.rows,
    }


def _document(ctx: CliContext, file: Path, report: RestoreReport) -> dict[str, Any]:
    return {
        "file": str(file),
        "where": ctx.work().database.where,
        **_describe(report.manifest),
        "restored_at": report.restored.restored_at.isoformat(timespec="seconds"),
        "carried_over": report.restored.has_old,
        "counts": dict(report.counts),
        "kept": None if report.kept is None else str(report.kept),
    }


def _print(ctx: CliContext, file: Path, report: RestoreReport) -> None:
    texts, document = ctx.texts(), _document(ctx, file, report)
    ctx.say(texts("cli.restore.done", **document))
    ctx.say(texts("cli.restore.carried" if report.restored.has_old else "cli.restore.not_carried", **document))
    own = "cli.restored.carried" if report.restored.has_old else "cli.restored.not_carried"
    if text_of_app := texts.get(own, ""):  # the application's text about data that it restored itself
        ctx.say(text_of_app)
    for name, count in report.counts.items():
        ctx.say(texts("cli.restore.count", what=texts.get(f"cli.restore.counts.{name}", name), count=count))
    if report.kept is not None:
        ctx.say(texts("cli.restore.kept", kept=report.kept))


def migrate(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    applied = [migration.title for migration in wait_for(_migrate(ctx))]
    where = ctx.work().database.where
    ctx.show({"database": where, "applied": applied}, as_json, lambda: _print_migrations(ctx, where, applied))


async def _migrate(ctx: CliContext) -> list[Migration]:
    work = ctx.work()
    await work.database.open()
    try:
        return await work.migrate()
    finally:
        await work.close()


def _print_migrations(ctx: CliContext, where: str, applied: list[str]) -> None:
    texts = ctx.texts()
    for title in applied:
        ctx.say(texts("cli.migrate.applied", migration=title))
    if not applied:
        ctx.say(texts("cli.migrate.nothing", where=where))
