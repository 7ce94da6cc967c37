"""`python -m bench.queue.limits`: measure the cost of limits per item, next to the same task without limits.

Each variant enqueues and then claims and settles the same number of items, 50 at a time, in one process. The variants run in
turn in every repeat, so that a busy machine affects all of them.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

from batuta import Batuta, Limits
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import Settlement
from bench.report import markdown
from tests.servers import postgres_server

ITEMS, AT_ONCE = 2_000, 50
DONE = Settlement(state=ItemState.DONE, keep=timedelta(hours=1))
VARIANTS: dict[str, dict[str, Any]] = {
    "no limits": {},
    "no limits, beside a limited task": {},
    "concurrency=1000": {"concurrency": 1_000},
    "concurrency=1000, rate": {"concurrency": 1_000, "rate": "10000/second"},
    "per_key, 50 keys": {"per_key": Limits(by="n", concurrency=1_000)},
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.queue.limits", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args(arguments).repeats
    folder = Path("/var/tmp")  # not a file system in memory
    with tempfile.TemporaryDirectory(prefix="batuta-bench-", dir=folder) as inside:
        print(asyncio.run(_measure(f"sqlite:///{inside}/bench.db", "SQLite", repeats)), flush=True)
    with postgres_server(durable=True, within=folder) as server:
        if server is None:
            print("NOT MEASURED: PostgreSQL. Set BATUTA_PG_BIN to the folder that contains initdb.")
            return 1
        print(asyncio.run(_measure(server.url(server.create()), "PostgreSQL", repeats)))
    return 0


async def _measure(url: str, title: str, repeats: int) -> str:
    took: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(repeats):
        for name, limits in VARIANTS.items():
            took[name].append(await _run(url, limits, beside="beside" in name))
    plain = median(took["no limits"])
    rows = [[name, f"{median(each):.0f}", f"{median(each) / plain:.2f}"] for name, each in took.items()]
    return f"\n{markdown([[title, 'µs per item', 'ratio'], *rows])}"


async def _run(url: str, limits: dict[str, Any], *, beside: bool) -> float:
    """Return the microseconds per item from its claim to its settlement, in batches."""
    work = Batuta(url, timezone="UTC")
    register: Callable[..., Any] = work.task(name="noop", **limits)
    register(_noop)
    if beside:
        other: Callable[..., Any] = work.task(name="other", concurrency=1)
        other(_noop)
    async with work:
        await work.database.script("DELETE FROM tasks")
        await work.enqueue_many("noop", [[n % 50] for n in range(ITEMS)])
        queue, holder = work.queues["default"], LeaseHolder(owner="bench", lease=timedelta(seconds=30))
        began, ended, leases = time.perf_counter(), 0, list[Lease]()
        while ended < ITEMS:
            result = await queue.settle_and_claim([(lease, DONE) for lease in leases], holder, AT_ONCE)
            ended += len(leases)
            leases = list(result.leases)
        return (time.perf_counter() - began) / ITEMS * 1_000_000


async def _noop(n: int) -> None: ...


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
