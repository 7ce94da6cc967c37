"""What both databases can hold, whatever somebody's code hands us.

PostgreSQL refuses NUL in text and in JSON, UTF-8 knows no half of a surrogate pair, JSON no NaN, and an INTEGER ends at 2³¹ - 1.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import islice
from uuid import UUID

from batuta.kernel.json import Json, dumps
from batuta.kernel.masking import mask
from batuta.kernel.reasons import Reason

LARGEST_INTEGER = 2**31 - 1
# In JSON a number may be longer, but not so long that others cannot read it.
LARGEST_NUMBER = 2**63 - 1
DEEPEST = 20
# What is looked at of a text of which much less is kept: masking may make it shorter.
LOOKED_AT = 32_000
LEFT_OUT = "[…]"

_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def is_writable(text: str) -> bool:
    """Whether every character of a text can be stored and shown."""
    return _UNWRITABLE.search(text) is None


def make_writable(text: str) -> str:
    """Replace characters that cannot be stored or shown."""
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def mask_text(value: object, longest: int) -> str:
    """A masked and short text of anything, for operators. An exception gives its class: its message may hold personal data.

    A reason stays one: its facts are masked and shortened as well.
    """
    if isinstance(value, Reason):
        return value.map(lambda text: mask_text(text, longest))
    text = type(value).__name__ if isinstance(value, BaseException) else _as_text(value)
    if len(text) > LOOKED_AT:
        # Cut between words, as half a number would not be recognised; unless one word is nearly all there is.
        head = text[:LOOKED_AT]
        words = head.rpartition(" ")[0]
        text = words if len(words) >= longest else head
    return mask(make_writable(text))[:longest]


def count(value: object) -> int | None:
    """None: it is no count, or none that a column holds."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return int(value) if 0 <= value <= LARGEST_INTEGER else None


def json_object(
    value: Mapping[str, object], most: int, of_text: Callable[[str], str] = make_writable
) -> dict[str, Json] | None:
    """A copy that JSON can say, with null for a number it cannot; None: it is longer than about ``most`` characters."""
    copy = _Copy(most, of_text)
    copied = dict(copy.items(value, DEEPEST))
    return None if copy.is_too_long else copied


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    copied = _Copy(LOOKED_AT, make_writable).copy(value, DEEPEST)
    return copied if isinstance(copied, str) else dumps(copied)


class _Copy:
    """Stops copying when it becomes too long, however large the original is."""

    def __init__(self, most: int, of_text: Callable[[str], str]) -> None:
        self._left = most
        self._of_text = of_text

    @property
    def is_too_long(self) -> bool:
        return self._left < 0

    def copy(self, value: object, depth: int) -> Json:
        self._left -= 1
        if depth == 0 or self.is_too_long:
            return LEFT_OUT
        match value:
            case None | bool():
                return value
            case str():
                return self._text(value)
            case int():
                return int(value) if abs(value) <= LARGEST_NUMBER else None
            case float():
                return float(value) if math.isfinite(value) else None
            case Mapping():
                return dict(self.items(value, depth))
            case list() | tuple() | set() | frozenset():
                # One more than fits, so that it shows that it does not.
                return [self.copy(each, depth - 1) for each in islice(value, self._left + 1)]
            case _:
                return self._text(_word_for(value))

    def items(self, mapping: Mapping[str, object], depth: int) -> list[tuple[str, Json]]:
        return [(self._key(key), self.copy(item, depth - 1)) for key, item in islice(mapping.items(), self._left + 1)]

    def _key(self, key: object) -> str:
        copied = self.copy(key, 1)
        return copied if isinstance(copied, str) else dumps(copied)

    def _text(self, text: str) -> str:
        self._left -= len(text)
        return LEFT_OUT if self.is_too_long else self._of_text(text)


def _word_for(value: object) -> str:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta() | Decimal() | UUID():
            return str(value)
        case Enum():
            return value.name
        case _:
            return f"<{type(value).__name__}>"  # never its repr, which may say anything
