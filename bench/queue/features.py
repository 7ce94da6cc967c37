"""`python -m bench.queue.features [--before CHECKOUT]`: measure the processor time of a task with and without each
feature.

Each variant runs in a separate process, which enqueues tasks and lets one worker run all of them. ``--before`` also
measures a plain task of another checkout of this repository. The variants run in turn in every repeat. A figure is the
processor time of the program and of the database server's processes. A busy machine affects it less than wall time.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]
TASKS, WARM_UP, CONCURRENCY = 3_000, 500, 200
PLAIN, BEFORE = "plain task", "plain task, revision before"
VARIANTS = (
    PLAIN,
    "plain task, the program declares every feature",
    "key",
    "tags",
    "middleware around both",
    "decoded dataclass",
    "in a batch with on_end",
    "concurrency",
    "concurrency, rate",
    "per_key, 50 keys",
    "one stage of a pipeline",
    "one stage, per_key, 50 keys",
)


@dataclass(frozen=True)
class Order:
    number: int


async def _decoded(order: Order) -> None: ...


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.queue.features", description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout, whose plain path is measured in turn")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=VARIANTS, metavar="VARIANT")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--child", nargs=2, metavar=("URL", "VARIANT"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(asyncio.run(_measured(*options.child))))
        return 0
    from tests.servers import postgres_server

    with tempfile.TemporaryDirectory(prefix="batuta-bench-", dir=options.folder) as inside:
        _show("SQLite", options, lambda n: f"sqlite:///{inside}/{n}.db")
    with postgres_server(durable=True, within=options.folder) as server:
        if server is None:
            print("NOT MEASURED: PostgreSQL. Set BATUTA_PG_BIN to the folder that contains initdb.")
            return 1
        _show("PostgreSQL", options, lambda n: server.url(server.create()))
    return 0


def _show(title: str, options: argparse.Namespace, home: Callable[[int], str]) -> None:
    from bench.report import markdown

    runs = [*([(BEFORE, options.before.resolve())] if options.before else []), *((each, ROOT) for each in options.only)]
    took: dict[str, list[float]] = {name: [] for name, _ in runs}
    number = iter(range(1_000_000))
    for repeat in range(options.repeats):
        for name, checkout in runs[:: -1 if repeat % 2 else 1]:
            took[name].append(_asked(checkout, home(next(number)), PLAIN if name == BEFORE else name))
    rows = [[title, "µs per task", "ratio to plain, median (lowest–highest)"]]
    for name, each in took.items():
        ratios = [one / plain for one, plain in zip(each, took.get(PLAIN, each), strict=True)]
        rows.append([name, f"{median(each):.0f}", f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"])
    print(f"\n{markdown(rows)}", flush=True)


def _asked(checkout: Path, url: str, variant: str) -> float:
    command = [sys.executable, str(Path(__file__).resolve()), "--child", url, variant]
    env = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}:{checkout}", "APP_ENV": "development"}
    done = subprocess.run(command, env=env, cwd=checkout, check=True, stdout=subprocess.PIPE, text=True)
    answer: float = json.loads(done.stdout.splitlines()[-1])
    return answer


async def _measured(url: str, variant: str) -> float:
    """Return the microseconds of processor time per task, from enqueueing to settling. The function imports the package
    of the checkout that is being measured.
    """
    from batuta import Batuta

    work = Batuta(url, timezone="UTC", concurrency=CONCURRENCY)
    put, queue = _declare(work, variant)
    async with work:
        server = await _server_pids(work.database)
        await put(WARM_UP)
        await work.work_once(queue, WARM_UP)
        began = _processor_us(server)
        await put(TASKS)
        ended = 0
        while ended < TASKS:
            ended += await work.work_once(queue, TASKS - ended)
        return (_processor_us(server) - began) / TASKS


def _declare(work: Any, variant: str) -> tuple[Callable[[int], Any], str]:
    """Declare a variant's task. Return a function that enqueues the task, and the name of the task's queue."""
    from batuta import TaskContext

    # Current and older versions of the package accept this annotation.
    async def noop(context: TaskContext, n: int) -> None: ...

    if "stage" in variant:
        return _declare_stage(work, variant)
    if "every feature" in variant:
        _declare_all(work)
    if "middleware" in variant:
        _add_middleware(work)
    task = work.task(name="noop", **_limits(variant))(_decoded if "dataclass" in variant else noop)

    async def put(count: int) -> None:
        numbers = iter(range(count))
        if "batch" in variant:
            async with work.batch("numbers", on_end=work.task_registry.find("at_end")) as batch:
                await batch.add(task, [[n] for n in numbers])
        elif variant == "key":
            await work.enqueue_many(
                "noop", [[n] for n in numbers], keys=[f"{time.time_ns()}-{n}" for n in range(count)]
            )
        elif variant == "tags":
            await task.options(tags=["mail"]).enqueue_many([[n] for n in numbers])
        elif "dataclass" in variant:
            await task.enqueue_many([[Order(number=n)] for n in numbers])
        else:
            await work.enqueue_many("noop", [[n % 50] for n in numbers])

    if "batch" in variant:

        async def at_end() -> None: ...

        work.task(queue="ends")(at_end)

    return put, "default"


def _limits(variant: str) -> dict[str, Any]:
    if variant == "concurrency":
        return {"concurrency": 1_000}
    if variant == "concurrency, rate":
        return {"concurrency": 1_000, "rate": "10000/second"}
    if variant == "per_key, 50 keys":
        from batuta import Limits

        return {"per_key": Limits(by="n", concurrency=1_000)}
    return {}


def _declare_stage(work: Any, variant: str) -> tuple[Callable[[int], Any], str]:
    from batuta import Limits
    from batuta.pipelines import step

    async def only(item: object) -> None: ...

    each = Limits(by="n", concurrency=1_000) if "per_key" in variant else None
    numbers = work.pipeline("numbers", [step(only, per_key=each)])

    async def put(count: int) -> None:
        await numbers.put_many([{"n": n % 50} for n in range(count)])

    return put, "numbers.only"


def _declare_all(work: Any) -> None:
    """Declare features that the measured task does not use."""
    from batuta import Limits
    from batuta.pipelines import step

    async def other(n: int) -> None: ...

    async def stage(item: object) -> None: ...

    work.task(name="other", queue="other", concurrency=1, rate="9/minute", per_key=Limits(by="n", concurrency=1))(other)
    work.task(name="at_end", queue="other", retry={OSError: [1]})(stage)
    work.pipeline("numbers", [step(stage, rate="9/minute")])

    def resource() -> Iterator[int]:
        yield 1

    work.provide(resource)


def _add_middleware(work: Any) -> None:
    async def execution(attempt: Any, proceed: Any) -> object:
        return await proceed()

    def enqueue(new: Any) -> Iterator[Any]:
        yield new

    work.around_execution(execution)
    work.around_enqueue(enqueue)


async def _server_pids(database: Any) -> list[int]:
    from batuta.stores.sql.database import Query

    if database.dialect == "sqlite":
        return []
    text = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    return [row["pid"] for row in await database.all(Query("pids", text, (), writes=False))]


def _processor_us(server: list[int]) -> float:
    spent = [int(Path(f"/proc/{pid}/schedstat").read_text(encoding="utf-8").split()[0]) for pid in server]
    return (time.process_time_ns() + sum(spent)) / 1_000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
