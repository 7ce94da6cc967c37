"""Workers on one database, as real processes. Their tasks leave traces that remain when the processes die.

A *run* is a line in a file, written when a handler begins. An *effect* is a row, written together with the item's
settlement or not at all.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from batuta import Batuta, Done, Limits
from batuta.kernel.clock import SystemClock
from batuta.kernel.events import ItemLost
from batuta.kernel.leases import LeaseHolder
from batuta.pipelines import step
from batuta.processes.exit import stop_on_signals
from batuta.queue.item import Lease, NewItem, QueueTable
from batuta.queue.outcome import Failed, Next, StageOutcome, after_seconds
from batuta.queue.pipeline import Pipeline, Stage
from batuta.queue.worker.rescuer import Rescuer
from batuta.queue.worker.worker import Worker, WorkerPolicy
from batuta.stores.sql.database import AsJson, Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.queue.store import SqlQueue
from batuta.supervise.lease_keeper import LeaseKeeper
from batuta.supervise.loop import LoopPolicy
from batuta.tasks.task import TaskContext
from tests.faults.points import PointedDatabase, Points

VARIABLE = "FAULTS_SHOP"
EFFECTS = "CREATE TABLE IF NOT EXISTS effects (item TEXT NOT NULL, what TEXT NOT NULL)"
# Names of the tasks to enqueue. In a process that is to die, the first one waits for the others. WAYS_NOTED is the
# number of endpoint calls of the other tasks, including the call of an item that one of them emits.
WAYS, WAYS_NOTED = ("espera", "avisa", "escreve", "encadeia", "tropeca", "avisa"), 6
STAGES = ("lida", "limpa", "lotada", "lavrada", "lacrada")
LINE = QueueTable(
    name="esteira", state="estagio", queue="estagio", ready=STAGES, running=None, done="feita", dead="erro",
    cancelled="cancelada", key="chave", last_stage="ultimo_estagio",
)  # fmt: skip
LINE_SQL = f"""
CREATE TABLE esteira (
    id UUID PRIMARY KEY, chave TEXT, estagio TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, crashes INTEGER NOT NULL DEFAULT 0,
    available_at TIMESTAMPTZ NOT NULL, lease_until TIMESTAMPTZ, fence BIGINT NOT NULL DEFAULT 0, owner TEXT, error TEXT,
    ultimo_estagio TEXT, created_at TIMESTAMPTZ NOT NULL, finished_at TIMESTAMPTZ
);
CREATE INDEX esteira_ready ON esteira (estagio, available_at, id) WHERE estagio IN {STAGES} AND lease_until IS NULL;
CREATE INDEX esteira_leased ON esteira (lease_until) WHERE lease_until IS NOT NULL;
CREATE UNIQUE INDEX esteira_chave ON esteira (chave);
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Settings for the workers. Times are in seconds. ``looks_every`` is how often a worker polls if it receives no
    wake-up.
    """

    url: str
    folder: str
    lease: float = 1.0
    limit: int = 10
    looks_every: float = 5.0
    drain: float = 5.0
    has_line: bool = False
    has_limits: bool = False
    queues: tuple[str, ...] = ("default",)
    effect_limit: float = 3.0  # time limit of a task whose effect never returns
    sink: int = 0  # the port of an endpoint that logs its calls
    role: str = "worker"
    jobs: tuple[str, ...] = ()  # names of jobs, each a function that runs one long statement
    statement: float = 0.0  # seconds that a long statement takes
    times_calls: bool = False  # whether each call that claims, settles or renews is logged to a file
    clock: str = ""  # a file with the offset of this process's wall clock in seconds
    dies_at: str | None = None  # point at which the process exits; if empty, it only records the points

    def encode(self) -> dict[str, Any]:
        return asdict(self)


def run(encoded: Mapping[str, Any]) -> None:
    plan = Plan(**encoded)
    out = os.open(Path(plan.folder) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, sys.stdout.fileno())
    os.dup2(out, sys.stderr.fileno())
    if plan.clock:
        _set_clock(Path(plan.clock))
    asyncio.run(_work(plan))


def _set_clock(file: Path) -> None:
    """Shift this process's wall clock by the number of seconds in a file. The file is read again each time the clock is
    read.
    """

    def now(_: SystemClock) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(file.read_text() or 0))

    setattr(SystemClock, "now", now)  # noqa: B010 - of this process alone


async def _work(plan: Plan) -> None:
    stop = asyncio.Event()
    work = build(plan, stop)
    with stop_on_signals(stop):
        async with work:
            note(plan, "up", str(os.getpid()))
            await work.supervisor(plan.role).run(stop, timedelta(seconds=plan.drain))


def build(plan: Plan, stop: asyncio.Event | None = None) -> Batuta:
    work = Batuta(plan.url, timezone="UTC", concurrency=plan.limit)
    work.queue_lease = timedelta(seconds=plan.lease)
    work.worker_policy = replace(work.worker_policy, look_every=timedelta(seconds=plan.looks_every))
    work.events.subscribe(lambda event: note(plan, "lost", event.item) if isinstance(event, ItemLost) else None)
    add_tasks(work, plan)
    add_lease_tasks(work, plan)
    add_jobs(work, plan)
    if plan.times_calls:
        work.liveness.observe(lambda call, seconds, _: note(plan, str(time.time()), str(seconds), log="calls"))
    if plan.sink:
        add_every_way(work, plan, stop or asyncio.Event())
    if plan.has_line:
        add_line(work, plan)
    if plan.has_limits:
        add_limited(work, plan)
        add_limited_stage(work, plan)
    return work


def __getattr__(name: str) -> object:
    """Build ``work`` from the environment: ``python -m batuta --app tests.faults.queue_plant:work worker``."""
    if name != "work":
        raise AttributeError(name)
    encoded = json.loads(os.environ[VARIABLE])
    return build(Plan(**{**encoded, "queues": tuple(encoded["queues"]), "jobs": tuple(encoded["jobs"])}))


def note(plan: Plan, *words: str, log: str = "runs") -> None:
    """Append a line with a single write, so that lines of several processes do not mix and a killed process leaves only
    complete lines.
    """
    file = os.open(Path(plan.folder) / log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{' '.join(words)}\n".encode())
    finally:
        os.close(file)


def add_tasks(work: Batuta, plan: Plan) -> None:
    def begin(ctx: TaskContext) -> Done:
        note(plan, "run", ctx.id, str(os.getpid()), str(ctx.attempt))
        return Done(effect=partial(write_effect, work.database, ctx.id, "task"))

    @work.task(retry=[0.05], queue=plan.queues[0])
    async def conta(ctx: TaskContext, seconds: float = 0.0, payload: str = "") -> Done:
        done = begin(ctx)
        await asyncio.sleep(seconds)
        return done

    @work.task(retry=[0.05], queue=plan.queues[0])
    async def encerra(ctx: TaskContext) -> Done:
        """The final task of a batch."""
        return begin(ctx)

    @work.task(retry=[0.05], queue=plan.queues[0])
    async def veneno(ctx: TaskContext, how: str) -> Done:
        done = begin(ctx)
        if how == "exit":
            os._exit(1)
        os.kill(os.getpid(), signal.SIGSEGV)
        return done

    @work.task(retry=[0.5] * 60, timeout=600, queue=plan.queues[0])
    async def consulta(ctx: TaskContext) -> Done:
        done = begin(ctx)
        await long_statement(work.database, plan.statement)
        return done

    @work.task(retry=[0.05], timeout=600, queue=plan.queues[0])
    async def teimosa(ctx: TaskContext, seconds: float) -> Done:
        """A task that ignores its cancellation and continues to run."""
        done, loop = begin(ctx), asyncio.get_running_loop()
        ends = loop.time() + seconds
        while loop.time() < ends:
            try:
                await asyncio.sleep(ends - loop.time())
            except asyncio.CancelledError:
                note(plan, "refused", ctx.id)
        return done


def add_lease_tasks(work: Batuta, plan: Plan) -> None:
    @work.task(retry=[0.05], timeout=600, queue=plan.queues[0])
    async def anota(ctx: TaskContext, seconds: float) -> None:
        """A task without an effect. The worker therefore writes its settlement together with those of other tasks."""
        note(plan, "run", ctx.id, str(os.getpid()), str(ctx.attempt))
        await asyncio.sleep(seconds)

    @work.task(retry=[], timeout=plan.effect_limit, queue=plan.queues[0])
    async def presa(ctx: TaskContext) -> Done:
        """A task whose effect never returns."""
        note(plan, "run", ctx.id, str(os.getpid()), str(ctx.attempt))

        async def hang(transaction: Any) -> None:
            await write_effect(work.database, ctx.id, "hung", transaction)
            await asyncio.Event().wait()

        return Done(effect=hang)


def add_limited(work: Batuta, plan: Plan) -> None:
    row = query_of("row", "SELECT started_at FROM tasks WHERE id = :id", writes=False)
    started = in_dialect(row, work.database.dialect)

    @work.task(retry=[0.05], concurrency=4, rate="10/second", per_key=Limits(by="quem", concurrency=1, rate="3/second"))
    async def limitada(ctx: TaskContext, quem: str, seconds: float) -> Done | Failed:
        """Record the task's key, the worker's process id and the instant of the claim. Also record the time on the
        machine's clock when the handler starts and when it ends.
        """
        begins = time.monotonic()
        found = await work.database.one(started, id=ctx.id)
        assert found is not None
        words = (quem, str(os.getpid()), ctx.id, str(ctx.attempt), found["started_at"].isoformat(), str(begins))
        note(plan, "begin", *words)
        await asyncio.sleep(seconds)
        note(plan, "end", ctx.id, str(ctx.attempt), str(os.getpid()), str(time.monotonic()))
        if ctx.attempt == 1 and int(ctx.id[-1], 16) < 3:
            return Failed("once more")  # a retry counts as a start
        return Done(effect=partial(write_effect, work.database, ctx.id, "task"))


def add_limited_stage(work: Batuta, plan: Plan) -> None:
    async def arrive(item: dict[str, Any]) -> None: ...

    async def visit(item: dict[str, Any]) -> dict[str, Any]:
        """Record the item's key and the worker's process id. Also record the time on the machine's clock when the
        handler starts and when it ends.
        """
        call = str(work.ids.new())
        note(plan, "enter", item["quem"], str(os.getpid()), call, str(time.monotonic()))
        await asyncio.sleep(item["seconds"])
        note(plan, "leave", call, str(time.monotonic()))
        return item

    each = Limits(by="quem", concurrency=1)
    work.pipeline("visitas", [arrive, step(visit, retry=[0.05], concurrency=2, per_key=each)])


def add_jobs(work: Batuta, plan: Plan) -> None:
    def report_of(name: str) -> Callable[[], Awaitable[None]]:
        async def report() -> None:
            note(plan, "job", name)
            await long_statement(work.database, plan.statement)

        return report

    for name in plan.jobs:
        work.job("* * * * *", category=name, name=name, timeout=600)(report_of(name))


async def long_statement(database: Database, seconds: float) -> None:
    """Run one long statement. PostgreSQL sleeps; SQLite counts, because it has no sleep function."""
    if database.dialect == "postgres":
        text = f"SELECT pg_sleep({seconds})"
    else:
        counted = int(seconds * 4_000_000)
        text = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {counted}) SELECT count(*) FROM n"
    await database.all(in_dialect(query_of("long", text, writes=False), database.dialect))


def add_every_way(work: Batuta, plan: Plan, stop: asyncio.Event) -> None:
    """Add a task for each code path through a worker, on each queue. All these tasks call the endpoint.

    A task belongs to one queue, so its name ends with the queue's name. If several queues shared a task, the first
    worker would move the items to its own queue. In a process that is to die, one task runs until the process stops, so
    that the process also renews a lease and releases an item on shutdown.
    """
    points = Points(plan.dies_at or "", lambda label: note(plan, "point", label))

    async def call_endpoint(ctx: TaskContext) -> None:
        points.reach("start")
        reader, writer = await asyncio.open_connection("127.0.0.1", plan.sink)
        writer.write(f"POST /{ctx.attempt} HTTP/1.1\r\nidempotency-key: {ctx.id}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        points.reach("noted")

    async def avisa(ctx: TaskContext) -> str:
        await call_endpoint(ctx)
        return "settled with the next claim"

    async def escreve(ctx: TaskContext) -> Done:
        await call_endpoint(ctx)
        return Done(effect=partial(write_effect, work.database, ctx.id, "task"))

    async def encadeia(queue: str, ctx: TaskContext) -> Done:
        await call_endpoint(ctx)
        return Done(emit=(NewItem(values={"name": f"avisa_{queue}", "args": AsJson([[], {}])}),))

    async def tropeca(ctx: TaskContext) -> Failed | None:
        if ctx.attempt == 1:
            return Failed("not yet")
        await call_endpoint(ctx)
        return None

    async def espera(ctx: TaskContext) -> None:
        if plan.dies_at is not None:
            # At intervals a claim takes the least urgent items first. On PostgreSQL this is a separate statement.
            wanted = ["committed claim_reversed" if work.database.dialect == "postgres" else "after renew"]
            # Another queue's worker may rescue the item first; then the test tries again.
            wanted += ["after rescue_seen"] if "rescue_seen" in (plan.dies_at or "rescue_seen") else []
            ends = asyncio.get_running_loop().time() + 10
            while (
                points.times["after renew"] < 2
                or points.times["noted"] < WAYS_NOTED
                or (not all(points.times[each] for each in wanted) and asyncio.get_running_loop().time() < ends)
            ):
                await asyncio.sleep(0.02)
            stop.set()
            await asyncio.Event().wait()
        await call_endpoint(ctx)

    for queue in plan.queues:
        ways: dict[str, Callable[..., Any]] = {
            "avisa": avisa,
            "escreve": escreve,
            "encadeia": partial(encadeia, queue),
            "tropeca": tropeca,
            "espera": espera,
        }
        for name, function in ways.items():
            work.task(name=f"{name}_{queue}", retry=[0.05, 0.05, 0.05], queue=queue)(function)
    if plan.dies_at is not None:
        for each in work.queues.values():
            each._database = PointedDatabase(each._database, points)
            each._liveness = PointedDatabase(each._liveness, points)
        work._task_store.liveness = PointedDatabase(work.liveness, points)


async def write_effect(database: Database, item: str, what: str, transaction: Any) -> None:
    insert = query_of("insert", "INSERT INTO effects (item, what) VALUES (:item, :what)", writes=True)
    await transaction.run(in_dialect(insert, database.dialect), item=item, what=what)


def add_line(work: Batuta, plan: Plan) -> None:
    """Add a pipeline of five stages. An item's key specifies the stages at which it fails or dies: ``17 lotada=dies
    limpa=fails``.
    """
    line = Pipeline(table=LINE, stages=tuple(stage(work, plan, name) for name in STAGES), dropped="fora")
    lease = timedelta(seconds=plan.lease)
    lease_holder = LeaseHolder(owner=work.ids.new(), lease=lease)
    policy = LoopPolicy(every=timedelta(seconds=plan.looks_every), stuck_after=timedelta(minutes=2), max_failures=20)
    keeper = LeaseKeeper(lease, work.clock, name="line-keeper")
    work.add_loop(keeper, keeper.policy)
    for each in line.stages:
        store = line_queue(work, each.name)
        budget = WorkerPolicy(limit=each.budget, look_every=timedelta(seconds=plan.looks_every))
        handler = line.handler(each)
        find = lambda _, handler=handler: handler  # noqa: E731
        worker = Worker(each.name, store, find, lease_holder, budget, work.clock, work.events)
        keeper.add(worker)
        work.wakeups.add(each.name, worker.wakeup)
        work.add_loop(worker, policy)
    work.add_loop(Rescuer(LINE.name, store, lease, work.clock, work.events), replace(policy, every=lease / 3))


def line_queue(work: Batuta, name: str) -> SqlQueue:
    return SqlQueue(work.database, LINE, work.ids, work.clock, queue=name)


def stage(work: Batuta, plan: Plan, name: str) -> Stage:
    async def handle(lease: Lease) -> StageOutcome:
        key = lease.row["chave"]
        note(plan, "run", key.split()[0], name, str(lease.attempt))
        match dict(each.split("=") for each in key.split()[1:]).get(name):
            case "dies" if lease.row["crashes"] == 0:
                os._exit(1)
            case "fails" if lease.attempt == 1:
                return Failed("not yet")
            case "never":
                return Failed("never", permanent=True)
        return Next(partial(write_effect, work.database, key.split()[0], name))

    return Stage(name=name, handle=handle, budget=plan.limit, retry=after_seconds([0.05, 0.05, 0.05]))
