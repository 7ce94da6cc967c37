"""The long fault runs: ``python3 dev.py faults``, or some of their files: ``python3 dev.py faults test_send_hours``.

With ``--write`` their figures become docs/faults.md; of some files, their rows take the place of those that tell of the same.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from tests.faults.figures import FILE, FORM

Cells: TypeAlias = list[str]
ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "faults.md"
COLUMNS = ["test", "database", "done", "targets", "missed", "doubled", "early", "unexplained", "took", "note", "on"]
TITLES = [
    "Test",
    "Database",
    "What was done",
    "Targets",
    "Lost",
    "Doubled",
    "Early",
    "Unexplained",
    "Took",
    "Seen",
    "Run on",
]
KINDS = ("test_scheduler", "test_queue", "test_guard", "test_deadman", "test_send", "test_ladder", "test_supervision")
PREFACE = """# What the scheduler, the queue, the guards, the sender and the processes were put through

Written by `python3 dev.py faults --write`; the same tests run in a short form with `python3 dev.py test`.

**The scheduler** (T10 to T22, T38). A *target* is a fire that an oracle expects: it walks every minute of the time zone and shares
no code with the engine. Where processes run, what really happened is written down by the endpoint, a process of its own that syncs
every line to disk; the execution log is the third witness, and `tests.judges` compares the three. **Lost**: a target that
had to run and did not, or not within its window. **Doubled**: one fire that ran twice. **Early**: begun before its instant.
**Unexplained**: a fire that did not have to run and whose row does not say why. A row with "Took" in seconds may stand for hours:
the processes share a clock that runs faster than the machine's, or the test moves the clock by hand (T13 to T15,
T17, T18, T20, T22).

**The queue** (T01 to T08, T29 to T31, T33, T35). A *target* is an item that was accepted: whoever enqueued it was told so. Workers
are processes on the machine's own clock. Each run leaves a line in a file when it begins; the effect is a row that is written with
the settlement or not at all, and in T02 the endpoint's book as well. **Lost**: accepted, and not complete at the end. **Doubled**:
two effects of one item. In the groups' T31 a target is a row of their queue, and doubled would be a vaga that stands there
twice or has a source too many. *Early* and *unexplained* have no meaning there. What is *repeated* or *told again*
is a run whose worker was gone before it could settle: `docs/lifecycle.md` promises one effect for each item, not one run; whoever
tells somebody else does it under the item's id as the key. On ARQ (rows "relay") *doubled* counts runs: no task may begin twice.

**The guards** (T36, T44). A *target* is a call that an endpoint received and wrote down before it answered. **Lost** stands there
for what must not be: a window that holds more than its limit, a call while the circuit was open, a second probe, a call before the
time that `Retry-After` named.

**The sender** (T22, T36, T39, T40, T43, and the incident of January). A *target* is a message that was accepted into
`fila_mensagens`. The simulated WhatsApp, a process of its own, keeps a receipt of whatever really left, and
`judge_messages` compares what was accepted, what left and what the queue says (M1 to M6). **Lost**: it neither left
nor waits for a person's decision. **Doubled**: one message that left twice. *Parked* is a message of which nobody could find out
whether it left: a person decides, and it is never repeated by itself. *Given up* and *revived* is one that was there at three
kills: provably unsent, and tried again by hand. The processes share a clock that runs five or eight times as fast, and that is put
forward while everybody waits.

**The import** (S4). A *target* is a row of the file that was uploaded; the client sends it again until the api says that every row
is kept. **Lost**: not there, or not read, at the end. **Doubled**: there twice. The clock of all processes runs ten times as fast.

**Whatever hangs** (T09, T24 to T28, S3.1 to S3.3, the soak). A *target* is a task that was accepted beside what hangs, or a line
that was to be heard. **Lost**: accepted, and not done at the end. How long it took to find it, and to serve again, stands under
"Seen"; a row in `worker_restarts` with the stack, and the same in the log, are part of each. Where a row does not say "under `up`",
the process was started again by a keeper of the test that has everything imported.

**The database under load** (T23, busy). In T23 a snapshot stays open on PostgreSQL while items come at a steady rate: *found*
is when health names the process that holds it. *Busy* is a process whose handlers hold every connection with long statements; a
lease that another process could take counts as wrong.

**The parent** (T09, T28; T25 and T26 as seen from outside). A *target* is a process, or a task that was accepted. **Lost** is a
process that was not replaced or outlived its parent, or a task that nobody did. Where the database is "–", parent and children
are small programs of the test's own, with limits of two seconds.

**The shutdown** (stop). A *target* is an item or a run in flight when its process receives SIGTERM. **Lost**: it neither ended
nor was handed back. **Doubled**: its handler had its effect twice.
"""
AFTERWORD = """
What the figures do not show: the processes and PostgreSQL shared one machine, whose disk lost no power; the clocks
of several machines disagreed only under the queue's workers (T18);
and a fast clock makes the machine's own delays count as many times as the clock is faster, which is
why the windows of those runs are wider than an operator's would be (30 s for T10, 40 s for T14, 50 s for T12, 10 s for T11).
Leases of the queue's tests are of a second or a few, where the real one is of half a minute. The full disk is a tmpfs of 16 MB
(only root may mount one; otherwise that test is left out), and system calls that fail do so by strace. A row without a day is of an
earlier version; the queue's T01, T05 and T08 of those ran before claiming was rewritten (docs/decisions/0010). Those of
2026-11-16 ran beside other work, of ten and more for the two cores: what they took says little.
"""


def main(words: list[str]) -> int:
    folder, names = Path(__file__).parent, [word for word in words if word != "--write"]
    if unknown := [name for name in names if not (folder / f"{name}.py").exists()]:
        print(f"faults knows --write and the files of tests/faults, not {' '.join(unknown)}", file=sys.stderr)
        return 2
    figures = Path(tempfile.mkdtemp(prefix="batuta-faults-")) / "figures"
    figures.touch()
    which = [str(folder / f"{name}.py") for name in names] or [str(folder), "-k", " or ".join(KINDS)]
    # Long is no sign of hanging here.
    command = [sys.executable, "-m", "pytest", *which, "-s", "-o", "timeout=0"]
    code = subprocess.run(command, env={**os.environ, FORM: "long", FILE: str(figures)}, check=False).returncode
    rows = [json.loads(line) for line in figures.read_text().splitlines()]
    rendered = cells(rows, datetime.now(UTC))
    print(table(rendered))
    if code != 0:
        print("something failed: docs/faults.md is left as it was", file=sys.stderr)
    elif "--write" in words:
        before = DOCUMENT.read_text(encoding="utf-8") if names else ""
        DOCUMENT.write_text(document(renewed(before, rendered)), encoding="utf-8")
    return code


def document(rows: Iterable[Cells]) -> str:
    return f"{PREFACE}\n{machine()}.\n\n{table(rows)}\n{AFTERWORD}"


def renewed(before: str, rows: Sequence[Cells]) -> list[Cells]:
    """What a document told, with these rows in the place of those that tell of the same."""
    table = [line.strip("| ").split(" | ") for line in before.splitlines() if line.startswith("|")][2:]
    by_key = {tuple(row[:3]): [*row, *["–"] * (len(TITLES) - len(row))] for row in [*table, *rows]}
    return list(by_key.values())


def cells(rows: Iterable[dict[str, Any]], at: datetime) -> list[Cells]:
    return [[_written((row | {"on": f"{at:%Y-%m-%d}"})[column]) for column in COLUMNS] for row in rows]


def table(rows: Iterable[Cells]) -> str:
    ordered = sorted(rows, key=lambda row: (row[0], row[2], row[1]))
    return "\n".join(f"| {' | '.join(row)} |" for row in (TITLES, ["---"] * len(TITLES), *ordered))


def _written(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.1f} s" if isinstance(value, float) else str(value).replace("|", "/")


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} cores ({models[0] if models else platform.machine()}), Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
