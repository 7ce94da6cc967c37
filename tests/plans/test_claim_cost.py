"""A claim, and the search for the next due item, cost about the same with many distinct priorities as with one.

Cost is counted instead of timed: as steps of SQLite's virtual machine, or as pages that a PostgreSQL statement reads.
"""

import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

import asyncpg
import pytest

from batuta.kernel.clock import SystemClock
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.stores import connect
from batuta.stores.sql.database import AsJson, Database, Query
from batuta.stores.sql.migrations import Migrator, engine_migrations
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.queue.claim import APART, PostgresClaims
from batuta.stores.sql.queue.statements import postgres_claim_queries, queue_queries
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.registry import TASKS
from batuta.testing import EventRecorder
from tests.plans.test_hot_statements import FILL, WORDS

ROWS = 30_000
# With this number of rows, the index by due time is a level less deep than the index by priority.
BURST = 60_000
LIMIT = 10
MANY = 2 * APART
TENURE = LeaseHolder(owner="a", lease=timedelta(seconds=30))
# Due time of row i. Row 1 is the most urgent.
DUE = {
    "all": "{ago}",
    "none": "{later}",
    "the last ones": "CASE WHEN i > 29900 THEN {ago} ELSE {later} END",
}
LATER = {"sqlite": "9000000000000000", "postgres": "TIMESTAMPTZ '2200-01-01'"}
IN_ORDER = {"sqlite": "1577836800000000 + i", "postgres": "TIMESTAMPTZ '2020-01-01' + i * INTERVAL '1 second'"}
Costs = dict[str, int]


class CountingConnection(sqlite3.Connection):
    """Counts the virtual machine steps of every statement, in units of ten."""

    steps: ClassVar[int] = 0

    def set_progress_handler(self, *_: Any) -> None:
        super().set_progress_handler(self._count, 10)

    @classmethod
    def _count(cls) -> bool:
        cls.steps += 10
        return False


@pytest.fixture
async def counted(database_url: str, events: EventRecorder, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=CountingConnection))
    clock = SystemClock()
    opened = connect(database_url, clock)
    await opened.open()
    await Migrator(opened, engine_migrations(), clock, events).migrate()
    yield opened
    await opened.close()


@pytest.mark.parametrize("due", DUE.values(), ids=DUE)
async def test_thirty_thousand_priorities_cost_about_as_much_as_one(counted: Database, due: str) -> None:
    alone = await _costs(counted, "0", due)
    many = await _costs(counted, "i", due)
    # Allowed difference: a hundred sorted due items (on SQLite fifty-five steps each), and twelve index jumps of two or
    # three pages.
    allowed = 6_500 if counted.dialect == "sqlite" else 250
    dearer = {name: (cost, alone[name]) for name, cost in many.items() if cost > alone[name] + allowed}
    assert not dearer, f"costs above those with one priority, as (cost, cost with one): {dearer}"


async def test_a_claim_reads_as_few_rows_before_statistics_are_collected(counted: Database) -> None:
    """A claim reads few rows even before PostgreSQL has statistics about the table, which may take up to a minute after
    a burst of enqueues. Until then PostgreSQL assumes one waiting row, so a wrong index seems as good as the right one.
    """
    before = await _costs(counted, "0", IN_ORDER[counted.dialect], rows=BURST, has_statistics=False)
    after = await _costs(counted, "0", IN_ORDER[counted.dialect], rows=BURST)
    allowed = 100  # steps, or pages of the index
    dearer = {name: (cost, after[name]) for name, cost in before.items() if cost > after[name] + allowed}
    assert not dearer, f"costs above those with statistics, as (cost, cost with statistics): {dearer}"


async def test_a_claim_under_load_skips_dead_index_entries_that_vacuum_cannot_remove(
    counted: Database, database_url: str
) -> None:
    """On PostgreSQL, a transaction with an old snapshot keeps VACUUM from removing the entries of claimed items. SQLite
    removes them at once.
    """
    if counted.dialect == "sqlite":
        pytest.skip("SQLite leaves no dead entries")
    other_session = await asyncpg.connect(database_url)
    await other_session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tasks")
    clock = SystemClock()
    queue, claims = SqlQueue(counted, TASKS, Ids(clock), clock, queue="default"), PostgresClaims(TASKS, clock)
    await queue.put_rows([{"name": "f", "args": []} for _ in range(100 * MANY)], shared={})
    asked = {"queue": "default", "now": None, "owner": "a", "lease": 60_000_000, "holds": AsJson([])}
    claimed = [await claims.claim(counted, asked, MANY, reversed=turn % 8 == 7) for turn in range(99)]
    last = max((lease.due, lease.id) for lease in claimed[-1])
    place = {"last_priority": 0, "last_due": int(last[0] or 0), "last_id": last[1]}
    queries = postgres_claim_queries(TASKS)
    from_the_beginning = await _pages_of(counted, queries.claim, {**asked, "limit": 1})
    after_the_last = await _pages_of(counted, queries.claim_after, {**asked, **place, "limit": 1})
    await other_session.close()
    assert [len(leases) for leases in claimed] == [MANY] * 99
    assert after_the_last < 30 < 500 < from_the_beginning


@pytest.mark.parametrize("has_statistics", [True, False])
async def test_a_claim_under_load_reads_few_pages_if_its_plan_does_not_know_the_parameters(
    counted: Database, database_url: str, *, has_statistics: bool
) -> None:
    """After five executions, PostgreSQL plans a statement without its parameters. It then knows no longer that no item
    has another priority, and must not search the whole table for one.
    """
    if counted.dialect == "sqlite":
        pytest.skip("SQLite plans each statement without its parameters")
    await _costs(counted, "0", IN_ORDER["postgres"], rows=BURST, has_statistics=has_statistics)
    query = postgres_claim_queries(TASKS).claim_after
    values = {"queue": "'default'", "now": "NULL", "holds": "'[]'", "limit": "10", "owner": "'a'", "lease": "1000000"}
    values |= {"last_priority": "0", "last_due": "0", "last_id": "'00000000-0000-7000-8000-000000000000'"}
    session = await asyncpg.connect(database_url)
    await session.execute(f"SET plan_cache_mode = force_generic_plan; PREPARE claim_after AS {query.text}")
    given = ", ".join(values[name] for name in query.parameters)
    lines = [line for (line,) in await session.fetch(f"EXPLAIN (ANALYZE, BUFFERS) EXECUTE claim_after({given})")]
    await session.close()
    assert not any("Seq Scan on tasks" in line for line in lines), lines
    assert sum(map(int, re.findall(r"(?:hit|read)=(\d+)", next(line for line in lines if "Buffers:" in line)))) < 500


async def _costs(
    database: Database, priority: str, due: str, *, rows: int = ROWS, has_statistics: bool = True
) -> Costs:
    words = {**WORDS[database.dialect], "later": LATER[database.dialect]}
    fill = (
        f"INSERT INTO tasks (id, queue, name, args, priority, available_at, created_at) {FILL[database.dialect]}"
        f" SELECT {words['id']}, 'default', 'f', '[]', {priority}, {due.format(**words)}, {words['ago']} FROM n"
    ).format(rows=rows)
    await database.script("DELETE FROM tasks" if database.dialect == "sqlite" else "TRUNCATE tasks")
    await database.run(in_dialect(query_of("fill", fill, writes=True), database.dialect))
    if has_statistics:
        await database.script("ANALYZE")
    return await (_steps(database) if database.dialect == "sqlite" else _pages(database))


async def _steps(database: Database) -> Costs:
    clock = SystemClock()
    queue = SqlQueue(database, TASKS, Ids(clock), clock, queue="default")
    calls: dict[str, Callable[[], Any]] = {
        "next_at": queue.next_at,
        "claim": lambda: queue.settle_and_claim([], TENURE, LIMIT),
        "claim from the other end": lambda: queue.settle_and_claim([], TENURE, LIMIT, reversed=True),
    }
    costs: Costs = {}
    for name, call in calls.items():
        CountingConnection.steps = 0
        await call()
        costs[name] = CountingConnection.steps
    return costs


async def _pages(database: Database) -> Costs:
    queries, turns = queue_queries(TASKS, "postgres"), postgres_claim_queries(TASKS)
    asked = {"queue": "default", "now": None}
    claiming = {**asked, "owner": "a", "limit": LIMIT, "lease": 1_000_000, "holds": AsJson(["pause.all"])}
    nothing_ended = {"endings": AsJson([]), "ids": "", "fences": "", "keeps": "", "expected": 0}
    return {
        "next_at": await _pages_of(database, queries.next_at, asked),
        "claim": await _pages_of(database, turns.claim, claiming),
        "claim from the other end": await _pages_of(database, turns.claim_reversed, claiming),
        "turn": await _pages_of(database, turns.settle_and_claim, {**claiming, **nothing_ended}),
    }


async def _pages_of(database: Database, query: Query, values: Mapping[str, object]) -> int:
    explained = Query(query.name, f"EXPLAIN (ANALYZE, BUFFERS) {query.text}", query.parameters, writes=True)
    lines = [str(row[key]) for row in await database.all(explained, **values) for key in row.keys()]  # noqa: SIM118
    return sum(map(int, re.findall(r"(?:hit|read)=(\d+)", next(line for line in lines if "Buffers:" in line))))
