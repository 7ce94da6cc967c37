"""An old copy of the database is put back: what left since does not leave again."""

import sqlite3
from contextlib import closing
from pathlib import Path

from batuta.testing.messages import End
from tests.faults.figures import LONG, Figures
from tests.faults.send_harness import post_office, tally

RATE = 5.0


async def test_an_old_copy_that_is_put_back_sends_nothing_again(tmp_path: Path) -> None:
    messages = 400 if LONG else 24
    figures = Figures("T40", "SQLite", f"{messages} messages, half of them sent since the copy that is put back")
    file, copy = tmp_path / "test.db", tmp_path / "copy.db"
    async with post_office(
        tmp_path, f"sqlite:///{file}", doctors=messages, rate=RATE, lease=15, at_rest={"lost_answers": 0.2}
    ) as office:
        await office.put(messages // 2)
        _copy(file, copy)
        workers = await office.begin_until_up(2)
        await office.until_over(within=300)
        await office.stop(*workers)
        await office.work.close()
        for each in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            each.unlink(missing_ok=True)
        copy.rename(file)
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


def _copy(file: Path, to: Path) -> None:
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)
