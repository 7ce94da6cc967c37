"""An exception as text that may be shown: where it happened, what it is, and its message only if the class is known.

A foreign message may quote what somebody wrote (``int('...')``, a row the database refused, a field a model did not
accept), so it is withheld. The frames show files, lines, functions and source, never a variable's value.
"""

import traceback
from collections.abc import Iterator
from textwrap import indent

from batuta.kernel.errors import BatutaError
from batuta.kernel.masking import mask
from batuta.kernel.masking.credentials import WITHHELD

# Their messages speak of code, files and sockets. AssertionError is not here: its message is whatever the author put
# in it, and the source line that is shown says which assertion it was.
_TELLING = (
    *(OSError, AttributeError, NameError, ImportError, TypeError, IndexError, ArithmeticError),
    *(MemoryError, RecursionError, NotImplementedError, KeyboardInterrupt),
)
# A class of somebody else's that inherits from one of those may say anything.
_STANDARD = frozenset({"builtins", "socket", "ssl", "asyncio.exceptions", "zoneinfo._common"})

_MOST_EXCEPTIONS = 30
_MOST_FRAMES = 40
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n"


def describe(error: BaseException) -> str:
    """The whole story: chained and grouped exceptions, each once, with their frames."""
    return "\n".join(_story(error, set()))


def summary(error: BaseException) -> str:
    """One exception in one line, without its frames."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    message = _message(error)
    return name + _code(error) + (f": {message}" if message else "") + _count(error)


def _story(error: BaseException, described: set[int]) -> Iterator[str]:
    for link, joint in reversed(list(_chain(error, described))):
        yield from _frames(link)
        yield summary(link)
        if isinstance(link, BaseExceptionGroup):
            yield from _members(link, described)
        if joint:
            yield joint


def _chain(error: BaseException, described: set[int]) -> Iterator[tuple[BaseException, str]]:
    """The exception, what it came from, and so on; each with the words that join it to the one before."""
    link: BaseException | None = error
    joint = ""
    while link is not None and id(link) not in described and len(described) < _MOST_EXCEPTIONS:
        described.add(id(link))
        yield link, joint
        joint = _CAUSE if link.__cause__ is not None else _CONTEXT
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _frames(error: BaseException) -> Iterator[str]:
    if error.__traceback__ is None:
        return
    yield "Traceback (most recent call last):"
    frames = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), limit=-_MOST_FRAMES)
    yield from (mask(frame.rstrip("\n")) for frame in frames.format())


def _members(group: BaseExceptionGroup[BaseException], described: set[int]) -> Iterator[str]:
    for number, member in enumerate(group.exceptions, start=1):
        if id(member) not in described:
            yield f"  [{number} of {len(group.exceptions)}]"
            yield indent("\n".join(_story(member, described)), "    ")


def _message(error: BaseException) -> str:
    if isinstance(error, BatutaError) or (isinstance(error, _TELLING) and type(error).__module__ in _STANDARD):
        return mask(str(error))
    is_silent = not error.args and type(error).__str__ is BaseException.__str__
    return "" if is_silent else WITHHELD


def _code(error: BaseException) -> str:
    """What a database calls it, which tells nothing about anybody."""
    for attribute in ("sqlstate", "sqlite_errorname"):
        code = getattr(error, attribute, None)
        if isinstance(code, str) and code.isascii() and code.replace("_", "").isalnum() and len(code) <= 40:
            return f" ({code})"
    return ""


def _count(error: BaseException) -> str:
    return f" ({len(error.exceptions)} sub-exceptions)" if isinstance(error, BaseExceptionGroup) else ""
