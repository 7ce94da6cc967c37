"""The testing kit gives a program a copied database and a fake clock, and runs its tasks on request."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from batuta import Batuta, Failed, TaskContext
from batuta.errors import UnknownWord
from batuta.kernel import Clock
from batuta.testing import FakeClock, KitFactory


async def send(context: TaskContext, to: str, *, subject: str = "") -> str | Failed:
    return Failed("busy") if context.attempt == 1 and to == "later" else f"{to} {subject}"


def build(url: str, clock: Clock) -> Batuta:
    work = Batuta(url, clock=clock, timezone="UTC")
    work.task(retry=[60])(send)

    async def fetch(item: dict[str, int]) -> dict[str, int]:
        await work.enqueue(send, f"order-{item['n']}")
        return item

    work.pipeline("orders", [fetch])
    return work


async def test_drain_runs_what_is_due_and_travel_makes_retries_due(batuta_kit: KitFactory) -> None:
    async with batuta_kit(build) as kit:
        id = await kit.work.enqueue(send, "later")
        assert await kit.drain() == 1
        assert await kit.drain() == 0
        await kit.travel(60)
        assert await kit.drain("default") == 1
        status = await kit.work.status(id)
        assert status is not None
        assert status.status == "complete"


async def test_the_wait_for_a_task_that_nothing_runs_ends_with_the_next_step(batuta_kit: KitFactory) -> None:
    async with batuta_kit(build) as kit:
        handle = kit.work.handle(await kit.work.enqueue(send, "a"))
        with pytest.raises(TimeoutError, match=r"call `await kit\.drain\(\)` first"):
            await handle.result(timeout=0.01)
        await kit.drain()
        assert await handle.result(timeout=60) == "a "


async def test_enqueued_calls_are_asserted_with_their_arguments(batuta_kit: KitFactory) -> None:
    async with batuta_kit(build) as kit:
        with pytest.raises(AssertionError, match="enqueued calls: none"):
            await kit.assert_enqueued(send)
        await kit.work.enqueue(send, "a", subject="hi")
        await kit.assert_enqueued(send)
        await kit.assert_enqueued(send, "a", subject="hi")
        with pytest.raises(AssertionError, match="no call of task send"):
            await kit.assert_enqueued(send, "b")


async def test_inline_runs_tasks_at_once_and_leaves_the_program_unchanged(batuta_kit: KitFactory) -> None:
    async with batuta_kit(build) as kit:
        with kit.inline():
            id = await kit.work.enqueue(send, "a")
            status = await kit.work.status(id)
        assert status is not None
        assert status.result == "a "
        await kit.work.enqueue(send, "b")
        assert await kit.drain() == 1


async def test_each_test_has_an_empty_database_and_stages_drain_too(batuta_kit: KitFactory) -> None:
    async with batuta_kit(build) as kit:
        assert await kit.enqueued(send) == []
        queue = kit.work.queues["orders.fetch"]
        assert (await queue.pulse()).due == 0


async def test_dead_items_of_a_stage_are_retried(batuta_kit: KitFactory) -> None:
    orders = {"unknown": 13}

    def build_orders(url: str, clock: Clock) -> Batuta:
        work = Batuta(url, clock=clock, timezone="UTC")

        def parse(item: int) -> Failed | None:
            return Failed("unknown order", permanent=True) if item in orders.values() else None

        pipeline = work.pipeline("orders", [parse])

        @work.task()
        async def order(number: int) -> None:
            await pipeline.put(number)

        return work

    async with batuta_kit(build_orders) as kit:
        await kit.work.enqueue("order", 13)
        assert await kit.drain() == 2
        orders.clear()
        assert await kit.retry_dead("default") == 0
        assert await kit.retry_dead() == 1
        assert await kit.drain("orders.parse") == 1
        assert await kit.retry_dead("orders.parse") == 0
        for call in (kit.drain, kit.retry_dead):
            with pytest.raises(UnknownWord, match=r"no queue 'orders.prase': did you mean orders.parse"):
                await call("orders.prase")


# A program as the README writes it: one Batuta at the level of the module.
work = Batuta("sqlite:///does-not-exist/program.db", timezone="UTC")
fired: list[str] = []


@work.task(retry=[60])
async def send_letter(context: TaskContext, to: str) -> str | Failed:
    return Failed("busy") if context.attempt == 1 else to


@work.task()
async def note(word: str) -> None:
    fired.append(word)


@work.job(every=3600)
async def each_hour() -> None:
    fired.append("job")


@pytest.mark.parametrize("turn", [1, 2])
async def test_program_of_a_module_runs_on_a_database_of_its_own(batuta_kit: KitFactory, turn: int) -> None:
    own_file, before = work.database.where, work.clock.now()
    async with batuta_kit(work) as kit:
        assert kit.work is work
        assert work.database.where != own_file
        assert await kit.enqueued(send_letter) == []
        handle = await send_letter.enqueue("a")
        assert await kit.drain() == 1
        assert await kit.drain() == 0
        await kit.travel(60)
        assert await kit.drain() == 1
        assert await handle.result(timeout=5) == "a"
        assert work.clock.now() == kit.clock.now()
    assert work.database.where == own_file
    assert not Path(own_file).parent.exists()
    assert work.clock.now() >= before
    assert not work.is_open


async def test_time_that_passes_fires_jobs_and_schedules(batuta_kit: KitFactory) -> None:
    fired.clear()
    async with batuta_kit(work) as kit:
        await work.schedules.create("twice", task=note, args={"word": "schedule"}, every=12 * 3600)
        await note.options(delay=90).enqueue("task")
        await kit.run_for(timedelta(days=1))
        assert Counter(fired) == {"job": 24, "schedule": 2, "task": 1}
        assert kit.clock.now() == FakeClock().now() + timedelta(days=1)


async def test_kit_says_what_it_needs(batuta_kit: KitFactory, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"batuta_kit\(work\)"):
        async with batuta_kit(lambda url, clock: Batuta(f"sqlite:///{tmp_path}/own.db")):
            pass
    with pytest.raises(ValueError, match="on SQLite"):
        async with batuta_kit(Batuta("postgresql://batuta@localhost/never")):
            pass
    async with Batuta(f"sqlite:///{tmp_path}/own.db") as opened:
        with pytest.raises(ValueError, match="not open"):
            async with batuta_kit(opened):
                pass
