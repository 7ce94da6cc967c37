"""The program that uses the public API (``tests/typing/public_api.py``) runs on both databases."""

import asyncio
import runpy
import sqlite3
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "typing" / "public_api.py"


async def test_program_of_the_public_api_runs(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    program = runpy.run_path(str(PROGRAM))
    work = program["work"]
    async with work:
        await program["main"]()
        if work.connections.way == "direct":
            import asyncpg

            connection = await asyncpg.connect(database_url)
            async with connection.transaction():
                inside = await program["enqueue_inside"](connection)
            await connection.close()
        elif work.database.dialect == "sqlite":
            inside = await asyncio.to_thread(_enqueue_on_sqlite, work.database.where, program)
        else:
            return
        status = await inside.status()
        assert (status.status, status.result) == ("queued", None)
        await work.work_once("default", 10)
        assert await inside.result(timeout=60) == "c@example.com: "


def _enqueue_on_sqlite(path: str, program: dict[str, object]) -> object:
    connection = sqlite3.connect(path)
    inside = program["enqueue_inside_sync"](connection)  # type: ignore[operator]
    connection.commit()
    connection.close()
    return inside
