"""The declaration of personal data covers the real schema of both databases."""

from collections.abc import AsyncIterator

import pytest

from app.contexts.lgpd.dados_pessoais import TABELAS, De
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.testing import FakeClock
from tests.julia.lgpd.pessoas import TABLES
from tests.julia.tables import rows

COLUMNS = {
    "sqlite": "SELECT name, type FROM pragma_table_xinfo('{table}')",
    "postgres": "SELECT column_name AS name, data_type AS type FROM information_schema.columns"
    " WHERE table_schema = current_schema() AND table_name = '{table}'",
}
# Types of columns that contain words. Other types are numbers, instants and ids.
WORDS = ("TEXT", "VARCHAR", "CHARACTER", "JSON", "BYTEA", "BLOB")
# Names of columns with ids of people. A column with such a name belongs to a person.
PEOPLE = ("cliente_id", "contato_id", "contato_responsavel_id")
HELP = "declare each column in app/contexts/lgpd/dados_pessoais.py"


@pytest.fixture
async def work(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with build(Settings(database_url=database_url), clock=clock).work as work:
        yield work


async def columns(work: Batuta) -> dict[str, dict[str, str]]:
    dialect = work.database.dialect
    tables = [row["name"] for row in await rows(work.database, TABLES[dialect])]
    return {
        table: {
            row["name"]: row["type"].upper() for row in await rows(work.database, COLUMNS[dialect].format(table=table))
        }
        for table in tables
    }


async def test_every_column_of_words_and_every_id_of_a_person_is_declared(work: Batuta) -> None:
    declared = {tabela.nome: tabela.declaradas for tabela in TABELAS}
    missing = [
        f"{table}.{name}"
        for table, found in (await columns(work)).items()
        for name, type in found.items()
        if (type.startswith(WORDS) or name in PEOPLE) and name not in declared.get(table, set())
    ]
    assert sorted(missing) == [], HELP


async def test_every_declared_column_exists(work: Batuta) -> None:
    found = await columns(work)
    stale = [
        f"{each.nome}.{name}" for each in TABELAS for name in each.declaradas if name not in found.get(each.nome, {})
    ]
    assert sorted(stale) == [], HELP


async def test_ids_are_compared_as_ids_and_words_as_words(work: Batuta) -> None:
    found = await columns(work)
    for tabela in TABELAS:
        for column, de in ((name, de) for dados in tabela.dados for name, de in dados.de.items()):
            is_id = de not in (De.QUEM, De.CONTEM, De.TODOS)
            assert (found[tabela.nome][column] == "UUID") is is_id, f"{tabela.nome}.{column}"


def test_a_table_is_declared_once() -> None:
    names = [tabela.nome for tabela in TABELAS]
    assert sorted(names) == sorted(set(names))
