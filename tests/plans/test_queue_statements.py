"""The cost of the worker's statements does not depend on how many items are waiting or have ended."""

import re

import pytest

from batuta.stores.sql.database import AsJson, Database, Query
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import in_dialect, load_queries, query_of
from batuta.stores.sql.queue.batches import BatchQueries
from batuta.stores.sql.queue.statements import (
    more_queries,
    postgres_claim_queries,
    queue_queries,
    sqlite_claim_queries,
)
from batuta.stores.sql.queue.tasks import TaskQueries
from batuta.tasks.registry import TASKS
from batuta.testing import FakeClock
from tests.plans.test_hot_statements import FILL, WORDS, insert_rows, plan

ROWS = 100_000
# One item in three waits, one in a hundred runs, and the others have ended. All have the same few priorities.
TABLE = (
    "INSERT INTO tasks (id, queue, name, args, unique_key, priority, status, available_at, lease_until, created_at, expires_at)"
    " SELECT {id}, 'default', 'f', '[[],{{}}]', CASE i % 5 WHEN 0 THEN 'k' || i END, i % 3,"
    " CASE WHEN i % 3 = 0 THEN 'queued' WHEN i % 100 = 1 THEN 'in_progress' ELSE 'complete' END, {ago},"
    " CASE WHEN i % 3 > 0 AND i % 100 = 1 THEN {ago} END, {ago}, CASE WHEN i % 3 > 0 AND i % 100 <> 1 THEN {ago} END FROM n"
)
ID = "00000007-0000-7000-8000-000000000000"


async def fill(database: Database) -> None:
    await insert_rows(database, TABLE, rows=ROWS)


@pytest.fixture
def full(database: Database) -> Database:
    return database


def walks(plan: str) -> bool:
    """Return whether the query plan scans the whole table."""
    return "Seq Scan on tasks" in plan or re.search(r"SCAN (tasks|item)(?! USING)", plan) is not None


async def test_claim_and_settle_use_an_index(full: Database, clock: FakeClock) -> None:
    now, holds = clock.now(), AsJson(["pause.all"])
    endings = AsJson([{"id": ID, "fence": 1, "state": "complete", "ended": True}])
    if full.dialect == "sqlite":
        turns = sqlite_claim_queries(TASKS, (("id", "UUID"), ("args", "JSONB")))
        plans = {
            "tasks_ready": await plan(full, turns.pick, queue="default", limit=100, holds=holds, now=now),
            "tasks_due": await plan(full, turns.pick_reversed, queue="default", limit=100, holds=holds, now=now),
            "INTEGER PRIMARY KEY": await plan(full, turns.take, picked=AsJson([1]), owner="a", now=now, lease=1),
            "INTEGER PRIMARY KEY ": await plan(full, turns.taken, picked=AsJson([1])),
            "sqlite_autoindex_tasks_1": await plan(full, turns.ours, endings=endings),
            "sqlite_autoindex_tasks_1 ": await plan(full, turns.settle, endings=endings, now=now),
            "sqlite_autoindex_tasks_1  ": await plan(
                full, turns.settle_successes, ids=AsJson([ID]), fence=1, keep=None, now=now
            ),
        }
    else:
        asked = {"queue": "default", "owner": "a", "holds": holds, "now": now, "lease": 1, "limit": 100}
        queries = postgres_claim_queries(TASKS)
        plans = {
            "tasks_ready": await plan(full, queries.claim, **asked),
            "tasks_ready ": await plan(full, queries.claim_reversed, **asked),
            # The planner chooses between the key and the few leased rows.
            "Index": await plan(
                full, queries.settle_and_claim, endings=endings, ids=ID, fences="1", keeps="null", expected=2, **asked
            ),
            "Index ": await plan(full, queries.settle, endings=endings, now=now),
        }
    for index, found in plans.items():
        assert index.strip() in found, found
        assert not walks(found), found


async def test_renew_rescue_prune_and_look_ahead_use_an_index(full: Database, clock: FakeClock) -> None:
    now = clock.now()
    queries, tasks = (
        queue_queries(TASKS, full.dialect),
        load_queries(TaskQueries, STATEMENTS / "tasks.sql", full.dialect),
    )
    primary = "sqlite_autoindex_tasks_1" if full.dialect == "sqlite" else "tasks_pkey"
    held = AsJson([{"id": ID, "fence": 1}])
    plans = [
        (
            "INDEX" if full.dialect == "sqlite" else "Index",
            await plan(full, queries.renew, held=held, now=now, lease=1),
        ),
        ("tasks_leased", await plan(full, queries.rescue, limit=100, now=now)),
        ("tasks_leased", await plan(full, queries.lapsing, within=1, limit=100, now=now)),
        (primary, await plan(full, queries.rescue_seen, seen=AsJson([[ID, 1, 1]]), limit=100, now=now)),
        ("tasks_leased", await plan(full, queries.rescue_owned, owners=AsJson(["a"]), limit=100, now=now)),
        ("tasks_ready", await plan(full, queries.next_at, queue="default", now=now)),
        ("tasks_expiring", await plan(full, tasks.prune, now=now, limit=100)),
        ("tasks_alive", await plan(full, tasks.alive, name="f", key="k7")),
        (primary, await plan(full, tasks.task, id=ID, now=now)),
        ("tasks_leased", await plan(full, queries.owners)),
        (primary, await plan(full, queries.cancel, id=ID, reason="-", now=now)),
    ]
    for index, found in plans:
        assert index in found, found
        assert not walks(found), found


async def test_the_look_for_ended_batches_reads_no_other_tasks(full: Database, clock: FakeClock) -> None:
    queries = more_queries("batches.sql", TASKS, full.dialect, BatchQueries)
    plans = [
        ("tasks_of_batch", await plan(full, queries.pending)),
        ("tasks_of_batch", await plan(full, queries.ended, without_unfinished=AsJson([ID]), limit=100)),
        ("tasks_of_batch", await plan(full, queries.end, id=ID, now=clock.now(), succeeded=0, failed=0, cancelled=0)),
        ("tasks_of_batch", await plan(full, queries.batch, id=ID)),
        ("tasks_of_batch", await plan(full, queries.cancel_tasks, id=ID, reason="-", now=clock.now(), limit=100)),
        ("tasks_of_batch", await plan(full, queries.prune_tasks, now=clock.now(), limit=100)),
    ]
    for index, found in plans:
        assert index in found, found
        assert not walks(found), found


async def test_unserved_tasks_are_found_without_reading_the_served_queues(full: Database) -> None:
    tasks = load_queries(TaskQueries, STATEMENTS / "tasks.sql", full.dialect)
    if full.dialect == "sqlite":
        assert not walks(await plan(full, tasks.unserved, served=AsJson(["default"])))
        return
    query = tasks.unserved
    explained = Query(query.name, "EXPLAIN (ANALYZE, COSTS OFF) " + query.text, query.parameters, writes=True)
    rows = await full.all(explained, served=AsJson(["default"]))
    found = [str(row[key]) for row in rows for key in row.keys()]  # noqa: SIM118
    assert any("Seq Scan on tasks" in line or "Index" in line for line in found if "never executed" in line), found
    assert not any("Seq Scan on tasks" in line and "never executed" not in line for line in found), found


async def test_many_priorities_are_claimed_looked_ahead_and_counted_by_index(database: Database) -> None:
    """The worker's statements use an index even if there are thirty thousand priorities and only items with the last
    few priorities are due.
    """
    words, rows = WORDS[database.dialect], 30_000
    later = "9000000000000000" if database.dialect == "sqlite" else "TIMESTAMPTZ '2200-01-01'"
    fill = (
        f"INSERT INTO tasks (id, queue, name, args, priority, available_at, created_at) {FILL[database.dialect]}"
        f" SELECT {words['id']}, 'default', 'f', '[]', i, CASE WHEN i > 29990 THEN {words['ago']} ELSE {later} END,"
        f" {words['ago']} FROM n"
    ).format(rows=rows)
    await database.run(in_dialect(query_of("fill", fill, writes=True), database.dialect))
    await database.script("ANALYZE")
    holds = AsJson(["pause.all"])
    if database.dialect == "sqlite":
        turns = sqlite_claim_queries(TASKS)
        for query in (turns.pick, turns.pick_reversed):
            planned = await plan(database, query, queue="default", limit=10, holds=holds, now=None)
            assert "SEARCH tasks USING INDEX tasks_due (queue=? AND available_at<?)" in planned.replace("COVERING ", "")
            assert "BLOOM" not in planned
            assert not walks(planned), planned
        return
    queries, claim_queries = queue_queries(TASKS, "postgres"), postgres_claim_queries(TASKS)
    asked = {"queue": "default", "now": None}
    claiming = {"owner": "a", "limit": 10, "lease": 1_000_000, "holds": holds}
    for query, values in (
        (claim_queries.claim, {**asked, **claiming}),
        (claim_queries.claim_reversed, {**asked, **claiming}),
        (queries.next_at, asked),
        (queries.pulse, {**asked, "holds": holds, "grace": 1, "lately": 1}),
    ):
        explained = Query(query.name, f"EXPLAIN (ANALYZE, BUFFERS) {query.text}", query.parameters, writes=True)
        found = [str(row[key]) for row in await database.all(explained, **values) for key in row.keys()]  # noqa: SIM118
        pages = sum(map(int, re.findall(r"(?:hit|read)=(\d+)", next(line for line in found if "Buffers:" in line))))
        assert pages < 5_000, "\n".join(found)
