"""The table that `dev.py test` prints when it finishes, and the environment in which dev.py runs commands that start
many processes.
"""

import os
import runpy
import sys
from pathlib import Path

import pytest

import dev
from dev import TEST_PHASES, Times, repeat


def test_table_names_each_phase_and_the_slowest_tests_and_files(tmp_path: Path) -> None:
    times = Times()
    assert times.run("check", sys.executable, "-c", "raise SystemExit(3)") == 3
    times.phases["tests"] = (120.0, 200.5)
    file = tmp_path / "times"
    file.write_text(
        "".join(f"{n}.5 tests/unit/test_one.py::test_it[{n} a]\n" for n in range(12)) + "9 tests/b.py::test_b\n"
    )
    times.read(file)
    lines = times.table().splitlines()
    assert "  120.0           200.5  tests" in lines
    assert [line.split()[-1] for line in lines[1:4]] == ["check", "tests", "total"]
    assert "   72.0  tests/unit/test_one.py" in lines
    slowest = lines[lines.index("seconds  slowest tests") + 1 :]
    assert len(slowest) == 10
    assert slowest[:3] == [
        "   11.5  tests/unit/test_one.py::test_it[11 a]",
        "   10.5  tests/unit/test_one.py::test_it[10 a]",
        "    9.5  tests/unit/test_one.py::test_it[9 a]",
    ]


def test_phase_that_ended_before_its_summary_is_in_the_table(tmp_path: Path) -> None:
    times = Times()
    times.run("tests", sys.executable, "-c", "pass")
    times.read(tmp_path / "times")
    assert times.table().splitlines()[1].endswith("tests")


def test_processor_time_of_a_phase_is_its_own() -> None:
    times = Times()
    times.run("busy", sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass")
    times.run("idle", sys.executable, "-c", "pass")
    assert times.phases["busy"][1] > 0.3
    assert times.phases["idle"][1] < times.phases["busy"][1]


def test_every_test_belongs_to_one_phase() -> None:
    marks = [selection[selection.index("-m") + 1] for _, selection, _ in TEST_PHASES]
    assert marks == ["not calm", "calm"]


FAILS_ONCE = """
from pathlib import Path

def test_it():
    seen = Path(__file__).with_suffix(".seen")
    if not seen.exists():
        seen.touch()
        raise AssertionError
"""


def test_failed_test_that_passes_alone_is_named_as_unsteady(tmp_path: Path) -> None:
    times, test = Times(), tmp_path / "test_once.py"
    test.write_text(FAILS_ONCE)
    assert repeat(times, "tests", [str(test)]) == 1
    assert times.unsteady == []
    assert repeat(times, "tests", [str(test)]) == 0
    assert f"UNSTEADY: {test} failed once and passed alone; correct it before new work" in times.table()


@pytest.mark.parametrize("word", ["run", "demo"])
def test_processes_of_a_demonstration_compile_the_sources_once(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(dev, "ensure", lambda lock: None)
    for start in ("call", "become"):
        monkeypatch.setattr(dev, start, lambda *arguments: seen.append(os.environ.get("PYTHONPYCACHEPREFIX")))
    monkeypatch.setattr(os, "environ", {"PYTHONDONTWRITEBYTECODE": "1"})
    {"run": dev.run, "demo": dev.demo}[word]([])
    assert seen == [str(dev.VENV / "compiled")]


def test_command_of_a_checkout_can_be_imported_by_child_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib/python3.11/site-packages").mkdir(parents=True)
    monkeypatch.setattr(dev, "VENV", tmp_path)
    monkeypatch.setattr(dev, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(dev, "install", lambda lock_file, python: None)
    dev.make_environment(dev.RUN_LOCK)
    runpy.run_path(str(tmp_path / "bin/batuta"), run_name="__mp_main__")  # raises SystemExit if it starts the command
    assert (tmp_path / "bin/batuta").stat().st_mode & 0o111


@pytest.mark.parametrize("lock", [dev.RUN_LOCK, dev.DEV_LOCK], ids=lambda lock: lock.name)
def test_environment_of_the_developer_also_runs_the_program(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    monkeypatch.setattr(dev, "VENV", tmp_path)
    monkeypatch.setattr(dev, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(dev, "make_environment", made.append)
    dev.ensure(dev.DEV_LOCK)
    dev.ensure(lock)
    assert made == [dev.DEV_LOCK]


def test_environment_of_the_program_is_not_enough_for_the_developer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    monkeypatch.setattr(dev, "VENV", tmp_path)
    monkeypatch.setattr(dev, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(dev, "make_environment", made.append)
    dev.ensure(dev.RUN_LOCK)
    dev.ensure(dev.DEV_LOCK)
    assert made == [dev.RUN_LOCK, dev.DEV_LOCK]
