"""Query: a named SQL statement."""

from batuta.kernel.values import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """A named statement in one dialect. If ``writes`` is true, it runs on the connection for writes."""

    name: str
    text: str
    parameters: tuple[str, ...]
    writes: bool
