"""Kill the workers and servers of several task queues, and compare which of the accepted jobs end.

Two measurements for each library:

- *workers*: two workers run jobs of a quarter of a second. One worker and its child processes are killed every one and a
  half seconds, and a new one replaces it.
- *server*: a program enqueues jobs while the server is killed and started again. Afterwards one worker runs the jobs.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from batuta.processes.tree import die_with_parent
from bench.crashes.program import ACCEPTED, FINISHED, STARTED
from bench.crashes.servers import PostgresServer, RedisServer, Server, SqliteServer
from bench.queue.contest import pinned
from bench.queue.entries import OUR_PYTHON, PEERS, ROOT, Kept
from bench.queue.processes import last_line
from bench.report import markdown
from tests.servers import postgres_server


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    key: str
    title: str
    settings: str
    module: str
    kept: Kept
    stored: tuple[str, ...]  # queries or commands whose numbers add up to the jobs that have not ended
    peer: str | None = None
    recovers: bool = False

    @property
    def python(self) -> Path:
        return OUR_PYTHON if self.peer is None else PEERS / self.peer / "bin" / "python"


_OURS = ("SELECT count(*) FROM tasks WHERE status IN ('queued', 'in_progress')",)
_CELERY = ("LLEN celery", "HLEN unacked")
ENTRIES = (
    Entry(
        key="batuta-sqlite", title="Batuta, SQLite", settings="default", module="ours", kept=Kept.SQLITE, stored=_OURS
    ),
    Entry(
        key="batuta-postgres",
        title="Batuta, PostgreSQL",
        settings="default",
        module="ours",
        kept=Kept.POSTGRES,
        stored=_OURS,
    ),
    Entry(
        key="pgqueuer",
        title="PgQueuer, PostgreSQL",
        settings="default",
        module="pgqueuer",
        kept=Kept.POSTGRES,
        stored=("SELECT count(*) FROM pgqueuer",),
        peer="pgqueuer",
    ),
    Entry(
        key="celery",
        title="Celery, Redis",
        settings="default",
        module="celery",
        kept=Kept.REDIS,
        stored=_CELERY,
        peer="celery",
    ),
    Entry(
        key="celery-recovering",
        title="Celery, Redis",
        settings="late acknowledgement, delivery again after 30 s; Redis syncs each write",
        module="celery",
        kept=Kept.REDIS,
        stored=_CELERY,
        peer="celery",
        recovers=True,
    ),
    Entry(
        key="arq",
        title="ARQ, Redis",
        settings="default",
        module="arq",
        kept=Kept.REDIS,
        stored=("ZCARD arq:queue",),
        peer="arq",
    ),
    Entry(
        key="arq-recovering",
        title="ARQ, Redis",
        settings="`job_timeout` 20 s; Redis syncs each write",
        module="arq",
        kept=Kept.REDIS,
        stored=("ZCARD arq:queue",),
        peer="arq",
        recovers=True,
    ),
    Entry(
        key="huey",
        title="Huey, SQLite",
        settings="default",
        module="huey",
        kept=Kept.SQLITE,
        stored=("SELECT count(*) FROM task",),
        peer="huey",
    ),
)
KEYS = tuple(entry.key for entry in ENTRIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    jobs: int
    duration: float
    concurrency: int
    kills: int
    every: float  # seconds between two kills
    accepting: float  # seconds during which jobs are enqueued while the server is killed
    limit: float  # seconds after the last kill in which the jobs must end


LONGEST_ENQUEUE = 120.0
FULL = Effort(jobs=600, duration=0.25, concurrency=4, kills=8, every=1.5, accepting=6.0, limit=60.0)
QUICK = Effort(jobs=60, duration=0.1, concurrency=4, kills=2, every=1.0, accepting=2.0, limit=10.0)


@dataclass(frozen=True, slots=True)
class Events:
    """The journal of one measurement: the instants, in seconds, at which each job was accepted, started and finished."""

    accepted: Mapping[int, list[float]]
    started: Mapping[int, list[float]]
    finished: Mapping[int, list[float]]

    @classmethod
    def read(cls, journal: Path) -> "Events":
        found: dict[str, dict[int, list[float]]] = {ACCEPTED: {}, STARTED: {}, FINISHED: {}}
        for line in journal.read_text().splitlines() if journal.exists() else ():
            event, number, at = line.split()
            found[event].setdefault(int(number), []).append(int(at) / 1e9)
        return cls(found[ACCEPTED], found[STARTED], found[FINISHED])

    @property
    def missing(self) -> int:
        """The number of accepted jobs that did not finish."""
        return len(self.accepted.keys() - self.finished.keys())

    @property
    def waits(self) -> list[float]:
        """For each additional run of a job, the seconds since its previous run started."""
        return [late - early for times in self.started.values() for early, late in pairwise(times)]

    @property
    def doubled(self) -> int:
        """The number of jobs that finished more than once."""
        return sum(len(times) > 1 for times in self.finished.values())


@dataclass(frozen=True, slots=True)
class Outcome:
    events: Events
    stored: int  # jobs that have not ended and are still stored


class Stand:
    """The test setup for one library: its server, its journal and its processes. Closing the setup kills all its
    processes.
    """

    def __init__(self, entry: Entry, server: Server, folder: Path, effort: Effort) -> None:
        self.entry, self.server, self.effort = entry, server, effort
        self.journal, self._errors = folder / "journal", folder / "stderr"
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, word: str, **values: object) -> subprocess.Popen[bytes]:
        env = {
            "url": self.server.url,
            "journal": self.journal,
            "recovers": int(self.entry.recovers),
            "concurrency": self.effort.concurrency,
            "duration": self.effort.duration,
            **values,
        }
        us = os.getpid()
        with self._errors.open("ab") as errors:
            process = subprocess.Popen(
                [str(self.entry.python), "-m", f"bench.crashes.libraries.{self.entry.module}", word],
                env={**os.environ, **{f"CRASH_{name.upper()}": str(value) for name, value in env.items()}},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(us),
            )
        self._running.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a process and its children at once, as the end of their container would."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._running.remove(process)

    def events(self) -> Events:
        return Events.read(self.journal)

    def last_error(self) -> str:
        return last_line(self._errors.read_bytes())

    def wait_for(self, is_so: Callable[[Events], bool], longest: float) -> bool:
        ends = time.monotonic() + longest
        while not is_so(self.events()):
            if time.monotonic() > ends:
                return False
            time.sleep(0.05)
        return True

    def close(self) -> None:
        for process in list(self._running):
            self.kill(process)


def kill_workers(stand: Stand) -> Outcome:
    """Enqueue jobs, then kill one of two workers again and again while they run the jobs."""
    effort = stand.effort
    stand.start("enqueue", jobs=effort.jobs).wait(timeout=LONGEST_ENQUEUE)
    workers = [stand.start("work"), stand.start("work")]
    if not stand.wait_for(lambda events: bool(events.finished), 30):
        raise RuntimeError(f"no job finished within 30 s: {stand.last_error()}")
    for kill in range(effort.kills):
        time.sleep(effort.every)
        stand.kill(workers[kill % 2])
        workers[kill % 2] = stand.start("work")
    return _wait_for_the_end(stand)


def kill_server(stand: Stand) -> Outcome:
    """Kill the server while a program enqueues jobs, start it again, then run the accepted jobs with one worker."""
    effort = stand.effort
    enqueuing = stand.start("enqueue", seconds=effort.accepting)
    if not stand.wait_for(lambda events: bool(events.accepted), 30):
        raise RuntimeError(f"no job was accepted within 30 s: {stand.last_error()}")
    time.sleep(effort.accepting / 3)
    stand.server.crash()
    time.sleep(effort.accepting / 6)
    stand.server.start()
    enqueuing.wait(timeout=LONGEST_ENQUEUE)
    stand.start("work", duration=0)
    return _wait_for_the_end(stand)


def _wait_for_the_end(stand: Stand) -> Outcome:
    stand.wait_for(lambda events: not events.missing, stand.effort.limit)
    stored = sum(map(stand.server.count, stand.entry.stored))
    return Outcome(stand.events(), stored)


@contextmanager
def standing(entry: Entry, folder: Path, effort: Effort) -> Iterator[Stand]:
    inside = folder / f"{entry.key}-{time.monotonic_ns()}"
    inside.mkdir()
    with ExitStack() as stack:
        server: Server
        match entry.kept:
            case Kept.SQLITE:
                server = SqliteServer(inside)
            case Kept.POSTGRES:
                postgres = stack.enter_context(postgres_server(durable=True, within=folder.parent))
                if postgres is None:
                    raise RuntimeError("no PostgreSQL: set BATUTA_PG_BIN to the folder that contains initdb")
                server = PostgresServer(postgres)
            case Kept.REDIS:
                server = stack.enter_context(closing(RedisServer(inside, synced=entry.recovers)))
        yield stack.enter_context(closing(Stand(entry, server, inside, effort)))


def report(folder: Path, effort: Effort, entries: Sequence[Entry]) -> str:
    """Run both measurements (killed workers, killed server) for each library, and return one table for each
    measurement.
    """
    killed: list[list[str]] = []
    crashed: list[list[str]] = []
    for entry in entries:
        if not entry.python.exists():
            print(f"{entry.title} is not measured: it is not installed", file=sys.stderr)
            continue
        for rows, measure in ((killed, kill_workers), (crashed, kill_server)):
            if measure is kill_server and entry.kept is Kept.SQLITE:
                continue  # there is no server to kill
            print(f"{entry.title}, {entry.settings}: {measure.__name__} ...", flush=True)
            with standing(entry, folder, effort) as stand:
                rows.append([entry.title, entry.settings, *_cells(measure(stand))])
    return "\n\n".join(
        [
            f"Workers: {effort.kills} kills, one every {effort.every:g} s, while two workers run {effort.jobs:,} jobs of"
            f" {effort.duration:g} s, {effort.concurrency} at a time each.",
            markdown([HEADER, *killed]),
            f"Server: one kill while jobs are enqueued for {effort.accepting:g} s.",
            markdown([HEADER, *crashed]),
        ]
    )


HEADER = [
    "library",
    "settings",
    "jobs accepted",
    "not finished",
    "still stored",
    "runs repeated",
    "finished twice",
    "a job ran again after: median",
    "longest",
]


def _cells(outcome: Outcome) -> list[str]:
    events, waits = outcome.events, outcome.events.waits
    still = min(outcome.stored, events.missing)
    counts = (len(events.accepted), events.missing, still, len(waits), events.doubled)
    times = (median(waits), max(waits)) if waits else ()
    return [*(f"{count:,}" for count in counts), *([f"{time:.1f} s" for time in times] or ["–", "–"])]


def versions() -> str:
    """Return the versions of the libraries that were compared with Batuta."""
    return "; ".join(pinned(peer) for peer in dict.fromkeys(entry.peer for entry in ENTRIES) if peer is not None)
