"""What somebody else handed to ``logging``, as words that may be shown."""

import re
from collections.abc import Mapping
from logging import LogRecord, makeLogRecord

from batuta.logs.scrubbing import is_structured, scrub, scrub_field
from batuta.logs.tracebacks import summary

_LITERAL = re.compile(r"'(?:[^'\\\r\n]|\\.)*'|\"(?:[^\"\\\r\n]|\\.)*\"")


def with_safe_message(record: LogRecord) -> LogRecord:
    """A copy whose message is text and whose arguments are already in it."""
    words = worded(record.msg, record.args)
    if record.name == "asyncio":
        # It shows the arguments of callbacks and the results of tasks.
        words = _LITERAL.sub("'…'", words)
    safe = makeLogRecord(record.__dict__)
    safe.msg, safe.args = words, ()
    return safe


def worded(message: object, arguments: object) -> str:
    """``message % arguments``, the arguments' own insides scrubbed. What they become is masked with the whole line."""
    words = str(scrub(message)) if is_structured(message) else str(message)
    if not arguments:
        return words
    try:
        return words % _scrubbed(arguments)
    except (TypeError, ValueError, KeyError):
        return f"{words} [its arguments do not fit]"


def _scrubbed(arguments: object) -> object:
    if isinstance(arguments, Mapping):
        return {name: scrub_field(str(name), value) for name, value in arguments.items()}
    if isinstance(arguments, tuple):
        return tuple(_scrubbed_argument(argument) for argument in arguments)
    return _scrubbed_argument(arguments)


def _scrubbed_argument(argument: object) -> object:
    """Numbers stay numbers, for %d."""
    if isinstance(argument, BaseException):
        return summary(argument)
    return scrub(argument) if is_structured(argument) else argument
