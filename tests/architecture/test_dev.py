"""The table that `dev.py test` ends with."""

from pathlib import Path

from dev import Times


def test_the_table_names_each_phase_and_the_slowest_tests_and_files(tmp_path: Path) -> None:
    times = Times()
    with times.phase("check"):
        pass
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


def test_a_phase_that_ended_before_its_summary_is_in_the_table(tmp_path: Path) -> None:
    times = Times()
    with times.phase("tests"):
        times.read(tmp_path / "times")
    assert times.table().splitlines()[1].endswith("tests")
