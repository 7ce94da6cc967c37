"""Time charts as SVG paths: a lane of 24 hours per job category, and the durations of the latest runs.

A lane is 96 units wide, one unit per quarter of an hour, and is stretched to the page. So its shapes consist of
vertical and horizontal lines only. Shape and colour both show the outcome:

    success  a bar, higher with more runs           failed  a column of stripes, full height
    skipped  a dot at the bottom                    missed  a hollow column, full height       running  a column of dots
    missing  a bracket at the top and the bottom: a scheduled fire without a row
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import sqrt

from batuta.health.jobs import JobHealth
from batuta.kernel.values import dataclass
from batuta.runlog.history import Recorded, Slice
from batuta.web.panel.words import Words

SLICE = timedelta(minutes=15)
PLACES = 96
HEIGHT = 24
LABEL_EVERY = timedelta(hours=3)
OUTCOMES = {
    "success": "success",
    "error": "failed",
    "timeout": "failed",
    "abandoned": "failed",
    "missed": "missed",
    "skipped": "skipped",
    "running": "running",
}
SHOWN_OUTCOMES = ("success", "failed", "missed", "missing", "skipped", "running")
MISSING_AFTER = timedelta(minutes=2)  # a fire is missing if it has had no row for this long
MOST_MISSING = 100  # maximum missing fires shown per job
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOWEST = 4
_WIDTH = 0.76


@dataclass(frozen=True, slots=True)
class TroubleMark:
    """A quarter-hour with failed or missed runs, and its tooltip text."""

    place: int
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    category: str
    totals: Mapping[str, int]  # counts by outcome, excluding zeros
    paths: Mapping[str, str]  # SVG paths by outcome
    marks: Sequence[TroubleMark]


@dataclass(frozen=True, slots=True)
class Hour:
    label: str
    place: float

    @property
    def percent(self) -> str:
        return f"{self.place / PLACES:.3%}"


def begin(now: datetime) -> datetime:
    """Return the start of the chart: 24 hours before the end of the quarter-hour that contains ``now``."""
    return now - (now - _EPOCH) % SLICE + SLICE - PLACES * SLICE


def hours(since: datetime, words: Words) -> list[Hour]:
    """Return the labels for the time axis: every third full hour in local time."""
    quarters = (since + place * SLICE for place in range(1, PLACES))
    return [
        Hour(f"{words.local(each):%H}h", (each - since) / SLICE)
        for each in quarters
        if (local := words.local(each)).minute == 0 and local.hour % (LABEL_EVERY // timedelta(hours=1)) == 0
    ]


def missing_fires(jobs: Iterable[JobHealth], since: datetime, now: datetime) -> Iterator[tuple[str, datetime]]:
    """Yield the category and instant of each fire that the schedule expected but that has no row.

    Every fire that a scheduler has decided about has a row, even if the fire was skipped or missed. So a past fire is
    missing if it is later than its job's last row.
    """
    for health in jobs:
        job, facts = health.job, health.facts
        if not job.finished or facts.expected_since is None:
            continue
        at = max(since, facts.expected_since, facts.last.started_at if facts.last else facts.expected_since)
        for _ in range(MOST_MISSING):
            at = job.cron.next_after(at, job.zone)
            if at > now - MISSING_AFTER:
                break
            yield job.category, at


def lanes(
    categories: Iterable[str],
    slices: Sequence[Slice],
    since: datetime,
    words: Words,
    missing: Iterable[tuple[str, datetime]] = (),
) -> list[Lane]:
    """Return one lane per category. A category without runs has an empty lane, so that operators notice missing
    runs.
    """
    counted: dict[str, dict[str, dict[int, int]]] = {category: {} for category in categories}
    for category, at in missing:
        places = counted[category].setdefault("missing", {})
        place = int((at - since) / SLICE)
        places[place] = places.get(place, 0) + 1
    for each in slices:
        if each.place < PLACES and each.category in counted:
            places = counted[each.category].setdefault(OUTCOMES[each.status], {})
            places[each.place] = places.get(each.place, 0) + each.runs
    return [_lane(category, outcomes, since, words) for category, outcomes in counted.items()]


def _lane(category: str, outcomes: Mapping[str, Mapping[int, int]], since: datetime, words: Words) -> Lane:
    most = max(outcomes.get("success", {}).values(), default=1)
    drawn = {
        "skipped": "".join(_box(place, HEIGHT - 2, 2) for place in outcomes.get("skipped", {})),
        "success": "".join(_bar(place, runs / most) for place, runs in outcomes.get("success", {}).items()),
        "running": "".join(_stripes(place, 2, 4) for place in outcomes.get("running", {})),
        "missed": "".join(_hollow(place) for place in outcomes.get("missed", {})),
        "missing": "".join(_brackets(place) for place in outcomes.get("missing", {})),
        "failed": "".join(_stripes(place, 3, 2) for place in outcomes.get("failed", {})),
    }
    troubled = sorted({place for kind in ("failed", "missed", "missing") for place in outcomes.get(kind, {})})
    return Lane(
        category,
        {outcome: sum(outcomes[outcome].values()) for outcome in SHOWN_OUTCOMES if outcome in outcomes},
        {outcome: path for outcome, path in drawn.items() if path},
        [TroubleMark(place, _title(place, outcomes, since, words)) for place in troubled],
    )


def _title(place: int, outcomes: Mapping[str, Mapping[int, int]], since: datetime, words: Words) -> str:
    counts = [
        words.plural(f"outcome.{outcome}", runs)
        for outcome in SHOWN_OUTCOMES
        if (runs := outcomes.get(outcome, {}).get(place, 0))
    ]
    begins = since + place * SLICE
    return f"{words.hour(begins)}–{words.hour(begins + SLICE)}: {', '.join(counts)}"


def _bar(place: int, share: float) -> str:
    height = _LOWEST + (HEIGHT - 2 - _LOWEST) * sqrt(share)
    return _box(place, round(HEIGHT - height, 1), round(height, 1))


def _box(place: float, top: float, height: float, width: float = _WIDTH) -> str:
    return f"M{place:g} {top:g}h{width:g}v{height:g}h-{width:g}z"


def _stripes(place: int, thick: int, apart: int) -> str:
    return "".join(_box(place, top, thick) for top in range(0, HEIGHT, thick + apart))


def _brackets(place: int) -> str:
    wall, arm = 0.14, 6
    sides = (_box(place + x, top, arm, wall) for x in (0, _WIDTH - wall) for top in (0, HEIGHT - arm))
    return "".join(sides) + _box(place, 0, 1.5) + _box(place, HEIGHT - 1.5, 1.5)


def _hollow(place: int) -> str:
    wall = 0.14
    sides = _box(place, 0, HEIGHT, wall) + _box(place + _WIDTH - wall, 0, HEIGHT, wall)
    return sides + _box(place, 0, 1.5) + _box(place, HEIGHT - 1.5, 1.5)


@dataclass(frozen=True, slots=True)
class Spark:
    """A chart of run durations, oldest first. ``width`` is the number of runs."""

    width: int
    paths: Mapping[str, str]
    longest: int


def spark(runs: Sequence[Recorded]) -> Spark | None:
    """Return a chart of the durations of ``runs`` (newest first), or None if fewer than three of them have a
    duration.
    """
    ran = [
        run for run in reversed(runs) if run.status in ("success", "error", "timeout") and run.duration_ms is not None
    ]
    if len(ran) < 3:
        return None
    longest = max(run.duration_ms or 0 for run in ran)
    paths: dict[str, str] = {}
    for place, run in enumerate(ran):
        outcome = OUTCOMES[run.status]
        share = (run.duration_ms or 0) / max(longest, 1)
        drawn = _bar(place, share) if outcome == "success" else _stripes(place, 3, 2)
        paths[outcome] = paths.get(outcome, "") + drawn
    return Spark(len(ran), paths, longest)
