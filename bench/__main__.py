"""Measure Batuta on this machine, next to bare drivers and other task queues: `python -m bench [store] [scheduler]
[queue] [start]`.
"""

import argparse
import asyncio
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from bench import results, scheduler, start
from bench.crashes import contest as crashes
from bench.queue import chart, contest, phases, stored, tables
from bench.queue.entries import KEYS
from bench.queue.figures import verdicts
from bench.report import MEMORY_FILESYSTEMS, filesystem, machine, spread, table
from bench.store import Contest, Effort, RowsLost, figures_of, postgres_contest, sqlite_contest, syncs_per_second
from tests.servers import postgres_server

FULL = Effort(repeats=3, seconds=0.5)
QUICK = Effort(repeats=3, seconds=0.05)
# Time limit in seconds. It is much longer than a usual run, and ends a run that hangs.
LIMIT = 600.0
# Time limit of the queue's part. It has many contenders and, with --million, two tables of two million rows.
QUEUE_LIMIT = 1_200
WHAT = ("store", "scheduler", "queue", "start")
CRASHES_LIMIT = 1_500
NO_POSTGRES = """
########################################################################################
#  NOT MEASURED: no PostgreSQL on this machine. The figures above are SQLite only.     #
#  Set BATUTA_PG_BIN to the folder that contains initdb, and run this again.           #
########################################################################################
"""


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    folder: Path = options.folder
    effort = QUICK if options.quick else FULL
    if not folder.is_dir() or filesystem(folder) in MEMORY_FILESYSTEMS:
        return refuse(f"{folder} is not a folder on a disk, where a sync is real: choose one with --folder")
    started = time.monotonic()
    what = options.what or (("queue",) if options.check or options.store else WHAT)
    try:
        print("\n".join(machine(folder)), flush=True)
        asyncio.run(bounded(folder, effort, what, quick=options.quick))
        if "queue" in what and (worse := measure_queue(folder, options)):
            return refuse("worse than the stored run:\n" + "\n".join(worse))
        if "start" in what:
            measure_start(folder, options)
        if "crashes" in what:
            measure_crashes(folder, options)
    except (TimeoutError, RowsLost) as error:
        return refuse(str(error) or f"it did not end within {LIMIT:.0f} s: check what else runs on the machine")
    except (KeyboardInterrupt, asyncio.CancelledError):
        return refuse("stopped early; the figures above are complete, the others were not measured")
    print(f"{time.monotonic() - started:.0f} s in total")
    return 0


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py bench", description=__doc__)
    parser.add_argument(
        "what",
        nargs="*",
        choices=[*WHAT, "crashes", []],
        help="store, scheduler, queue, start (default: these four), crashes",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a minute or two, for a first impression: shorter and less stable"
    )
    # /var/tmp survives a restart, so it is on a disk. PostgreSQL's user can read it, but not a home folder.
    where = "a folder on the disk to measure (default: %(default)s)"
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help=where)
    parser.add_argument("--rows", nargs="+", choices=KEYS, default=[], help="only these contenders of the queue")
    parser.add_argument(
        "--libraries", nargs="+", choices=crashes.KEYS, default=[], help="only these libraries of the part crashes"
    )
    parser.add_argument(
        "--check", action="store_true", help="fail if a ratio of the queue is 20 % below the stored one"
    )
    parser.add_argument(
        "--store", action="store_true", help="write the tables, the ratios and the chart of queue and start into bench/"
    )
    parser.add_argument("--million", action="store_true", help="also the queue among a million rows: some minutes more")
    return parser.parse_args(arguments)


async def bounded(folder: Path, effort: Effort, what: Sequence[str], *, quick: bool) -> None:
    whole = asyncio.current_task()
    assert whole is not None
    # SIGTERM ends the run like Ctrl-C, so that the server is stopped and the files are removed.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, whole.cancel)
    async with asyncio.timeout(LIMIT):
        if "store" in what:
            await measure_store(folder, effort)
        if "scheduler" in what:
            await measure_scheduler(folder, quick=quick)


def measure_queue(folder: Path, options: argparse.Namespace) -> list[str]:
    """Measure the queue with real processes. This function runs without an event loop, so that a signal raises an error
    here and the processes are stopped. With ``--check``, return the regressions.
    """
    signal.signal(signal.SIGTERM, stopped)
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(QUEUE_LIMIT)
    effort = contest.QUICK if options.quick else contest.FULL
    entries = contest.chosen(options.rows)
    load = contest.load()
    try:
        with tempfile.TemporaryDirectory(prefix="batuta-bench-", dir=folder) as inside:
            with contest.prepared(Path(inside), effort, entries) as running:
                running.run(entries, with_million=options.million)
                around = running.surroundings
            loads = f"load average {load} before and {contest.load()} after"
            report = f"{today()}; {loads}; {effort.repeats} repeats of {effort.drain:g} s. {around}."
            report = f"{report}\n\n{tables.render(running)}"
            print(f"\nthe queue\n\n{report}\n", flush=True)
            found = verdicts(running.figures)
            if options.store:
                stored.write(found)
                chart.FILE.write_text(chart.draw(running.figures))
                results.write("queue", report)
                results.write("phases", f"{today()}.\n\n{phases.table(quick=options.quick)}")
            return stored.regressions(stored.read(), stored.stable_ratios(found)) if options.check else []
    finally:
        signal.alarm(0)


def measure_start(folder: Path, options: argparse.Namespace) -> None:
    load = contest.load()
    figures = start.figures(folder, quick=options.quick)
    report = f"{today()}; load average {load} before and {contest.load()} after.\n\n{figures}"
    print(f"\nstart and memory of Julia\n\n{report}\n", flush=True)
    if options.store:
        results.write("start", report)


def measure_crashes(folder: Path, options: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, stopped)
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(CRASHES_LIMIT)
    effort = crashes.QUICK if options.quick else crashes.FULL
    entries = [entry for entry in crashes.ENTRIES if not options.libraries or entry.key in options.libraries]
    try:
        with tempfile.TemporaryDirectory(prefix="batuta-bench-", dir=folder) as inside:
            found = crashes.report(Path(inside), effort, entries)
    finally:
        signal.alarm(0)
    report = f"{today()}; {crashes.versions()}.\n\n{found}"
    print(f"\nkilled workers and servers\n\n{report}\n", flush=True)
    if options.store:
        results.write("crashes", report)


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def stopped(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def overdue(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("this part of the benchmark did not end within its time limit")


async def measure_store(folder: Path, effort: Effort) -> None:
    # The disk is measured before, between and after the two databases, because other programs use it too and its speed
    # changes during the run.
    syncs = [syncs_per_second(folder, effort.seconds)]
    await measure_sqlite(folder, effort)
    syncs.append(syncs_per_second(folder, effort.seconds))
    await measure_postgres(folder, effort)
    syncs.append(syncs_per_second(folder, effort.seconds))
    print(f"\n{effort.repeats} repeats of {effort.seconds} s each")
    print(f"the disk alone: 4 kB written and synced {spread(syncs)} times per second")


async def measure_scheduler(folder: Path, *, quick: bool) -> None:
    print(f"\nthe next fire of {scheduler.CRONS:,} different schedules: {scheduler.next_fires()}")
    with tempfile.TemporaryDirectory(prefix="batuta-bench-", dir=folder) as inside:
        print("\nthe scheduler on SQLite\n", flush=True)
        print(await scheduler.figures(f"sqlite:///{inside}/scheduler.db", quick=quick), flush=True)
    with postgres_server(durable=True, within=folder) as server:
        if server is None:
            print(NO_POSTGRES)
            return
        print("\nthe scheduler on PostgreSQL\n", flush=True)
        print(await scheduler.figures(server.url(), quick=quick), flush=True)


async def measure_sqlite(folder: Path, effort: Effort) -> None:
    title = f"SQLite {sqlite3.sqlite_version}, write-ahead log, synchronous=FULL"
    with tempfile.TemporaryDirectory(prefix="batuta-bench-", dir=folder) as inside:
        await show(sqlite_contest(title, Path(inside)), effort)


async def measure_postgres(folder: Path, effort: Effort) -> None:
    with postgres_server(durable=True, within=folder) as server:
        if server is None:
            print(NO_POSTGRES)
            return
        await show(postgres_contest(await contest.described(server.url()), server.url()), effort)


async def show(contest: Contest, effort: Effort) -> None:
    print(f"\n{contest.title}\n", flush=True)
    print(table(await figures_of(contest, effort)), flush=True)


def refuse(sentence: str) -> int:
    print(f"bench: {sentence}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
