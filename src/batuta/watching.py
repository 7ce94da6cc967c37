"""Everything that watches over the rest, put together once: signs of life, checks, score."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from batuta.dispatch.book import JobBook
from batuta.dispatch.scheduler import owner
from batuta.guard.circuits import Circuits
from batuta.health import checks
from batuta.health.queues import QueueLimits, WatchedQueue
from batuta.health.ready import Probe
from batuta.health.watch import JobWatch
from batuta.health.watchman import Watchman
from batuta.kernel.clock import Clock
from batuta.kernel.events import Events
from batuta.kernel.ids import Ids
from batuta.stores.sql.beats import SqlBeats
from batuta.stores.sql.database import Database
from batuta.stores.sql.queues import SqlQueue
from batuta.stores.sql.reports import SqlReports
from batuta.supervise.beats import BEATING, Heart
from batuta.supervise.loop import Loop, LoopPolicy
from batuta.supervise.supervisor import Running


@dataclass(slots=True, kw_only=True)
class Watching:
    """``now`` gives None where the database's own clock decides."""

    database: Database
    version: str
    clock: Clock
    ids: Ids
    events: Events
    now: Callable[[], datetime | None]
    probes: Mapping[str, Probe]
    jobs: JobWatch
    reports: SqlReports
    book: JobBook
    circuits: Circuits
    task_queues: Callable[[], Mapping[str, SqlQueue]]
    # Through which circuit those of a family go: while it is open, they have nothing to add.
    behind: dict[str, str] = field(default_factory=dict)
    beats: SqlBeats = field(init=False)
    watchman: Watchman = field(init=False)
    _queues: dict[str, WatchedQueue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.beats = SqlBeats(self.database, self.version)
        self.watchman = Watchman(self.clock)
        for check in (
            checks.connectivity(self.probes, self.clock),
            checks.jobs(self.jobs),
            checks.scheduler(self.beats, self.reports, self.book, self.now),
            checks.workers(self.beats, self.now),
            checks.queues(self.queues, self.beats, self.now),
            checks.circuits(self.circuits, self.behind),
        ):
            self.watchman.add(check)

    def watch_queue(self, queue: SqlQueue, limits: QueueLimits | None = None, *loops: str) -> None:
        """Make an application's own queue part of health. ``loops``: who works on it; unless said, a worker of its name."""
        working = loops or (f"worker:{queue.name}",)
        self._queues[queue.name] = WatchedQueue(
            name=queue.name, pulse=queue.pulse, loops=working, limits=limits or QueueLimits()
        )

    def queues(self) -> Iterator[WatchedQueue]:
        yield from self._queues.values()
        for name, queue in self.task_queues().items():
            yield WatchedQueue(name=name, pulse=queue.pulse, loops=(f"worker:{name}",))

    def loops(self, role: str, running: Callable[[], Collection[Running]]) -> Iterator[tuple[Loop, LoopPolicy]]:
        """What watches in a process of this role. ``running``: its loops, asked at each beat."""
        yield Heart(owner(self.ids), role, self.beats, running, self.clock, self.now), BEATING
