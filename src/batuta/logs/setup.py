"""Configures one handler for all log lines of the process: lines from the engine and from libraries, warnings, and
uncaught exceptions.

    structlog ──▶ stdlib logging ──▶ root ──▶ LineHandler ──▶ stream
    any library ─────────┘                       └ LineFormatter: scrubs message, fields and traceback, then renders the line

Values are masked before rendering, because masking a finished JSON line could remove its quotes.
"""

import logging
import sys
from datetime import UTC, datetime, tzinfo
from typing import Literal, Protocol, TextIO

from batuta.kernel.errors import InvalidSetting
from batuta.kernel.events import Fanout
from batuta.kernel.reasons import Reason
from batuta.kernel.storage import json
from batuta.kernel.trace import current
from batuta.logs.library import EventDict, Processor, WrappedLogger, structlog
from batuta.logs.scrubbing import describe, format_message, scrub_field, scrub_text, with_safe_message
from batuta.logs.subscriber import LOGGER, LogSubscriber, install_hooks
from batuta.texts import Wording

# Libraries whose INFO lines repeat the engine's events or contain addresses.
QUIET = ("httpcore2", "httpx2", "uvicorn")


class Wanted(Protocol):
    """The log settings that ``begin_logging`` reads."""

    @property
    def log_level(self) -> str: ...
    @property
    def log_format(self) -> Literal["pretty", "json", "auto"]: ...
    @property
    def no_color(self) -> str | None: ...
    @property
    def force_color(self) -> str | None: ...


def begin_logging(
    events: Fanout, wanted: Wanted, *, service: str, stream: TextIO, zone: tzinfo, wording: Wording | None = None
) -> None:
    """Configure the log of this process, and write the process's events to it. ``wording`` contains the application's
    own texts and field names for log lines.
    """
    configure(
        level=wanted.log_level,
        format=wanted.log_format,
        stream=stream,
        service=service,
        colour=False if wanted.no_color is not None else True if wanted.force_color is not None else None,
        zone=zone,
    )
    events.subscribe(LogSubscriber(wording))


def configure(
    *,
    level: str,
    format: Literal["pretty", "json", "auto"],
    stream: TextIO,
    service: str,
    colour: bool | None = None,
    zone: tzinfo = UTC,
) -> None:
    """Write all logs to ``stream``, replacing any earlier configuration.

    By default, lines are coloured if they go to a terminal; ``colour`` overrides this default. Pretty lines show the
    time in ``zone``; JSON lines show it in UTC.
    """
    threshold = _threshold(level)
    handler = LineHandler(stream)
    handler.setFormatter(LineFormatter(_renderer(format, stream, colour, zone), service))
    _make_the_only_handler(handler)
    logging.getLogger().setLevel(threshold)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))
    # The pool logs each failed attempt to reach the server with a traceback. The failing loop already reports the
    # outage once.
    logging.getLogger("asyncpg.pool").setLevel(logging.CRITICAL)
    # A process without free file descriptors would log every attempt to accept a connection.
    library = logging.getLogger("asyncio")
    for each in [filter for filter in library.filters if isinstance(filter, OncePerSecond)]:
        library.removeFilter(each)
    library.addFilter(OncePerSecond())
    install_hooks()
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


class OncePerSecond(logging.Filter):
    """Drops a record that has the same text as an earlier record from the same second."""

    def __init__(self) -> None:
        super().__init__()
        self._second, self._seen = 0, set[str]()

    def filter(self, record: logging.LogRecord) -> bool:
        if int(record.created) != self._second:
            self._second, self._seen = int(record.created), set()
        is_new = (text := str(record.msg)[:200]) not in self._seen
        self._seen.add(text)
        return is_new


class LineFormatter(structlog.stdlib.ProcessorFormatter):
    def __init__(self, render: Processor, service: str) -> None:
        super().__init__(processors=[self._collect, render], foreign_pre_chain=[structlog.stdlib.ExtraAdder()])
        self._render = render
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        is_from_structlog = isinstance(record.msg, dict) and hasattr(record, "_logger")
        return super().format(record if is_from_structlog else with_safe_message(record))

    def replacement(self, record: logging.LogRecord, error: BaseException | None) -> str:
        """Return the line that replaces a record that could not be formatted. The line contains no part of the record."""
        line = self._head(record, "a log line could not be written")
        line.update(of=f"{record.module}:{record.lineno}", because=type(error).__name__)
        return str(self._render(None, "error", line))

    def _collect(self, _: WrappedLogger, __: str, given: EventDict) -> EventDict:
        record: logging.LogRecord = given.pop("_record")
        given.pop("_from_structlog")
        given.pop("color_message", None)  # uvicorn adds a coloured copy of the message
        line = self._head(record, format_message(given.pop("event", ""), given.pop("positional_args", ())))
        stack = given.pop("stack", None) or given.pop("stack_info", None)
        error = _error_in(given.pop("exc_info", None))
        scrubbed = {scrub_text(str(name)): scrub_field(str(name), value) for name, value in given.items()}
        line = {**line, **scrubbed, **line}  # the line's own fields come first and override fields with the same name
        if stack:
            line["stack"] = scrub_text(str(stack))
        if error is not None:
            line["exception"] = scrub_text(describe(error))
        return line

    def _head(self, record: logging.LogRecord, words: str) -> EventDict:
        return {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "event": scrub_text(words),
            "service": self._service,
            "logger": scrub_text(record.name),
            **_trace(),
        }


class LineHandler(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Write a masked replacement for a record that cannot be formatted. The standard ``handleError`` would print
        the arguments unmasked.
        """
        if not isinstance(self.formatter, LineFormatter):
            return
        try:
            self.stream.write(self.formatter.replacement(record, sys.exc_info()[1]) + self.terminator)
            self.flush()
        except (OSError, ValueError):
            return  # the stream is closed or broken, so the error cannot be reported


def _threshold(level: str) -> int:
    levels = logging.getLevelNamesMapping()
    if level.upper() not in levels:
        raise InvalidSetting(
            name="LOG_LEVEL",
            why=Reason("no_level", "'{level}' is not one of {levels}", level=level, levels=", ".join(levels)),
        )
    return levels[level.upper()]


def _renderer(format: str, stream: TextIO, colour: bool | None, zone: tzinfo) -> Processor:
    is_terminal = stream.isatty()
    if format == "json" or (format == "auto" and not is_terminal):
        return _one_json_object
    console = structlog.dev.ConsoleRenderer(
        colors=is_terminal if colour is None else colour,
        exception_formatter=structlog.dev.plain_traceback,
        sort_keys=False,
    )

    def render_line(logger: WrappedLogger, method: str, line: EventDict) -> str:
        """Render a log line for a terminal, without the service, the engine's logger name, the span id and the fields
        that have no value.
        """
        line["timestamp"] = f"{datetime.fromisoformat(line['timestamp']).astimezone(zone):%H:%M:%S}"
        del line["service"]
        if line["logger"] == LOGGER:
            del line["logger"]
        line.pop("span_id", None)
        return str(console(logger, method, {name: value for name, value in line.items() if value is not None}))

    return render_line


def _one_json_object(_: WrappedLogger, __: str, line: EventDict) -> str:
    return json.dumps(line)


def _make_the_only_handler(handler: logging.Handler) -> None:
    """Remove every other log handler, because other handlers would write unmasked values."""
    for known in [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]:
        if isinstance(known, logging.Logger):
            known.handlers.clear()
            known.propagate = True
            if known.name.startswith(tuple(f"{name}." for name in QUIET)):
                known.setLevel(logging.NOTSET)  # the program that started this process may have set another level
    logging.getLogger().addHandler(handler)


def _trace() -> dict[str, str]:
    """Return the ids of the current trace and span, as fields for a log line. The function is called for each log line,
    so that lines from libraries contain these ids too.
    """
    here = current()
    return {} if here is None else {"trace_id": here.trace_id, "span_id": here.span_id}


def _error_in(exc_info: object) -> BaseException | None:
    """Return the exception to which ``exc_info`` refers. ``exc_info`` is an exception, a tuple of three values, or True
    for the exception that is being handled.
    """
    if isinstance(exc_info, tuple):
        exc_info = exc_info[1]
    elif exc_info and not isinstance(exc_info, BaseException):
        exc_info = sys.exc_info()[1]
    return exc_info if isinstance(exc_info, BaseException) else None
