"""The queue benchmark at its smallest size, with its real processes, protocol and table."""

from pathlib import Path

from bench.queue.contest import Effort, chosen, prepared
from bench.queue.tables import render

# With fewer jobs, the drain may end on a busy machine before the benchmark reads the first mark.
TINY = Effort(repeats=1, drain=0.2, enqueue=0.05, samples=2, settling=0.1, idle=0.3, together=False, traced=40)


def test_batuta_on_sqlite_is_measured_end_to_end(tmp_path: Path) -> None:
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
    # Processor time is counted in hundredths of a second, so few jobs may show none.
    assert figures.values["worker"]
    assert "batuta, SQLite" in render(contest)
