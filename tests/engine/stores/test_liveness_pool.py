"""Lease renewals, settlements and rescues use separate connections with short timeouts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from batuta import Batuta
from batuta.config import EngineSettings
from batuta.dispatch.scheduler import RUN_LEASE
from batuta.engine.batuta import QUEUE_LEASE
from batuta.health.aggregator import State, look
from batuta.kernel.errors import InvalidSetting
from batuta.kernel.leases import LeaseHolder, Renewed
from batuta.queue.item import ItemState
from batuta.queue.outcome import Settlement
from batuta.runlog.execution import Ending, Opening, Registration, Status, Trigger
from batuta.runlog.log import Closing, Decisions, Ledger
from batuta.stores import liveness_limits
from batuta.stores.sql.queries import in_dialect, query_of
from tests.engine.dispatch.scheduling import register
from tests.servers import Postgres

ONE = in_dialect(query_of("one", "SELECT 1 AS n", writes=False), "postgres")
SLEEP = in_dialect(query_of("sleep", "SELECT pg_sleep(60)", writes=False), "postgres")
WITHIN = 25.0  # seconds; a statement that needs a connection of the busy pool fails after 10 s
LOCK = in_dialect(query_of("lock", "SELECT id FROM tasks WHERE id = :id FOR UPDATE", writes=True), "postgres")
CONNECTIONS = in_dialect(
    query_of(
        "connections",
        "SELECT application_name AS name, count(*) AS n FROM pg_stat_activity"
        " WHERE datname = current_database() GROUP BY 1",
        writes=False,
    ),
    "postgres",
)
BEATS = in_dialect(query_of("beats", "SELECT worker_name FROM worker_heartbeats", writes=False), "postgres")
WORKER = LeaseHolder(owner="worker", lease=QUEUE_LEASE)
SCHEDULER = LeaseHolder(owner="scheduler", lease=RUN_LEASE)
JOB = Registration(job="resumo", category="report", schedule="* * * * *", zone="UTC")


@pytest.fixture
async def work(postgres_url: str) -> AsyncIterator[Batuta]:
    made = Batuta(postgres_url, timezone="UTC")

    @made.task()
    async def enviar() -> None: ...

    async with made:
        yield made


@asynccontextmanager
async def all_connections_taken(work: Batuta) -> AsyncIterator[None]:
    """Hold every connection in the pool, as handlers may do."""
    sleeping = [asyncio.create_task(work.database.all(SLEEP)) for _ in range(5)]
    await asyncio.sleep(0)
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await work.database.all(ONE)
        yield
    finally:
        for each in sleeping:
            each.cancel()
        await asyncio.gather(*sleeping, return_exceptions=True)


async def test_busy_pool_delays_no_renewal_claim_or_rescue_of_the_queue(work: Batuta) -> None:
    await work.enqueue_many("enviar", [()] * 2)
    queue = work.queues["default"]
    (first,) = (await queue.settle_and_claim([], WORKER, 1)).leases
    async with all_connections_taken(work), asyncio.timeout(WITHIN):
        assert (await queue.renew([first], WORKER)).lost == frozenset()
        assert len((await queue.settle_and_claim([], WORKER, 5)).leases) == 1
        assert list(await queue.rescue(10)) == []
        assert await queue.next_at() is None


async def test_busy_pool_delays_no_part_of_a_run(work: Batuta) -> None:
    def decide(ledger: Ledger) -> Decisions:
        opening = Opening(
            job=JOB.job,
            category=JOB.category,
            scheduled_for=ledger.now,
            trigger=Trigger.SCHEDULE,
            status=Status.RUNNING,
        )
        return Decisions(openings=[opening], accounted={JOB.job: ledger.now})

    log = work.executions
    await register(log, [JOB], SCHEDULER)
    async with all_connections_taken(work), asyncio.timeout(WITHIN):
        await log.controls()
        opened = await log.open_due([JOB.job], SCHEDULER, decide)
        assert await log.renew(opened.started, SCHEDULER) == Renewed()
        assert list(await log.silent(SCHEDULER, [JOB.job], 10)) == []
        assert await log.close(opened.started[0], Ending(status=Status.SUCCESS)) is Closing.WRITTEN


async def test_busy_pool_delays_no_heartbeat(work: Batuta) -> None:
    async with all_connections_taken(work), asyncio.timeout(WITHIN):
        await work.beats.beat("one", "worker", {})
        assert [row["worker_name"] for row in await work.liveness.all(BEATS)] == ["worker"]


async def test_both_pool_sizes_are_settings(postgres_url: str) -> None:
    settings = EngineSettings(batuta_pool_size=3, batuta_liveness_pool_size=1)
    async with Batuta(postgres_url, settings=settings) as work:
        async with asyncio.TaskGroup() as group:
            for database in (work.database, work.liveness):
                for _ in range(8):
                    group.create_task(
                        database.all(in_dialect(query_of("s", "SELECT pg_sleep(0.05)", writes=False), "postgres"))
                    )
        counted = {row["name"]: row["n"] for row in await work.database.all(CONNECTIONS)}
    assert counted == {"batuta": 3, "batuta-liveness": 1}


@pytest.mark.parametrize("lease", [RUN_LEASE, QUEUE_LEASE, timedelta(seconds=1)])
def test_every_liveness_timeout_is_shorter_than_a_third_of_the_lease(lease: timedelta) -> None:
    limits = liveness_limits(lease, pool=2)
    assert max(limits.connect, limits.answer, limits.lock, limits.idle_in_transaction) < lease / 3


async def test_each_pool_has_the_timeouts_of_the_lease_that_it_protects(work: Batuta) -> None:
    asked = in_dialect(query_of("s", "SELECT current_setting('statement_timeout') AS s", writes=False), "postgres")
    seconds = [(await path.one(asked))["s"] for path in (work.database, work.liveness, work.connections.run_liveness)]  # type: ignore[index]
    assert seconds == ["30s", "6s", "1200ms"]


async def test_worker_that_meets_a_locked_row_settles_and_claims_the_others(postgres_url: str) -> None:
    """The worker's connections have the same timeouts as in production. The lock timeout ends the wait for the locked
    row before the statement timeout expires.
    """
    made = Batuta(postgres_url, timezone="UTC")
    made.queue_lease = timedelta(seconds=3)

    @made.task()
    async def enviar() -> None: ...

    async with made:
        await made.enqueue_many("enviar", [()] * 4)
        queue = made.queues["default"]
        locked, *others = (await queue.settle_and_claim([], WORKER, 3)).leases
        async with made.database.transaction() as transaction:
            await transaction.all(LOCK, id=locked.id)
            done = [(lease, Settlement(state=ItemState.DONE)) for lease in (locked, *others)]
            result = await queue.settle_and_claim(done, WORKER, 5)
        assert (len(result.leases), result.lost, result.unchecked) == (1, [], [locked])


async def test_lease_too_short_for_any_timeout_is_refused_at_start_up(postgres_url: str) -> None:
    with pytest.raises(InvalidSetting, match="lease"):
        await Batuta(postgres_url, lease=timedelta(milliseconds=100)).open()


def test_sqlite_uses_its_one_writer_for_liveness_too() -> None:
    work = Batuta("sqlite:///unused.db")
    assert work.liveness is work.database
    assert work.connections.run_liveness is work.database


async def test_readiness_fails_when_only_the_liveness_connections_are_refused(postgres: Postgres) -> None:
    with postgres.database() as url:
        async with Batuta(url) as work:
            assert (await look(work.probes, work.clock))["database"].state is State.OK
            await work.liveness.close()
            assert (await look(work.probes, work.clock))["database"].state is State.ERROR
