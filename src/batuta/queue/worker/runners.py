"""Runners: asyncio tasks that run claimed items one after the other, each item in its own context.

    start ──▶ [ runner: item ─▶ item ─▶ … ] ── no item is left ──▶ the runner ends
                          └── an item waits ──▶ new runners continue with the items behind it

An item that never waits gets no asyncio task of its own, because creating a task would take longer than running a short
handler. While an item runs, the runner's task is also the item's task. Stopping an item cancels this task, so the
runner ends with the item.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from batuta.kernel.calls.contexts import InOwnContext
from batuta.kernel.clock import Clock
from batuta.queue.running import Running
from batuta.supervise.loop import bind as bind_progress

# After this many seconds a runner yields to the event loop before it starts its next item.
SLICE = 0.02
LOOK_EVERY = 8  # number of items between two reads of the clock


class Runners:
    def __init__(
        self, work: Callable[[Running], Coroutine[Any, Any, None]], on_pause: Callable[[], None], clock: Clock
    ) -> None:
        """Create the runners. ``work`` runs one item and raises no errors. ``on_pause`` is called when a runner waits
        or ends, so that the worker can process the items that have ended.
        """
        self._work = work
        self._on_pause = on_pause
        self._clock = clock
        self._items: deque[Running] = deque()
        self._fresh = 0  # runners that have not taken an item yet
        self.tasks: set[asyncio.Task[None]] = set()

    def add(self, running: Running) -> None:
        self._items.append(running)

    def start(self) -> None:
        """Start running the added items in the next iteration of the event loop."""
        if self._items and not self._fresh:
            self._spawn()

    def _spawn(self) -> None:
        self._fresh += 1
        task = asyncio.create_task(self._run())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _continue(self) -> None:
        """Start new runners for the items that are queued after the current item, because the current item has begun to
        wait. Each of these items gets its own runner, because it may wait too.
        """
        self._on_pause()
        for _ in range(len(self._items) - self._fresh):
            self._spawn()

    async def _run(self) -> None:
        self._fresh -= 1
        task = asyncio.current_task()
        assert task is not None
        bind_progress(None)  # a handler's progress must not count as the worker's progress
        ends = self._clock.monotonic() + SLICE
        try:
            while self._items:
                running = self._items.popleft()
                running.task = task
                task.set_name(f"item {running.lease.id}")  # a stack dump shows this name
                await InOwnContext(self._work(running), self._continue)
                if running.stop is not None:
                    return
                if not len(self._items) % LOOK_EVERY and self._clock.monotonic() > ends:
                    self._on_pause()
                    await asyncio.sleep(0)
                    ends = self._clock.monotonic() + SLICE
        finally:
            self._on_pause()
            self.start()
