"""scripts/measure.py computes exact code metrics for a known source, and can also compute them for another Git
revision.
"""

import ast
import subprocess
import textwrap
from pathlib import Path

import pytest

from scripts import measure
from scripts.measure import Module

SOURCE = Module(
    "sample.py",
    textwrap.dedent('''\
        """A docstring is code."""

        # A comment is not.
        class Sender:
            def is_held(self, a: int, b: int, c: int, d: int, e: int, f: int) -> bool:
                return True

            async def _told(self, message) -> None:
                while True:
                    try:
                        await self.put(cast(str, message))
                    except Exception:
                        raise
                    except BaseException:  # noqa: BLE001
                        pass


        class Sender(Protocol):
            def feed(self) -> None: ...
    '''),
)


def test_known_source_is_counted_exactly() -> None:
    assert dict(measure.metrics([SOURCE])) == {
        "files": "1",
        "lines": "19",
        "code lines": "14",
        "functions": "3",
        "function lines: median / p90 / max": "2 / 8 / 8",
        "functions over 60 / over 40 lines": "0 / 0",
        "module lines: median / p90 / max": "19 / 19 / 19",
        "modules under 60 lines": "1",
        "deepest nesting (functions that deep)": "2 (1)",
        "annotated functions": "66.7 %",
        "functions with ≥ 6 / ≥ 8 parameters": "1 / 0",
        "broad excepts: swallowing / re-raising": "1 / 1",
        "handlers that only pass": "1",
        "while loops / that wait": "1 / 1",
        "classes / Protocols (lines)": "2 / 1 (2)",
        "class names used more than once": "1",
        "functions named by a past participle": "1",
        "type: ignore / cast / noqa": "0 / 1 / 1",
    }


def test_participle_is_recognised_at_either_end_of_a_name() -> None:
    participles = {"_told", "written_by", "loop_ended", "refused"}
    others = {"is_written", "feed", "read_all", "settle", "has_failed", "test_a_task_is_stopped"}
    assert {name for name in participles | others if measure.is_participle(name)} == participles


def test_elif_is_one_deeper_than_its_if() -> None:
    function = ast.parse("def f(a):\n if a:\n  pass\n elif not a:\n  pass").body[0]
    assert measure.depth(function) == 2


def test_other_revision_is_shown_beside_the_working_tree(tmp_path: Path) -> None:
    for folder in measure.TREES.values():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "one.py").write_text("x = 1\n")
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    (tmp_path / "app" / "two.py").write_text("y = 2\n")
    columns = [measure.measure_revision("HEAD", tmp_path), measure.measure(tmp_path)]
    head, _, files, *_ = measure.table(["HEAD", "now"], columns).splitlines()
    assert head == "|  | engine HEAD | engine now | app HEAD | app now | tests HEAD | tests now |"
    assert files == "| files | 1 | 1 | 1 | 2 | 1 | 1 |"


def test_unknown_revision_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="git cannot read nowhere"):
        measure.measure_revision("nowhere", tmp_path)
