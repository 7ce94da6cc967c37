"""An old copy of the database is put back: what left since does not leave again."""

import sqlite3
from contextlib import closing
from pathlib import Path

import asyncpg

from batuta.testing.messages import End
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import post_office, tally

RATE = 5.0


async def test_an_old_copy_that_is_put_back_sends_nothing_again(places: dict[str, Path]) -> None:
    await together(*(_put_back(url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _put_back(url: str, folder: Path) -> None:
    messages = 400 if LONG else 16
    figures = Figures("T40", kind(url), f"{messages} messages, half of them sent since the copy that is put back")
    async with post_office(folder, url, doctors=messages, rate=RATE, lease=15, at_rest={"lost_answers": 0.2}) as office:
        await office.put(messages // 2)
        await office.work.close()
        await _copied(url, folder)
        await office.work.open()
        workers = await office.begin_until_up(2)
        await office.until_over(within=300)
        await office.stop(*workers)
        await office.work.close()
        await _restored(url, folder)
        await office.work.open()
        assert set((await office.ends()).values()) == {End.OPEN}
        await office.put(messages // 2)
        await office.begin_until_up(2)
        await office.until_over(within=300)
        left = await office.judge()
        assert set((await office.ends()).values()) == {End.DELIVERED}
        found = [row for row in (await office.rows()).values() if row["outcome_reason_code"] == "found at the gateway"]
        assert len(found) == messages // 2
        figures.record_items(await tally(office, left), f"{len(found)} found at the gateway, none sent again")


async def _copied(url: str, folder: Path) -> None:
    if kind(url) == "SQLite":
        with closing(sqlite3.connect(_file(url))) as source, closing(sqlite3.connect(folder / "copy.db")) as target:
            source.backup(target)
    else:
        await _on_the_server(url, "CREATE DATABASE {name}_copy TEMPLATE {name}")


async def _restored(url: str, folder: Path) -> None:
    if kind(url) == "SQLite":
        file = _file(url)
        for each in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            each.unlink(missing_ok=True)
        (folder / "copy.db").rename(file)
    else:
        await _on_the_server(url, "DROP DATABASE {name}", "CREATE DATABASE {name} TEMPLATE {name}_copy")


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


async def _on_the_server(url: str, *statements: str) -> None:
    name = url.rpartition("/")[2].partition("?")[0]
    connection = await asyncpg.connect(url.replace(f"/{name}", "/postgres"))
    for statement in statements:
        await connection.execute(statement.format(name=name))
    await connection.close()
