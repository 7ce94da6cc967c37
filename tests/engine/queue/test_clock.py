"""The clock of the PostgreSQL server is used for all decisions. Wrong clocks on the machines that enqueue, work and
prune have no effect.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from batuta.kernel.clock import SystemClock
from batuta.kernel.ids import Ids
from batuta.queue.handler import ItemHandler
from batuta.queue.item import NewItem
from batuta.queue.outcome import Cancelled, Failed, Snooze, after_seconds, give_back, settle
from batuta.queue.worker.worker import Worker, WorkerPolicy
from batuta.stores.sql.database import AsJson, Database, Row
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.queue.tasks import SqlTasks
from batuta.supervise.loop import Idle
from batuta.tasks.registry import TaskRegistry
from batuta.tasks.service import TaskService
from batuta.tasks.task import Task
from batuta.testing import EventRecorder
from tests.engine.queue.contract import ANN

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
SKEWS = [HOUR, -HOUR, timedelta(days=40)]
NAMES = ["an hour ahead", "an hour behind", "forty days ahead"]
ROWS = query_of("rows", "SELECT *, statement_timestamp() AS now FROM tasks ORDER BY id", writes=False)
ITEM = NewItem(values={"name": "f", "args": AsJson([[], {}])})


class Skewed(SystemClock):
    """A machine's clock that differs from the correct time by ``skew``."""

    def __init__(self, skew: timedelta) -> None:
        self._skew = skew

    def now(self) -> datetime:
        return super().now() + self._skew


class Machine:
    """A machine with its own clock, connected to the shared database."""

    def __init__(self, database: Database, skew: timedelta) -> None:
        self.clock = Skewed(skew)
        self.database = database
        self.store = SqlTasks(database, Ids(self.clock), self.clock, lambda queue: None)
        registry = TaskRegistry()
        registry.add(Task[..., Any](name="f", function=lambda: None))
        self.tasks = TaskService(registry, self.store)
        self.queue = self.store.queue("default")

    async def row(self) -> Row:
        (row,) = await self.database.all(in_dialect(ROWS, "postgres"))
        return row


async def _nothing(lease: object) -> None: ...


@pytest.fixture(params=SKEWS, ids=NAMES)
def machine(request: pytest.FixtureRequest, database: Database) -> Machine:
    if database.dialect != "postgres":
        pytest.skip("a SQLite file is used on one machine, by one clock")
    return Machine(database, request.param)


def is_about(instant: datetime, wanted: datetime) -> bool:
    return abs(instant - wanted) < timedelta(seconds=5)


async def test_item_is_due_as_soon_as_it_is_enqueued(machine: Machine) -> None:
    await machine.tasks.enqueue("f")
    row = await machine.row()
    assert is_about(row["created_at"], row["now"])
    assert len((await Machine(machine.database, timedelta(0)).queue.settle_and_claim([], ANN, 10)).leases) == 1


async def test_delay_lasts_as_long_as_requested(machine: Machine) -> None:
    await machine.tasks.enqueue("f", delay=60)
    row = await machine.row()
    assert is_about(row["available_at"], row["now"] + MINUTE)


async def test_items_of_one_put_keep_their_own_delays(machine: Machine) -> None:
    values = dict(ITEM.values)
    await machine.queue.put([NewItem(values=values, delay=n * MINUTE) for n in (0, 1, 1, 2)])
    rows = await machine.database.all(in_dialect(ROWS, "postgres"))
    assert all(
        is_about(row["available_at"], row["now"] + n * MINUTE) for row, n in zip(rows, (0, 1, 1, 2), strict=True)
    )


@pytest.mark.parametrize(
    ("outcome", "wait"),
    [
        (Failed("busy"), MINUTE),
        (Snooze(2 * MINUTE, "later"), 2 * MINUTE),
        (None, timedelta(0)),
    ],
    ids=["retry", "snooze", "handed back"],
)
async def test_snooze_lasts_as_long_as_requested(
    machine: Machine, outcome: Failed | Snooze | None, wait: timedelta
) -> None:
    await machine.queue.put([ITEM])
    (lease,) = (await machine.queue.settle_and_claim([], ANN, 10)).leases
    ended = give_back() if outcome is None else settle(1, outcome, after_seconds([60, 120]), lambda: 0.5)
    await machine.queue.settle_and_claim([(lease, ended)], ANN, 0)
    row = await machine.row()
    assert is_about(row["available_at"], row["now"] + wait)


async def test_worker_with_a_slow_clock_waits_between_retries(machine: Machine) -> None:
    """If the worker used its own clock, which is ten minutes slow, it would use up all retries immediately."""

    async def fail(lease: object) -> Failed:
        return Failed("busy")

    await machine.queue.put([ITEM])
    handler = ItemHandler(handle=fail, retry=after_seconds([60, 120]))
    worker = Worker(
        "default", machine.queue, lambda lease: handler, ANN, WorkerPolicy(), machine.clock, EventRecorder()
    )
    for _ in range(3):
        await worker.once(10)
    row = await machine.row()
    assert (row["status"], row["attempts"]) == ("queued", 1)


async def test_worker_wakes_when_the_next_item_is_due(machine: Machine) -> None:
    await machine.tasks.enqueue("f", delay=3)
    worker = Worker("default", machine.queue, lambda lease: None, ANN, WorkerPolicy(), machine.clock, EventRecorder())
    pace = await worker.tick()
    assert isinstance(pace, Idle)
    assert pace.until is not None
    assert timedelta(0) < pace.until - machine.clock.now() < timedelta(seconds=4)


async def test_finished_item_is_kept_for_its_retention(machine: Machine) -> None:
    id = await machine.tasks.enqueue("f")
    (lease,) = (await machine.queue.settle_and_claim([], ANN, 10)).leases
    handler = ItemHandler(handle=_nothing, keep=timedelta(days=30))
    ended = handler.settlement_of(1, Cancelled(), after_seconds([]))
    await machine.queue.settle_and_claim([(lease, ended)], ANN, 0)
    row = await machine.row()
    assert row["expires_at"] == row["finished_at"] + timedelta(days=30)
    await machine.store.prune(10)
    assert await machine.tasks.status(id) is not None


async def test_result_is_pruned_after_its_retention(machine: Machine) -> None:
    id = await machine.tasks.enqueue("f")
    await machine.database.script(
        "UPDATE tasks SET status = 'complete', finished_at = now() - interval '1 hour', expires_at = now() - interval '1 s'"
    )
    assert await machine.tasks.status(id) is None
    await machine.store.prune(10)
    assert await machine.queue.item(id) is None
