"""Where the engine's migrations and books of queries lie."""

from pathlib import Path

from batuta.stores.sql.migrations import Migration, read_folder

HERE = Path(__file__).parent
BOOKS = HERE / "books"


def engine_migrations() -> list[Migration]:
    return read_folder("batuta", HERE / "schema")
