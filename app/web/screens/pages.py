"""Helpers for pages that show a list: filters, and the position after which the next page begins."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from batuta.extension import Texts
from batuta.kernel import dataclass

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_POSITION: Final = re.compile(r"(\d{1,17})_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class Position:
    """The row of a list after which the next page begins. It is a parameter in the page's address."""

    at: datetime
    id: str

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Parse a position. Return None for any other text; the list then begins at its first row."""
        found = _POSITION.fullmatch(text)
        if found is None:
            return None
        try:
            return cls(_EPOCH + timedelta(microseconds=int(found[1])), found[2])
        except OverflowError:
            return None

    def __str__(self) -> str:
        return f"{(self.at - _EPOCH) // timedelta(microseconds=1)}_{self.id}"


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter for a list: a link with a query, and the number of rows that match the filter, or None."""

    text: str
    query: Mapping[str, str]
    is_here: bool
    count: int | None = None


def is_id(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text) is not None


def word(texts: Texts, group: str, stored: object) -> str:
    """Return the text for a code in a database column. A code without a text, which another version may have written,
    is returned unchanged.
    """
    return texts.get(f"{group}.{stored}", str(stored))
