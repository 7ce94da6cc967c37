"""Format figures as tables for the terminal and Markdown, with a description of the machine."""

import os
import platform
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.store import OURS, Figures

MEMORY_FILESYSTEMS = ("tmpfs", "ramfs")


def table(figures: Figures) -> str:
    names = list(next(iter(figures.values())))
    others = [name for name in names if name != OURS]
    lines = [["per second", *names, *(f"{OURS} / {name.rpartition(', ')[2]}" for name in others)]]
    for title, rates in figures.items():
        ratios = [ratio(rates[OURS], rates[name]) for name in others]
        lines.append([title, *(spread(rates[name]) for name in names), *ratios])
    return markdown(lines)


def spread(rates: Sequence[float]) -> str:
    return f"{median(rates):,.0f} ({min(rates):,.0f}–{max(rates):,.0f})"


def ratio(of: Sequence[float], to: Sequence[float]) -> str:
    """Return the median, minimum and maximum of the ratio of two figures over all repeats, as text. The two figures of
    a repeat were measured within seconds of each other.
    """
    ratios = [one / other for one, other in zip(of, to, strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def markdown(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    head, *body = [f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines]
    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([head, rule, *body])


def machine(folder: Path) -> list[str]:
    one_minute, _, _ = os.getloadavg()
    return [
        f"{os.cpu_count()} cores, {cpu_model()}, {platform.system()} {platform.release()}",
        f"files in {folder} on {filesystem(folder)}; load average when it began {one_minute:.1f}",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
    ]


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def filesystem(folder: Path) -> str:
    """Return the type of the filesystem that contains a folder, or "unknown"."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "unknown"
    over = [(len(point), kind) for _, point, kind, *_ in mounts if folder.resolve().is_relative_to(point)]
    # The deepest mount above the folder counts. If two have the same path, the later one counts.
    return max(enumerate(over), key=lambda numbered: (numbered[1][0], numbered[0]))[1][1] if over else "unknown"
