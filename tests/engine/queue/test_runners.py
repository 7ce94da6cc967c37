"""Runners, the asyncio tasks that run items. Items that never wait share a runner, each item has its own context, and
an item that waits does not block the others.
"""

import asyncio
from contextvars import ContextVar

from batuta.queue.handler import ItemHandler
from batuta.queue.item import Lease
from batuta.queue.outcome import Done
from batuta.queue.running import Running, Stop
from batuta.queue.worker.runners import Runners
from batuta.supervise.stacks import task_stack
from batuta.testing import FakeClock
from batuta.testing.clock import settle

COLOUR: ContextVar[str] = ContextVar("colour", default="none")


class Items:
    """Items for the runners to run. ``seen`` lists the context value that each item finds when it begins or continues."""

    def __init__(self, clock: FakeClock) -> None:
        self.runners = Runners(self.work, lambda: None, clock)
        self.gate = asyncio.Event()
        self.seen: list[str] = []
        self.tasks: set[asyncio.Task[object] | None] = set()
        self.all: dict[str, Running] = {}

    async def work(self, running: Running) -> None:
        id = running.lease.id
        self.tasks.add(asyncio.current_task())
        self.seen.append(f"{id} {COLOUR.get()}")
        COLOUR.set(id)
        if id.startswith("waits"):
            await self.gate.wait()
            self.seen.append(f"{id} {COLOUR.get()} again")

    def start(self, *ids: str) -> None:
        for id in ids:
            running = self.all[id] = Running(Lease(id, 1, 1, {}), ItemHandler(handle=done), 0.0)
            self.runners.add(running)
        self.runners.start()


async def done(lease: Lease) -> object:
    return Done()


async def test_items_that_do_not_wait_share_a_task_and_no_context(clock: FakeClock) -> None:
    items = Items(clock)
    items.start("a", "b", "c")
    await settle()
    assert items.seen == ["a none", "b none", "c none"]
    assert len(items.tasks) == 1
    assert not items.runners.tasks


async def test_item_that_waits_blocks_no_other_and_keeps_its_context(clock: FakeClock) -> None:
    items = Items(clock)
    items.start("waits 1", "a", "waits 2", "b")
    await settle()
    assert items.seen == ["waits 1 none", "a none", "waits 2 none", "b none"]
    items.gate.set()
    await settle()
    assert items.seen[4:] == ["waits 1 waits 1 again", "waits 2 waits 2 again"]
    assert not items.runners.tasks


async def test_runner_ends_after_a_stopped_item_and_others_continue(clock: FakeClock) -> None:
    items = Items(clock)
    items.start("waits 1")
    await settle()
    stopped = items.all["waits 1"]
    stopped.stop = Stop.LOST
    items.start("a")
    stopped.task.cancel()
    await settle()
    assert "a none" in items.seen
    assert stopped.task.done()
    assert items.all["a"].task is not stopped.task


async def test_stack_of_a_waiting_item_names_its_own_code(clock: FakeClock) -> None:
    items = Items(clock)
    items.start("waits 1")
    await settle()
    assert "await self.gate.wait()" in task_stack(items.all["waits 1"].task)
    items.gate.set()
    await settle()
