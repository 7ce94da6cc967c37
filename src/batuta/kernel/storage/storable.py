"""Checks or converts values of application code, so that PostgreSQL and SQLite store and return them unchanged.

PostgreSQL refuses NUL in text and in JSON. UTF-8 cannot encode half of a surrogate pair, JSON cannot represent NaN, and
the largest value of an INTEGER column is 2³¹ - 1. Python's ``json`` turns a key ``1`` into ``"1"``. PostgreSQL's
``jsonb`` keeps numbers as decimals, so ``-0.0`` returns as ``0.0`` and ``1e308`` as an integer of 309 digits.
``refuse_unstorable`` raises an error for these values; ``make_writable``, ``mask_text``, ``count`` and ``json_object``
replace them. A tuple is stored as a list, because JSON has one kind of sequence.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import reduce
from itertools import chain, islice
from uuid import UUID

from batuta.kernel.errors import PayloadTooLarge, UnstorableValue
from batuta.kernel.masking import mask
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import Json, dumps

LARGEST_INTEGER = 2**31 - 1
# Largest integer in stored JSON. It fits in 64 bits, so other programs can read it.
LARGEST_NUMBER = 2**63 - 1
DEEPEST = 20
# Number of characters to examine. This exceeds the number that is kept, because masking may shorten the text.
LOOKED_AT = 32_000
LEFT_OUT = "[…]"

_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def is_writable(text: str) -> bool:
    """Return whether every character in a text can be stored and displayed."""
    return _UNWRITABLE.search(text) is None


# Characters that move the cursor, change the state of the terminal or reverse the text direction.
CONTROLS = (
    *(*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
)
# Table for ``str.translate`` that replaces control characters, so that a terminal shows the text as written.
PRINTABLE = {code: "\N{REPLACEMENT CHARACTER}" for code in CONTROLS if chr(code) not in "\t\n"} | {ord("\r"): ""}


def make_writable(text: str) -> str:
    """Replace characters that cannot be stored or displayed with the replacement character."""
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def mask_text(value: object, longest: int) -> str:
    """Convert any value to a masked string of at most ``longest`` characters, for operators. For an exception, return
    the class name, because the message may contain personal data.

    A Reason stays a Reason: its sentence and its facts are masked and shortened.
    """
    if isinstance(value, Reason):
        return value.map(lambda text: mask_text(text, longest))
    text = type(value).__name__ if isinstance(value, BaseException) else _text_of(value)
    if len(text) > LOOKED_AT:
        # Cut between words, because masking does not recognise half a number. Cut inside a word only if it fills nearly
        # the whole text.
        head = text[:LOOKED_AT]
        words = head.rpartition(" ")[0]
        text = words if len(words) >= longest else head
    return mask(make_writable(text))[:longest]


def count(value: object) -> int | None:
    """Convert a value to an integer that fits an INTEGER column. Return None if the value is not an integer or is out
    of range.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return int(value) if 0 <= value <= LARGEST_INTEGER else None


def json_object(
    value: Mapping[str, object], most: int, of_text: Callable[[str], str] = make_writable
) -> dict[str, Json] | None:
    """Return a JSON copy of a mapping, or None if the copy would exceed about ``most`` characters. Invalid numbers
    become null.
    """
    copy = _Copy(most, of_text)
    copied = dict(copy.items(value, DEEPEST))
    return None if copy.is_too_long else copied


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    copied = _Copy(LOOKED_AT, make_writable).copy(value, DEEPEST)
    return copied if isinstance(copied, str) else dumps(copied)


class _Copy:
    """Copies a value to JSON and stops after a maximum number of characters, so that copying a huge value costs
    little.
    """

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
                # Copy one element more than fits, so that the copy is detected as too long.
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
            return f"<{type(value).__name__}>"  # the type's name instead of the repr, which may contain personal data


# Default of BATUTA_MAX_PAYLOAD_BYTES, in bytes.
MAX_PAYLOAD = 1024 * 1024
# Stack levels that must remain free, because the reader may be called from a deeper stack than the writer.
_ROOM = 300
# Python decodes about 1,000 nested levels, and the reader's own call stack uses some of them.
_DEEPEST = 700
_NESTS = (dict, list, tuple)
_SCALARS = {str, int, float, bool, type(None)}
# The JSON escape of NUL: \u0000 after an even number of backslashes.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
# PostgreSQL returns a float of this size or more as an integer, and Python writes it with an exponent.
_LARGEST_FLOAT = 1e16
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def refuse_unstorable(
    value: object, kind: str, limit: int | None = None, *, keeps_tuples: bool = True, is_flat: bool = False
) -> None:
    """Raise UnstorableValue if a database would change the value, and PayloadTooLarge if its JSON exceeds ``limit``
    bytes. ``keeps_tuples`` allows tuples, which become lists. By passing ``is_flat``, the caller asserts that the value
    contains only types that JSON returns unchanged; the value is then not compared with its decoded JSON.
    """
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
    # Compare the value with its decoded JSON, which is fast. Only a difference needs the slow walk, which finds the
    # cause.
    if "e+" in text or "-0.0" in text or not (is_flat or json.loads(text) == value):
        _refuse_changed(value, kind, keeps_tuples=keeps_tuples)


def refuse_each_unstorable(values: list[list[object]], kind: str, limit: int, *, is_flat: bool = False) -> None:
    """Raise an error if any value cannot be stored. ``limit`` is the maximum size of each value, in bytes of JSON. With
    ``is_flat``, the caller asserts that the values contain only types that JSON returns unchanged.
    """
    try:
        refuse_unstorable(values, kind, limit, keeps_tuples=False, is_flat=is_flat)
    except PayloadTooLarge:
        for value in values:
            refuse_unstorable(value, kind, limit, keeps_tuples=False)


def are_scalars(values: Iterable[object]) -> bool:
    """Return whether all values are strings, numbers, booleans or None, which JSON returns unchanged."""
    return {*map(type, values)} <= _SCALARS


def refuse_too_deep(value: object, kind: str) -> None:
    """Raise an error if a value is nested too deeply: a database would store such a value, but no worker could decode
    it.
    """
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
    """Raise PayloadTooLarge if the value or a part of it has more characters or elements than the limit has bytes. Each
    character and each element takes at least one byte of JSON, so this check need not encode the value.
    """
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
        # raises an error that names the type; otherwise the encoder's message is used below
        _refuse_changed(value, kind)
        raise _unstorable(kind, "no_json", "{said}; pass plain values", said=error) from None
    return text


def _size(text: str, kind: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise _unstorable(
            kind, "surrogate", "half of a surrogate pair is not a character; decode the text properly"
        ) from None


def _refuse_changed(value: object, kind: str, *, keeps_tuples: bool = True) -> None:
    for each in _walk(value):
        match each:
            case tuple() if not keeps_tuples:
                raise _unstorable(
                    kind, "tuple", "a tuple becomes a list; pass a list, or annotate the parameter as a tuple"
                )
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


def _walk(value: object) -> Iterator[object]:
    """Yield the value and every value inside it, visiting each container once."""
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
