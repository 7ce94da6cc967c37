"""The result of a fault test: one line for the terminal and one row for the table in docs/faults.md."""

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.faults.tally import Tally
from tests.judges.scheduler import Verdict

FORM = "FAULTS"
FILE = "FAULTS_FIGURES"
LONG = os.environ.get(FORM) == "long"


@dataclass
class Figures:
    """The figures of a fault test. The duration ``took`` is measured from the creation of this object."""

    test: str
    database: str
    done: str  # the injected fault
    began: float = field(default_factory=time.monotonic)

    def record(self, verdict: Verdict, note: str = "") -> None:
        self._write(
            targets=verdict.targets,
            missed=verdict.missed,
            doubled=verdict.doubled,
            early=verdict.early,
            unexplained=verdict.unexplained,
            note=note,
        )

    def record_items(self, tally: Tally, note: str = "") -> None:
        self._write(
            targets=tally.items, missed=tally.lost, doubled=tally.doubled, early=None, unexplained=None, note=note
        )

    def record_bare(self, targets: int, note: str = "", *, wrong: int = 0) -> None:
        """Record a test that has no endpoint. The test made ``targets`` comparisons, of which ``wrong`` failed."""
        self._write(targets=targets, missed=wrong, doubled=None, early=None, unexplained=None, note=note)

    def _write(self, **figures: object) -> None:
        row = {**asdict(self), **figures, "took": time.monotonic() - self.began}
        del row["began"]
        words = ", ".join(f"{name} {value}" for name, value in figures.items() if name != "note" and value is not None)
        note = f"; {figures['note']}" if figures["note"] else ""
        print(f"\n{self.test} {self.database}: {self.done}: {words}{note}; {row['took']:.1f} s")
        if file := os.environ.get(FILE):
            with Path(file).open("a") as rows:
                rows.write(json.dumps(row) + "\n")


def kind(database_url: str) -> str:
    return "SQLite" if database_url.startswith("sqlite") else "PostgreSQL"
