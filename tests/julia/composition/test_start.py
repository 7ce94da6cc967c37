"""The modules that short commands import. Importing takes most of the start-up time of such a command."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.main import build, command_line
from app.settings import Settings
from batuta.cli.command_line import import_command
from batuta.config import load_settings
from batuta.engine.batuta import Batuta
from tests import ROOT

# Libraries and parts of the application that are expensive to import, and that help texts and lists of jobs do not
# need.
SERVICES = ("fastapi", "starlette", "uvicorn", "jinja2", "httpx2", "telethon", "arq", "redis", "asyncpg", "rapidfuzz")
PARTS = ("structlog", "python_calamine", "app.composition.julia", "app.web", "app.integrations")
ENGINE = ("asyncio", "pydantic", "rich", "sqlite3", "batuta.engine", "batuta.stores", "app.settings", "app.contexts")


def loaded(words: Sequence[str], folder: Path) -> set[str]:
    """Return the modules that ``batuta`` has loaded when a command with these arguments ends."""
    code = "import sys; from batuta.__main__ import main; main(); print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "DATABASE_URL": f"sqlite:///{folder / 'julia.db'}", "APP_ENV": "development"}
    ran = subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(ran.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("words", "unwanted"), [(["--help"], SERVICES + PARTS + ENGINE), (["jobs"], SERVICES + PARTS)], ids=["help", "jobs"]
)
def test_short_command_loads_only_its_own_part(words: list[str], unwanted: tuple[str, ...], tmp_path: Path) -> None:
    found = loaded(words, tmp_path)
    assert "app.main" in found
    assert {
        name for name in found if name in unwanted or name.startswith(tuple(f"{each}." for each in unwanted))
    } == set()


def test_every_command_of_the_table_can_be_imported() -> None:
    for name, command in command_line.commands.items():
        found = import_command(command)
        functions = list(found.values()) if isinstance(found, dict) else [found]
        assert functions, name
        assert all(callable(each) for each in functions), name


def test_command_line_lists_every_role_that_settings_enable() -> None:
    arq = {"TASKS_BACKEND": "arq", "REDIS_URL": "redis://127.0.0.1:1"}
    roles = build(load_settings(Settings, {"APP_ENV": "development", **arq})).work.extension.roles
    assert {role.name for role in roles} == set(command_line.roles)


def test_catalogue_has_the_jobs_and_the_names_of_the_whole_application(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_ENV", "development")
    assert command_line.catalogue is not None
    part, whole = command_line.catalogue(), build(load_settings(Settings, {"APP_ENV": "development"})).work

    def described(work: Batuta) -> object:
        own = work.registry.own(None)
        extension = work.extension
        return (
            own.fingerprint,
            extension.service,
            extension.texts,
            extension.switches,
            extension.windows,
            extension.mark,
        )

    assert described(part) == described(whole)
    assert part.extension.texts == command_line.texts
    assert part.settings.batuta_lang == command_line.language
