"""The pruner applies every retention rule in batches, and a job that prunes ends by its deadline."""

import pytest

from batuta.kernel.errors import StoreUnavailable
from batuta.supervise.loop import Again, Idle
from batuta.supervise.retention import PRUNE_BATCH, Pruned, Pruner, Retention, prune_all


class Table:
    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.is_away = False

    async def prune(self, limit: int) -> int:
        if self.is_away:
            raise StoreUnavailable(where="nowhere", why="it is away")
        pruned = min(self.rows, limit)
        self.rows -= pruned
        return pruned


def retentions(*tables: Table) -> list[Retention]:
    return [Retention(f"table_{place}", table.prune) for place, table in enumerate(tables)]


async def test_tick_deletes_a_batch_of_each_table_and_repeats_while_one_is_full() -> None:
    small, large = Table(3), Table(PRUNE_BATCH + 1)
    pruner = Pruner(retentions(small, large))
    assert await pruner.tick() == Again()
    assert (small.rows, large.rows) == (0, 1)
    assert await pruner.tick() == Idle()
    assert large.rows == 0


async def test_table_that_cannot_be_pruned_does_not_block_the_others() -> None:
    broken, whole = Table(1), Table(1)
    broken.is_away = True
    pruner = Pruner(retentions(broken, whole))
    with pytest.raises(StoreUnavailable):
        await pruner.tick()
    with pytest.raises(StoreUnavailable):
        await pruner.tick()
    assert whole.rows == 0
    broken.is_away = False
    await pruner.tick()
    assert broken.rows == 0


async def test_run_prunes_every_table_until_nothing_is_left() -> None:
    first, second = Table(2 * PRUNE_BATCH + 1), Table(1)
    assert await prune_all(retentions(first, second), lambda: True) == Pruned(
        {"table_0": 2 * PRUNE_BATCH + 1, "table_1": 1}, is_all=True
    )


async def test_run_ends_at_its_deadline_but_deletes_a_batch_first() -> None:
    first, second = Table(PRUNE_BATCH + 1), Table(1)
    assert await prune_all(retentions(first, second), lambda: False) == Pruned({"table_0": PRUNE_BATCH}, is_all=False)
    assert (first.rows, second.rows) == (1, 1)
