"""``batuta migrate``."""

import typer

from batuta.cli.desk import Desk, JsonFlag, desk_of, wait_for
from batuta.stores.sql.migrations import Migration
from batuta.texts import Texts


def add_to(cli: typer.Typer, texts: Texts) -> None:
    cli.command("migrate", help=texts("cli.migrate.help"))(migrate)


def migrate(context: typer.Context, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    applied = [migration.title for migration in wait_for(_migrate(desk))]
    where = desk.work().database.where
    desk.show({"database": where, "applied": applied}, as_json, lambda: _tell(desk, where, applied))


async def _migrate(desk: Desk) -> list[Migration]:
    work = desk.work()
    await work.database.open()
    try:
        return await work.migrate()
    finally:
        await work.close()


def _tell(desk: Desk, where: str, applied: list[str]) -> None:
    texts = desk.texts()
    for title in applied:
        desk.say(texts("cli.migrate.applied", migration=title))
    if not applied:
        desk.say(texts("cli.migrate.nothing", where=where))
