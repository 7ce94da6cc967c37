"""Rows as tests read them: stored reasons become reasons again."""

from typing import Any

from batuta.kernel.reasons import decode
from batuta.stores.sql.database import Row


def readable(row: Row) -> dict[str, Any]:
    return {name: decode(value) if isinstance(value, str) else value for name, value in dict(row).items()}
