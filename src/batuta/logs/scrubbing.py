"""Structured values and log records as they may be shown: hidden by field name, masked by content, plain for JSON."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from logging import LogRecord, makeLogRecord
from pathlib import PurePath
from uuid import UUID

from batuta.kernel.masking import mask
from batuta.kernel.masking.fields import Kind, hidden, kind_of
from batuta.logs.tracebacks import summary

_DEEPEST = 6
_LONGEST_TEXT = 32_000
_LARGEST_NUMBER = 10**18


def scrub_field(name: str, value: object, depth: int = _DEEPEST) -> object:
    """The value of a named field. A yes, a no and nothing tell nobody's secret; a number under `messages` is a count."""
    kind = kind_of(name)
    is_count = kind is Kind.TEXT and isinstance(value, int | float)
    if kind is None or value is None or isinstance(value, bool) or is_count:
        return scrub(value, depth)
    return hidden(value, kind)


def scrub(value: object, depth: int = _DEEPEST) -> object:
    """Text, numbers, lists and dicts alone. Of an object we do not know only the class is shown, never its repr."""
    if depth == 0:
        return "[…]"
    match plain(value):
        case None | bool() as answer:
            return answer
        case str() as text:
            return scrub_text(text)
        case int() | float() as number:
            return _scrub_number(number)
        case bytes() | bytearray() | memoryview() as raw:
            return f"<{len(raw)} bytes>"
        case BaseException() as error:
            return summary(error)
        case Mapping() as mapping:
            named = ((_key(key), item) for key, item in mapping.items())
            return {name: scrub_field(name, item, depth - 1) for name, item in named}
        case [str() | bytes() as name, item] if kind_of(_key(name)) is not None:
            return [_key(name), scrub_field(_key(name), item, depth - 1)]  # a header, say
        case list() | tuple() | set() | frozenset() as items:
            return [scrub(item, depth - 1) for item in items]
        case type() as kind:
            return kind.__qualname__
        case unknown:
            return f"<{type(unknown).__qualname__}>"


def scrub_text(text: str) -> str:
    """Masked, of bounded length, and unable to move a terminal's cursor."""
    if not text.isprintable():
        text = text.encode("utf-8", "replace").decode().translate(_UNPRINTABLE)
    if len(text) <= _LONGEST_TEXT:
        return mask(text)
    # Cut between words: half a number would not be recognised.
    kept, _, _ = text[:_LONGEST_TEXT].rpartition(" ")
    return f"{mask(kept)} [… {len(text) - len(kept)} caracteres]"


def plain(value: object) -> object:
    """Instants as ISO text, durations as seconds with milliseconds, records as dicts; anything else as it is."""
    match value:
        case Enum():
            return plain(value.value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return round(value.total_seconds(), 3)
        case UUID() | PurePath() | Decimal():
            return str(value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in fields(value)}
        case tuple() if isinstance(names := getattr(value, "_fields", None), tuple):
            return dict(zip(names, value, strict=True))
        case _:
            return value


def is_structured(value: object) -> bool:
    """Whether there is something in it to look into, so that its own repr must not be trusted."""
    return not isinstance(value, str) and (isinstance(value, BaseException | Collection) or is_dataclass(value))


def _scrub_number(number: int | float) -> object:
    """A spreadsheet makes a phone an int or a float, and an id may be one as well: the digits decide."""
    if isinstance(number, float) and not (math.isfinite(number) and number.is_integer()):
        return number if math.isfinite(number) else str(number)
    if abs(number) > _LARGEST_NUMBER:
        return number if isinstance(number, float) else hex(number)  # too long to be anybody's, maybe to be written
    digits = str(int(number))
    return number if mask(digits) == digits else mask(digits)


def _key(key: object) -> str:
    return scrub_text(key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key))


_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029]
_UNPRINTABLE = {code: "\N{REPLACEMENT CHARACTER}" for code in _CONTROLS if chr(code) not in "\t\n"} | {ord("\r"): ""}


_LITERAL = re.compile(r"'(?:[^'\\\r\n]|\\.)*'|\"(?:[^\"\\\r\n]|\\.)*\"")


def with_safe_message(record: LogRecord) -> LogRecord:
    """A copy whose message is text and whose arguments are already in it."""
    words = format_message(record.msg, record.args)
    if record.name == "asyncio":
        # It shows the arguments of callbacks and the results of tasks.
        words = _LITERAL.sub("'…'", words)
    safe = makeLogRecord(record.__dict__)
    safe.msg, safe.args = words, ()
    return safe


def format_message(message: object, arguments: object) -> str:
    """``message % arguments``, the arguments' own insides scrubbed. What they become is masked with the whole line."""
    words = str(scrub(message)) if is_structured(message) else str(message)
    if not arguments:
        return words
    try:
        return words % _scrub_arguments(arguments)
    except (TypeError, ValueError, KeyError):
        return f"{words} [its arguments do not fit]"


def _scrub_arguments(arguments: object) -> object:
    if isinstance(arguments, Mapping):
        return {name: scrub_field(str(name), value) for name, value in arguments.items()}
    if isinstance(arguments, tuple):
        return tuple(_scrub_argument(argument) for argument in arguments)
    return _scrub_argument(arguments)


def _scrub_argument(argument: object) -> object:
    """Numbers stay numbers, for %d."""
    if isinstance(argument, BaseException):
        return summary(argument)
    return scrub(argument) if is_structured(argument) else argument
