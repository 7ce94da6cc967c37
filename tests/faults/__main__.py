"""Run the long form of the fault tests: ``python3 dev.py faults``, or ``python3 dev.py faults test_send_hours`` for one
file.

With ``--write``, the figures are written to docs/faults.md. A run of selected files replaces only the rows of those
files.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from tests.faults.figures import FILE, FORM

Cells: TypeAlias = list[str]
ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "faults.md"
# The second folder contains the test that simulates two weeks of each timetable. It injects no faults, but has a long
# form too.
FOLDERS = (Path(__file__).parent, ROOT / "tests" / "end_to_end")
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
KINDS = (
    "test_scheduler",
    "test_queue",
    "test_guard",
    "test_deadman",
    "test_send",
    "test_ladder",
    "test_supervision",
    "test_vacancy",
    "test_telegram",
)
# Each part of the page with its tests, and its definitions of a target, a lost target and a doubled target. The page
# names only tests that have figures.
PARTS = (
    (
        "scheduler",
        "T10 T11 T12 T13 T14 T15 T16 T17 T18 T20 T21 T38 T47",
        "a fire that the oracle expects",
        "a fire that had to run did not run within its window",
        "a fire ran twice",
    ),
    (
        "queue",
        "T01 T02 T03 T04 T05 T06 T07 T08 T29 T30 T31 T33 T35 T48 T49 relay wake",
        "an accepted item",
        "an accepted item is not done at the end of the test",
        "an item had its effect twice",
    ),
    (
        "guards",
        "T36 T44",
        "a call that an endpoint received",
        "the call broke a rule: too many calls in a period, a call to an open circuit breaker, or a call before `Retry-After`",
        "–",
    ),
    (
        "sender",
        "T22 T36 T39 T40 T43 incident",
        "a message accepted into `fila_mensagens`",
        "an accepted message was not sent, and no person was asked to decide about it",
        "a message was sent twice",
    ),
    (
        "import",
        "S4",
        "a row in the uploaded file",
        "a row is missing or not parsed at the end of the test",
        "a row exists twice",
    ),
    (
        "hanging code",
        "T09 T24 T25 T26 T27 T28 S3.1 S3.2 S3.3 soak",
        "a task accepted while other code hangs, or an expected log line",
        "the task is not done, or the log line is missing, at the end of the test",
        "–",
    ),
    (
        "database under load",
        "T23 busy",
        "an item, or a lease",
        "another process could take over a valid lease",
        "–",
    ),
    (
        "parent",
        "T09 T25 T26 T28",
        "a process that must be replaced, or an accepted task",
        "a process was not replaced or outlived its parent, or a task is not done",
        "–",
    ),
    (
        "vacancies",
        "T45",
        "a doctor's request for a vacancy",
        "a request has no answer",
        "two doctors got the same vacancy",
    ),
    (
        "hand-offs",
        "T46",
        "a message to the poster of a vacancy, or the message that tells the doctor the result",
        "a message was not sent, although it was due before the poster's decision",
        "a message was sent twice",
    ),
    (
        "Telegram",
        "S3.1 S3.2 S3.3 S3.4 T24 T25 T26 T27 T28 T39 T42 soak",
        "a message accepted into `telegram_saida`; in T27 a received message, in S3.2 a loop, in S3.3 a heartbeat",
        "a message is not sent, or not stored, at the end of the test",
        "a message was sent or stored twice",
    ),
    (
        "shutdown",
        "stop",
        "an item or run in progress at SIGTERM",
        "an item or run neither ended nor was handed back to its queue",
        "a handler had its effect twice",
    ),
)
PREFACE = """# Fault tests and their figures

`python3 dev.py faults --write` runs the long form of the fault tests and writes this page. `python3 dev.py test` runs
the same tests in a short form. Each test kills, freezes or disturbs a real process, database or clock, and compares
the result with records that other programs kept.

## Terms

A test counts *targets*, for example accepted items. It also counts how many targets were *lost* and how many were
*doubled*. This table defines the three terms for each component:

{parts}

Two more counts apply to the scheduler only. A fire is *early* if it started before its due time. A fire is
*unexplained* if it did not run and its row in the execution log has no reason.

## How the tests measure

- **Scheduler.** A separate program, the oracle, shares no code with the engine and computes the expected fires for
  each minute. The jobs call an endpoint, a separate process that syncs every call to disk. `tests.judges` compares the
  oracle, the endpoint and the execution log. *Lateness* is the time from the due time of a fire to the start of its
  run.
- **Clocks.** Some tests (T13–T15, T17, T18, T20, T22) use a simulated clock that runs faster than the machine's clock
  or jumps. A few seconds of the test then stand for hours. T47 (`python3 dev.py faults test_two_weeks`) injects no
  fault: Julia's timetables run for two weeks on a simulated clock, in a time zone with daylight saving time and in a
  zone without it.
- **Queue.** Workers are separate processes and use the machine's clock. Each run of an item writes a line when it
  starts. The effect of a run is a row that commits together with the item's outcome. If a worker dies before this
  commit, the item is *repeated*, which is allowed. An item counts as *doubled* only after a second effect. In the rows
  of the test "relay" (tasks on ARQ), a second run counts as *doubled*.
- **Sender.** The simulated WhatsApp is a separate process that keeps a receipt of each message that it received.
  `judge_messages` compares accepted messages, receipts and the queue. The clock of these tests is five or eight times
  as fast as the machine's clock.
  - If Julia cannot prove whether a message was sent, a person must decide about the message.
  - If workers were killed three times during the send of a message, Julia gives the message up. The message was
    provably not sent, and the test retries it as an operator would.
- **Import.** The client uploads the file repeatedly until the API confirms every row. The clock of this test is ten
  times as fast as the machine's clock.
- **Hanging code.** The column "Seen" shows the time until Batuta found the problem, and the time until the process
  worked again. Each test also requires that the stack of the hanging code is in `worker_restarts` and in the log. In
  rows with `batuta up`, the parent process restarts the hanging process; in other rows, the test restarts it.
- **Vacancies.** Test processes request vacancies for doctors and sync each answer to disk. After a restart, a process
  repeats the requests that have no answer. The answers, the vacancy's state, its history and the business events
  must all name the same doctor.
- **Hand-offs.** Two workers send messages and run `processar_handoffs` continuously. When no due work is left, the
  test moves the clock forward. The simulated WhatsApp's receipts, the hand-offs and the vacancies must agree. No
  message may be sent at night or after the poster's decision. The pending list must contain each message that Julia
  gave up after three kills; the test then retries the message as an operator would.
- **Telegram** (rows that begin with "Telegram"). The simulated Telegram and the worker are separate processes, and
  the test kills them separately. The simulated Telegram keeps a receipt of each message, even if it is killed. In
  these tests no person decides about messages whose result is unknown. *Latency* is the time from the enqueue to the
  receipt.
- **Parent.** In rows without a database ("–"), the parent process and its child processes are small test programs
  with time limits of two seconds.

## Figures
"""
AFTERWORD = """
## Limits of the figures

- All processes and PostgreSQL ran on one machine. No test simulates a power failure. Only the test T18 gives the
  processes different clocks.
- A fast clock also multiplies the machine's delays. A test with a fast clock therefore accepts fires that are late on
  this clock: up to 30 s in T10, 40 s in T14, 50 s in T12 and 10 s in T11.
- In most queue tests a lease lasts between one and a few seconds; in production, a lease lasts 30 seconds.
- The full-disk tests use a tmpfs of 16 MB. Only root can mount a tmpfs, so these tests are skipped for other users.
  The tests with failing system calls use strace.
- Rows without a date were measured with an older revision of the code, before dates were recorded.
- The runs of 2026-11-16 and 2026-11-17 shared two cores with ten or more other programs, so their durations cannot
  be compared with other runs.
"""


def main(words: list[str]) -> int:
    names = [word for word in words if word != "--write"]
    files = {name: file for name in names for folder in FOLDERS if (file := folder / f"{name}.py").exists()}
    if unknown := [name for name in names if name not in files]:
        print(
            f"faults knows --write, test_two_weeks and the files of tests/faults, not {' '.join(unknown)}",
            file=sys.stderr,
        )
        return 2
    figures = Path(tempfile.mkdtemp(prefix="batuta-faults-")) / "figures"
    figures.touch()
    which = [*map(str, files.values())] or [str(FOLDERS[0]), "-k", " or ".join(KINDS)]
    # No timeout: a long run here is normal and does not mean a hang.
    command = [sys.executable, "-m", "pytest", *which, "-s", "-o", "timeout=0"]
    code = subprocess.run(command, env={**os.environ, FORM: "long", FILE: str(figures)}, check=False).returncode
    rows = [json.loads(line) for line in figures.read_text().splitlines()]
    rendered = cells(rows, datetime.now(UTC))
    print(table(rendered))
    if code != 0:
        print("something failed: docs/faults.md is left as it was", file=sys.stderr)
    elif "--write" in words:
        before = DOCUMENT.read_text(encoding="utf-8") if names else ""
        DOCUMENT.write_text(document(merge_rows(before, rendered)), encoding="utf-8")
    return code


def document(rows: Iterable[Cells]) -> str:
    known = list(rows)
    run = (
        f'The last run used {machine()}. The column "Seen" shows what the test observed, "Took" how long the test took.'
    )
    return f"{preface(measured_in(known))}\n{run}\n\n{table(known)}\n{AFTERWORD}"


def measured_in(rows: Iterable[Cells]) -> set[str]:
    """Return the test numbers that these rows contain. One row may belong to two tests ("T01, T39")."""
    return {test for row in rows for test in row[0].split(", ")}


def preface(measured: Collection[str]) -> str:
    """Return the part of docs/faults.md above the figures. The table in it lists only the tests in ``measured``."""
    lines = [
        "| component | tests | a target is | a target is lost if | a target is doubled if |",
        "| --- | --- | --- | --- | --- |",
    ]
    for part, tests, *meanings in PARTS:
        if named := [test for test in tests.split() if test in measured]:
            lines.append(f"| {' | '.join((part, ', '.join(named), *meanings))} |")
    return PREFACE.replace("{parts}", "\n".join(lines))


def merge_rows(before: str, rows: Sequence[Cells]) -> list[Cells]:
    """Merge rows into a document's table. A new row replaces the row whose first three columns are the same."""
    figures = before.partition("\n## Figures\n")[2]
    table = [line.strip("| ").split(" | ") for line in figures.splitlines() if line.startswith("|")][2:]
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
