"""Frequent statements use their index, whatever the size of the table."""

import re
from datetime import timedelta

import pytest

from batuta.kernel.clock import SystemClock, microseconds
from batuta.stores.sql.database import AsJson, Database, Query
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import in_dialect, load_queries, query_of
from batuta.stores.sql.queue.inspection import LAST
from batuta.stores.sql.queue.inspection import _queries as inspection_queries
from batuta.stores.sql.queue.statements import queue_queries
from batuta.stores.sql.tables.alerts import AlertQueries
from batuta.stores.sql.tables.calls import CallQueries
from batuta.stores.sql.tables.circuits import CircuitQueries
from batuta.stores.sql.tables.controls import SwitchQueries
from batuta.stores.sql.tables.executions import ExecutionQueries
from batuta.stores.sql.tables.history import ReportQueries
from batuta.stores.sql.tables.rates import RateQueries
from batuta.stores.sql.tables.tokens import TokenQueries
from batuta.tasks.registry import TASKS
from batuta.testing import FakeClock

ROWS = 20_000
FILL = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) ",
    "postgres": "WITH n(i) AS (SELECT generate_series(1, {rows})) ",
}
TABLES = {
    "job_calls": "INSERT INTO job_calls (key, endpoint, subject, fingerprint, started_at, lease_until, finished_at)"
    " SELECT 'k' || i, 'e', 's' || i, 'f', now(), now(), now() FROM n",
    "job_schedules": "INSERT INTO job_schedules"
    " (job_name, categoria, schedule, timezone, active, expected_since, accounted_until)"
    " SELECT 'j' || i, 'c', '* * * * *', 'UTC', TRUE, now(), now() FROM n WHERE i <= 50",
    "job_executions": "INSERT INTO job_executions (id, job_name, categoria, trigger, started_at, status, lease_until)"
    " SELECT {id}, 'j' || (i % 50), 'c', 'manual', {ago}, CASE i % 7 WHEN 0 THEN 'error' ELSE 'success' END, NULL FROM n",
    "feature_flags": "INSERT INTO feature_flags (key, value, reason, updated_by, updated_at)"
    " SELECT 'k' || i, 'true', '', '', now() FROM n",
    "circuits": "INSERT INTO circuits (circuit_name, state, reset_ms, updated_at) SELECT 'k' || i, 'closed', 1, now() FROM n",
    "circuit_transitions": "INSERT INTO circuit_transitions (id, circuit_name, from_state, to_state, reason,"
    " falhas_consecutivas, tentativas_half_open, created_at)"
    " SELECT {id}, 'k' || (i % 50), 'closed', 'open', '', 1, 0, {ago} FROM n",
    "rate_tokens": "INSERT INTO rate_tokens (reservation, rate_key, counts_at, kept_until)"
    " SELECT {id}, 'k' || (i % 50), {ago}, {ago} FROM n",
    "tasks": "INSERT INTO tasks (id, queue, name, args, priority, status, available_at, created_at, finished_at)"
    " SELECT {id}, 'q' || (i % 3), 'n', '[]', i % 4, CASE i % 50 WHEN 0 THEN 'queued' WHEN 1 THEN 'failed' ELSE 'complete' END,"
    " {ago}, {ago}, CASE i % 50 WHEN 0 THEN NULL ELSE {ago} END FROM n",
    "alertas_enviados": "INSERT INTO alertas_enviados (id, tipo, severidade, mensagem, created_at, try_at, resolved_at, outcome)"
    " SELECT {id}, 'c' || i, 'error', '', {ago}, {ago}, {ago}, 'sent' FROM n",
    "api_tokens": "INSERT INTO api_tokens (id, name, secret_hash, scopes, created_by, created_at)"
    " SELECT 'k' || i, '', '', '[]', '', now() FROM n",
}


# An id, and the instant i minutes ago, in the SQL of each database.
WORDS = {
    "sqlite": {
        "id": "printf('%08x-0000-7000-8000-000000000000', i)",
        "ago": "(strftime('%s', 'now') - i * 60) * 1000000",
    },
    "postgres": {"id": "gen_random_uuid()", "ago": "now() - i * INTERVAL '1 minute'"},
}


async def fill(database: Database) -> None:
    await insert_rows(database, *TABLES.values(), rows=ROWS)


async def insert_rows(database: Database, *inserts: str, rows: int) -> None:
    for insert in inserts:
        prefix, _, select = insert.partition(" SELECT ")
        numbers, chosen = FILL[database.dialect].format(rows=rows), select.format(**WORDS[database.dialect])
        text = f"{prefix} {numbers} SELECT {chosen}"
        await database.run(in_dialect(query_of("fill", text, writes=True), database.dialect))
    await database.script("ANALYZE")


@pytest.fixture
def full(database: Database) -> Database:
    return database


async def plan(database: Database, query: Query, **values: object) -> str:
    explain = "EXPLAIN QUERY PLAN " if database.dialect == "sqlite" else "EXPLAIN "
    explained = Query(query.name, explain + query.text, query.parameters, writes=True)
    rows = await database.all(explained, **values)
    return "\n".join(str(row[key]) for row in rows for key in row.keys())  # noqa: SIM118


async def test_job_calls_are_found_expired_and_pruned_by_index(full: Database, clock: FakeClock) -> None:
    queries = load_queries(CallQueries, STATEMENTS / "calls.sql", full.dialect)
    now = clock.now()
    plans = [
        await plan(full, queries.call, key="k7"),
        await plan(full, queries.expire, key="k7", subject="s7", now=now),
        await plan(full, queries.close, key="k7", opened_at=now, now=now, response_code=200, response=None),
        await plan(full, queries.prune, keep=1, limit=1000, now=now),
    ]
    for each in plans:
        assert "Seq Scan" not in each, each
        assert "SCAN job_calls\n" not in f"{each}\n", each


async def test_queue_counts_use_indexes_alone(full: Database) -> None:
    queries, now = queue_queries(TASKS, full.dialect), SystemClock().now()
    found = await plan(full, queries.pulse, queue="q1", holds=AsJson(["pause.all"]), grace=1, lately=1, now=now)
    assert "Seq Scan on tasks" not in found, found
    assert not re.search(r"SCAN tasks$", found, re.MULTILINE), found
    assert "tasks_ready" in found
    assert "tasks_dead" in found


@pytest.mark.parametrize("compared", [frozenset[str](), frozenset({"key"}), frozenset({"name", "before"})])
async def test_pages_of_items_use_an_index(full: Database, compared: frozenset[str]) -> None:
    queries = inspection_queries(TASKS, full.dialect, compared)
    known = {
        "at": LAST.at, "id": LAST.id, "limit": 50, "most": 100, "queue": "q1", "name": "n", "key": "k", "before": LAST.at,
    }  # fmt: skip
    for query in (queries.dead, queries.ready, queries.running, queries.done, queries.cancelled, queries.errors):
        found = await plan(full, query, **{name: known[name] for name in query.parameters})
        assert "Seq Scan on tasks" not in found, (query.name, found)
        assert not re.search(r"SCAN tasks$", found, re.MULTILINE), (query.name, found)


async def test_alert_hub_statements_use_an_index(full: Database, clock: FakeClock) -> None:
    queries, now = load_queries(AlertQueries, STATEMENTS / "alerts.sql", full.dialect), clock.now()
    plans = [
        await plan(full, queries.pending, now=now, limit=20),
        await plan(full, queries.resolve, cause="c7", now=now),
        await plan(full, queries.prune, before=now - timedelta(days=3650), limit=1000),
    ]
    for each in plans:
        assert "Seq Scan on alertas_enviados" not in each, each
        assert not re.search(r"SCAN alertas_enviados$", each, re.MULTILINE), each


async def test_switch_and_token_are_found_by_key(full: Database) -> None:
    switches = load_queries(SwitchQueries, STATEMENTS / "switches.sql", full.dialect)
    tokens = load_queries(TokenQueries, STATEMENTS / "tokens.sql", full.dialect)
    for each in (await plan(full, switches.switch, key="k7"), await plan(full, tokens.token, id="k7")):
        assert "Seq Scan" not in each, each
        assert "SCAN " not in each, each


async def test_statements_of_each_fire_use_an_index(full: Database, clock: FakeClock) -> None:
    queries, now = load_queries(ExecutionQueries, STATEMENTS / "executions.sql", full.dialect), clock.now()
    jobs = AsJson(["j1", "j2"])
    run = {"id": "00000001-0000-7000-8000-000000000000", "attempt": 1, "lease_until": 1}
    plans = [
        await plan(full, queries.running, jobs=jobs),
        await plan(
            full, queries.silent, within=1, longest=2, long_silence=3, known=jobs, owners=AsJson(["o"]), limit=100, now=now
        ),
        await plan(full, queries.take_over, runs=AsJson([run]), owner="o", lease=1, now=now),
        await plan(full, queries.renew, held=AsJson({run["id"]: 1}), owner="o", lease=1, now=now),
        await plan(
            full, queries.close, id=run["id"], attempt=1, status="success", now=now,
            response_code=200, error=None, reason=None, items=1, result=None,
        ),
    ]  # fmt: skip
    for each in plans:
        assert "Seq Scan on job_executions" not in each, each
        assert "SCAN job_executions\n" not in f"{each}\n", each


async def test_statements_of_health_and_pages_use_an_index(full: Database, clock: FakeClock) -> None:
    queries, now = load_queries(ReportQueries, STATEMENTS / "reports.sql", full.dialect), SystemClock().now()
    lately = now - timedelta(minutes=30)
    page = {"before": now, "before_id": "00000001-0000-7000-8000-000000000000", "limit": 50}
    plans = [
        await plan(full, queries.last_runs),
        await plan(full, queries.last_errors),
        await plan(full, queries.failures, enough=3),
        await plan(full, queries.counts, since=lately),
        await plan(full, queries.slow, since=lately),
        await plan(full, queries.running, now=now),
        await plan(full, queries.answered, expected=AsJson({"j1": microseconds(lately)}), now=now),
        *[
            await plan(
                full, query, **{name: value for name, value in {**page, **more}.items() if name in query.parameters}
            )
            for query, more in (
                (queries.recent, {}),
                (queries.recent_of_job, {"job": "j1"}),
                (queries.recent_in_status, {"status": "error"}),
                (queries.recent_of_job_in_status, {"job": "j1", "status": "error"}),
            )
        ],
    ]
    for each in plans:
        assert "Seq Scan on job_executions" not in each, each
        assert not re.search(r"SCAN (job_executions|run)$", each, re.MULTILINE), each


async def test_statements_of_each_guarded_effect_use_an_index(full: Database, clock: FakeClock) -> None:
    circuits = load_queries(CircuitQueries, STATEMENTS / "circuits.sql", full.dialect)
    rates, now = load_queries(RateQueries, STATEMENTS / "rates.sql", full.dialect), SystemClock().now()
    id = "00000001-0000-7000-8000-000000000000"
    plans = [
        await plan(full, circuits.circuit, name="k7"),
        await plan(full, circuits.history, since=now - timedelta(hours=1), limit=50),
        await plan(full, circuits.history_of, name="k7", since=now - timedelta(hours=1), limit=50),
        await plan(full, circuits.prune, before=now - timedelta(days=10), limit=10),
        await plan(full, rates.blocking, key="k7", since=now - timedelta(hours=1), others=19),
        await plan(full, rates.used, key="k7", since=now - timedelta(hours=1)),
        await plan(full, rates.confirm, id=id, now=now),
        await plan(full, rates.release, id=id),
        await plan(full, rates.prune, before=now - timedelta(days=10), limit=10),
    ]
    for each in plans:
        assert not re.search(r"Seq Scan on (circuit|rate)", each), each
        assert not re.search(r"SCAN (circuits|circuit_transitions|rate_tokens)$", each, re.MULTILINE), each
