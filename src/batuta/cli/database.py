"""``batuta migrate``, ``batuta backup FILE`` and ``batuta restore FILE``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from batuta.cli.context import Desk, JsonFlag, desk_of, wait_for, who
from batuta.engine import backup as backups
from batuta.engine.backup import PAGES, Progress, RestoreReport
from batuta.stores.backup.archive import Manifest
from batuta.stores.sql.migrations import Migration
from batuta.texts import Texts

File = Annotated[Path, typer.Argument(metavar="FILE", dir_okay=False)]
Force = Annotated[bool, typer.Option("--force", help="restore although processes seem to run")]


def add_to(cli: typer.Typer, texts: Texts) -> None:
    cli.command("migrate", help=texts("cli.migrate.help"))(migrate)
    cli.command("backup", help=texts("cli.backup.help"))(backup)
    cli.command("restore", help=texts("cli.restore.help"))(restore)


def backup(context: typer.Context, file: File, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    made = wait_for(backups.take(desk.work(), file, _progress(desk, as_json)))
    document = {"file": str(file), "bytes": file.stat().st_size, **_described(made)}
    desk.show(document, as_json, lambda: desk.say(desk.texts()("cli.backup.done", **document)))


def restore(context: typer.Context, file: File, force: Force = False, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    report = wait_for(backups.restore(desk.work(), file, by=who(), force=force, progress=_progress(desk, as_json)))
    desk.show(_document(desk, file, report), as_json, lambda: _tell(desk, file, report))


def _progress(desk: Desk, as_json: bool) -> Progress:
    """Progress goes to the error output, so that the result can be piped."""

    def show(what: str, count: int) -> None:
        if count and not as_json:
            text = "cli.backup.pages" if what == PAGES else "cli.backup.table"
            desk.err.print(desk.texts()(text, what=what, count=count), soft_wrap=True)

    return show


def _described(manifest: Manifest) -> dict[str, Any]:
    return {
        "database": manifest.dialect,
        "taken_at": manifest.taken_at.isoformat(timespec="seconds"),
        "version": manifest.version,
        "tables": len(manifest.tables),
        "rows": manifest.rows,
    }


def _document(desk: Desk, file: Path, report: RestoreReport) -> dict[str, Any]:
    return {
        "file": str(file),
        "where": desk.work().database.where,
        **_described(report.manifest),
        "restored_at": report.restored.restored_at.isoformat(timespec="seconds"),
        "carried_over": report.restored.has_old,
        "counts": dict(report.counts),
        "kept": None if report.kept is None else str(report.kept),
    }


def _tell(desk: Desk, file: Path, report: RestoreReport) -> None:
    texts, document = desk.texts(), _document(desk, file, report)
    desk.say(texts("cli.restore.done", **document))
    desk.say(texts("cli.restore.carried" if report.restored.has_old else "cli.restore.not_carried", **document))
    own = "cli.restored.carried" if report.restored.has_old else "cli.restored.not_carried"
    if said := texts.known(own, ""):  # by the application, of what it carries over itself
        desk.say(said)
    for name, count in report.counts.items():
        desk.say(texts("cli.restore.count", what=texts.known(f"cli.restore.counts.{name}", name), count=count))
    if report.kept is not None:
        desk.say(texts("cli.restore.kept", kept=report.kept))


def migrate(context: typer.Context, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    applied = [migration.title for migration in wait_for(_migrate(desk))]
    where = desk.work().database.where
    desk.show({"database": where, "applied": applied}, as_json, lambda: _tell_migrations(desk, where, applied))


async def _migrate(desk: Desk) -> list[Migration]:
    work = desk.work()
    await work.database.open()
    try:
        return await work.migrate()
    finally:
        await work.close()


def _tell_migrations(desk: Desk, where: str, applied: list[str]) -> None:
    texts = desk.texts()
    for title in applied:
        desk.say(texts("cli.migrate.applied", migration=title))
    if not applied:
        desk.say(texts("cli.migrate.nothing", where=where))
