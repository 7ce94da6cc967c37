"""The queue benchmark's computation of rates, percentiles and ratios from its measurements."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from batuta.stores.sql.database import DIALECTS, Dialect
from batuta.stores.sql.queue.statements import postgres_claim_queries, sqlite_claim_queries
from batuta.tasks.registry import TASKS
from bench import results
from bench.queue.chart import draw
from bench.queue.contenders.ours import without_fence
from bench.queue.entries import ENTRIES, LOCKS
from bench.queue.figures import (
    BARS,
    Bar,
    Figures,
    Verdict,
    cpu_ratios,
    drain_rate,
    per_second,
    percentile,
    ratios,
    verdicts,
)
from bench.queue.marks import Marks
from bench.queue.stored import read as read_stored
from bench.queue.stored import regressions, stable_ratios
from bench.queue.tables import QUESTIONS, cell
from tests import ROOT

SECOND = 1_000_000_000


def of(**values: list[float]) -> Figures:
    return Figures(dict(values))


def test_mark_of_one_process_is_read_by_another(tmp_path: Path) -> None:
    with Marks.make(tmp_path / "marks", 10) as measuring, Marks(tmp_path / "marks") as measured:
        measured.set(3)
        assert measuring.get(2) == (0, 0)
        assert measuring.get(3)[0] > 0
        assert len(list(measuring.between(0, 10))) == 1
        assert measuring.capacity == 10


def test_progress_reaches_the_first_job_that_has_not_begun(tmp_path: Path) -> None:
    with Marks.make(tmp_path / "marks", 5) as marks:
        for number in (0, 1, 3):
            marks.set(number)
        assert marks.reach(0, 5) == 2
        marks.set(2)
        assert marks.reach(2, 5) == 4
        assert marks.reach(0, 3) == 3


def test_gate_is_ready_when_every_worker_stands_at_it(tmp_path: Path) -> None:
    with Marks.make(tmp_path / "marks", 1) as marks:
        marks.open_gate()
        marks.stand_at_gate(1)
        assert marks.are_ready(1) is False
        marks.stand_at_gate(0)
        assert marks.are_ready(2) is True
        marks.close_gate()
        assert marks.are_ready(1) is False


def test_data_version_check_does_not_count_as_a_statement(tmp_path: Path) -> None:
    with Marks.make(tmp_path / "marks", 1) as marks:
        for text in ("BEGIN", "PRAGMA data_version", "SELECT 1"):
            marks.count_statement(text)
        assert (marks.statements, marks.looks) == (2, 1)


def test_rate_counts_from_the_first_job_to_the_last() -> None:
    assert drain_rate([(n * SECOND // 10, 1) for n in range(11)]) == pytest.approx(10)


def test_rate_of_two_workers_starts_when_both_have_begun() -> None:
    alone = [(n * SECOND, 1) for n in range(100)]
    both = [(100 * SECOND + n * SECOND // 4, 1 + n % 2) for n in range(1, 9)]
    assert drain_rate(alone + both, workers=2) == pytest.approx(4)


@pytest.mark.parametrize("marks", [[], [(SECOND, 1)], [(SECOND, 1), (2 * SECOND, 1)]])
def test_drain_without_a_mark_of_each_worker_has_no_rate(marks: list[tuple[int, int]]) -> None:
    assert drain_rate(marks, workers=2) is None


def test_percentile_is_one_of_the_samples() -> None:
    samples = [float(n) for n in range(200, 0, -1)]
    assert percentile(samples, 0.5) == 100
    assert percentile(samples, 0.99) == 198
    assert percentile([7.0], 0.99) == 7


def test_zero_count_has_no_rate() -> None:
    assert per_second((0, 0.0)) is None
    assert per_second((10, 2.0)) == 5


def test_ratio_compares_the_same_repeat() -> None:
    ours, theirs = of(drain=[100.0, 200.0]), Figures()
    theirs.add("drain", 50)
    theirs.add("drain", None)
    assert ratios(ours, theirs, "drain") == [2.0]


def test_cpu_ratio_adds_worker_and_server() -> None:
    ours = of(worker=[60.0, 50.0], server=[40.0, float("nan")])
    theirs = of(worker=[150.0, 100.0], server=[50.0, float("nan")])
    assert cpu_ratios(ours, theirs) == [2.0, 2.0]
    assert cpu_ratios(ours, of()) == []


def test_bar_is_met_missed_or_not_measured() -> None:
    least, most = Bar("", "a", "drain", 2.0, "b"), Bar("", "a", "p99", 15.0, at_most=True)
    assert Verdict(least, [1.0, 2.5, 3.0]).is_met is True
    assert Verdict(least, [1.0, 1.9, 3.0]).is_met is False
    assert Verdict(most, [15.1]).is_met is False
    assert Verdict(most, []).is_met is None


def test_no_more_than_a_share_of_the_raw_loop_is_demanded() -> None:
    figures = {"batuta-postgres": of(drain=[15.0]), "pgqueuer": of(drain=[10.0]), "raw-postgres": of(drain=[20.0])}
    verdict = verdicts(figures)[0]
    assert verdict.bar.bound == 3.0
    assert verdict.bound == pytest.approx(1.4)
    assert verdict.is_met is True


def test_check_compares_processor_times_and_tolerates_a_fifth() -> None:
    drain, single = Bar("drain", "a", "drain", 2.0, "b"), Bar("single", "a", "single", 1.0, "b")
    alone = Bar("p99", "a", "p99", 15.0, at_most=True)
    found = [Verdict(drain, [1.0, 9.0, 2.0], [3.0, 2.0, 4.0]), Verdict(single, [1.5]), Verdict(alone, [3.0])]
    now = stable_ratios(found)
    assert now == {"drain": 3.0, "single": 1.5}
    assert regressions({"drain": 3.7, "single": 1.8, "not measured": 9.0}, now) == []
    assert regressions({"drain": 3.8, "single": 1.9}, now) == [
        "drain: 3.00×, stored 3.80×",
        "single: 1.50×, stored 1.90×",
    ]


# Runs the command in its own process, because it sets signal handlers. The measurement is replaced by given rates.
CHECK = """
import sys
from contextlib import contextmanager
from bench import __main__ as program
from bench.queue.contest import QUICK, Contest
from bench.queue.figures import Figures

class Measured(Contest):
    def run(self, entries, *, with_million):
        self.figures = {"batuta-sqlite": Figures({"drain": [20.0]}), "huey": Figures({"drain": [2.0]})}

@contextmanager
def prepared(folder, effort, entries):
    yield Measured(folder, effort, None, None)

program.filesystem = lambda folder: "ext4"
program.contest.prepared = prepared
program.stored.read = lambda: {"drain rate on SQLite, as a multiple of Huey's": float(sys.argv[1])}
sys.exit(program.main(["--check", "--quick", "--folder", sys.argv[2]]))
"""


@pytest.mark.parametrize(("before", "code"), [(12.4, 0), (12.6, 1)])
def test_check_ends_with_an_error_if_a_ratio_fell_by_more_than_a_fifth(
    before: float, code: int, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(before), str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert ("drain rate on SQLite, as a multiple of Huey's: 10.00×, stored 12.60×" in done.stderr) is bool(code)


def test_stored_ratios_belong_to_bars() -> None:
    assert set(read_stored()) <= {bar.what for bar in BARS if bar.beside}


def test_chart_shows_the_rate_of_each_contender() -> None:
    drawn = draw({"batuta-sqlite": of(drain=[1000.0, 3000.0, 2000.0]), "huey": of(drain=[500.0], single=[100.0])})
    ElementTree.fromstring(drawn)
    assert [drawn.count(text) for text in (">2,000<", ">500<", ">100<", "Huey, SQLite")] == [1, 1, 1, 2]


def test_bars_of_other_contenders_are_left_out() -> None:
    found = verdicts({"batuta-sqlite": of(drain=[30.0]), "huey": of(drain=[2.0])})
    assert [verdict.found for verdict in found if verdict.bar.beside and verdict.found] == [[15.0]]
    assert {verdict.bar.of for verdict in found} == {"batuta-sqlite"}


def test_every_bar_names_known_contenders() -> None:
    keys = {entry.key for entry in ENTRIES}
    assert {bar.of for bar in BARS} | {bar.beside for bar in BARS if bar.beside} <= keys


def test_cell_shows_the_median_and_the_range() -> None:
    assert cell([1200.0, 900.0, 1000.0]) == "1,000 (900–1,200)"
    assert cell([0.0021]) == "0.0021"
    assert cell([]) == "–"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statement_without_fence_keeps_everything_else(dialect: Dialect) -> None:
    if dialect == "sqlite":
        settle, claim = sqlite_claim_queries(TASKS).settle, sqlite_claim_queries(TASKS).take
    else:
        settle, claim = postgres_claim_queries(TASKS).settle, postgres_claim_queries(TASKS).claim
    assert "fence =" in settle.text
    assert "fence =" in claim.text
    assert "fence =" not in without_fence(settle).text
    assert "fence =" not in without_fence(claim).text
    if dialect == "postgres":
        assert "fence =" not in without_fence(postgres_claim_queries(TASKS).settle_and_claim).text
    else:
        assert "fence =" not in without_fence(sqlite_claim_queries(TASKS).settle_successes).text
    assert re.sub(r"\s", "", without_fence(settle).text)[:200] == re.sub(r"\s", "", settle.text)[:200]


def test_lock_of_a_peer_names_no_address_and_pins_with_hashes() -> None:
    locks = sorted(LOCKS.glob("*.lock"))
    assert {lock.stem for lock in locks} == {"arq", "celery", "huey", "pgqueuer", "redis"}
    for lock in locks:
        text = lock.read_text()
        assert "://" not in text
        assert re.match(r"^[a-z0-9-]+==\S+.*\\\n +--hash=sha256:", text)


def test_tables_replace_what_an_earlier_run_wrote_between_the_marks(tmp_path: Path) -> None:
    file, (begin, end) = tmp_path / "RESULTS.md", results.marks("queue")
    file.write_text(f"# Text\n\n{begin}\nold\n{end}\n\nmore text\n")
    results.write("queue", "| new |", file)
    assert file.read_text() == f"# Text\n\n{begin}\n\n| new |\n\n{end}\n\nmore text\n"
    with pytest.raises(ValueError, match="start"):
        results.write("start", "| new |", file)


def test_results_have_the_marks_of_every_part() -> None:
    text = results.FILE.read_text(encoding="utf-8")
    for part in ("queue", "phases", "start"):
        begin, end = results.marks(part)
        assert (text.count(begin), text.count(end)) == (1, 1)
        assert text.index(begin) < text.index(end)


def test_every_goal_belongs_to_one_question() -> None:
    asked = [name for names in QUESTIONS.values() for name in names]
    assert {bar.figure for bar in BARS} == set(asked)
    assert len(asked) == len(set(asked))
