"""The order in which items are claimed if there are more priorities than a claim checks one by one."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest

from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import NewItem
from batuta.stores.sql.database import AsJson, Database
from batuta.stores.sql.queue import statements
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.registry import TASKS
from batuta.testing import FakeClock

MINUTE = timedelta(minutes=1)
TENURE = LeaseHolder(owner="a", lease=MINUTE)
ITEMS, LIMIT = 150, 7
# The two ways in which a claim orders due items of priorities that it does not check one by one: it sorts them, or it
# reads the ready index in order.
WAYS = {"sorted": statements.MOST_SORTED, "in the order of the index": 3}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(statements, "MOST_SORTED", WAYS[request.param])
    return str(request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("high_first", [False, True])
@pytest.mark.parametrize("reversed", [False, True])
async def test_due_items_are_claimed_by_priority_and_age_behind_waiting_ones(
    database: Database, clock: FakeClock, *, high_first: bool, reversed: bool
) -> None:
    table = replace(TASKS, urgent_is_high=high_first)
    queue = SqlQueue(database, table, Ids(clock), clock, queue="default", own_time=True)
    due = await _put(queue, clock.now(), Random(7), is_due=lambda priority: priority % 3 == 0)
    descending = high_first is not reversed
    expected = sorted(due, key=lambda each: (-each[0] if descending else each[0], each[1], each[2]))
    claimed: list[str] = []
    while leases := (await queue.settle_and_claim([], TENURE, LIMIT, reversed=reversed)).leases:
        # PostgreSQL returns the items of one claim in any order.
        assert {lease.id for lease in leases} == {id for *_, id in expected[len(claimed) : len(claimed) + LIMIT]}
        claimed += [lease.id for lease in leases]
    assert len(claimed) == len(due) > 4 * LIMIT


@pytest.mark.usefixtures("way")
async def test_next_due_instant_is_found_behind_many_waiting_priorities(database: Database, clock: FakeClock) -> None:
    queue = SqlQueue(database, TASKS, Ids(clock), clock, queue="default", own_time=True)
    due = await _put(queue, clock.now(), Random(8), is_due=lambda priority: priority > 45)
    assert await queue.next_at() == min(at for _, at, _ in due)
    leases = (await queue.settle_and_claim([], TENURE, ITEMS)).leases
    assert {lease.id for lease in leases} == {id for *_, id in due}
    assert (await queue.settle_and_claim([], TENURE, ITEMS)).leases == []
    assert await queue.next_at() == clock.now() + MINUTE


@pytest.mark.usefixtures("way")
async def test_pause_holds_items_of_every_priority(database: Database, clock: FakeClock) -> None:
    queue = SqlQueue(database, TASKS, Ids(clock), clock, queue="default", own_time=True)
    await _put(queue, clock.now(), Random(9), is_due=lambda priority: priority > 45)
    await database.script(
        "INSERT INTO feature_flags (key, value, reason, updated_by, updated_at)"
        " SELECT 'pause.all', 'true', '', '', created_at FROM tasks LIMIT 1"
    )
    assert (await queue.settle_and_claim([], TENURE, ITEMS)).leases == []


async def _put(
    queue: SqlQueue, now: datetime, chance: Random, is_due: Callable[[int], bool]
) -> list[tuple[int, datetime, str]]:
    """Enqueue items with fifty different priorities. Some of the items are equally old. Return the priority, due time
    and id of each item that is due.
    """
    due = []
    for _ in range(ITEMS):
        priority = chance.randrange(50)
        at = now - MINUTE * chance.randrange(3) if is_due(priority) else now + MINUTE
        values = {"name": "f", "args": AsJson([])}
        (id,) = await queue.put([NewItem(values=values, priority=priority, available_at=at)])
        assert id is not None
        if is_due(priority):
            due.append((priority, at, id))
    return due
