"""Find the oldest open transaction, because while it is open the database cannot remove dead rows from its tables."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from batuta import Batuta
from batuta.config import EngineSettings
from batuta.health.checks import BUSY, CAUSE, OpenTransaction, judge_transaction
from batuta.health.finding import Severity
from batuta.kernel.events import AlertRaised
from batuta.stores.sql.database import Database
from batuta.stores.sql.tables.processes import SqlTransactions
from batuta.testing import EventRecorder, FakeClock
from batuta.texts import Texts
from batuta.texts.findings import FindingTexts

TUESDAY_MORNING = datetime(2026, 3, 10, 13, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def holder(postgres_url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    settings = {"application_name": "relatorio"}
    connection = await asyncpg.connect(postgres_url, server_settings=settings)
    yield connection
    await connection.close()


async def test_no_open_transaction_raises_no_finding(database: Database) -> None:
    assert await SqlTransactions(database).oldest() is None


async def test_held_snapshot_is_found_with_its_process_and_age(
    postgres_url: str, holder: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    async with Batuta(postgres_url) as work:
        await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await holder.execute("SELECT 1")
        for _ in range(20):
            await work.controls.use_profile("continuo", by="ana", now=work.clock.now())
        found = await SqlTransactions(work.database).oldest()
        assert found is not None
        assert (found.pid, found.name) == (holder.get_server_pid(), "relatorio")
        assert found.transactions_since >= 20
        await holder.execute("ROLLBACK")
        assert await SqlTransactions(work.database).oldest() is None


async def test_open_transaction_without_a_snapshot_is_ignored(
    postgres_url: str, holder: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    async with Batuta(postgres_url) as work:
        await holder.execute("BEGIN")
        await holder.execute("SELECT 1")
        assert await SqlTransactions(work.database).oldest() is None
        await holder.execute("CREATE TABLE written (n INTEGER)")  # the write gives the transaction an id
        found = await SqlTransactions(work.database).oldest()
    assert found is not None


async def test_finding_names_the_process_to_end_and_the_command(
    postgres_url: str, holder: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    settings = EngineSettings(batuta_old_transaction_seconds=0.8)
    async with Batuta(postgres_url, settings=settings) as work:
        await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await holder.execute("SELECT pg_sleep(1)")
        found = {finding.cause: finding for finding in (await work.health.look(fresh=True)).findings}
        await holder.execute("ROLLBACK")
        over = {finding.cause for finding in (await work.health.look(fresh=True)).findings}
    words = FindingTexts(Texts("en"))
    assert "relatorio" in words.message(found[CAUSE])
    assert f"SELECT pg_terminate_backend({holder.get_server_pid()})" in words.next_step(found[CAUSE])
    assert CAUSE not in over


async def test_alert_hub_sends_an_alert_with_the_next_step(
    postgres_url: str, holder: "asyncpg.Connection[asyncpg.Record]", clock: FakeClock, events: EventRecorder
) -> None:
    settings = EngineSettings(batuta_old_transaction_seconds=0.8, batuta_lang="en")
    clock.step(TUESDAY_MORNING - clock.now())
    async with Batuta(postgres_url, clock=clock, settings=settings) as work:
        work.events.subscribe(events.emit)
        hub = work.observability.hub()
        await hub.tick()
        await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await holder.execute("SELECT pg_sleep(1)")
        await clock.advance(timedelta(minutes=1))
        await hub.tick()
    assert CAUSE in {event.cause for event in events.of(AlertRaised)}


@pytest.mark.parametrize(
    ("lasts", "since", "severity"),
    [
        (MINUTE, 10 * BUSY, None),
        (2 * MINUTE, BUSY - 1, Severity.WARNING),
        (2 * MINUTE, BUSY, Severity.ERROR),
        (60 * MINUTE, BUSY - 1, Severity.WARNING),
        (10 * MINUTE, BUSY, Severity.CRITICAL),
    ],
)
def test_severity_depends_on_age_and_load(lasts: timedelta, since: int, severity: Severity | None) -> None:
    oldest = OpenTransaction(pid=1, name="x", lasts=lasts, transactions_since=since)
    found = [finding.severity for finding in judge_transaction(oldest, MINUTE).findings]
    assert found == ([] if severity is None else [severity])
