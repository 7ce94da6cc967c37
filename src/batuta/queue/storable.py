"""Check values before they are stored as JSON: both databases must return exactly the value that was given.

The encoder alone is not enough. Python's ``json`` turns a key ``1`` into ``"1"``; PostgreSQL's ``jsonb`` keeps numbers as
decimals, so ``-0.0`` returns as ``0.0`` and ``1e308`` as an integer of 309 digits. Such values are rejected at the caller.
A tuple is stored as a list: JSON has one kind of sequence.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import chain

from batuta.kernel.errors import PayloadTooLarge, UnstorableValue
from batuta.kernel.reasons import Reason
from batuta.kernel.writable import LARGEST_INTEGER, is_writable

# The default of BATUTA_MAX_PAYLOAD_BYTES.
MAX_PAYLOAD = 1024 * 1024
# The reader may be called from a deep stack: the check leaves this many levels for it.
_ROOM = 300
# Python decodes a thousand levels; the reader's own stack uses some of them.
_DEEPEST = 700
_NESTS = (dict, list, tuple)
# As JSON writes NUL: after a backslash that is not itself escaped.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
# PostgreSQL returns a float without a fraction as an integer from here on: Python writes it with an exponent.
_LARGEST_FLOAT = 1e16
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def refuse_unstorable(value: object, kind: str, limit: int | None = None) -> None:
    """Raise UnstorableValue if a database would return something else, PayloadTooLarge above ``limit`` bytes of JSON."""
    if value is None:
        return
    if limit is not None:
        _refuse_obviously_large(value, kind, limit)
    text = _encode(value, kind)
    size = len(text) if text.isascii() else _size(text, kind)
    if limit is not None and size > limit:
        raise PayloadTooLarge(kind=kind, size=size, limit=limit)
    if "\\u0000" in text and _NUL.search(text):
        raise _unstorable(kind, "nul", "PostgreSQL stores no NUL character; remove it or encode the bytes")
    # Comparing with the decoded text is much faster than a walk in Python, which then finds the reason.
    if "e+" in text or "-0.0" in text or json.loads(text) != value:
        _refuse_changed(value, kind)


def refuse_each_unstorable(values: list[list[object]], kind: str, limit: int) -> None:
    """Check many values with one pass; ``limit`` applies to each of them."""
    try:
        refuse_unstorable(values, kind, limit)
    except PayloadTooLarge:
        for value in values:
            refuse_unstorable(value, kind, limit)


def refuse_too_deep(value: object, kind: str) -> None:
    """Reject values nested too deeply: they store fine, but the worker that claims them cannot decode its batch."""
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
    raise _too_deep(kind)


def refuse_unstorable_key(key: str | None) -> None:
    if key is not None and not is_writable(key):
        raise ValueError("the key cannot be stored: it has control characters or half a surrogate pair; remove them")


def refuse_unstorable_priority(priority: int) -> None:
    if not -LARGEST_INTEGER <= priority <= LARGEST_INTEGER:
        raise ValueError(f"the priority cannot be stored: keep it within ±{LARGEST_INTEGER}")


def _refuse_obviously_large(value: object, kind: str, limit: int) -> None:
    """Reject without encoding, which blocks the event loop: each character and each element takes at least one byte."""
    inner = value if isinstance(value, list | tuple) else ()
    for each in chain((value,), inner, *(level for level in inner if isinstance(level, list | tuple))):
        if isinstance(each, str | list | tuple | dict) and len(each) > limit:
            raise PayloadTooLarge(kind=kind, size=len(each), limit=limit)


def _encode(value: object, kind: str) -> str:
    try:
        text = _ENCODER.encode(value)
        if text.count("[") + text.count("{") > _ROOM:
            _ENCODER.encode(reduce(lambda inner, _: [inner], range(_ROOM), value))
    except RecursionError:
        raise _too_deep(kind) from None
    except (TypeError, ValueError) as error:
        _refuse_changed(value, kind)  # names the type, unless the encoder knows better
        raise _unstorable(kind, "no_json", "{said}; pass plain values", said=error) from None
    return text


def _size(text: str, kind: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise _unstorable(
            kind, "surrogate", "half of a surrogate pair is no character; decode the text properly"
        ) from None


def _refuse_changed(value: object, kind: str) -> None:
    for each in _within(value):
        match each:
            case None | bool() | str() | int() | list() | tuple():
                continue
            case dict():
                for key in each:
                    if not isinstance(key, str):
                        found = type(key).__name__
                        raise _unstorable(
                            kind, "key", "a key of type {type} becomes text; use text as the key", type=found
                        )
            case float():
                _refuse_changed_float(each, kind)
            case _:
                found = type(each).__name__
                raise _unstorable(
                    kind, "type", "JSON has no {type}; pass text, numbers, lists or dictionaries", type=found
                )


def _refuse_changed_float(value: float, kind: str) -> None:
    if not math.isfinite(value):
        raise _unstorable(kind, "not_finite", "a float that is NaN or infinite is not JSON compliant; pass None")
    if value == 0 and math.copysign(1, value) < 0:
        raise _unstorable(kind, "minus_zero", "PostgreSQL returns -0.0 as 0.0; pass 0.0")
    if abs(value) >= _LARGEST_FLOAT:
        raise _unstorable(
            kind, "large_float", "PostgreSQL returns a float of 1e16 or more as an integer; pass an integer or text"
        )


def _within(value: object) -> Iterator[object]:
    """Yield the value and everything inside it, each container once."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, _NESTS) and id(each) not in seen:
            seen.add(id(each))
            waiting.extend(each.values() if isinstance(each, Mapping) else each)


def _too_deep(kind: str) -> UnstorableValue:
    return _unstorable(kind, "too_deep", "it is nested too deeply; flatten it")


def _unstorable(kind: str, key: str, english: str, **facts: object) -> UnstorableValue:
    return UnstorableValue(kind=kind, why=Reason(f"unstorable_{key}", english, **facts))
