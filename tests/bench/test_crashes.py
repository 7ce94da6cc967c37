"""The benchmark that crashes workers and servers: its arithmetic, and its smallest run with real processes."""

from pathlib import Path

from bench.crashes.contest import ENTRIES, Effort, Events, kill_workers, standing
from bench.crashes.program import ACCEPTED, FINISHED, STARTED, Journal
from bench.queue.entries import LOCKS

# More jobs than two workers finish before the last kill.
TINY = Effort(jobs=40, duration=0.05, concurrency=2, kills=1, every=0.3, accepting=0.1, limit=30.0)


def written(path: Path, *events: tuple[str, int]) -> Events:
    journal = Journal(path)
    for event, number in events:
        journal.write(event, number)
    return Events.read(path)


def test_accepted_job_without_an_end_is_missing(tmp_path: Path) -> None:
    found = written(tmp_path / "journal", (ACCEPTED, 1), (ACCEPTED, 2), (STARTED, 1), (STARTED, 2), (FINISHED, 2))
    assert (found.missing, found.waits, found.doubled) == (1, [], 0)


def test_second_run_is_repeated_and_a_second_end_is_doubled(tmp_path: Path) -> None:
    runs = [(ACCEPTED, 1), (ACCEPTED, 2), (STARTED, 1), (STARTED, 1), (FINISHED, 1), (STARTED, 2), (FINISHED, 2)]
    found = written(tmp_path / "journal", *runs)
    assert (len(found.waits), found.doubled) == (1, 0)
    assert written(tmp_path / "journal", (STARTED, 2), (FINISHED, 2)).doubled == 1


def test_unaccepted_job_may_be_missing(tmp_path: Path) -> None:
    assert written(tmp_path / "journal", (STARTED, 7)).missing == 0


def test_every_library_has_a_lock_file() -> None:
    assert {entry.peer for entry in ENTRIES if entry.peer} <= {file.stem for file in LOCKS.glob("*.lock")}


def test_batuta_finishes_every_job_of_a_killed_worker(tmp_path: Path) -> None:
    (ours,) = (entry for entry in ENTRIES if entry.key == "batuta-sqlite")
    with standing(ours, tmp_path, TINY) as stand:
        outcome = kill_workers(stand)
    assert len(outcome.events.accepted) == TINY.jobs
    assert outcome.events.missing == 0
    assert outcome.stored == 0
