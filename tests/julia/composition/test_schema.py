"""Julia's tables are migrated by the same command as the engine's, and what is missing is told in the same way."""

import json
from pathlib import Path

import pytest

from tests.command import Command

JULIA = ("--app", "app.main:work")


@pytest.fixture
def _julia(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")


@pytest.mark.usefixtures("_julia")
def test_one_command_applies_the_engines_migrations_and_julias_once(batuta: Command) -> None:
    code, said, _ = batuta(*JULIA, "migrate", "--json")
    applied = json.loads(said)["applied"]
    assert code == 0
    assert next(title for title in applied if title.startswith("app/")) == "app/0001_medicos"
    assert any(title.startswith("batuta/") for title in applied)
    assert json.loads(batuta(*JULIA, "migrate", "--json")[1])["applied"] == []
    findings = json.loads(batuta(*JULIA, "doctor", "--json")[1])["findings"]
    assert [finding["mark"] for finding in findings if "schema" in finding["what"] or "esquema" in finding["what"]] == [
        "ok"
    ]
