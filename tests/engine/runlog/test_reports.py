"""Counts, statistics and pages of entries from the execution log, on both databases."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from batuta.runlog.history import Recorded, Slice
from batuta.stores.sql.database import Database
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import in_dialect, load_queries, query_of
from batuta.stores.sql.tables import history
from batuta.stores.sql.tables.history import ReportQueries, SqlReports
from tests.plans.test_hot_statements import FILL, plan

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
QUARTER = timedelta(minutes=15)
LATER = NOON + timedelta(days=1)
INSERT = """
    INSERT INTO job_executions (id, job_name, categoria, scheduled_for, trigger, started_at, status)
    VALUES (:id, :job, :categoria, :due, 'schedule', :at, :status)
"""


def numbered(number: int) -> str:
    return str(UUID(int=number))


async def keep(
    database: Database,
    number: int,
    at: datetime,
    *,
    job: str = "pulse",
    categoria: str = "default",
    status: str = "success",
    due: datetime | None = None,
) -> None:
    insert = in_dialect(query_of("insert", INSERT, writes=True), database.dialect)
    await database.run(
        insert, id=numbered(number), job=job, categoria=categoria, due=due or at + number * MINUTE, at=at, status=status
    )


@pytest.fixture
def reports(database: Database) -> SqlReports:
    return SqlReports(database)


async def test_activity_is_counted_by_category_status_and_time_slice(database: Database, reports: SqlReports) -> None:
    await keep(database, 1, NOON)
    await keep(database, 2, NOON + QUARTER - MINUTE)
    await keep(database, 3, NOON + QUARTER)
    await keep(database, 4, NOON + QUARTER, status="error")
    await keep(database, 5, NOON + 4 * QUARTER, categoria="report")
    await keep(database, 6, NOON - MINUTE)  # before the first time slice
    assert sorted(
        await reports.activity(since=NOON, length=QUARTER, now=LATER), key=lambda each: (each.place, each.status)
    ) == [
        Slice(category="default", status="success", place=0, runs=2),
        Slice(category="default", status="error", place=1, runs=1),
        Slice(category="default", status="success", place=1, runs=1),
        Slice(category="report", status="success", place=4, runs=1),
    ]


async def test_statistics_of_many_runs_are_read_again_only_after_a_while(
    database: Database, reports: SqlReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def count(now: datetime) -> int:
        return sum(each.runs for each in await reports.activity(since=NOON, length=QUARTER, now=now))

    await keep(database, 1, NOON)
    assert await count(LATER) == 1
    await keep(database, 2, NOON)
    assert await count(LATER) == 2  # while there are few runs, every query counts them again
    monkeypatch.setattr(history, "MANY_RUNS", 1)
    assert await count(LATER) == 2
    await keep(database, 3, NOON)
    assert await count(LATER + history.KEPT_FOR / 2) == 2
    assert await count(LATER + history.KEPT_FOR) == 3


async def test_missed_fire_counts_when_it_was_due_and_not_when_it_was_noticed(
    database: Database, reports: SqlReports
) -> None:
    noticed = NOON + 10 * QUARTER
    await keep(database, 1, noticed, status="missed", due=NOON + QUARTER)
    await keep(database, 2, noticed, status="missed", due=NOON - QUARTER)  # due before the first slice
    assert await reports.activity(since=NOON, length=QUARTER, now=LATER) == [
        Slice(category="default", status="missed", place=1, runs=1)
    ]


@pytest.mark.parametrize("asked", [{}, {"job": "pulse"}, {"status": "success"}, {"job": "pulse", "status": "success"}])
async def test_pages_skip_and_repeat_no_row_even_of_one_instant(
    database: Database, reports: SqlReports, asked: dict[str, str]
) -> None:
    for number in range(1, 8):
        await keep(database, number, NOON if number > 2 else NOON - MINUTE)
    pages: list[Sequence[Recorded]] = []
    after, after_id = NOON + MINUTE, numbered(0)
    while page := await reports.recent(**asked, before=after, before_id=after_id, limit=2):
        pages.append(page)
        after, after_id = page[-1].started_at, page[-1].id
    assert [row.id for page in pages for row in page] == [numbered(number) for number in (7, 6, 5, 4, 3, 2, 1)]


async def test_before_without_an_id_excludes_that_instant(database: Database, reports: SqlReports) -> None:
    await keep(database, 1, NOON)
    assert await reports.recent(before=NOON, limit=5) == []
    assert len(await reports.recent(before=NOON + MINUTE, limit=5)) == 1


async def test_every_list_and_count_uses_an_index(database: Database) -> None:
    fill = FILL[database.dialect].format(rows=20_000)
    number = "printf('%012d', i)" if database.dialect == "sqlite" else "lpad(i::text, 12, '0')"
    at = "i * 60000000" if database.dialect == "sqlite" else "TIMESTAMPTZ 'epoch' + i * INTERVAL '1 minute'"
    uuid = "" if database.dialect == "sqlite" else "::uuid"
    text = f"""
        INSERT INTO job_executions (id, job_name, categoria, trigger, started_at, status) {fill}
        SELECT ('00000000-0000-0000-0000-' || {number}){uuid}, 'job' || i % 40, 'default', 'schedule', {at},
               CASE WHEN i % 50 = 0 THEN 'error' ELSE 'success' END FROM n"""
    await database.run(in_dialect(query_of("fill", text, writes=True), database.dialect))
    await database.script("ANALYZE")
    queries = load_queries(ReportQueries, STATEMENTS / "reports.sql", database.dialect)
    late = datetime(1970, 1, 14, tzinfo=UTC)
    page = {"before": late, "before_id": numbered(7), "limit": 50}
    plans = [
        await plan(database, queries.activity, since=late, length=900_000_000),
        await plan(database, queries.counts, since=late),
        await plan(database, queries.slow, since=late),
        await plan(database, queries.recent, **page),
        await plan(database, queries.recent_of_job, job="job7", **page),
        await plan(database, queries.recent_in_status, status="error", **page),
        await plan(database, queries.recent_of_job_in_status, job="job7", status="error", **page),
        await plan(database, queries.execution, id=numbered(7)),
    ]
    for each in plans:
        assert "Seq Scan" not in each, each
        assert "SCAN job_executions\n" not in f"{each}\n", each


REGISTER = """
    INSERT INTO job_schedules (job_name, categoria, schedule, timezone, active, expected_since, accounted_until)
    VALUES ('pulse', 'default', '* * * * *', 'UTC', TRUE, :since, :since)
"""


@pytest.mark.parametrize(
    ("endings", "failures"),
    [
        ([], 0),
        (["error"], 1),
        (["success", "error", "skipped", "timeout", "missed"], 2),
        (["error", "error", "error", "success"], 0),
        (["success", "error", "abandoned", "timeout", "error", "error"], 3),
    ],
)
async def test_failures_are_counted_since_the_last_success_up_to_a_limit(
    database: Database, reports: SqlReports, endings: Sequence[str], failures: int
) -> None:
    register = in_dialect(query_of("register", REGISTER, writes=True), database.dialect)
    await database.run(register, since=NOON - MINUTE)
    for number, status in enumerate(endings, 1):
        await keep(database, number, NOON + number * MINUTE, status=status)
    facts = await reports.facts(since=NOON, now=NOON + QUARTER)
    assert facts["pulse"].failures_in_a_row == failures
