"""A set of real processes: schedulers on one database, and an endpoint that logs its calls. All of them use a clock
that runs fast.
"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import StoreUnavailable
from batuta.stores import connect
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.testing import FastClock
from tests.faults import forks, sink
from tests.faults.figures import LONG
from tests.faults.plant import VARIABLE
from tests.faults.processes import ROOT
from tests.faults.waiting import TIMEOUT, slowness, until
from tests.judges.evidence import Logged, Receipt, Rules, Target
from tests.judges.scheduler import Verdict, judge
from tests.oracles import cron_fires
from tests.stored import readable

ORIGIN = datetime(2026, 3, 2, 11, 59, 30, tzinfo=UTC)  # a Monday
UTC_ZONE = ZoneInfo("UTC")
MOMENT, SECOND, MINUTE = timedelta(microseconds=1), timedelta(seconds=1), timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A job that the schedulers under test run. Times are in seconds of the schedulers' clock, which runs fast."""

    name: str
    schedule: str = "* * * * *"
    category: str = "default"
    takes: float = 0.0
    timeout: float = 300.0
    catch_up: str = "latest"
    overlap: str = "skip"
    max_age: float | None = None
    path: str | None = None  # path to which the job is delivered; None means its name

    def declared(self, sink: str) -> dict[str, Any]:
        return {
            "name": self.name,
            "schedule": self.schedule,
            "url": f"{sink}/{self.path or self.name}?takes={self.takes}",
            "category": self.category,
            "timeout": self.timeout,
            "catch_up": self.catch_up,
            "overlap": self.overlap,
            "max_age": self.max_age,
        }


@dataclass(frozen=True, slots=True)
class Down:
    """A period from ``start`` to ``end`` in which no scheduler could fire. All missed fires must be caught up by
    ``until``.
    """

    start: datetime
    end: datetime
    until: datetime


@dataclass
class Plant:
    folder: Path
    url: str
    jobs: Sequence[Spec]
    clock: FastClock
    lease: float
    database: Database
    sink_url: str
    environment: dict[str, str]
    schedulers: list[ForkServerProcess] = field(default_factory=list)
    since: dict[str, datetime] = field(default_factory=dict)

    def begin(self, url: str | None = None) -> ForkServerProcess:
        """Start one more scheduler. ``url`` replaces the database URL for this scheduler."""
        plan = {
            "database": url or self.url,
            "clock": self.clock.text(),
            "lease": self.lease,
            "jobs": [job.declared(self.sink_url) for job in self.jobs],
        }
        environment = {**self.environment, VARIABLE: json.dumps(plan)}
        started = forks.begin_command(self.folder, environment, "--app", "tests.faults.plant:work", "scheduler")
        self.schedulers.append(started)
        return started

    async def begin_first(self, url: str | None = None) -> None:
        """Start the first scheduler and wait until it has registered every job."""
        self.begin(url)
        await self.until("the tables are there", self._has_tables)
        await self.until("every job is registered", self.answers_for_all)

    async def begin_more(self, count: int) -> None:
        """Start ``count`` more schedulers and wait until each has loaded its timetable."""
        for _ in range(count):
            self.begin()
        wanted = len(self.schedulers)
        log = self.folder / "log"
        await self.until("all are up", lambda: log.read_text().count('"timetable in force"') >= wanted)

    def kill(self, process: ForkServerProcess) -> None:
        forks.kill(process)
        self.schedulers.remove(process)

    def fired_last(self, owner: str) -> ForkServerProcess | None:
        pid = int(owner.split(":")[1])
        return next((each for each in self.schedulers if each.pid == pid), None)

    async def stop(self) -> None:
        """Stop all schedulers with SIGTERM and wait until each has drained."""
        for each in self.schedulers:
            forks.stop(each)
        for each in self.schedulers:
            await asyncio.to_thread(each.join, TIMEOUT)
            # A process that has just started may not have installed its signal handler yet.
            assert each.exitcode in (0, -signal.SIGTERM), (self.folder / "log").read_text()[-3000:]
        self.schedulers.clear()

    async def reconnect(self) -> None:
        """Reopen the harness's own database connection after an outage."""
        await self.database.close()
        await self.database.open()

    async def passes(self, span: timedelta) -> None:
        await self.clock.sleep(span.total_seconds())

    async def until(self, what: str, true: Callable[[], Any], within: float = TIMEOUT) -> None:
        await until(what, true, within, lambda: (self.folder / "log").read_text()[-3000:])

    async def ask(self, text: str) -> list[dict[str, Any]]:
        query = in_dialect(query_of("ask", text, writes=False), self.database.dialect)
        return [readable(row) for row in await self.database.all(query)]

    async def _has_tables(self) -> bool:
        names = {"sqlite": "sqlite_master WHERE name", "postgres": "pg_tables WHERE tablename"}[self.database.dialect]
        return bool(await self.ask(f"SELECT 1 AS one FROM {names} = 'job_schedules'"))

    async def answers_for_all(self) -> bool:
        rows = await self.ask("SELECT job_name, expected_since FROM job_schedules WHERE active")
        self.since = {row["job_name"]: row["expected_since"] for row in rows}
        return len(self.since) == len(self.jobs)

    async def log(self) -> list[Logged]:
        return [logged(row) for row in await self.ask("SELECT * FROM job_executions")]

    def receipts(self) -> list[Receipt]:
        return list(receipts(self.folder / "receipts"))

    def repeats(self) -> int:
        """Count the calls that repeated a key and were answered without running the job again."""
        return (self.folder / "receipts").read_text().count('"repeated"')

    def lateness(self, log: Collection[Logged]) -> str:
        """Return the median and the 99th percentile of the delay, in real seconds, between the due instant of a run and
        its start.
        """
        fires = {row.id: row.scheduled_for for row in log}
        late = sorted(
            (each.start - fire).total_seconds() / self.clock.rate
            for each in self.receipts()
            if (fire := fires.get(each.key)) is not None
        )
        if not late:
            return "no run started"
        return f"lateness in real time: p50 {late[len(late) // 2]:.2f} s, p99 {late[len(late) * 99 // 100]:.2f} s"

    def targets(self, until: datetime, downs: Collection[Down] = ()) -> list[Target]:
        return [
            target
            for job in self.jobs
            if job.path is None
            for target in expected(job, self.since[job.name], until, downs)
        ]

    async def verdict(
        self,
        epsilon: timedelta,
        *,
        longest_run: timedelta = timedelta(0),
        downs: Collection[Down] = (),
        no_overlap: frozenset[str] = frozenset(),
        known: Callable[[Target], Target] = lambda target: target,
        seen_until: datetime | None = None,
    ) -> Verdict:
        """Wait until the log contains the end of every fire due so far, stop the schedulers, and judge these fires. A
        slow machine only makes the wait longer.

        ``known`` corrects the expected result of each fire, because a test may know more about a fire than the code
        that computes the expectations. If the clock was set back, ``seen_until`` is the latest time that it showed
        before.
        """
        end = self.clock.now()
        await self.until("every fire has its end", lambda: self.are_settled(self.targets(end)))
        await self.stop()
        await self.reconnect()
        fires = [known(target) for target in self.targets(seen_until or self.clock.now(), downs)]
        read_at = end + epsilon + longest_run + MOMENT
        rules = Rules(read_at=read_at, epsilon=epsilon, longest_run=longest_run, no_overlap=no_overlap)
        ours = {job.name for job in self.jobs if job.path is None}
        log = [row for row in await self.log() if row.job in ours]
        seen = [receipt for receipt in self.receipts() if receipt.job in ours]
        found = judge(fires, seen, log, rules)
        assert found.ok, f"{found}\n{self.folder}"
        return found

    async def are_settled(self, targets: Collection[Target]) -> bool:
        try:
            log = await self.log()
        except StoreUnavailable:
            await self.reconnect()
            return False
        ended = {(row.job, row.scheduled_for) for row in log if row.finished_at is not None}
        gaps = [(row.job, *row.covers) for row in log if row.covers is not None]
        return all(
            (each.job, each.at) in ended
            or any(each.job == job and first <= each.at <= last for job, first, last in gaps)
            for each in targets
        )


@asynccontextmanager
async def plant(
    folder: Path,
    url: str,
    jobs: Sequence[Spec],
    *,
    rate: float,
    lease: float,
    drain: float = 30.0,
    origin: datetime = ORIGIN,
) -> AsyncIterator[Plant]:
    """Start the endpoint that the schedulers will call; the test itself starts the schedulers. Kill every remaining
    process at the end.

    ``rate`` is the speed of the clock. On a busy machine, the short form of the fault tests uses a slower clock to give
    the machine enough time for each simulated minute and lease.
    """
    if not LONG:
        rate = max(1.0, rate / max(1.0, slowness() / 2))
    await forks.processes_are_ready()
    clock = FastClock.start(origin, rate, folder / "steps")
    env = {**environment(), "BATUTA_DRAIN_SECONDS": str(drain)}
    async with endpoint(folder, clock) as port:
        database = connect(url, SystemClock())
        await database.open()
        made = Plant(folder, url, jobs, clock, lease, database, f"http://127.0.0.1:{port}", env)
        try:
            yield made
        finally:
            for each in made.schedulers:
                forks.kill(each)
            await database.close()


def environment() -> dict[str, str]:
    """Return the environment for a child process, without the test run's own BATUTA_ variables."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("BATUTA_")}
    return {**own, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "LOG_FORMAT": "json"}


@asynccontextmanager
async def endpoint(folder: Path, clock: FastClock) -> AsyncIterator[int]:
    """Start the endpoint as a process that writes to ``folder / "receipts"``, and yield its port."""
    (folder / "receipts").touch()
    await forks.processes_are_ready()
    here, there = forks.processes().Pipe(duplex=False)
    serving = forks.processes().Process(target=sink.run, args=(clock.text(), str(folder / "receipts"), there))
    serving.start()
    there.close()
    try:
        yield await asyncio.to_thread(here.recv)
        assert serving.is_alive(), "the endpoint ended before its test"
    finally:
        forks.kill(serving)
        here.close()


def expected(job: Spec, since: datetime, until: datetime, downs: Collection[Down]) -> Iterator[Target]:
    """Yield the expected fires of a job in (since, until], given the periods in which no scheduler was running. The
    fires are computed without the scheduler's code.
    """
    fires = [
        fire for fire in walked(job.schedule, UTC_ZONE, since.replace(second=0, microsecond=0), until) if fire > since
    ]
    for fire in fires:
        down = next((each for each in downs if each.start <= fire <= each.end), None)
        if down is None:
            # A job that skips late fires may skip one on a slow machine. Its row then has the reason.
            yield Target(job.name, fire, must_run=job.catch_up != "skip")
        else:
            yield Target(job.name, fire, down.until, must_run=_is_caught_up(job, fire, fires, down))


def _is_caught_up(job: Spec, fire: datetime, fires: Sequence[datetime], down: Down) -> bool:
    """Return whether a scheduler must catch up this missed fire. If not, a row that records why it was missed is
    accepted instead of a run.
    """
    if job.max_age is not None and down.until - fire > timedelta(seconds=job.max_age):
        return False
    match job.catch_up:
        case "all":
            return True
        case "latest":
            return not any(fire < later <= down.until for later in fires)
        case _:
            return False


@cache
def walked(schedule: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    return cron_fires(schedule, zone, start, end)


def receipts(file: Path) -> Iterator[Receipt]:
    """Yield the receipts in the endpoint's log. If a run's end was never logged, its receipt has no end."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    ends = {line["key"]: datetime.fromisoformat(line["end"]) for line in lines if "end" in line}
    for line in lines:
        if "start" in line:
            start = datetime.fromisoformat(line["start"])
            yield Receipt(line["job"], line["key"], None, 1, start, ends.get(line["key"]))


def logged(row: dict[str, Any]) -> Logged:
    covers = row["result"] if row["status"] == "missed" else None
    return Logged(
        id=row["id"],
        job=row["job_name"],
        scheduled_for=row["scheduled_for"],
        trigger=row["trigger"],
        status=row["status"],
        reason=row["reason"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        covers=covers and (datetime.fromisoformat(covers["from"]), datetime.fromisoformat(covers["to"])),
    )


def rss(pid: int | None) -> int:
    """Return the peak memory of a process, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
