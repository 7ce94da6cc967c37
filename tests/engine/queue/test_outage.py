"""When the engine's own database fails, items wait for a limited time and lose none of their attempts."""

from datetime import timedelta
from typing import Any

import pytest

from batuta.kernel.errors import RowLocked, StoreReadOnly, StoreTimeout, StoreUnavailable
from batuta.kernel.reasons import Reason
from batuta.queue.item import Lease
from batuta.queue.outcome import Done, after_seconds
from batuta.queue.retry import never, retry_policy
from batuta.queue.worker.outage import AT_MOST, FIRST_WAIT, LONGEST_WAIT
from batuta.queue.worker.worker import Worker
from tests.engine.queue.queue_bench import Bench

MOMENT = timedelta(milliseconds=1)


class Slow:
    """A handler that fails with ``error`` until the test sets ``error`` to None. ``at`` lists the times of its runs in
    seconds.
    """

    def __init__(self, bench: Bench, error: type[StoreUnavailable] | None = StoreTimeout, **options: Any) -> None:
        self._bench = bench
        self.error, self.where = error, bench.store.where
        self.at: list[float] = []
        bench.handles("slow", self, **{"retry": after_seconds([]), **options})

    async def __call__(self, lease: Lease) -> object:
        self.at.append(self._bench.clock.monotonic())
        if self.error is not None:
            raise self.error(where=self.where, why="-")
        return Done()


async def run_for(bench: Bench, worker: Worker, time: timedelta, id: str) -> dict[str, Any]:
    """Run the item whenever it is due, until ``time`` has passed or the item has ended. Return the item's row."""
    ends = bench.clock.now() + time
    while True:
        await bench.works(worker)
        row = await bench.row(id)
        if row["status"] != "queued" or row["available_at"] > ends:
            return row
        await bench.clock.advance(max(MOMENT, row["available_at"] - bench.clock.now()))


@pytest.mark.parametrize("error", [StoreUnavailable, StoreTimeout, RowLocked, StoreReadOnly])
async def test_outage_of_the_database_uses_up_no_attempt(bench: Bench, error: type[StoreUnavailable]) -> None:
    slow, worker = Slow(bench, error), bench.worker()
    (id,) = await bench.put("slow")
    began = bench.clock.now()
    row = await run_for(bench, worker, timedelta(hours=1), id)
    assert (row["status"], row["attempts"], row["crashes"], row["lease_until"]) == ("queued", 0, 0, None)
    assert isinstance(row["error"], Reason)
    assert (row["error"].code, row["error"].facts["since"]) == ("store_away", began)
    slow.error = None
    row = await run_for(bench, worker, LONGEST_WAIT + timedelta(hours=1), id)
    assert (row["status"], row["attempts"]) == ("complete", 1)


async def test_waits_of_an_outage_grow_and_stay_below_the_longest(bench: Bench) -> None:
    slow, worker = Slow(bench), bench.worker()
    (id,) = await bench.put("slow")
    await run_for(bench, worker, timedelta(hours=1), id)
    waits = [later - earlier for earlier, later in zip(slow.at, slow.at[1:], strict=False)]
    assert waits[0] >= FIRST_WAIT.total_seconds()
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(LONGEST_WAIT.total_seconds(), abs=1)
    assert len(slow.at) < 25


async def test_outage_after_a_success_starts_again_with_the_first_wait(bench: Bench) -> None:
    slow, worker = Slow(bench), bench.worker()
    (id,) = await bench.put("slow")
    row = await run_for(bench, worker, timedelta(hours=1), id)
    assert row["available_at"] - bench.clock.now() > FIRST_WAIT
    (other,) = await bench.put("slow")
    await bench.works(worker)
    row = await bench.row(other)
    assert row["available_at"] - bench.clock.now() <= FIRST_WAIT
    assert slow.at


async def test_statement_that_is_always_too_slow_ends_its_item(bench: Bench) -> None:
    Slow(bench, retry=after_seconds([60]))
    (id,) = await bench.put("slow")
    row = await run_for(bench, bench.worker(), AT_MOST + timedelta(hours=1), id)
    assert (row["status"], row["attempts"]) == ("failed", 2)
    assert row["error"].code == "store_away_dead"
    assert row["error"].facts["error"] == "StoreTimeout"


async def test_outage_of_another_database_counts(bench: Bench) -> None:
    slow = Slow(bench)
    slow.where = "elsewhere"
    (id,) = await bench.put("slow")
    await bench.works(bench.worker())
    row = await bench.row(id)
    assert (row["status"], row["attempts"]) == ("failed", 1)


async def test_retry_rule_for_the_database_decides(bench: Bench) -> None:
    slow = Slow(bench, retry=retry_policy({StoreTimeout: never}, after_seconds([60])))
    (id,) = await bench.put("slow")
    await bench.works(bench.worker())
    assert (await bench.row(id))["status"] == "failed"
    assert len(slow.at) == 1


async def test_rule_for_all_errors_does_not_count_an_outage(bench: Bench) -> None:
    Slow(bench, retry=retry_policy({Exception: []}, after_seconds([60])))
    (id,) = await bench.put("slow")
    await bench.works(bench.worker())
    assert (await bench.row(id))["attempts"] == 0


async def test_error_is_read_again_when_the_database_answers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    Slow(bench)
    (id,) = await bench.put("slow")
    last_error, away = bench.store.last_error, [True, True]

    async def comes_back(id: str) -> Any:
        if away:
            away.pop()
            raise StoreUnavailable(where=bench.store.where, why="it restarts")
        return await last_error(id)

    monkeypatch.setattr(bench.store, "last_error", comes_back)
    worker = bench.worker()
    await worker.tick()
    for _ in range(20):
        await bench.clock.advance(1)
    await bench.works(worker)
    row = await bench.row(id)
    assert (row["status"], row["attempts"], row["lease_until"]) == ("queued", 0, None)
