"""The statements that list, count and parse appointments use an index, whatever the size of the table."""

import pytest

from app.contexts.agendamentos.repository import appointment_queries, import_queries, page_query
from batuta.stores.sql.database import AsJson, Database
from batuta.testing import FakeClock
from tests.plans.test_hot_statements import insert_rows, plan

ID = "00000001-0000-7000-8000-000000000000"
INSERT = "INSERT INTO appointments (id, chave, importacao_id, linha, nome_paciente, nome_unidade, data_agendamento, status, fonte,"
INSERT += " normalization_status, normalization_job_id, created_at, updated_at)"
SELECT = (
    "SELECT {id}, 'k' || i, {id}, i, 'Pessoa ' || i, 'Unidade ' || (i % 500), '2026-' || (100000 + i),"
    " CASE i % 1000 WHEN 0 THEN 'Recoleta' ELSE 'Pendente' END, 'f',"
    " CASE WHEN i % 1000 = 0 THEN 'failed' WHEN i % 1000 = 1 THEN 'pending' ELSE 'completed' END, {id}, now(), now() FROM n"
)


async def fill(database: Database) -> None:
    await insert_rows(database, f"{INSERT} {SELECT}", rows=20_000)


@pytest.fixture
def full(julia: Database) -> Database:
    return julia


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ({"leitura": "failed"}, "appointments_by_reading"),
        ({"situacao": "Recoleta"}, "appointments_by_situation"),
        ({"unidade": "Unidade 7"}, "appointments_by_unit"),
        ({"importacao": ID}, "appointments_of_import"),
        ({"de": "2026-110000", "ate": "2026-110010"}, "appointments_by_day"),
    ],
)
async def test_page_of_a_list_uses_the_index_of_its_filter(full: Database, asked: dict[str, str], index: str) -> None:
    assert index in await plan(full, page_query(full.dialect, tuple(asked)), limit=50, **asked)


async def test_newest_appointments_are_read_in_id_order_without_a_sort(full: Database) -> None:
    for asked in ({}, {"antes_de": ID}, {"leitura": "failed", "antes_de": ID}):
        found = await plan(full, page_query(full.dialect, tuple(asked)), limit=50, **asked)
        assert "TEMP B-TREE" not in found
        assert "Sort" not in found
        assert "Seq Scan" not in found


async def test_counts_failures_and_orphans_use_an_index(full: Database, clock: FakeClock) -> None:
    queries, now = appointment_queries(full.dialect), clock.now()
    failed = await plan(full, queries.failed, limit=100)
    assert "appointments_by_" in failed
    assert "appointments_by_change" not in failed  # this index contains the appointments of every status
    assert "Seq Scan" not in failed
    assert "appointments_by_" in await plan(full, queries.unread, endereco=True, documento=True, limit=100)
    orphans = await plan(full, queries.orphans, settled_before=now, lost_before=now, limit=200)
    assert "appointments_by_" in orphans
    assert "appointments_by_job" in await plan(full, queries.of_job, job=ID)
    known = await plan(full, queries.known, chaves=AsJson(["k1", "k2"]))
    assert "SCAN appointments" not in known
    assert "Seq Scan on appointments" not in known
    assert "appointments_by_place" in await plan(full, queries.known_by_place, chaves=AsJson(["k1", "k2"]))
    if full.dialect == "sqlite":  # PostgreSQL scans small tables whole, despite their index
        assert "COVERING INDEX appointments_by_" in await plan(full, queries.counts)


async def test_interrupted_imports_use_an_index(full: Database, clock: FakeClock) -> None:
    queries = import_queries(full.dialect)
    if full.dialect == "sqlite":  # PostgreSQL knows that this table is empty here
        assert "importacoes_open" in await plan(full, queries.interrupted, before=clock.now())
        assert "importacoes_by_time" in await plan(full, queries.recent, limit=20)
