"""Makes values, log records and exceptions safe to show: hides fields by name, masks contents, and reduces values to
plain JSON types.

The message of a third-party exception may quote input (``int('...')``, a refused row, a rejected field), so it is
withheld outside development. Frames show files, lines, functions and source, never the value of a variable.
"""

import math
import re
import traceback
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from logging import LogRecord, makeLogRecord
from pathlib import Path, PurePath
from textwrap import indent
from types import TracebackType
from uuid import UUID

from batuta.kernel.errors import BatutaError
from batuta.kernel.masking import mask
from batuta.kernel.masking.credentials import WITHHELD
from batuta.kernel.masking.fields import Kind, kind_of, mask_value
from batuta.kernel.masking.messages import message_of
from batuta.kernel.storage.storable import PRINTABLE

# Exceptions whose messages contain only code, files and sockets. AssertionError is excluded, because its message is
# free text. The source line in the traceback identifies the assertion.
_SAFE = (
    *(OSError, AttributeError, NameError, ImportError, TypeError, IndexError, ArithmeticError),
    *(MemoryError, RecursionError, NotImplementedError, KeyboardInterrupt),
)
# Only classes that these modules define are trusted, because a subclass in another module may have any message.
_STANDARD = frozenset({"builtins", "socket", "ssl", "asyncio.exceptions", "zoneinfo._common"})

_ENGINE = str(Path(__file__).parents[1])
# Files of the engine that call functions of an application.
_CALLERS = frozenset(
    f"{_ENGINE}/{file}.py"
    for file in (
        "kernel/calls/usercode",
        "queue/running",
        "tasks/task",
        "targets/call",
        "dispatch/runner",
        "supervise/loop",
    )
)
_MOST_EXCEPTIONS = 30
_MOST_FRAMES = 40
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n"


def describe(error: BaseException) -> str:
    """Return the full description of an error: all chained and grouped exceptions with their frames, each exception
    once.
    """
    return "\n".join(_describe_chain(error, set()))


def summary(error: BaseException) -> str:
    """Return one exception in one line, without its frames."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    message = _message(error)
    return name + _code(error) + (f": {message}" if message else "") + _count(error)


def _describe_chain(error: BaseException, described: set[int]) -> Iterator[str]:
    for link, link_text in reversed(list(_chain(error, described))):
        yield from _frames(link)
        yield summary(link)
        if isinstance(link, BaseExceptionGroup):
            yield from _members(link, described)
        if link_text:
            yield link_text


def _chain(error: BaseException, described: set[int]) -> Iterator[tuple[BaseException, str]]:
    link: BaseException | None = error
    link_text = ""
    while link is not None and id(link) not in described and len(described) < _MOST_EXCEPTIONS:
        described.add(id(link))
        yield link, link_text
        link_text = _CAUSE if link.__cause__ is not None else _CONTEXT
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _frames(error: BaseException) -> Iterator[str]:
    if error.__traceback__ is None:
        return
    yield "Traceback (most recent call last):"
    first = _first_of_application(error.__traceback__)
    frames = traceback.StackSummary.extract(traceback.walk_tb(first), limit=-_MOST_FRAMES)
    yield from (mask(frame.rstrip("\n")) for frame in frames.format())


def _first_of_application(first: TracebackType) -> TracebackType:
    """Return the traceback without the engine's frames that precede the application's function, because these frames
    are the same for every function. If no application frame follows the engine's frames, return the traceback
    unchanged.
    """
    link: TracebackType | None = first
    while link is not None and link.tb_frame.f_code.co_filename in _CALLERS:
        link = link.tb_next
    is_of_application = link is not None and not link.tb_frame.f_code.co_filename.startswith(_ENGINE)
    return link if link is not None and is_of_application else first


def _members(group: BaseExceptionGroup[BaseException], described: set[int]) -> Iterator[str]:
    for number, member in enumerate(group.exceptions, start=1):
        if id(member) not in described:
            yield f"  [{number} of {len(group.exceptions)}]"
            yield indent("\n".join(_describe_chain(member, described)), "    ")


def _message(error: BaseException) -> str:
    if isinstance(error, BatutaError) or (isinstance(error, _SAFE) and type(error).__module__ in _STANDARD):
        return mask(str(error))
    if (shown := message_of(error)) is not None:
        return shown
    is_empty = not error.args and type(error).__str__ is BaseException.__str__
    return "" if is_empty else WITHHELD


def _code(error: BaseException) -> str:
    """Return the error code of a database error. Unlike the error's message, the code contains no personal data."""
    for attribute in ("sqlstate", "sqlite_errorname"):
        code = getattr(error, attribute, None)
        if isinstance(code, str) and code.isascii() and code.replace("_", "").isalnum() and len(code) <= 40:
            return f" ({code})"
    return ""


def _count(error: BaseException) -> str:
    return f" ({len(error.exceptions)} sub-exceptions)" if isinstance(error, BaseExceptionGroup) else ""


_DEEPEST = 6
_LONGEST_TEXT = 32_000
_LARGEST_NUMBER = 10**18


def scrub_field(name: str, value: object, depth: int = _DEEPEST) -> object:
    """Return a field's value in a form that is safe to log. If the name shows that the field is sensitive, the value is
    hidden. Booleans and None are never hidden. A number is not hidden in a field for human-written text, because there
    it is a count, for example of characters.
    """
    kind = kind_of(name)
    is_count = kind is Kind.TEXT and isinstance(value, int | float)
    if kind is None or value is None or isinstance(value, bool) or is_count:
        return scrub(value, depth)
    return mask_value(value, kind)


def scrub(value: object, depth: int = _DEEPEST) -> object:
    """Reduce a value to text, numbers, lists and dicts. An unknown object is shown by its class name, because its repr
    may contain personal data.
    """
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
            return [_key(name), scrub_field(_key(name), item, depth - 1)]  # a pair of name and value, such as a header
        case list() | tuple() | set() | frozenset() as items:
            return [scrub(item, depth - 1) for item in items]
        case type() as kind:
            return kind.__qualname__
        case unknown:
            return f"<{type(unknown).__qualname__}>"


def scrub_text(text: str) -> str:
    """Mask text, limit its length and replace control characters."""
    if not text.isprintable():
        text = text.encode("utf-8", "replace").decode().translate(PRINTABLE)
    if len(text) <= _LONGEST_TEXT:
        return mask(text)
    # Cut between words, because the mask does not recognise half a number.
    kept, _, _ = text[:_LONGEST_TEXT].rpartition(" ")
    return f"{mask(kept)} [… {len(text) - len(kept)} caracteres]"


def plain(value: object) -> object:
    """Convert instants to ISO text, durations to seconds with milliseconds, and records to dicts. Return other values unchanged."""
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
    """Return whether a value is a container, a record or an exception. The repr of such a value may contain personal
    data.
    """
    return not isinstance(value, str) and (isinstance(value, BaseException | Collection) or is_dataclass(value))


def _scrub_number(number: int | float) -> object:
    """Mask a number that looks like a phone number or an identity number, because spreadsheets store such numbers as
    int or float.
    """
    if isinstance(number, float) and not (math.isfinite(number) and number.is_integer()):
        return number if math.isfinite(number) else str(number)
    if abs(number) > _LARGEST_NUMBER:
        # The number is too long for a phone or identity number, and perhaps too long for str().
        return number if isinstance(number, float) else hex(number)
    digits = str(int(number))
    return number if mask(digits) == digits else mask(digits)


def _key(key: object) -> str:
    return scrub_text(key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key))


_LITERAL = re.compile(r"'(?:[^'\\\r\n]|\\.)*'|\"(?:[^\"\\\r\n]|\\.)*\"")


def with_safe_message(record: LogRecord) -> LogRecord:
    """Return a copy of the log record whose message contains the scrubbed arguments."""
    safe = makeLogRecord(record.__dict__)
    safe.msg, safe.args = safe_words(record), ()
    return safe


def safe_words(record: LogRecord) -> str:
    """Return the message of a log record with scrubbed arguments. The caller must still mask the whole line."""
    words = format_message(record.msg, record.args)
    # Messages of asyncio may contain arguments of callbacks and results of tasks.
    return _LITERAL.sub("'…'", words) if record.name == "asyncio" else words


def format_message(message: object, arguments: object) -> str:
    """Return ``message % arguments``. Arguments that are containers or exceptions are made safe first (see ``scrub``).
    Strings are inserted unmasked, so the caller must apply ``mask`` to the result.
    """
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
    """Make one argument of a log message safe to show: scrub containers and exceptions. Numbers stay numbers, so that
    ``%d`` in the message works.
    """
    if isinstance(argument, BaseException):
        return summary(argument)
    return scrub(argument) if is_structured(argument) else argument
