"""Items that kill their workers, rows that cannot be decoded, and stages that fail: none of them affects other
items.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from batuta.kernel.errors import PayloadTooLarge
from batuta.queue.item import NewItem
from batuta.stores.sql.queries import in_dialect, query_of
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.queue_harness import QueueWorkers, queue_workers
from tests.faults.queue_plant import STAGES, line_queue
from tests.faults.tally import Tally


@pytest.mark.calm
async def test_item_that_kills_its_workers_is_dead_after_three_crashes_alone(
    places: Mapping[str, Path],
) -> None:
    await together(*(_poison(url, folder) for url, folder in places.items()))


async def _poison(url: str, folder: Path) -> None:
    """A worker claims several slow items together with an item that kills the worker. The first two crashes count
    against the slow items too.
    """
    figures = Figures(
        "T29", kind(url), "tasks that kill their worker process (`os._exit`, SIGSEGV) run among slow and quick tasks"
    )
    async with queue_workers(folder, url, limit=30, lease=0.8, looks_every=0.3) as running:
        work = running.work
        poison = [await work.enqueue("veneno", how, priority=-1) for how in ("exit", "segv")]
        slow = await work.enqueue_many("conta", [(0.3,) for _ in range(6)], priority=-1)
        async with running.kept(1):
            await running.until("the first crash", lambda: running.runs().total() > 1)
            quick = await work.enqueue_many("conta", [(0.0,) for _ in range(100)])
            await running.until_over()
        for row in [await running.row(id) for id in poison]:
            assert (row["status"], row["attempts"], row["crashes"]) == ("failed", 3, 3)
            assert row["error"] == "its worker died 3 times while running it"
            assert 1 <= running.runs()[row["id"]] <= 3
        assert await running.counts() == {"failed": 2, "complete": 106}
        tally = await running.tally((*slow, *quick))
        assert (tally.lost, tally.doubled) == (0, 0)
        figures.record_items(
            tally,
            "each task that killed its worker process was declared dead after three attempts; all other tasks ended normally",
        )


async def test_row_that_cannot_be_decoded_fails_alone(places: Mapping[str, Path]) -> None:
    await together(*(_rows(url, folder) for url, folder in places.items()))


async def _rows(url: str, folder: Path) -> None:
    figures = Figures(
        "T30",
        kind(url),
        "workers claim rows with broken arguments, unknown task names, columns of a newer version, or 1 MB of payload",
    )
    async with queue_workers(folder, url) as running:
        broken = ['"x"', "[1]", "[[]]", "{}", "null", "[[1, 2, 3, 4, 5], {}]", '[[], {"no": 1}]']
        if running.work.database.dialect == "sqlite":
            broken += ["{", "", "\x00"]
        await running.work.database.script("ALTER TABLE tasks ADD COLUMN novidade TEXT NOT NULL DEFAULT 'x'")
        ids = [await _plant_row(running, args) for args in broken]
        unknown = await _plant_row(running, "[[], {}]", name="de_amanha")
        (worker,) = await running.begin_until_up()
        large = await running.work.enqueue("conta", 0.0, "ã" * 500_000)
        with pytest.raises(PayloadTooLarge):
            await running.work.enqueue("conta", 0.0, "ã" * 2_500_000)
        good = await running.work.enqueue_many("conta", [(0.0,) for _ in range(50)])

        async def is_over() -> bool:
            return await running.counts() == {"complete": 51, "failed": len(ids), "queued": 1}

        await running.until("all but one are over", is_over)
        for id in ids:
            row = await running.row(id)
            assert row["status"] == "failed"
            assert row["error"].endswith("in the handler; the log has the traceback")
        row = await running.row(unknown)
        assert (row["status"], row["attempts"]) == ("queued", 0)
        assert row["error"].startswith("no worker here knows this task (since ")
        tally = await running.tally((large, *good))
        assert (tally.lost, tally.doubled) == (0, 0)
        assert worker.is_alive()
        assert sum(words[0] == "up" for words in running.notes()) == 1
        figures.record_items(
            tally, f"each of the {len(ids)} bad rows failed without affecting other rows; no loop ended"
        )


async def _plant_row(running: QueueWorkers, args: str, name: str = "conta") -> str:
    """Insert a row that the product itself would never write."""
    id = await running.work.enqueue("conta", delay=3600)
    database = running.work.database
    now = "now()" if database.dialect == "sqlite" else "statement_timestamp()"
    args_is = ":args" if database.dialect == "sqlite" else ":args::text::jsonb"
    text = f"UPDATE tasks SET args = {args_is}, name = :name, available_at = {now} WHERE id = :id"
    update = in_dialect(query_of("plant", text, writes=True), database.dialect)
    await database.run(update, args=args, name=name, id=id)
    return id


async def test_every_item_ends_with_its_effects_once_in_spite_of_failing_stages(places: Mapping[str, Path]) -> None:
    await together(*(_stages(url, folder) for url, folder in places.items()))


async def _stages(url: str, folder: Path) -> None:
    # With so many writers on one file, a renewal every quarter of a second would come too late.
    items, lease = (10_000, 5.0) if LONG else (120, 0.8)
    figures = Figures(
        "T31",
        kind(url),
        f"{items} items pass through five stages; in each stage, some runs fail, some workers die, and some items are"
        " processed again",
    )
    async with queue_workers(folder, url, has_line=True, limit=20, lease=lease, looks_every=60) as running:
        keys = [_key(n, items) for n in range(items)]
        for start in range(0, items, 500):
            some = [NewItem(key=key, values={"estagio": STAGES[0]}) for key in keys[start : start + 500]]
            queue = line_queue(running.work, STAGES[0])
            assert None not in await queue.put(some)
            assert set(await queue.put(some)) == {None}  # the same keys again: nothing is added
        async with running.kept(2):
            await running.until("every item has ended", lambda: _all_ended(running))
        rows = {row["chave"]: row for row in await running.ask("SELECT * FROM esteira")}
        assert len(rows) == items
        effects = await running.ask("SELECT item, what, count(*) AS times FROM effects GROUP BY item, what")
        doubled = sum(row["times"] > 1 for row in effects)
        assert doubled == 0
        done: dict[str, set[str]] = {}
        for row in effects:
            done.setdefault(row["item"], set()).add(row["what"])
        for key, row in rows.items():
            stages = done.get(key.split()[0], set())
            if "=never" in key:
                assert (row["estagio"], row["ultimo_estagio"], row["error"]) == ("erro", _stage_of(key), "never")
                assert stages == set(STAGES[: STAGES.index(_stage_of(key))])
            else:
                assert (row["estagio"], stages) == ("feita", set(STAGES)), row
        hanging = sum(row["estagio"] not in ("feita", "erro") for row in rows.values())
        tally = Tally(items=items, lost=hanging, doubled=doubled, effects=len(effects), in_vain=0)
        figures.record_items(
            tally, f"the items needed {running.runs().total()} runs; without faults, they need {5 * items}"
        )


def _key(n: int, items: int) -> str:
    """Return an item's key, which specifies its faults. Few items kill their worker, because each death delays the
    items claimed with it. One item in seven fails at first, and one in thirteen always fails.
    """
    stage = STAGES[n % 5]
    trouble = "dies" if n % (items // 5) == n % 5 == (5 * n // items) else "fails" if n % 7 == 0 else ""
    trouble = "never" if n % 13 == 0 and not trouble else trouble
    return f"i{n} {stage}={trouble}" if trouble else f"i{n}"


def _stage_of(key: str) -> str:
    return key.split()[1].partition("=")[0]


async def _all_ended(running: QueueWorkers) -> bool:
    return (
        await running.ask("SELECT 1 AS one FROM esteira WHERE estagio NOT IN ('feita', 'erro', 'fora') LIMIT 1") == []
    )


async def test_handler_that_ignores_cancellation_delays_no_other_item(places: Mapping[str, Path]) -> None:
    await together(*(_stubborn(url, folder) for url, folder in places.items()))


async def _stubborn(url: str, folder: Path) -> None:
    """An item is marked as failed while its handler is running. The worker cancels the handler and continues with other
    items.
    """
    async with queue_workers(folder, url, looks_every=0.2) as running:
        stubborn = await running.work.enqueue("teimosa", 300.0)
        await running.begin_until_up()
        await running.until("it runs", lambda: running.runs()[stubborn] == 1)
        took = "UPDATE tasks SET fence = fence + 1, status = 'failed', lease_until = NULL, owner = NULL WHERE id = :id"
        database = running.work.database
        await database.run(in_dialect(query_of("take", took, writes=True), database.dialect), id=stubborn)
        await running.until("it was cancelled", lambda: ["refused", stubborn] in running.notes())
        good = await running.work.enqueue_many("conta", [(0.0,) for _ in range(30)])
        await running.until_over()
        effects = await running.effects()
        assert {effects[id] for id in good} == {1}
        assert effects[stubborn] == 0
