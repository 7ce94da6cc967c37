"""`python -m bench.queue.claims [--beside CHECKOUT]`: measure the wall and processor time of a claim, first if all
waiting items have one priority, then if they have 30,000 different priorities.

``--beside`` also measures another checkout of this repository: in every repeat, a process from each checkout runs, one
after the other. Processor time is that of the client and of the database server's processes. A busy machine affects it
less than wall time.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[2]
WAITING = 30_000
CLAIMED = 10
CALLS = 40  # number of calls including the warm-up; less than the 500 items that are due in one scene
# SQL expressions for the priority and the due time of the i-th waiting row. ``{ago}`` and ``{later}`` are instants.
SCENES = {
    "one priority, all due": ("0", "{ago}"),
    "one priority, none due": ("0", "{later}"),
    "five priorities, all due": ("i % 5", "{ago}"),
    "30,000 priorities, all due": ("i", "{ago}"),
    "30,000 priorities, none due": ("i", "{later}"),
    "30,000 priorities, the last 500 due": ("i", "CASE WHEN i > 29500 THEN {ago} ELSE {later} END"),
    "30,000 priorities, the last half due": ("i", "CASE WHEN i > 15000 THEN {ago} ELSE {later} END"),
}
_FILL = {
    "sqlite": (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
        " INSERT INTO tasks (id, queue, name, args, priority, available_at, created_at)"
        " SELECT printf('%08x-0000-7000-8000-000000000000', i), 'default', 'f', '[]', {priority}, {at}, {ago} FROM n"
    ),
    "postgres": (
        "INSERT INTO tasks (id, queue, name, args, priority, available_at, created_at)"
        " SELECT gen_random_uuid(), 'default', 'f', '[]', {priority}, {at}, {ago} FROM generate_series(1, {rows}) AS n(i)"
    ),
}
_INSTANTS = {
    "sqlite": {"ago": "(unixepoch() - 60) * 1000000 + i", "later": "(unixepoch() + 86400) * 1000000 + i"},
    "postgres": {
        "ago": "now() - INTERVAL '1 minute' + i * INTERVAL '1 microsecond'",
        "later": "now() + INTERVAL '1 day' + i * INTERVAL '1 microsecond'",
    },
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.queue.claims", description=__doc__)
    parser.add_argument("--beside", type=Path, help="another checkout, measured in turn with this one")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(asyncio.run(measured(options.child))))
        return 0
    checkouts = {"this": ROOT, **({"beside": options.beside.resolve()} if options.beside else {})}
    from bench.report import machine
    from tests.servers import postgres_server

    print("\n".join(machine(options.folder)))
    with tempfile.TemporaryDirectory(prefix="batuta-bench-", dir=options.folder) as inside:
        show("SQLite", compared(checkouts, options.repeats, lambda name, n: f"sqlite:///{inside}/{name}{n}.db"))
    with postgres_server(durable=True, within=options.folder) as server:
        if server is None:
            print("NOT MEASURED: PostgreSQL. Set BATUTA_PG_BIN to the folder that contains initdb.")
            return 1
        show("PostgreSQL", compared(checkouts, options.repeats, lambda name, n: server.url(server.create())))
    return 0


Figures: TypeAlias = dict[
    str, dict[str, list[tuple[float, float]]]
]  # maps row and checkout to the wall and processor milliseconds of each repeat


def compared(checkouts: dict[str, Path], repeats: int, home: Callable[[str, int], str]) -> Figures:
    found: Figures = {}
    for repeat in range(repeats):
        for name in sorted(checkouts, reverse=bool(repeat % 2)):
            for title, took in asked(checkouts[name], home(name, repeat)).items():
                found.setdefault(title, {each: [] for each in checkouts})[name].append(took)
    return found


def asked(checkout: Path, url: str) -> dict[str, tuple[float, float]]:
    command = [sys.executable, str(Path(__file__).resolve()), "--child", url]
    env = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}:{checkout}"}
    done = subprocess.run(command, env=env, cwd=checkout, check=True, capture_output=True, text=True)
    answer: dict[str, tuple[float, float]] = json.loads(done.stdout)
    return answer


def show(title: str, found: Figures) -> None:
    from bench.report import markdown, ratio

    names = list(next(iter(found.values())))
    kinds = ("ms", "processor ms")
    head = [f"{name}, {kind}" for kind in kinds for name in names]
    lines = [[title, *head, *([f"this / beside, {kind}" for kind in kinds] if "beside" in names else [])]]
    for row, took in found.items():
        each = {(name, kind): [pair[kind] for pair in took[name]] for name in names for kind in (0, 1)}
        cells = [f"{median(each[name, kind]):.2f} ({min(each[name, kind]):.2f})" for kind in (0, 1) for name in names]
        ratios = [ratio(each["this", kind], each["beside", kind]) for kind in (0, 1)] if "beside" in names else []
        lines.append([row, *cells, *ratios])
    print(f"\n{markdown(lines)}", flush=True)


async def measured(url: str) -> dict[str, tuple[float, float]]:
    """Return, for each case in ``SCENES``, the median wall time and the mean processor time of each kind of call, in
    milliseconds.
    """
    from batuta.kernel.clock import SystemClock
    from batuta.kernel.events import Fanout
    from batuta.kernel.ids import Ids
    from batuta.kernel.leases import LeaseHolder
    from batuta.queue.item import NewItem
    from batuta.stores import connect
    from batuta.stores.sql.database import AsJson
    from batuta.stores.sql.migrations import Migrator, engine_migrations
    from batuta.stores.sql.queue.store import SqlQueue
    from batuta.tasks.registry import TASKS

    clock = SystemClock()
    database = connect(url, clock)
    await database.open()
    await Migrator(database, engine_migrations(), clock, Fanout()).migrate()
    queue = SqlQueue(database, TASKS, Ids(clock), clock, queue="default")
    lease_holder = LeaseHolder(owner="bench", lease=timedelta(seconds=30))
    server = await _server_pids(database)
    found: dict[str, tuple[float, float]] = {}
    for title, (priority, at) in SCENES.items():
        instants = _INSTANTS[database.dialect]
        fill = _FILL[database.dialect].format(priority=priority, at=at.format(**instants), rows=WAITING, **instants)
        empty = (
            "DELETE FROM tasks" if database.dialect == "sqlite" else "TRUNCATE tasks"
        )  # remove dead rows, which would slow the next scene
        await database.script(f"{empty}; {fill}; ANALYZE tasks")
        await _took(lambda: queue.settle_and_claim([], lease_holder, CLAIMED), 8, server)
        found[f"claim, {title}"] = await _took(lambda: queue.settle_and_claim([], lease_holder, CLAIMED), CALLS, server)
        await _took(queue.next_at, 8, server)
        found[f"next_at, {title}"] = await _took(queue.next_at, CALLS, server)
    item = NewItem(values={"name": "f", "args": AsJson([[], {}])})
    await _took(lambda: queue.put([item]), 8, server)
    found["enqueue one"] = await _took(lambda: queue.put([item]), 5 * CALLS, server)
    await database.close()
    return found


async def _took(act: Callable[[], Awaitable[object]], calls: int, server: Sequence[int]) -> tuple[float, float]:
    each, spent = [], _processor_ms(server)
    for _ in range(calls):
        began = time.perf_counter()
        await act()
        each.append((time.perf_counter() - began) * 1000)
    return median(each), (_processor_ms(server) - spent) / calls


async def _server_pids(database: Any) -> list[int]:
    """Return the ids of the server processes that work for this database. Calls run one after another, so one
    connection serves all of them.
    """
    from batuta.stores.sql.database import Query

    if database.dialect == "sqlite":
        return []
    text = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    return [row["pid"] for row in await database.all(Query("pids", text, (), writes=False))]


def _processor_ms(server: Sequence[int]) -> float:
    spent = [int(Path(f"/proc/{pid}/schedstat").read_text(encoding="utf-8").split()[0]) for pid in server]
    return (time.process_time_ns() + sum(spent)) / 1e6


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
