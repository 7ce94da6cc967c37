"""Runs a program under test on its own database and a fake clock. Tasks run only when the test requests them."""

import hashlib
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from batuta.kernel.clock import Clock, SystemClock
from batuta.kernel.storage.json import dumps
from batuta.kernel.suggestions import unknown
from batuta.queue.item import ItemState
from batuta.supervise.loop import Again
from batuta.testing.clock import FakeClock

if TYPE_CHECKING:
    from batuta.dispatch.scheduler import Scheduler
    from batuta.engine.batuta import Batuta

# Function that builds the program for a database URL and a clock.
Build: TypeAlias = "Callable[[str, Clock], Batuta]"
AT_A_TIME = 100
MOST_RETRIED = 1000
# The longest real time that ``handle.result`` waits in a test, where no worker runs beside it.
LONGEST_WAIT = timedelta(seconds=5)


class Kit:
    """A program under test, opened with a fake clock. ``work`` is the program, and ``clock`` is its clock."""

    def __init__(self, work: "Batuta", clock: FakeClock) -> None:
        self.work = work
        self.clock = clock
        work._task_store.longest_wait = LONGEST_WAIT
        self._scheduler: Scheduler | None = None

    async def drain(self, *queues: str) -> int:
        """Run the due items of the given queues until none is due, and return the number of runs. Without names, run
        all queues and stages. An item that is waiting for a retry or a delay is not due. This method also ends batches
        whose tasks have all ended, and then runs the tasks that were waiting for those batches.
        """
        total, is_changed = 0, True
        while is_changed:
            ran = sum([await self.work.work_once(queue, AT_A_TIME) for queue in queues or tuple(self.work.queues)])
            is_changed = bool(ran) or isinstance(await self.work.task_ends.tick(), Again)
            total += ran
        return total

    async def travel(self, span: timedelta | float) -> None:
        """Move the clock forward by a duration or a number of seconds. Items and retries may become due, but only
        ``drain`` runs them.
        """
        await self.clock.advance(span if isinstance(span, timedelta) else timedelta(seconds=span))

    async def run_for(self, span: timedelta | float) -> None:
        """Let a duration or a number of seconds pass, as if the program's processes were running: whenever work becomes
        due, fire the due jobs and schedules and run the due items. A job ``every=3600`` fires 24 times in a day.
        """
        end = self.clock.now() + (span if isinstance(span, timedelta) else timedelta(seconds=span))
        while True:
            await self._run_due()
            if (now := self.clock.now()) >= end:
                return
            await self.clock.advance(min([end, *(at for at in await self._due_times() if at > now)]) - now)

    async def _run_due(self) -> None:
        self._scheduler = self._scheduler or self.work.scheduler()
        while isinstance(await self._scheduler.dispatcher.tick(), Again):
            pass
        await self._scheduler.runner.finish()
        while await self.work._schedules.fire(AT_A_TIME):
            pass
        await self.drain()

    async def _due_times(self) -> list[datetime]:
        assert self._scheduler is not None
        waiting = [await queue.next_at() for queue in self.work.queues.values()]
        waiting.append(await self.work._schedules.next_at())
        return [self._scheduler.dispatcher.next_at, *(at for at in waiting if at is not None)]

    async def retry_dead(self, *queues: str) -> int:
        """Make the dead items of the given queues ready again, as an operator would, and return how many there were.
        ``drain`` runs them. Without names, retry the dead items of all queues and stages.
        """
        total = 0
        for name in queues or self.work.queues:
            if (queue := self.work.queues.get(name)) is None:
                raise unknown("queue", name, self.work.queues)
            dead = await queue.list_items(ItemState.DEAD, MOST_RETRIED)
            total += sum([await queue.revive(str(item[queue.table.id])) for item in dead])
        return total

    async def enqueued(self, task: Any) -> list[tuple[list[Any], dict[str, Any]]]:
        """Return the positional and the named arguments of every stored call to a task, oldest first."""
        from batuta.stores.sql.queries import in_dialect, query_of
        from batuta.tasks.task import arguments_of

        text = "SELECT args FROM tasks WHERE name = :name ORDER BY created_at, id"
        query = in_dialect(query_of("enqueued", text, writes=False), self.work.database.dialect)
        rows = await self.work.database.all(query, name=self.work.task_registry.get(task).name)
        calls = [arguments_of(row["args"], self.work.encryption) for row in rows]
        return [([*call.arguments], dict(call.named)) for call in calls]

    async def assert_enqueued(self, task: Any, *arguments: Any, **named: Any) -> None:
        """Raise AssertionError unless a call to the task with these arguments was enqueued. If no arguments are given,
        any call to the task is sufficient.
        """
        calls = await self.enqueued(task)
        wanted = dumps([[*arguments], named])
        is_found = bool(calls) if not (arguments or named) else any(dumps([*call]) == wanted for call in calls)
        if not is_found:
            known = self.work.task_registry.get(task).name
            listed = ", ".join(dumps([*call]) for call in calls) or "none"
            raise AssertionError(f"no call of task {known} has the arguments {wanted}; enqueued calls: {listed}")

    @contextmanager
    def inline(self) -> Iterator[None]:
        """While the block is running, run each task as soon as it is enqueued. A call that is enqueued inside a
        transaction runs at the next ``drain``, and a batch ends at the next ``drain``.
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
    """Opens programs under test. The factory migrates an empty database once per program and copies it for each
    test.
    """

    def __init__(self, templates: Path, folder: Path) -> None:
        self._templates = templates
        self._folder = folder
        self._count = 0

    @asynccontextmanager
    async def __call__(self, program: "Build | Batuta", clock: FakeClock | None = None) -> AsyncIterator[Kit]:
        """Open the program on an empty database and yield its kit. ``program`` is a function ``build(url, clock)``, or
        an unopened Batuta object that uses SQLite. During the block, that object uses the empty database and the fake
        clock; its own database file is not opened.
        """
        from batuta.engine.batuta import Batuta

        clock, self._count = clock or FakeClock(), self._count + 1
        file = self._folder / f"batuta-{self._count}.db"
        if isinstance(program, Batuta):
            _check_unopened(program)
            template = self._templates / f"{_schema_of(program)}.db"
            if not template.exists():
                with _moved(program, template, FakeClock()):
                    async with program:
                        pass
            shutil.copy(template, file)
            with _moved(program, file, clock):
                async with program, program.resources.started():
                    yield Kit(program, clock)
            return
        template = self._templates / f"{program.__module__}.{program.__qualname__}.db".replace("<", "").replace(">", "")
        if not template.exists():
            async with program(f"sqlite:///{template}", FakeClock()):
                pass
        if not template.exists():
            raise ValueError(
                "build(url, clock) returned a Batuta on another database: pass url and clock to Batuta(…), or pass"
                " the Batuta itself: batuta_kit(work)"
            )
        shutil.copy(template, file)
        async with program(f"sqlite:///{file}", clock) as work, work.resources.started():
            yield Kit(work, clock)


def _check_unopened(work: "Batuta") -> None:
    if work.is_open:
        raise ValueError("batuta_kit(work) needs a Batuta that is not open: call it outside of `async with work:`")
    if work.database.dialect != "sqlite":
        raise ValueError(
            "batuta_kit(work) needs a Batuta on SQLite: set DATABASE_URL=sqlite:///test.db for the tests, or pass a"
            " function build(url, clock) that returns the program"
        )


def _schema_of(work: "Batuta") -> str:
    """Return a name for a program's schema. Programs with the same migrations get the same name, so they share a
    template database.
    """
    described = repr((work.extension.migrations, work.extension.mark))
    return hashlib.sha256(described.encode()).hexdigest()


@contextmanager
def _moved(work: "Batuta", file: Path, clock: FakeClock) -> Iterator[None]:
    """Make an unopened program use a different database file and a different clock while the block is running."""
    own, shown = vars(work.clock), dict(vars(work.clock))
    with work.connections.redirected(f"sqlite:///{file}", _SqlTime(clock)):
        vars(work).pop("presence", None)  # it is created again, because its folder depends on the file
        if work.clock is not clock:
            own.update({name: getattr(clock, name) for name in ("now", "monotonic", "sleep", "wait")})
        try:
            yield
        finally:
            own.clear()
            own.update(shown)
            vars(work).pop("presence", None)


class _SqlTime(SystemClock):
    """The clock of a database under test: ``now`` returns the time of the test's clock, but time limits are measured by
    the machine's clock.
    """

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()
