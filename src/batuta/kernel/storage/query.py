"""Query: a named SQL statement."""

from batuta.kernel.values import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """A named SQL statement for one database (SQLite or PostgreSQL). If ``writes`` is true, the statement runs on the
    connection for writes.
    """

    name: str
    text: str
    parameters: tuple[str, ...]
    writes: bool
