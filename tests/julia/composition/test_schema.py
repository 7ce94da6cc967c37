"""One command migrates both Julia's tables and the engine's, and reports missing migrations of both in the same way."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.composition.catalogue import migrations
from batuta.engine.batuta import Batuta
from batuta.engine.extension import Extension
from batuta.kernel.errors import StoreConflict
from tests.command import Command
from tests.julia.tables import add_doctor, one, rows, write
from tests.servers import Postgres

HISTORY_BEGINS = 26
FEEDBACK_BEGINS = 35

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


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/old.db"
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.database() as url:
        yield url


async def test_campaigns_of_an_older_database_keep_their_type_and_a_new_one_may_ask_for_feedback(
    empty_url: str,
) -> None:
    every, kinds = migrations(), ("discovery", "oferta", "oferta_plantao", "reativacao", "followup")
    older = [each for each in every if each.number < FEEDBACK_BEGINS]
    campaign = (
        "INSERT INTO campanhas (nome_template, tipo_campanha, corpo, created_at, updated_at)"
        " VALUES (:kind, :kind, 'Olá', :now, :now)"
    )
    async with Batuta(empty_url, extension=Extension(migrations=older), migrate=True) as work:
        now = work.clock.now()
        for kind in kinds:
            await write(work.database, campaign, kind=kind, now=now)
        doctor = await add_doctor(work.database, now=now)
        await write(
            work.database,
            "INSERT INTO campaign_contact_history (cliente_id, campaign_id, sent_at)"
            " SELECT :doctor, id, :now FROM campanhas WHERE tipo_campanha = 'oferta'",
            doctor=doctor,
            now=now,
        )
    async with Batuta(empty_url, extension=Extension(migrations=every), migrate=True) as work:
        found = await rows(work.database, "SELECT nome_template, tipo_campanha, corpo FROM campanhas ORDER BY id")
        assert [(row["nome_template"], row["tipo_campanha"]) for row in found] == [(kind, kind) for kind in kinds]
        assert {row["corpo"] for row in found} == {"Olá"}
        linked = await one(
            work.database,
            "SELECT tipo_campanha FROM campaign_contact_history JOIN campanhas ON campanhas.id = campaign_id",
        )
        assert linked["tipo_campanha"] == "oferta"
        await write(work.database, campaign, kind="feedback", now=now)
        with pytest.raises(StoreConflict):
            await write(work.database, campaign, kind="other", now=now)
