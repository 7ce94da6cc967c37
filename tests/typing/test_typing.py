"""The public API under `mypy --strict`: correct programs are accepted, and every incorrect call is rejected."""

import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def found() -> dict[str, dict[int, set[str]]]:
    """Return the codes of the errors that mypy reports, by file and line."""
    files = [str(HERE / name) for name in ("accepted.py", "public_api.py", "rejected.py")]
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    output, problems, _ = api.run([*settings, "--no-pretty", *files])
    assert not problems
    errors: dict[str, dict[int, set[str]]] = {"accepted.py": {}, "public_api.py": {}, "rejected.py": {}}
    for line in output.splitlines():
        if match := re.match(r"(.+?):(\d+): error: .*\[([a-z-]+)\]$", line):
            errors[Path(match[1]).name].setdefault(int(match[2]), set()).add(match[3])
    return errors


def test_correct_programs_are_accepted(found: dict[str, dict[int, set[str]]]) -> None:
    assert found["accepted.py"] == found["public_api.py"] == {}


def test_each_wrong_call_is_rejected_and_nothing_else(found: dict[str, dict[int, set[str]]]) -> None:
    lines = (HERE / "rejected.py").read_text(encoding="utf-8").splitlines()
    expected = {
        number: set(match[1].split(", "))
        for number, line in enumerate(lines, 1)
        if (match := re.search(r"# E: ([a-z, -]+)$", line))
    }
    assert found["rejected.py"] == expected
    assert len(expected) > 30
