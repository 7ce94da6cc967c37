"""The composition root of the engine: everything a program of background work is made of, put together once.

work = Batuta("sqlite:///work.db")

@work.loop(every=2, stuck_after=60)
async def outbound(): ...

async with work: ...        # opens the database; `batuta --app module:work up` runs it all
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias
from zoneinfo import ZoneInfo

from batuta.config import EngineSettings
from batuta.dispatch.calls import JobCallPruner
from batuta.dispatch.endpoints import JobEndpoints
from batuta.dispatch.reception import Reception
from batuta.health.ready import Part, Probe, State
from batuta.kernel.clock import Clock, SystemClock
from batuta.kernel.events import Fanout
from batuta.kernel.ids import Ids
from batuta.stores import connect
from batuta.stores.sql.calls import SqlJobCalls
from batuta.stores.sql.engine_schema import engine_migrations
from batuta.stores.sql.marker import Marker
from batuta.stores.sql.migrations import Migration, Migrator
from batuta.stores.sql.switches import SqlSwitches
from batuta.stores.sql.tokens import SqlTokens
from batuta.supervise.loop import FunctionLoop, Loop, LoopPolicy, Pace
from batuta.supervise.supervisor import Supervisor

LoopFunction: TypeAlias = Callable[[], Awaitable[Pace | None]]
PRUNING = LoopPolicy(every=timedelta(minutes=5), stuck_after=timedelta(minutes=2))


@dataclass(frozen=True, slots=True)
class Role:
    """Something one process can be. ``run`` returns when ``stop`` is set and everything has drained."""

    name: str
    run: Callable[[asyncio.Event], Awaitable[None]]
    in_up: bool = True  # started by `batuta up`


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """What an application brings along besides its jobs and loops."""

    migrations: Sequence[Migration] = ()
    texts: Sequence[Path] = ()
    roles: Sequence[Role] = ()
    later: Sequence[str] = ()  # roles that are planned and not there yet: said plainly when asked for
    api: Callable[[], Any] | None = None  # makes the ASGI application; None: the engine's own
    child_env: Mapping[str, str] = field(default_factory=dict)  # what `batuta up` tells its children, unless it is set
    marked: bool = False  # the database must bear the mark of ``project``, or none if that is None
    project: str | None = None


class Batuta:
    def __init__(
        self,
        database_url: str,
        *,
        timezone: str = "America/Sao_Paulo",
        settings: EngineSettings | None = None,
        extension: Extension | None = None,
        clock: Clock | None = None,
        migrate: bool = True,
    ) -> None:
        """``migrate``: opening brings the schema up to date; False: opening refuses an old one."""
        self.settings = settings
        self.extension = extension or Extension()
        self.zone = ZoneInfo(timezone)
        self._migrates = migrate
        self.clock = clock or SystemClock()
        self.ids = Ids(self.clock)
        self.events = Fanout()
        self.database = connect(database_url, self.clock)
        self.switches = SqlSwitches(self.database, self.ids, self.events)
        self.tokens = SqlTokens(self.database, self.ids)
        self.endpoints = JobEndpoints()
        self.reception = Reception(SqlJobCalls(self.database), self.clock, self.ids, self.events)
        self.probes: dict[str, Probe] = {"database": Probe(self._database_answers, needed=True)}
        self._loops: list[tuple[Loop, LoopPolicy]] = []
        self.add_loop(JobCallPruner(SqlJobCalls(self.database), self.clock), PRUNING)

    def loop(
        self, *, every: float, stuck_after: float = 60, max_failures: int = 5, name: str | None = None
    ) -> Callable[[LoopFunction], LoopFunction]:
        """Register an async function as a supervised loop; times are seconds. The function stays what it is.

        After ``max_failures`` failed ticks in a row the process ends, so that it is started again from a clean state.
        """
        policy = LoopPolicy(
            every=timedelta(seconds=every), stuck_after=timedelta(seconds=stuck_after), max_failures=max_failures
        )

        def register(function: LoopFunction) -> LoopFunction:
            called = name or str(getattr(function, "__name__", "loop"))
            self.add_loop(FunctionLoop(called, function), policy)
            return function

        return register

    def add_loop(self, loop: Loop, policy: LoopPolicy) -> None:
        self._loops.append((loop, policy))

    def supervisor(self) -> Supervisor:
        supervisor = Supervisor(self.clock, self.events)
        for loop, policy in self._loops:
            supervisor.add(loop, policy)
        return supervisor

    async def open(self) -> None:
        """Open the database and check that it is ours and up to date."""
        await self.database.open()
        try:
            if self._migrates:
                await self.migrate()
            await self.check()
        except BaseException:
            await self.database.close()
            raise

    async def check(self) -> None:
        """The open database has the schema this code needs, and is the one this project means."""
        await self.migrator().require_current()
        if self.extension.marked:
            await Marker(self.database).require(self.extension.project)

    async def migrate(self) -> list[Migration]:
        applied = await self.migrator().migrate()
        if self.extension.marked:
            marker = Marker(self.database)
            if self.extension.project is not None:
                await marker.set_once(self.extension.project, now=self.clock.now())
            await marker.require(self.extension.project)
        return applied

    def migrator(self) -> Migrator:
        migrations = [*engine_migrations(), *self.extension.migrations]
        return Migrator(self.database, migrations, self.clock, self.events)

    async def close(self) -> None:
        await self.database.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _database_answers(self) -> Part:
        await self.migrator().require_current()
        return Part(State.OK)
