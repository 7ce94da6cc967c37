"""Writes the engine's events to standard ``logging``, for a program that has its own handlers.

The command ``batuta``, in contrast, replaces all handlers of its process (``logs.setup``). Here the program's handlers
stay, so the message, fields and traceback of each record are masked before a handler receives the record.
"""

import logging
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from batuta.kernel.events import Event, Fanout
from batuta.logs.scrubbing import describe, scrub_field, scrub_text
from batuta.logs.subscriber import LINES, LOGGER, LogSubscriber, fields_of
from batuta.texts import Wording


class HostLog:
    """Writes one log record per event, to the logger ``batuta``. For structured handlers, the attribute
    ``record.batuta`` contains the event's fields.
    """

    def __init__(self, wording: Wording) -> None:
        self._wording = wording

    def __call__(self, event: Event) -> None:
        line, logger = LINES[type(event)](event), logging.getLogger(LOGGER)
        if not logger.isEnabledFor(line.level):
            return
        renamed = {self._wording.rename(name): value for name, value in fields_of(event).items()}
        fields = {name: scrub_field(name, value) for name, value in renamed.items() if value is not None}
        words = [self._wording.phrase(event, line.words), *(f"{name}={value}" for name, value in fields.items())]
        trace = "" if line.trace is None else "\n" + describe(line.trace)
        logger.log(line.level, "%s", scrub_text(" ".join(words) + trace), extra={"batuta": fields})


@asynccontextmanager
async def log_to_host(events: Fanout, wording: Wording | None) -> AsyncIterator[None]:
    """Write the engine's events to standard ``logging`` while the ``async with`` block runs. If no handler would
    receive them, write them to standard error.
    """
    log = HostLog(wording or Wording())
    events.subscribe(log)
    try:
        with _visible():
            yield
    finally:
        events.unsubscribe(log)


@contextmanager
def log_if_silent(events: Fanout, wording: Wording | None) -> Iterator[None]:
    """Write the engine's events to standard ``logging`` while the ``with`` block runs, unless this process already logs
    them. If the program has no handler, Python writes warnings and errors to standard error.
    """
    if events.has(HostLog, LogSubscriber):
        yield
        return
    log = HostLog(wording or Wording())
    events.subscribe(log)
    try:
        yield
    finally:
        events.unsubscribe(log)


@contextmanager
def _visible() -> Iterator[None]:
    logger = logging.getLogger(LOGGER)
    if logger.hasHandlers():
        yield
        return
    handler, level = logging.StreamHandler(sys.stderr), logger.level
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    if level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
