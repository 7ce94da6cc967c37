"""Measure how fast one worker runs jobs in a table with a million waiting and a million finished rows, compared with an
otherwise empty table.
"""

import asyncio
import sqlite3
from typing import Any

from bench.queue.measure import Stand, drain

MANY = 1_000_000

# Due times are one microsecond apart, so that rows are claimed in the order of their numbers, as the marks expect. Ids
# grow with time, as in the product, so that rows enqueued together are neighbours in every index.
_POSTGRES = """
INSERT INTO tasks (id, queue, name, args, status, available_at, created_at, finished_at, expires_at)
SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint + n / 1000), 12, '0') || '7' || substr(md5(n::text), 1, 3)
        || '8' || substr(md5(n::text), 4, 15))::uuid, 'default', 'noop', jsonb_build_array(jsonb_build_array(n), '{}'::jsonb), $1,
       now() - INTERVAL '1 minute' + n * INTERVAL '1 microsecond', now(), $2::timestamptz, $2::timestamptz + INTERVAL '1 day'
FROM generate_series(0, $3 - 1) AS n"""

_SQLITE = """
WITH RECURSIVE counted(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n + 1 < :many)
INSERT INTO tasks (id, queue, name, args, status, available_at, created_at, finished_at, expires_at)
SELECT printf('%08x-%04x-7%03x-8%03x-%s', (unixepoch() * 1000 + n / 1000) >> 16, (unixepoch() * 1000 + n / 1000) & 65535,
              random() & 4095, random() & 4095, lower(hex(randomblob(6)))), 'default', 'noop', '[[' || n || '], {}]', :status,
       (unixepoch() - 60) * 1000000 + n, unixepoch() * 1000000, :finished, :finished + 86400000000
FROM counted"""


def drain_alone(stand: Stand, jobs: int) -> float:
    """Return the jobs per second of one worker in a table that contains only these jobs. The rows are inserted in the
    same way as in ``drain_among``.
    """
    _fill(stand, jobs, 0)
    return drain(stand, 0, jobs).rate


def drain_among(stand: Stand, jobs: int) -> float:
    _fill(stand, MANY, MANY)
    return drain(stand, 0, jobs, to_the_last=False).rate


def _fill(stand: Stand, waiting: int, done: int) -> None:
    stand.enqueue(0)  # creates the tables
    if stand.home.url.startswith("sqlite"):
        _fill_sqlite(stand.home.url.removeprefix("sqlite:///"), waiting, done)
    else:
        asyncio.run(_fill_postgres(stand.home.url, waiting, done))


def _fill_sqlite(file: str, waiting: int, done: int) -> None:
    connection = sqlite3.connect(file, isolation_level=None)
    for many, status, finished in ((done, "complete", "unixepoch() * 1000000"), (waiting, "queued", "NULL")):
        if many:
            connection.execute(_SQLITE.replace(":finished", finished), {"many": many, "status": status})
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


async def _fill_postgres(url: str, waiting: int, done: int) -> None:
    import asyncpg

    connection = await asyncpg.connect(url)
    now: Any = await connection.fetchval("SELECT now()")
    for many, status, finished in ((done, "complete", now), (waiting, "queued", None)):
        await connection.execute(_POSTGRES, status, finished, many)
    await connection.execute("VACUUM ANALYZE tasks")
    await connection.execute("CHECKPOINT")
    await connection.close()
