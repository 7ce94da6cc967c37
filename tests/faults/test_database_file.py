"""The SQLite file is replaced while `batuta up` is running. Every process restarts on the new file."""

import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faults.figures import Figures
from tests.faults.processes import Tree, tree, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

PLANT = "tests.faults.parent_plant:work"
ROLES = ("api", "scheduler", "worker")


def test_every_process_restarts_on_the_file_that_replaces_its_database(tmp_path: Path) -> None:
    figures = Figures("T40", "SQLite", "while `batuta up` runs, the database file is replaced by a copy")
    file = tmp_path / "julia.db"
    with tree(tmp_path, "up", app=PLANT) as running:
        until("it answers", running.is_up)
        before = until("all are there", lambda: set(running.children()) == set(ROLES) and running.children())
        until("each has a heartbeat", lambda: _with_heartbeat(file) >= set(before.values()))
        _copy(file, tmp_path / "copy.db")
        (tmp_path / "copy.db").rename(file)
        began = time.monotonic()
        ended = until("every process has ended for it", lambda: _ended(running, before))
        noticed = time.monotonic() - began
        until(
            "each has come back",
            lambda: _with_heartbeat(file) >= (now := set(running.children().values())) and len(now) == 3,
        )
        until("it answers again", running.is_up)
        took = time.monotonic() - began
        assert all("was replaced" in fact["reason"] for fact in ended), ended
        assert _codes(running) == {75}
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        figures.record_bare(
            3, f"all processes noticed the new file within {noticed:.1f} s and used it after {took:.1f} s"
        )
        assert running.end(signal.SIGTERM) == 0


def _with_heartbeat(file: Path) -> set[int]:
    return {pid for (pid,) in _rows(file, "SELECT pid FROM worker_heartbeats WHERE status = 'online'")}


def _rows(file: Path, statement: str) -> list[Any]:
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            return database.execute(statement).fetchall()
    except sqlite3.OperationalError:
        return []


def _copy(file: Path, copy: Path) -> None:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        target.execute("DELETE FROM worker_heartbeats")
        target.commit()
    copy.chmod(0o600)


def _ended(running: Tree, before: dict[str, int]) -> list[dict[str, Any]]:
    ended = [fact for fact in running.facts() if fact["event"] == "process ended" and fact["role"] in before]
    return ended if len(ended) >= len(before) else []


def _codes(running: Tree) -> set[int]:
    return {fact["exit_code"] for fact in running.facts() if "exit_code" in fact}
