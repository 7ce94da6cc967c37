"""Configure logging for the duration of a test, in the same way as a real process."""

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import structlog

from batuta.logs import configure


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def logging_restored() -> Iterator[None]:
    """Restore the process's logging configuration after the block."""
    loggers = [logging.getLogger(), *map(logging.getLogger, list(logging.Logger.manager.loggerDict))]
    before = [(logger, list(logger.handlers), logger.level, logger.propagate) for logger in loggers]
    ours = structlog.get_config() if structlog.is_configured() else None
    hooks = (warnings.showwarning, sys.excepthook, threading.excepthook, sys.unraisablehook)
    try:
        yield
    finally:
        for logger, handlers, level, propagate in before:
            logger.handlers[:], logger.propagate = handlers, propagate
            logger.setLevel(level)
        warnings.showwarning, sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        structlog.contextvars.clear_contextvars()
        structlog.reset_defaults()
        if ours is not None:
            structlog.configure(**ours)


@contextmanager
def logging_to(
    stream: io.StringIO, format: Literal["pretty", "json", "auto"], level: str = "DEBUG", colour: bool | None = None
) -> Iterator[None]:
    with logging_restored():
        configure(level=level, format=format, stream=stream, service="test", colour=colour)
        yield


def json_lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]
