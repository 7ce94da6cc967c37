import importlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from batuta.kernel.errors import QueryFileError
from batuta.stores.sql.database import Query
from batuta.stores.sql.queries import in_dialect, load_queries, query_of


@dataclass(frozen=True, slots=True)
class SampleQueries:
    one: Query
    two: Query


GOOD = """
-- read one: for both
SELECT 1 WHERE :a = :b AND :a > 0;

-- write two on sqlite: here so
UPDATE t SET x = :x;

-- write two on postgres: there so
UPDATE t SET x = :x::text WHERE y = 'a:b' -- not :this
RETURNING "n [INTEGER]";
"""


def write_queries(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "book.sql"
    file.write_text(text)
    return file


def test_each_database_gets_its_own_statement(tmp_path: Path) -> None:
    sqlite, postgres = (
        load_queries(SampleQueries, write_queries(tmp_path, GOOD), dialect) for dialect in ("sqlite", "postgres")
    )
    assert sqlite.one == Query("one", "SELECT 1 WHERE :a = :b AND :a > 0", ("a", "b"), writes=False)
    assert postgres.one.text == "SELECT 1 WHERE $1 = $2 AND $1 > 0"
    assert sqlite.two.text == "UPDATE t SET x = :x"
    assert postgres.two.text == "UPDATE t SET x = $1::text WHERE y = 'a:b' -- not :this\nRETURNING \"n\""
    assert sqlite.two.writes


def test_name_alone_is_a_file_beside_the_module_of_the_dataclass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Beside:\n    one: object\n    two: object\n"
    )
    (tmp_path / "module_with_queries.py").write_text(module)
    write_queries(tmp_path, GOOD)
    monkeypatch.syspath_prepend(tmp_path)
    beside = importlib.import_module("module_with_queries").Beside
    assert load_queries(beside, "book.sql", "sqlite").one.text == "SELECT 1 WHERE :a = :b AND :a > 0"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-- read one: x\nSELECT 1;", "no query for sqlite is called two"),
        (GOOD + "\n-- read three: x\nSELECT 3;", "no field declares three"),
        (GOOD.replace("two on postgres", "two on sqlite"), "two is defined twice"),
        (GOOD + "\n-- read one on sqlite: x\nSELECT 1;", "one is defined twice"),
        (GOOD.replace("two on postgres", "two on oracle"), "'oracle'"),
        (GOOD.replace("write two on sqlite", "write tow on sqlite"), "no query for sqlite is called two"),
    ],
)
def test_query_file_and_its_declarations_must_agree(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(QueryFileError, match=complaint):
        load_queries(SampleQueries, write_queries(tmp_path, text), "sqlite")


def test_parameter_used_twice_has_one_number() -> None:
    query = in_dialect(query_of("q", "SELECT :b, :a, :b", writes=False), "postgres")
    assert (query.text, query.parameters) == ("SELECT $1, $2, $1", ("b", "a"))
