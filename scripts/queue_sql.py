"""Write docs/queue-sql.md from the code. The document shows a queue's statements as the database receives them, for the
engine's table `tasks`.
"""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from batuta.stores.sql.database import DIALECTS, Dialect, Query
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queue.clock import ClockQueries
from batuta.stores.sql.queue.limits import LimitQueries
from batuta.stores.sql.queue.statements import (
    more_queries,
    postgres_claim_queries,
    queue_queries,
    sqlite_claim_queries,
)
from batuta.tasks.registry import TASKS
from scripts.sql_layout import layout

FILE = Path(__file__).parents[1] / "docs" / "queue-sql.md"
# Columns that `enqueue` fills: first those with one value per row, then those with one value for the whole batch.
OWN, SHARED = ("id", "args", "unique_key"), ("queue", "name", "priority")
# Columns of a task that a worker reads, with their declared types.
GIVEN = (
    *(("id", "UUID"), ("fence", "BIGINT"), ("attempts", "INTEGER"), ("crashes", "INTEGER")),
    *(("available_at", "TIMESTAMPTZ"), ("created_at", "TIMESTAMPTZ"), ("name", "TEXT"), ("args", "JSONB")),
)
HEAD = """# The queue's SQL

`python3 dev.py check --fix` writes this page from the code, and a test compares them. Do not edit it by hand.

This page shows the SQL statements for the table `tasks` on PostgreSQL and SQLite, with line breaks added. For another
`QueueTable` the statements are the same, with the columns of that table. Statements for groups are omitted, because `tasks`
has no groups.
"""
SECTIONS = {
    "postgres": """## PostgreSQL

`$1`, `$2`, … are the parameters in the order listed. If the parameter `now` is NULL, the statement uses the server's clock.
""",
    "sqlite": """## SQLite

Instants are microseconds since 1970; `now()` is the engine's function for this machine's clock. A claim runs several statements in
one transaction: find the due items (`pick`), lease them (`take`), read them (`taken`).
""",
}
_HEADER = re.compile(r"^-- (?:read|write) (\w+)(?: on (\w+))?: (.+(?:\n-- .+)*)", re.MULTILINE)


def document() -> str:
    return "\n".join([HEAD, *(line for dialect in reversed(DIALECTS) for line in _section(dialect))])


def _section(dialect: Dialect) -> Iterator[str]:
    yield SECTIONS[dialect]
    explanations = dict(_explanations(dialect))
    for query in queries(dialect):
        if query.name in explanations and query.text != "SELECT 1":
            yield f"### {query.name}\n"
            yield f"{explanations[query.name]}.\n"
            yield from [f"Parameters: {', '.join(f'`{name}`' for name in query.parameters)}.\n"] * bool(
                query.parameters
            )
            yield f"```sql\n{layout(_without_header(query.text))};\n```\n"


def queries(dialect: Dialect) -> Iterator[Query]:
    turns: Any = postgres_claim_queries(TASKS) if dialect == "postgres" else sqlite_claim_queries(TASKS, GIVEN)
    all_statements = [turns, queue_queries(TASKS, dialect, OWN, SHARED)]
    all_statements += [more_queries("queue_limits.sql", TASKS, dialect, LimitQueries)]
    if dialect == "sqlite":
        all_statements += [more_queries("queue_clock.sql", TASKS, dialect, ClockQueries, both=False)]
    for statements in all_statements:
        yield from (getattr(statements, field.name) for field in fields(statements))


def _explanations(dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Yield the name and description of each statement. Statements that only a queue with groups uses are omitted."""
    for file in ("queue.sql", f"queue_on_{dialect}.sql", "queue_limits.sql", "queue_clock.sql"):
        text = (STATEMENTS / file).read_text(encoding="utf-8")
        headers = list(_HEADER.finditer(text))
        ends = [header.start() for header in headers[1:]] + [len(text)]
        for header, end in zip(headers, ends, strict=True):
            name, on, remark = header.groups()
            if on in (None, dialect) and "{group" not in text[header.end() : end]:
                sentences = re.sub(r"(?<=\w)\n-- (?=[A-Z])", ". ", remark[0].upper() + remark[1:])
                yield name, sentences.replace("\n-- ", " ").rstrip(".")


def _without_header(text: str) -> str:
    """Remove the header comment of a statement, because the document shows it above the statement."""
    return re.sub(r"\A(?:--[^\n]*\n)+", "", text)
