"""One command migrates Julia's tables and the engine's, and reports missing migrations in the same way."""

import json
from pathlib import Path

import pytest

from app.composition.julia import migrations
from batuta.engine.batuta import Batuta
from batuta.engine.extension import Extension
from tests.command import Command
from tests.julia.tables import one, write

HISTORY_BEGINS = 26

UUID = "00000000-0000-7000-8000-00000000000{}"
JULIA = ("--app", "app.main:work")


@pytest.fixture
def _julia(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")


@pytest.mark.usefixtures("_julia")
def test_one_command_applies_the_migrations_of_engine_and_julia_once(batuta: Command) -> None:
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


async def test_a_vacancy_of_an_older_database_gets_the_first_line_of_its_history(tmp_path: Path) -> None:
    url, every = f"sqlite:///{tmp_path}/old.db", migrations()
    older = [each for each in every if each.number < HISTORY_BEGINS]
    async with Batuta(url, extension=Extension(migrations=older), migrate=True) as work:
        now = work.clock.now()
        for table, columns in (("hospitais", "'Hospital Fictício'"), ("especialidades", "'Pediatria'")):
            sql = f"INSERT INTO {table} (id, nome, created_at) VALUES (:id, {columns}, :now)"
            await write(work.database, sql, id=UUID.format(1), now=now)
        await write(
            work.database,
            "INSERT INTO vagas (id, hospital_id, especialidade_id, data, status, created_at, updated_at)"
            " VALUES (:id, :one, :one, '2026-03-20', 'anunciada', :now, :now)",
            id=UUID.format(2),
            one=UUID.format(1),
            now=now,
        )
    async with Batuta(url, extension=Extension(migrations=every), migrate=True) as work:
        line = await one(work.database, "SELECT * FROM vagas_historico")
    assert (line["vaga_id"], line["ordem"], line["de"], line["para"]) == (UUID.format(2), 1, None, "anunciada")
    assert (line["por"], line["em"]) == ("migracao", now)
