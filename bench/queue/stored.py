"""The ratios from the run that ``RESULTS.md`` describes, and a comparison of another run with them.

Only ratios are compared, because both sides of a ratio ran on the same machine within a minute. If a ratio of processor
times exists, it is compared instead of the ratio of wall times, because other programs affect wall times more.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.queue.figures import Verdict

FILE = Path(__file__).parent / "stored.json"
TOLERATED = 0.2  # largest tolerated fall of a ratio below the stored one, as a share


def stable_ratios(found: Sequence[Verdict]) -> dict[str, float]:
    """Return the median ratio of each limit that compares two contenders."""
    measured = {verdict.bar.what: verdict.by_cpu or verdict.found for verdict in found if verdict.bar.beside}
    return {what: round(median(values), 3) for what, values in measured.items() if values}


def regressions(stored: Mapping[str, float], now: Mapping[str, float]) -> list[str]:
    return [
        f"{what}: {now[what]:.2f}×, stored {before:.2f}×"
        for what, before in stored.items()
        if what in now and now[what] < before * (1 - TOLERATED)
    ]


def read(file: Path = FILE) -> dict[str, float]:
    ratios: dict[str, float] = json.loads(file.read_text())
    return ratios


def write(found: Sequence[Verdict], file: Path = FILE) -> None:
    file.write_text(json.dumps(stable_ratios(found), indent=2, ensure_ascii=False) + "\n")
