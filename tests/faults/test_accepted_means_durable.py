"""A process is killed with SIGKILL while it is writing. The database still contains every row whose write was
acknowledged.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.processes import ROOT

WRITER = """
import asyncio, sys
from pathlib import Path
from batuta.kernel.clock import SystemClock
from batuta.stores.sql.database import ConnectionLimits
from batuta.stores.sql.queries import query_of
from batuta.stores.sqlite.driver import SqliteDatabase

PUT = query_of("put", "INSERT INTO things (n) VALUES (:n)", writes=True)

async def main(file, start):
    database = SqliteDatabase(Path(file), SystemClock(), ConnectionLimits())
    await database.open()
    await database.script("CREATE TABLE IF NOT EXISTS things (n INTEGER PRIMARY KEY)")
    async def put(n):
        if n % 3:
            await database.run(PUT, n=n)
        else:
            async with database.transaction() as transaction:
                await transaction.run(PUT, n=n)
        print(n, flush=True)
    for first in range(start, start + 1_000_000, 20):
        await asyncio.gather(*(put(n) for n in range(first, first + 20)))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""
KILLS = 8


def test_killed_process_loses_no_acknowledged_write(tmp_path: Path) -> None:
    file, chance = tmp_path / "test.db", random.Random(20260105)
    acknowledged: set[int] = set()
    for round_ in range(KILLS):
        acknowledged |= _write_and_kill(file, round_ * 10_000_000, chance.uniform(0.05, 0.4))
    connection = sqlite3.connect(file)
    written = {n for (n,) in connection.execute("SELECT n FROM things")}
    (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    assert len(acknowledged) > 100
    assert acknowledged - written == set()
    assert verdict == "ok"


def _write_and_kill(file: Path, start: int, after: float) -> set[int]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file), str(start)], stdout=subprocess.PIPE, env=environment
    )
    assert writer.stdout is not None
    first = writer.stdout.readline()
    time.sleep(after)
    writer.send_signal(signal.SIGKILL)
    lines = [first, *writer.stdout.read().split(b"\n")[:-1]]  # the last line may be cut
    writer.wait()
    writer.stdout.close()
    return {int(line) for line in lines if line.strip()}
