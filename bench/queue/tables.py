"""Tables of the benchmark figures."""

from collections.abc import Mapping, Sequence
from statistics import median

from bench.queue.contest import Contest
from bench.queue.entries import ENTRIES
from bench.queue.figures import Figures, Verdict, verdicts
from bench.report import markdown

TITLES = {entry.key: entry.title for entry in ENTRIES}
THROUGHPUT = {
    "bulk": "bulk enqueue/s",
    "single": "one enqueue after the other/s",
    "concurrent": "50 callers/s",
    "drain": "drain/s, one worker",
    "committed": "to the last commit",
    "together": "drain/s, two workers",
}
COST = {
    "worker": "worker CPU µs/job",
    "server": "server CPU µs/job",
    "statements": "statements/job",
    "MB": "RSS MB",
    "p50": "to start p50 ms",
    "p99": "p99 ms",
    "inside p50": "one process p50 ms",
    "inside p99": "p99 ms (one process)",
    "idle cpu": "idle CPU %",
    "idle statements": "idle statements/s",
    "idle looks": "idle polls of the file/s",
    "idle MB": "idle RSS MB",
}
# Figures that are also shown for each repeat, in the order of the repeats.
EVERY = {
    "drain": "every repeat: drain/s",
    "together": "two workers",
    "single": "one enqueue after the other/s",
    "concurrent": "50 callers/s",
    "bulk": "bulk/s",
    "single cpu": "one after the other, per processor second",
    "concurrent cpu": "50 callers, per processor second",
    "bulk cpu": "bulk, per processor second",
}
CONDITIONS = {
    "2 workers": "two workers/s",
    "4 workers": "four workers/s",
    "8 workers": "eight workers/s",
    "free": "third drain/s",
    "held": "the same with a held snapshot/s",
    "free µs": "CPU µs/job",
    "held µs": "CPU µs/job, held snapshot",
    "alone": "drain/s, empty table",
    "among millions": "among a million waiting and a million done/s",
}
# Each question gets one table of goals with the figures that answer it.
QUESTIONS = {
    "How fast is work done?": ("drain", "together"),
    "What does a job cost?": ("worker", "server"),
    "How fast is work accepted?": ("bulk", "single", "concurrent"),
    "How soon does work start?": ("p50", "p99", "inside p50", "inside p99"),
    "What does an idle worker cost?": ("idle cpu", "idle statements", "idle MB"),
    "What do more workers, old snapshots and large tables cost?": (
        "4 beside 2",
        "8 beside 2",
        "held beside free",
        "held beside free, cpu",
        "share",
    ),
}


def render(contest: Contest) -> str:
    """Return a table of goals under each question in ``QUESTIONS``, followed by tables of all figures."""
    parts, found = [], verdicts(contest.figures)
    for question, names in QUESTIONS.items():
        if answers := [_verdict(each) for each in found if each.bar.figure in names]:
            parts += [
                f"## {question}",
                markdown([["goal", "required", "measured", "result", "by processor time"], *answers]),
            ]
    parts += ["## All figures", _table(contest.figures, THROUGHPUT), _table(contest.figures, COST)]
    ours = {key: each for key, each in contest.figures.items() if set(CONDITIONS) & set(each.values)}
    parts += [_table(ours, CONDITIONS), _table(contest.figures, EVERY, every=True)]
    parts += ["\n".join(f"NOT MEASURED: {who}: {why}" for who, why in contest.missing.items())]
    return "\n\n".join(part for part in parts if part)


def _table(figures: Mapping[str, Figures], columns: Mapping[str, str], *, every: bool = False) -> str:
    """Format figures as medians with their range. With ``every``, also show the value from each repeat."""
    if not figures:
        return ""
    lines = [["", *columns.values()]]
    show = (lambda values: " · ".join(map(number, values)) or "–") if every else cell
    lines += [[TITLES[key], *(show(each.of(name)) for name in columns)] for key, each in figures.items()]
    return markdown(lines)


def cell(values: Sequence[float]) -> str:
    """Format the median of the measured values, with the minimum and maximum if there are several values."""
    if not values:
        return "–"
    around = f" ({number(min(values))}–{number(max(values))})" if len(values) > 1 else ""
    return number(median(values)) + around


def number(value: float) -> str:
    """Format a number with about three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 or not value else f"{value:.4f}"


def _verdict(verdict: Verdict) -> list[str]:
    bar = verdict.bar
    word = {True: "met", False: "MISSED", None: "not measured"}[verdict.is_met]
    sign = "≤" if bar.at_most else "≥"
    found = f"{cell(verdict.found)}{bar.unit if verdict.found else ''}"
    by_cpu = f"{cell(verdict.by_cpu)}×" if verdict.by_cpu else ""
    return [bar.what, f"{sign} {number(verdict.bound)}{bar.unit}", found, word, by_cpu]
