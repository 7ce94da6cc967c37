"""Run the whole queue benchmark: take one measurement with all contenders, one directly after another, then the next
measurement. Print one table at the end.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.queue import million
from bench.queue.entries import ENTRIES, LOCKS, PEERS, Entry, Kept
from bench.queue.figures import Figures, per_second, percentile
from bench.queue.homes import Home, PostgresDatabase, Redis, SqliteFile, redis_program, redis_server
from bench.queue.measure import (
    Stand,
    drain,
    drain_together,
    idle,
    latency,
    latency_inside,
    standing,
    traced_statements,
)
from bench.queue.processes import ContenderFailed
from tests.servers import Postgres, postgres_server


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    repeats: int
    drain: float  # target duration of a drain in seconds
    enqueue: float  # duration in seconds of each way of enqueueing single jobs
    samples: int
    settling: float  # seconds before the idle measurement starts
    idle: float
    together: bool = True  # whether to measure with two workers too
    crowds: tuple[int, ...] = ()  # numbers of workers to compare with two workers, for our own contenders only
    traced: int = 2_000  # number of jobs for contenders that count their own statements


FULL = Effort(repeats=3, drain=2.5, enqueue=0.8, samples=200, settling=60.0, idle=60.0, crowds=(4, 8))
QUICK = Effort(repeats=1, drain=0.4, enqueue=0.2, samples=20, settling=1.5, idle=4.0, together=False, traced=500)


@dataclass(slots=True)
class Contest:
    """A benchmark of all contenders. ``missing`` lists those that were not measured, or only partly, each with the
    reason.
    """

    folder: Path
    effort: Effort
    postgres: Postgres | None
    redis: Redis | None
    figures: dict[str, Figures] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    say: Callable[[str], None] = print

    @contextmanager
    def stand(self, entry: Entry) -> Iterator[Stand]:
        with ExitStack() as stack:
            home = self._home(entry, stack)
            yield stack.enter_context(standing(entry, home, self.folder))

    def _home(self, entry: Entry, stack: ExitStack) -> Home:
        match entry.kept:
            case Kept.SQLITE:
                return SqliteFile.make(self.folder)
            case Kept.POSTGRES:
                assert self.postgres is not None
                return stack.enter_context(closing(PostgresDatabase(self.postgres)))
            case Kept.REDIS:
                assert self.redis is not None
                self.redis.ask("FLUSHALL")
                return self.redis

    def why_not(self, entry: Entry) -> str | None:
        if entry.peer is not None and not entry.python.exists():
            return "it is not installed: run `python3 dev.py bench queue`, which tries to install it"
        if entry.kept is Kept.POSTGRES and self.postgres is None:
            return "no PostgreSQL on this machine: set BATUTA_PG_BIN to the folder that contains initdb"
        if entry.kept is Kept.REDIS and self.redis is None:
            return "no Redis on this machine: install redis-server"
        return None

    @property
    def surroundings(self) -> str:
        """Return the versions of the servers and of the task queues that were compared with Batuta, as text."""
        versions = [asyncio.run(described(self.postgres.url()))] if self.postgres is not None else []
        if self.redis is not None:
            versions.append(f"Redis {self.redis.version} without persistence")
        return "; ".join(
            [*versions, *(pinned(entry.peer) for entry in ENTRIES if entry.peer and entry.key in self.figures)]
        )

    def attempt(self, entry: Entry, what: str, measure: Callable[[Entry, Figures], None]) -> None:
        """Take one measurement of a contender. If it fails, record the failure and continue with the other
        contenders.
        """
        try:
            measure(entry, self.figures[entry.key])
        except ContenderFailed as error:
            self.missing[f"{entry.title}: {what}"] = str(error)

    def throughput(self, entry: Entry, figures: Figures) -> None:
        rate = figures.values.get("drain", [entry.expected])[-1]
        jobs = int(rate * self.effort.drain)
        with self.stand(entry) as stand:
            said = stand.enqueue(jobs, self.effort.enqueue if entry.key not in UNFENCED else 0.0)
            found = drain(stand, 0, stand.enqueued)
            for name, counted in said.items():
                figures.add(name, per_second(counted))
            figures.add("drain", found.rate)
            figures.add("committed", found.committed)
            figures.add("worker", found.worker_micros)
            figures.add("server", found.server_micros)
            figures.add("statements", found.statements)
            figures.add("MB", found.megabytes)
            if self.effort.together and entry.key not in UNFENCED:
                first = stand.enqueued
                stand.enqueue(jobs)
                figures.add("together", drain_together(stand, first, stand.enqueued))

    def statements(self, entry: Entry, figures: Figures) -> None:
        with self.stand(entry) as stand:
            stand.enqueue(self.effort.traced)
            figures.add("statements", traced_statements(stand, 0, self.effort.traced))

    def latencies(self, entry: Entry, figures: Figures) -> None:
        with self.stand(entry) as stand:
            found = latency(stand, self.effort.samples)
        figures.add("p50", percentile(found, 0.5))
        figures.add("p99", percentile(found, 0.99))
        if entry.inside:
            with self.stand(entry) as stand:
                found = latency_inside(stand, self.effort.samples)
            figures.add("inside p50", percentile(found, 0.5))
            figures.add("inside p99", percentile(found, 0.99))

    def idleness(self, entries: Sequence[Entry]) -> None:
        """Measure all contenders at the same time while they are idle. Each contender has its own storage and the
        default settings of its library.
        """
        with ExitStack() as stack:
            watched = []
            for entry in entries:
                stand = stack.enter_context(self.stand(entry))
                stand.enqueue(1)
                (pid,) = stand.start(tuned=False, traced=entry.kept is Kept.SQLITE)
                stand.marks.open_gate()
                watched.append((entry, stand, pid))
            time.sleep(self.effort.settling)
            ends = [(entry, idle(stand, pid, self.effort.idle)) for entry, stand, pid in watched]
            time.sleep(self.effort.idle)
            for entry, ended in ends:
                found, figures = ended(), self.figures[entry.key]
                figures.add("idle cpu", found.cpu)
                figures.add("idle statements", found.statements)
                figures.add("idle looks", found.looks)
                figures.add("idle MB", found.megabytes)

    def run(self, entries: Sequence[Entry], *, with_million: bool) -> None:
        for entry in entries:
            if (why := self.why_not(entry)) is not None:
                self.missing[entry.title] = why
            else:
                self.figures[entry.key] = Figures()
        present = [entry for entry in entries if entry.key in self.figures]
        real = [entry for entry in present if entry.is_real]
        for repeat in range(self.effort.repeats):
            self.say(f"throughput, {repeat + 1} of {self.effort.repeats} ...")
            for entry in rotated(present, repeat):
                self.attempt(entry, "throughput", self.throughput)
        self.say("latency, statements and idleness ...")
        for entry in real:
            self.attempt(entry, "latency", self.latencies)
        for entry in real:
            if entry.kept is Kept.SQLITE:
                self.attempt(entry, "statements", self.statements)
        if real:
            self.idleness(real)
        ours = [entry for entry in real if entry.peer is None]
        if self.effort.crowds:
            self.say("four and eight workers, a held snapshot ...")
            for entry in ours:
                self.attempt(entry, "four and eight workers", self.crowded)
                if entry.kept is Kept.POSTGRES:
                    self.attempt(entry, "a held snapshot", self.with_held_snapshot)
        if with_million:
            self.say("a million waiting and a million done ...")
            for entry in ours:
                self.attempt(entry, "million", self.among_millions)

    def crowded(self, entry: Entry, figures: Figures) -> None:
        """Measure how many jobs per second a contender runs with two workers. Directly afterwards, on the same storage,
        measure the same with larger numbers of workers.
        """
        jobs = int((figures.middle("drain") or entry.expected) * self.effort.drain)
        with self.stand(entry) as stand:
            rates = {}
            for workers in (2, *self.effort.crowds):
                first = stand.enqueued
                stand.enqueue(jobs)
                rates[workers] = drain_together(stand, first, stand.enqueued, workers)
                figures.add(f"{workers} workers", rates[workers])
            for workers in self.effort.crowds:
                figures.add(f"{workers} beside 2", _share(rates[workers], rates[2]))

    def with_held_snapshot(self, entry: Entry, figures: Figures) -> None:
        """Compare how fast one worker runs all jobs of a queue (a drain) with and without another session that keeps an
        old snapshot, so that no dead row can be removed. Each case is repeated several times. Only the last drain
        counts, because dead rows accumulate.
        """
        jobs = int((figures.middle("drain") or entry.expected) * self.effort.drain)
        for name, held in (("free", False), ("held", True)):
            with self.stand(entry) as stand, ExitStack() as holding:
                stand.enqueue(0)  # creates the tables
                if held:
                    holding.enter_context(held_snapshot(stand.home.url))
                for _ in range(HELD_DRAINS):
                    first = stand.enqueued
                    stand.enqueue(jobs)
                    found = drain(stand, first, stand.enqueued)
                figures.add(name, found.rate)
                figures.add(f"{name} µs", found.worker_micros + (found.server_micros or 0.0))
        figures.add("held beside free", _share(figures.middle("held"), figures.middle("free")))
        figures.add("held beside free, cpu", _share(figures.middle("free µs"), figures.middle("held µs")))

    def among_millions(self, entry: Entry, figures: Figures) -> None:
        jobs = int((figures.middle("drain") or entry.expected) * self.effort.drain)
        with self.stand(entry) as stand:
            figures.add("alone", million.drain_alone(stand, jobs))
        with self.stand(entry) as stand:
            figures.add("among millions", million.drain_among(stand, jobs))
        figures.add("share", _share(figures.middle("among millions"), figures.middle("alone")))


HELD_DRAINS = 3


def _share(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


@contextmanager
def held_snapshot(url: str) -> Iterator[None]:
    """Keep a transaction with an old snapshot open while the block runs."""
    import asyncpg

    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(url))
        try:
            runner.run(connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ"))
            runner.run(connection.fetchval("SELECT count(*) FROM tasks"))
            yield
        finally:
            runner.run(connection.close())


UNFENCED = frozenset({"unfenced-sqlite", "unfenced-postgres"})


def rotated(entries: Sequence[Entry], by: int) -> list[Entry]:
    """Return the contenders in the order for repeat number ``by``: each repeat starts with a different contender.
    Contenders that are compared with each other stay neighbours.
    """
    start = by % len(entries) if entries else 0
    return [*entries[start:], *entries[:start]]


@contextmanager
def prepared(folder: Path, effort: Effort, entries: Sequence[Entry]) -> Iterator[Contest]:
    """Start only the servers that the contenders need, and yield the contest."""
    kinds = {entry.kept for entry in entries}
    with ExitStack() as stack:
        postgres, redis = None, None
        if Kept.POSTGRES in kinds:
            postgres = stack.enter_context(postgres_server(durable=True, within=folder.parent, counting=True))
        if Kept.REDIS in kinds and (program := redis_program(PEERS)) is not None:
            redis = stack.enter_context(redis_server(program))
        yield Contest(folder, effort, postgres, redis)


def chosen(keys: Sequence[str]) -> list[Entry]:
    return [entry for entry in ENTRIES if not keys or entry.key in keys]


async def described(url: str) -> str:
    """Return a PostgreSQL server's version and the settings that show whether it syncs each commit, as text for the
    report.
    """
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        names = ("server_version", "fsync", "synchronous_commit")
        version, fsync, commit = [await connection.fetchval(f"SHOW {name}") for name in names]
    finally:
        await connection.close()
    return f"PostgreSQL {version}, fsync={fsync}, synchronous_commit={commit}, asyncpg {asyncpg.__version__}"


def pinned(peer: str) -> str:
    lines = (LOCKS / f"{peer}.lock").read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{peer}==")).split()[0]


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"
