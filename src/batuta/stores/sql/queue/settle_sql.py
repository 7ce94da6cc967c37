"""Builds the SQL that settles one table's items, and SQL expressions that other statements also use."""

from collections.abc import Callable, Mapping

from batuta.queue.item import QueueTable
from batuta.stores.sql.database import Dialect


def clock_of(dialect: Dialect) -> str:
    return "now()" if dialect == "sqlite" else "statement_timestamp()"


def now_of(dialect: Dialect) -> str:
    return f"coalesce(:now, {clock_of(dialect)})"


def now_once(dialect: Dialect) -> str:
    """Return an SQL expression for the current time, for statements that change many rows. SQLite evaluates this
    expression only once per statement, which saves time, because each evaluation of ``now()`` calls Python.
    """
    return f"(SELECT {now_of(dialect)})" if dialect == "sqlite" else now_of(dialect)


def assign(values: Mapping[str | None, str]) -> str:
    """Return the SET list of an UPDATE. A None key stands for a column that the table does not have, so its assignment
    is omitted.
    """
    return ", ".join(f"{column} = {value}" for column, value in values.items() if column is not None)


def qualify(table: QueueTable, dialect: Dialect, column: str) -> str:
    return f"{table.name if dialect == 'sqlite' else 'item'}.{column}"


def is_leased(table: QueueTable, dialect: Dialect, row: str) -> str:
    """Return the condition that a row has a lease, for statements that find their rows by id.

    On PostgreSQL the condition has a form that prevents the use of the index of leases. If few rows were leased when
    the statistics were collected, PostgreSQL would choose that index, and compare each settlement with each leased row.
    """
    column = f"{row}.{table.lease_until}"
    return f"{column} IS NOT NULL" if dialect == "sqlite" else f"num_nulls({column}) = 0"


def retention_end(table: QueueTable, dialect: Dialect) -> str:
    """Return the SQL expression for the end of an item's retention. It is used for items that end without being run by
    a worker.
    """
    seconds = int(table.keep.total_seconds())
    span = f"{seconds * 1_000_000}" if dialect == "sqlite" else f"{seconds} * INTERVAL '1 second'"
    return f"{now_of(dialect)} + {span}"


def settle(table: QueueTable, dialect: Dialect, *, skips_locked: bool = False) -> str:
    """Return the UPDATE that settles many rows in one statement. Each row is changed only if its fence matches. In the
    statement, the alias ``ending`` denotes a settlement.

    With ``skips_locked``, the statement first locks the rows that no other transaction has locked, and updates only
    those (PostgreSQL). Such a statement costs about 10 % more than the plain UPDATE, which waits for row locks. A row
    that changed after the statement took its snapshot and before it locked the row is skipped as well.
    """

    def of(name: str) -> str:
        return f"ending.value ->> '{name}'" if dialect == "sqlite" else f"ending.{name}"

    def mine(column: str) -> str:
        return qualify(table, dialect, column)

    def instant(name: str) -> str:
        return of(name) if dialect == "sqlite" else f"TIMESTAMPTZ 'epoch' + {of(name)} * INTERVAL '1 microsecond'"

    def after(name: str) -> str:
        return f"{now_of(dialect)} + ({of(name)})" + ("" if dialect == "sqlite" else " * INTERVAL '1 microsecond'")

    # An item whose cancellation was requested is cancelled instead of becoming ready again.
    is_unwanted = f"{mine(table.cancel_requested)} AND {of('ended')} IS NULL" if table.cancel_requested else "FALSE"
    result = "nullif(ending.value -> 'result', 'null')" if dialect == "sqlite" else "ending.result"
    values: dict[str | None, str] = {
        table.state: f"CASE WHEN {is_unwanted} THEN '{table.cancelled}' ELSE coalesce({of('state')}, {mine(table.state)}) END",
        table.available_at: f"coalesce({after('wait')}, {instant('available_at')}, {mine(table.available_at)})",
        table.attempts: f"CASE WHEN {of('resets')} THEN 0 ELSE {mine(table.attempts)} - coalesce({of('back')}, 0) END",
        table.crashes: f"CASE WHEN {of('untried')} THEN {mine(table.crashes)} ELSE 0 END",
        table.error: _error(table, of, mine),
        table.finished_at: f"CASE WHEN {of('ended')} OR {is_unwanted} THEN {now_of(dialect)} END",
        table.lease_until: "NULL",
        table.owner: "NULL",
        table.result: result,
        table.expires_at: f"CASE WHEN {is_unwanted} THEN {retention_end(table, dialect)} ELSE {after('keep')} END",
        table.last_stage: f"coalesce({of('last_stage')}, {mine(str(table.last_stage))})",
        table.updated_at: now_of(dialect),
    }
    target, row = (table.name, table.name) if dialect == "sqlite" else (f"{table.name} AS item", "item")
    if skips_locked and dialect == "postgres":
        row = "item.ctid = ending.tid AND item"
    return (
        f"UPDATE {target} SET {assign(values)} FROM {_endings(table, dialect, skips_locked=skips_locked)}"
        f" WHERE {row}.{table.id} = {of('id')} AND {mine(table.fence)} = {of('fence')}"
        f" AND {is_leased(table, dialect, table.name if dialect == 'sqlite' else 'item')}"
    )


def _error(table: QueueTable, of: Callable[[str], str], mine: Callable[[str], str]) -> str:
    """Return the SQL expression for a settled row's error. If cancellation was requested while the item was running,
    its row already contains the reason, which is kept.
    """
    given = of("error")
    if table.cancel_requested is None:
        return given
    ends_so = f"({of('state')} = '{table.cancelled}' OR {of('ended')} IS NULL)"
    is_cancelled = f"{mine(table.cancel_requested)} AND {ends_so}"
    return f"CASE WHEN {is_cancelled} THEN coalesce({mine(table.error)}, {given}) ELSE {given} END"


def settle_successes(table: QueueTable, dialect: Dialect) -> str:
    """Return the UPDATE that settles rows as done, the most frequent case. Each row is changed only if its fence
    matches.

    This UPDATE writes the same values as the UPDATE of ``settle``, but takes lists instead of JSON. On PostgreSQL the
    lists are passed as strings, because the driver would check each element of an array in Python. On SQLite each
    statement settles items that have the same fence and the same retention, so that it takes only a list of ids and
    need not decode rows.
    """
    keep = ":keep" if dialect == "sqlite" else "success.keep * INTERVAL '1 microsecond'"
    values: dict[str | None, str] = {
        table.state: f"'{table.done}'",
        table.crashes: "0",
        table.error: "NULL",
        table.finished_at: now_of(dialect),
        table.lease_until: "NULL",
        table.owner: "NULL",
        table.result: "NULL",
        table.expires_at: f"{now_of(dialect)} + {keep}",
        table.updated_at: now_of(dialect),
    }
    if dialect == "sqlite":
        return (
            f"UPDATE {table.name} SET {assign(values)} WHERE {table.id} IN (SELECT value FROM json_each(:ids))"
            f" AND {table.name}.{table.fence} = :fence AND {is_leased(table, dialect, table.name)}"
        )
    return (
        f"UPDATE {table.name} AS item SET {assign(values)}"
        " FROM unnest(string_to_array(:ids, ',')::uuid[], string_to_array(:fences, ',')::bigint[],"
        " string_to_array(:keeps, ',', 'null')::bigint[]) AS success (id, fence, keep)"
        f" WHERE item.{table.id} = success.id AND item.{table.fence} = success.fence AND {is_leased(table, dialect, 'item')}"
    )


def _endings(table: QueueTable, dialect: Dialect, *, skips_locked: bool) -> str:
    """Return the FROM item that provides the settlements as rows. With ``skips_locked``, it provides only the
    settlements for rows that no other transaction has locked, and locks these rows.
    """
    if dialect == "sqlite":
        return "json_each(:endings) AS ending"
    source = (
        "jsonb_to_recordset(:endings) AS ending (id uuid, fence bigint, state text, wait bigint, available_at bigint,"
        " back integer, resets boolean, untried boolean, error text, ended boolean, result jsonb, keep bigint, last_stage text)"
    )
    if not skips_locked:
        return source
    return (
        f"(SELECT free.ctid AS tid, ending.* FROM {source} JOIN {table.name} AS free ON free.{table.id} = ending.id"
        f" AND free.{table.fence} = ending.fence AND {is_leased(table, dialect, 'free')}"
        f" FOR NO KEY UPDATE OF free SKIP LOCKED) AS ending"
    )
