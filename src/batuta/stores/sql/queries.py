"""Named queries. The SQL is in ``.sql`` files, and the code declares the names of the queries that it uses.

    -- read last_runs: when each job ran last
    SELECT job_name, max(started_at) AS "last_run [TIMESTAMPTZ]" FROM job_executions GROUP BY job_name;

    -- write claim on sqlite: take the next items
    UPDATE …

    -- write claim on postgres: take the next items
    WITH …

A query without ``on`` serves both databases; a query with ``on`` is defined once for each database. Parameters are
``:name``. A computed column declares its type in its name, in SQLite's form (``AS "last_run [TIMESTAMPTZ]"``); a plain
column needs no type.
"""

import inspect
import re
from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from batuta.kernel.clock import Clock
from batuta.kernel.errors import QueryFileError
from batuta.stores.sql.database import DIALECTS, AnyDataclass, Database, Dialect, Query
from batuta.supervise.retention import Retention

_HEADER = re.compile(r"^-- (read|write) (\w+)(?: on (\w+))?: (.+)$", re.MULTILINE)
# Matches parameters, and also syntax that only looks like a parameter and must be skipped: 'quoted', "named", --
# comments and ::casts.
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|--[^\n]*|::|:(?P<name>[a-z_]\w*)""", re.IGNORECASE)
_TYPED_NAME = re.compile(r'"(\w+) \[\w+\]"')


# A frozen dataclass with one Query per field.
SomeQueries = TypeVar("SomeQueries", bound=AnyDataclass)


def load_queries(queries: type[SomeQueries], file: Path | str, dialect: Dialect) -> SomeQueries:
    """Load the queries in ``file`` into the dataclass ``queries``. If ``file`` is a string, it is a path relative to the
    folder of the module that defines the dataclass. A missing, extra or duplicate query in any dialect raises
    QueryFileError.
    """
    path = _find_beside(queries, file) if isinstance(file, str) else file
    return load_text(queries, read_sql(path), path.name, dialect)


@cache
def _find_beside(queries: type[Any], name: str) -> Path:
    return Path(inspect.getfile(queries)).parent / name


@cache
def read_sql(file: Path) -> str:
    """Return the text of an SQL file. The text is cached until the process ends."""
    return file.read_text(encoding="utf-8")


@cache
def load_all(file: Path, dialect: Dialect) -> tuple[Query, ...]:
    """Return every query in a file, for callers that do not select queries by name."""
    found = parse(read_sql(file), file.name)
    return tuple(in_dialect(query, dialect) for (_, on), query in found.items() if on in (None, dialect))


def load_text(
    queries: type[SomeQueries], text: str, name: str, dialect: Dialect, written_for: Sequence[Dialect] = DIALECTS
) -> SomeQueries:
    """Load queries from a string in the same way as ``load_queries`` does from a file. The string must define every
    query for each of the dialects in ``written_for``.
    """
    loaded: SomeQueries = _load(queries, text, name, dialect, tuple(written_for))
    return loaded


@lru_cache(maxsize=1024)
def _load(queries: type[Any], text: str, name: str, dialect: Dialect, written_for: tuple[Dialect, ...]) -> Any:
    """Parse an SQL file into its statements. The result is cached, because several components use the same file, and
    because a process may open several databases.
    """
    declared = {field.name for field in fields(queries)}
    found = parse(text, name)
    for each in written_for:
        defined = {called for called, on in found if on in (None, each)}
        if missing := sorted(declared - defined):
            raise QueryFileError(file=name, why=f"no query for {each} is called {', '.join(missing)}")
        if extra := sorted(defined - declared):
            raise QueryFileError(file=name, why=f"no field declares {', '.join(extra)}")
    chosen = {called: query for (called, on), query in found.items() if on in (None, dialect)}
    return queries(**{called: in_dialect(query, dialect) for called, query in chosen.items()})


def parse(text: str, file: str) -> dict[tuple[str, Dialect | None], Query]:
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    found: dict[tuple[str, Dialect | None], Query] = {}
    for header, end in zip(headers, ends, strict=True):
        kind, name, on, _ = header.groups()
        if on is not None and on not in DIALECTS:
            raise QueryFileError(file=file, why=f"{name} is for '{on}', not one of {', '.join(DIALECTS)}")
        taken = {key for key in found if key[0] == name}
        if (name, on) in taken or (taken and (on is None or (name, None) in taken)):
            raise QueryFileError(file=file, why=f"{name} is defined twice")
        found[name, on] = query_of(name, text[header.end() : end].strip().rstrip(";"), writes=kind == "write")
    return found


def query_of(name: str, text: str, *, writes: bool) -> Query:
    """Create a query from a string. Its parameters are the ``:names`` in the string."""
    names = dict.fromkeys(token["name"] for token in _TOKEN.finditer(text) if token["name"])
    return Query(name, text, tuple(names), writes)


def in_dialect(query: Query, dialect: Dialect) -> Query:
    """Return a copy of the query with placeholders in the style of the given dialect."""
    if dialect == "sqlite":
        return query
    places = {name: f"${place}" for place, name in enumerate(query.parameters, start=1)}
    numbered = _TOKEN.sub(lambda token: places[token["name"]] if token["name"] else token[0], query.text)
    return Query(query.name, _TYPED_NAME.sub(r'"\1"', numbered), query.parameters, query.writes)


def retentions_in(file: Path, age: timedelta, database: Database, clock: Clock) -> list[Retention]:
    """Return one ``Retention`` for the pruner for each statement in an SQL file. Each statement deletes at most
    ``:limit`` rows older than ``:before``.
    """

    def retain(query: Query) -> Retention:
        return Retention(query.name, lambda limit: database.run(query, before=clock.now() - age, limit=limit))

    return [retain(query) for query in load_all(file, database.dialect)]
