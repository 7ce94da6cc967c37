"""When the database is opened, a queue table that lacks an index is reported together with the statement that creates
the index.
"""

import pytest

from batuta import Batuta
from batuta.errors import MissingIndexes
from batuta.extension import Extension
from batuta.queues import QueueTable, index_ddl
from batuta.sql import Migration
from batuta.testing import FakeClock

TABLE = """
CREATE TABLE mails (
    id UUID PRIMARY KEY, status TEXT NOT NULL DEFAULT 'ready', attempts INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0, available_at TIMESTAMPTZ NOT NULL, lease_until TIMESTAMPTZ,
    fence BIGINT NOT NULL DEFAULT 0, owner TEXT, error TEXT, created_at TIMESTAMPTZ NOT NULL, finished_at TIMESTAMPTZ
);
"""
MAILS = QueueTable(name="mails", priority="priority", urgent_is_high=True)


def build(url: str, clock: FakeClock, *ddl: str) -> Batuta:
    migration = Migration(namespace="mails", number=1, name="mails", text="\n".join([TABLE, *ddl]))
    work = Batuta(url, clock=clock, extension=Extension(migrations=[migration]))
    work.add_queue(MAILS, lambda lease: None)
    return work


async def test_opening_names_each_missing_index_with_its_statement(database_url: str, clock: FakeClock) -> None:
    ready = "CREATE INDEX mails_ready ON mails (priority DESC, available_at, id) WHERE status = 'ready' AND lease_until IS NULL;"
    work = build(database_url, clock)
    with pytest.raises(MissingIndexes) as missing:
        await work.open()
    assert ready in str(missing.value)
    assert "CREATE INDEX mails_leased ON mails (lease_until) WHERE lease_until IS NOT NULL;" in str(missing.value)


async def test_generated_statements_serve_the_queue(database_url: str, clock: FakeClock) -> None:
    async with build(database_url, clock, *index_ddl(MAILS).values()) as work:
        assert await work.work_once("mails", 10) == 0
        assert (await work.queues["mails"].pulse()).due == 0
