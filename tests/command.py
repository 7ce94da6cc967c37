"""Fixtures for tests that run the ``batuta`` command. Each test has its own folder with a small application."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from batuta.cli import main
from tests.servers import free_port

Command: TypeAlias = Callable[..., tuple[int, str, str]]
PROGRAM = """
from batuta import Batuta
work = Batuta("sqlite:///work.db")
not_work = 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a small application, and an environment without any Batuta settings."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "pyproject.toml").write_text('[tool.batuta]\napp = "program:work"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PORT", str(free_port()))
    for name in ("DATABASE_URL", "API_TOKEN", "BATUTA_LANG"):
        monkeypatch.delenv(name, raising=False)
    # An earlier test may have imported the program with another database.
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    for name in ("program", "app.main"):
        sys.modules.pop(name, None)


@pytest.fixture
def batuta(capfd: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


def one_sentence(text: str) -> bool:
    return text.startswith("batuta: ") and len(text.strip().splitlines()) == 1 and "Traceback" not in text
