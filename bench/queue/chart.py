"""Draw bar charts that compare the contenders (jobs per second, enqueues per second) as SVG."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from bench.queue.entries import ENTRIES
from bench.queue.figures import Figures

FILE = Path(__file__).parents[1] / "queue.svg"
# Figures that get a chart: name and title.
SHOWN = (
    ("drain", "drain, one worker, jobs/s"),
    ("together", "drain, two workers, jobs/s"),
    ("bulk", "bulk enqueue, jobs/s"),
    ("concurrent", "50 callers, enqueues/s"),
    ("single", "one enqueue after the other, enqueues/s"),
)
COLOURS = {"batuta": "#1f6f5c", "raw": "#b8b8b8"}
OTHERS = "#7c8aa5"
WIDTH, LABEL, BAR, GAP = 860, 250, 18, 4


def draw(figures: Mapping[str, Figures]) -> str:
    parts, y = [], 10
    for name, title in SHOWN:
        rows = [(entry.title, entry.key, figures[entry.key].middle(name)) for entry in ENTRIES if entry.key in figures]
        present = [(label, key, value) for label, key, value in rows if value is not None]
        if present:
            parts += [f'<text x="10" y="{y + 14}" font-weight="bold">{escape(title)}</text>']
            y += 24
            parts += _bars(present, y)
            y += len(present) * (BAR + GAP) + 16
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}"'
        ' font-family="sans-serif" font-size="13">'
    )
    return "\n".join([head, f'<rect width="{WIDTH}" height="{y}" fill="white"/>', *parts, "</svg>"]) + "\n"


def _bars(rows: Sequence[tuple[str, str, float]], top: int) -> list[str]:
    most, lines = max(value for _, _, value in rows), []
    for place, (label, key, value) in enumerate(rows):
        y, width = top + place * (BAR + GAP), max(1, round(value / most * (WIDTH - LABEL - 90)))
        colour = COLOURS.get(key.partition("-")[0], OTHERS)
        lines += [
            f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{LABEL}" y="{y}" width="{width}" height="{BAR}" fill="{colour}"/>',
            f'<text x="{LABEL + width + 6}" y="{y + 13}">{value:,.0f}</text>',
        ]
    return lines
