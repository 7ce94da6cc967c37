"""A queue's indexes: their WHERE conditions, the statements that create them, and a check that they exist."""

from collections.abc import Iterable, Mapping, Sequence

from batuta.kernel.errors import MissingIndexes
from batuta.queue.item import QueueTable
from batuta.stores.sql.database import Database, Dialect, Query
from batuta.stores.sql.queries import query_of


def index_ddl(table: QueueTable) -> dict[str, str]:
    """Return the indexes that a queue needs on its table, as a mapping of index names to CREATE INDEX statements."""
    ready = table.ready_index or f"{table.name}_ready"
    columns = [table.queue, table.group, *priority_order(table), table.available_at, table.id]
    names = ", ".join(each for each in columns if each)
    return {
        ready: f"CREATE INDEX {ready} ON {table.name} ({names}) WHERE {ready_condition(table)};",
        f"{table.name}_leased": f"CREATE INDEX {table.name}_leased ON {table.name} ({table.lease_until}) "
        f"WHERE {table.lease_until} IS NOT NULL;",
    }


async def require_indexes(database: Database, tables: Iterable[QueueTable]) -> None:
    """Raise MissingIndexes if a queue table lacks an index. The error contains the missing CREATE INDEX statements."""
    wanted = {name: (table.name, ddl) for table in tables for name, ddl in index_ddl(table).items()}
    if not wanted:
        return
    found = {row["name"]: row["table"] for row in await database.all(_INDEXES[database.dialect])}
    # A table without any index, even for its primary key, does not exist yet.
    missing = {name: each for name, each in wanted.items() if name not in found and each[0] in found.values()}
    if missing:
        lacking = sorted({table for table, _ in missing.values()})
        raise MissingIndexes(tables=", ".join(lacking), ddl="\n".join(ddl for _, ddl in missing.values()))


_INDEXES: Mapping[Dialect, Query] = {
    "sqlite": query_of(
        "indexes", "SELECT name, tbl_name AS \"table\" FROM sqlite_master WHERE type = 'index'", writes=False
    ),
    "postgres": query_of(
        "indexes",
        # The view pg_indexes would be more readable, but takes four times as long, and every start reads it.
        """
        SELECT index.relname AS name, parent.relname AS "table"
        FROM pg_index JOIN pg_class index ON index.oid = indexrelid JOIN pg_class parent ON parent.oid = indrelid
        WHERE index.relnamespace = ANY (current_schemas(FALSE)::regnamespace[])
        """,
        writes=False,
    ),
}


def ready_condition(table: QueueTable) -> str:
    return unleased_condition(table) + (f" AND {table.limit_key} IS NULL" if table.limit_key else "")


def unleased_condition(table: QueueTable) -> str:
    condition = f"{is_one_of(table.state, table.ready)} AND {table.lease_until} IS NULL"
    return condition + (f" AND {table.doubt} IS NULL" if table.doubt else "")


def is_one_of(column: str, values: Sequence[str]) -> str:
    """Return the SQL condition that a column has one of the values. The condition must have exactly the form that the
    table's partial indexes use; otherwise the database does not use those indexes.
    """
    quoted = [f"'{value}'" for value in values]
    return f"{column} = {quoted[0]}" if len(quoted) == 1 else f"{column} IN ({', '.join(quoted)})"


def priority_order(table: QueueTable) -> list[str]:
    return [] if table.priority is None else [f"{table.priority} DESC" if table.urgent_is_high else table.priority]
