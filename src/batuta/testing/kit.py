"""Runs a program under test on its own database and a fake clock. Tasks run only when the test requests it."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from batuta.kernel.clock import Clock
from batuta.kernel.json import dumps
from batuta.kernel.suggestions import unknown
from batuta.queue.item import ItemState
from batuta.supervise.loop import Again
from batuta.testing.clock import FakeClock

if TYPE_CHECKING:
    from batuta.engine.batuta import Batuta

# Function that builds the program for a database URL and a clock.
Build: TypeAlias = "Callable[[str, Clock], Batuta]"
AT_A_TIME = 100
MOST_RETRIED = 1000


class Kit:
    """An open program on a fake clock. ``work`` is the program, ``clock`` its clock."""

    def __init__(self, work: "Batuta", clock: FakeClock) -> None:
        self.work = work
        self.clock = clock

    async def drain(self, *queues: str) -> int:
        """Run the due items of these queues until no item is due, and return the number of runs. Without names, run all
        queues and stages. An item that waits for a retry or a delay is not due. The method also ends batches whose
        tasks have all ended, and then runs the tasks that waited for those batches.
        """
        total, is_changed = 0, True
        while is_changed:
            ran = sum([await self.work.work_once(queue, AT_A_TIME) for queue in queues or tuple(self.work.queues)])
            is_changed = bool(ran) or isinstance(await self.work.task_ends.tick(), Again)
            total += ran
        return total

    async def travel(self, span: timedelta | float) -> None:
        """Move the clock forward by a duration or a number of seconds. Items and retries become due; ``drain`` runs
        them.
        """
        await self.clock.advance(span if isinstance(span, timedelta) else timedelta(seconds=span))

    async def retry_dead(self, *queues: str) -> int:
        """Make the dead items of these queues ready, as an operator would, and return their number. ``drain`` runs
        them. Without names, retry the dead items of all queues and stages.
        """
        total = 0
        for name in queues or self.work.queues:
            if (queue := self.work.queues.get(name)) is None:
                raise unknown("queue", name, self.work.queues)
            dead = await queue.list_items(ItemState.DEAD, MOST_RETRIED)
            total += sum([await queue.revive(str(item[queue.table.id])) for item in dead])
        return total

    async def enqueued(self, task: Any) -> list[tuple[list[Any], dict[str, Any]]]:
        """Return the arguments and the named arguments of every stored call of a task, oldest first."""
        from batuta.stores.sql.queries import in_dialect, query_of
        from batuta.tasks.task import arguments_of

        text = "SELECT args FROM tasks WHERE name = :name ORDER BY created_at, id"
        query = in_dialect(query_of("enqueued", text, writes=False), self.work.database.dialect)
        rows = await self.work.database.all(query, name=self.work.task_registry.get(task).name)
        calls = [arguments_of(row["args"], self.work.encryption) for row in rows]
        return [([*call.arguments], dict(call.named)) for call in calls]

    async def assert_enqueued(self, task: Any, *arguments: Any, **named: Any) -> None:
        """Fail unless a call of the task with these arguments was enqueued. Without arguments, any call counts."""
        calls = await self.enqueued(task)
        wanted = dumps([[*arguments], named])
        is_found = bool(calls) if not (arguments or named) else any(dumps([*call]) == wanted for call in calls)
        if not is_found:
            known = self.work.task_registry.get(task).name
            listed = ", ".join(dumps([*call]) for call in calls) or "none"
            raise AssertionError(f"no call of task {known} has the arguments {wanted}; enqueued calls: {listed}")

    @contextmanager
    def inline(self) -> Iterator[None]:
        """While the block runs, run each task as soon as it is enqueued. A call inside a transaction, and the end of a
        batch, still wait for ``drain``.
        """
        service, is_draining = self.work.tasks, False
        put = service.put

        async def put_and_drain(*arguments: Any, **options: Any) -> list[str]:
            nonlocal is_draining
            ids = await put(*arguments, **options)
            if not is_draining and options.get("within") is None:
                is_draining = True
                try:
                    await self.drain()
                finally:
                    is_draining = False
            return ids

        vars(service)["put"] = put_and_drain
        try:
            yield
        finally:
            del vars(service)["put"]


class KitFactory:
    """Opens programs under test. Each program's schema is migrated once and then copied for further databases."""

    def __init__(self, templates: Path, folder: Path) -> None:
        self._templates = templates
        self._folder = folder
        self._count = 0

    @asynccontextmanager
    async def __call__(self, build: Build, clock: FakeClock | None = None) -> AsyncIterator[Kit]:
        """Build the program, open it on an empty database, and yield its kit."""
        clock, self._count = clock or FakeClock(), self._count + 1
        file = self._folder / f"batuta-{self._count}.db"
        template = self._templates / f"{build.__module__}.{build.__qualname__}.db".replace("<", "").replace(">", "")
        if not template.exists():
            async with build(f"sqlite:///{template}", FakeClock()):
                pass
        shutil.copy(template, file)
        async with build(f"sqlite:///{file}", clock) as work, work.resources.started():
            yield Kit(work, clock)
