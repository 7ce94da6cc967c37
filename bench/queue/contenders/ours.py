"""The contender Batuta: the same worker as in `batuta worker`, with its loops, log and leases."""

import asyncio
import dataclasses
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TypeVar

from batuta.engine.batuta import Batuta
from batuta.queue.item import QueueTable
from batuta.stores.sql.database import Query
from batuta.stores.sql.queue import claim
from batuta.stores.sql.queue.statements import (
    PostgresClaimQueries,
    SqliteClaimQueries,
    postgres_claim_queries,
    sqlite_claim_queries,
)
from bench.queue.contender import Assignment, Enqueuer, run

ClaimQueries = TypeVar("ClaimQueries", PostgresClaimQueries, SqliteClaimQueries)
CONCURRENCY, DEFAULT = 1000, 20
QUEUES = 10  # number of queues of the idle worker
FENCE_CHECKED = re.compile(r"\s+AND (?:\w+\.)?fence = (?::fence|\w+\.(?:fence|value ->> 'fence'))")
LEASE_CHECKED = re.compile(r"\s+AND (?:tasks\.lease_until IS NOT NULL|num_nulls\(item\.lease_until\) = 0)")
FENCE_COUNTED = "fence = fence + 1, "


class FenceNotFound(Exception):
    """Raised if a statement does not contain the fence (the check of the item's lease) that the benchmark removes,
    because the statement in the product has changed.
    """


def without_fence(query: Query) -> Query:
    """Return a queue's statement without its fence, which checks that the worker still holds the item's lease."""
    text = query.text
    if query.name in ("settle", "settle_successes", "settle_and_claim", "ours"):
        text, checks = FENCE_CHECKED.subn("", text)
        text, leases = LEASE_CHECKED.subn("", text)
        if not checks or not leases:
            raise FenceNotFound(query.name)
    if query.name in ("claim", "claim_reversed", "settle_and_claim", "take"):
        if FENCE_COUNTED not in text:
            raise FenceNotFound(query.name)
        text = text.replace(FENCE_COUNTED, "")
    return dataclasses.replace(query, text=text)


def trust_each_other() -> None:
    """Remove the fences (checks of the items' leases) from the statements in this process, to measure what the fences
    cost. The product has no such mode.
    """

    def on_postgres(table: QueueTable) -> PostgresClaimQueries:
        return unfenced(postgres_claim_queries(table), "settle", "claim", "claim_reversed", "settle_and_claim")

    def on_sqlite(table: QueueTable, *given: tuple[tuple[str, str], ...]) -> SqliteClaimQueries:
        return unfenced(sqlite_claim_queries(table, *given), "settle", "settle_successes", "ours", "take")

    vars(claim).update(postgres_claim_queries=on_postgres, sqlite_claim_queries=on_sqlite)


def unfenced(queries: ClaimQueries, *statements: str) -> ClaimQueries:
    return dataclasses.replace(queries, **{name: without_fence(getattr(queries, name)) for name in statements})


class Ours:
    def __init__(self, assignment: Assignment) -> None:
        if not assignment.fenced:
            trust_each_other()
        self._app = Batuta(assignment.url, concurrency=CONCURRENCY if assignment.tuned else DEFAULT)

        async def noop(number: int) -> None:
            assignment.marks.set(number)

        self._app.task(name="noop")(noop)
        for n in range(0 if assignment.tuned else QUEUES - 1):
            self._app.task(name=f"idle{n}", queue=f"idle{n}")(noop)

    async def one(self, number: int) -> None:
        await self._app.enqueue("noop", number)

    async def many(self, numbers: Sequence[int]) -> None:
        await self._app.enqueue_many("noop", [[number] for number in numbers])

    @asynccontextmanager
    async def enqueuing(self) -> AsyncIterator[Enqueuer]:
        async with self._app:
            yield self

    @asynccontextmanager
    async def working_inside(self) -> AsyncIterator[Enqueuer]:
        stop = asyncio.Event()
        async with self._app:
            working = asyncio.create_task(self._app.supervisor().run(stop, timedelta(seconds=5)))
            yield self
            stop.set()
            await working

    def work(self) -> None:
        from batuta.cli import main

        sys.modules["bench_app"] = sys.modules[__name__]  # `--app` needs an importable module
        globals()["work"] = self._app
        sys.exit(main(["--app", "bench_app:work", "worker"]))


if __name__ == "__main__":
    run(Ours)
