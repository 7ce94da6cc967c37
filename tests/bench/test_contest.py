"""The benchmark of the queue, as small as it can be made: its processes, its protocol and its table are the real ones."""

from pathlib import Path

from bench.queue.contest import Effort, chosen, prepared
from bench.queue.tables import render

# A drain of fewer jobs may be over on a busy machine before it is looked at.
TINY = Effort(repeats=1, drain=0.2, enqueue=0.05, samples=2, settling=0.1, idle=0.3, together=False, traced=40)


def test_our_row_on_sqlite_is_measured_from_end_to_end(tmp_path: Path) -> None:
    entries = chosen(["batuta-sqlite"])
    with prepared(tmp_path, TINY, entries) as contest:
        contest.say = lambda _: None
        contest.run(entries, with_million=False)
    assert contest.missing == {}
    figures = contest.figures["batuta-sqlite"]
    for name in (
        "bulk",
        "single",
        "concurrent",
        "drain",
        "committed",
        "statements",
        "p99",
        "inside p99",
        "idle MB",
    ):
        assert figures.middle(name), name
    # Counted in hundredths of a second: so few jobs may take none.
    assert figures.values["worker"]
    assert "batuta, SQLite" in render(contest)
