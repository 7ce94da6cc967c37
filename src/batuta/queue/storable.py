"""What both databases can hold of what somebody hands us to keep: refused at the door, where its owner can still be told."""

import re
from functools import reduce

from batuta.kernel.json import dumps
from batuta.kernel.writable import LARGEST_INTEGER, is_writable

# Whoever reads it back may have been called by many: so much deeper it could have been.
_ROOM = 300
# Python reads a thousand levels, of which whoever reads has used some.
_DEEPEST = 700
_NESTS = (dict, list, tuple)
# As JSON writes it: a backslash before it that is not itself escaped.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_HALF = re.compile("[\ud800-\udfff]")


def refuse_unstorable(value: object, what: str) -> None:
    """Raise TypeError or ValueError if ``value`` cannot be kept as JSON, or would not come back as it was."""
    if value is None:
        return
    try:
        text = dumps(value)
        if text.count("[") + text.count("{") > _ROOM:
            dumps(reduce(lambda inner, _: [inner], range(_ROOM), value))
    except RecursionError:
        raise ValueError(f"{what} cannot be stored: it is nested too deeply; flatten it") from None
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what} cannot be stored: {error}; pass plain values") from None
    if _NUL.search(text):
        raise ValueError(f"{what} cannot be stored: PostgreSQL keeps no NUL character; remove it or encode the bytes")
    if _HALF.search(text):
        raise ValueError(f"{what} cannot be stored: half of a surrogate pair is no character; decode it properly")


def refuse_too_deep(value: object, what: str) -> None:
    """What could be written here, and would keep whoever claims it from reading what he claims with it."""
    level = [value] if isinstance(value, _NESTS) else []
    for _ in range(_DEEPEST):
        if not level:
            return
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, _NESTS)
        ]
    raise ValueError(f"{what} cannot be stored: it is nested too deeply; flatten it")


def refuse_unstorable_key(key: str | None) -> None:
    if key is not None and not is_writable(key):
        raise ValueError("the key cannot be stored: it has control characters or half a surrogate pair; remove them")


def refuse_unstorable_priority(priority: int) -> None:
    if not -LARGEST_INTEGER <= priority <= LARGEST_INTEGER:
        raise ValueError(f"the priority cannot be stored: keep it within ±{LARGEST_INTEGER}")
