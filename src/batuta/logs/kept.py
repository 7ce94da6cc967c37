"""Stores the log lines that the code of a task, a job or a stage writes through standard ``logging``.

    a record is made ──▶ whose attempt is it? ──▶ masked, bounded ──▶ buffer ──▶ half a second later: the table ``log_lines``

The module replaces the factory that creates log records, because a handler on the root logger would change the output
of a program without handlers. Code that logs nothing has no extra cost.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from batuta.kernel.clock import Clock
from batuta.kernel.ids import Ids
from batuta.kernel.trace import TracedStep, current_step
from batuta.logs.scrubbing import describe, safe_words, scrub_field, scrub_text
from batuta.logs.subscriber import LOGGER
from batuta.runlog.lines import CUT, LONGEST_LINE, MOST_CHARACTERS, MOST_LINES, LineStore, LogLine
from batuta.supervise.loop import FOR_EVER, Again, Idle, LoopPolicy, Pace, Wakeup

MOST_WAITING: Final = 10_000  # maximum lines that wait to be written; beyond it, the oldest line is dropped
AT_A_TIME: Final = 500
GATHER_SECONDS: Final = 0.5
KEEPER_POLICY: Final = LoopPolicy(
    every=timedelta(minutes=5), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER, outlives=True
)


class LineCollector:
    """Collects the log lines of this process while at least one ``LineKeeper`` runs."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        self._keepers: list[Callable[[], None]] = []  # functions that wake the loops that write the lines
        self._is_waking = False
        self._before: Callable[..., logging.LogRecord] | None = None
        self.waiting: deque[LogLine] = deque(maxlen=MOST_WAITING)

    def begin(self, wake: Callable[[], None]) -> None:
        """Start collecting log lines. ``wake`` is called, possibly from another thread, when lines are waiting to be
        written.
        """
        self._keepers.append(wake)
        if self._before is None:
            self._before = logging.getLogRecordFactory()
            logging.setLogRecordFactory(self._make)

    def end(self, wake: Callable[[], None]) -> None:
        self._keepers.remove(wake)
        # If another library has replaced the factory since, its factory calls this one. So this factory stays
        # installed, but collects nothing.
        if not self._keepers and logging.getLogRecordFactory() == self._make and self._before is not None:
            logging.setLogRecordFactory(self._before)
            self._before = None

    def _make(self, *arguments: Any, **named: Any) -> logging.LogRecord:
        assert self._before is not None
        record = self._before(*arguments, **named)
        # A record without a name is a copy that a formatter made; the original was already collected.
        step = current_step() if self._keepers and record.name else None
        if step is not None and step.work is not None and (record.name != LOGGER or record.levelno >= logging.WARNING):
            self._keep(record, step)
        return record

    def _keep(self, record: logging.LogRecord, step: TracedStep) -> None:
        if step.lines > MOST_LINES or step.characters > MOST_CHARACTERS:
            return
        step.lines += 1
        text = text_of(record)[:LONGEST_LINE]
        step.characters += len(text)
        is_over = step.lines > MOST_LINES or step.characters > MOST_CHARACTERS
        level, name = (CUT, "") if is_over else (record.levelname.lower(), scrub_text(record.name)[:200])
        assert step.work is not None
        self.waiting.append(
            LogLine(
                id=self._ids.new(),
                item_id=str(step.work.id),
                attempt=step.work.attempt,
                at=self._clock.now(),
                level=level,
                logger=name,
                line="" if is_over else text,
            )
        )
        if not self._is_waking:
            self._is_waking = True
            for wake in self._keepers:
                wake()

    def take(self) -> list[LogLine]:
        """Remove and return the next batch of collected log lines, which the caller must store."""
        self._is_waking = False
        return [self.waiting.popleft() for _ in range(min(AT_A_TIME, len(self.waiting)))]


def text_of(record: logging.LogRecord) -> str:
    """Return the masked text of a record, with its traceback. For a structlog record, the fields follow the text."""
    if isinstance(record.msg, dict):
        fields = {str(name): value for name, value in record.msg.items() if name not in ("event", "exc_info")}
        words = [str(record.msg.get("event", "")), *(f"{name}={scrub_field(name, fields[name])}" for name in fields)]
        text, error = " ".join(words), record.msg.get("exc_info")
    else:
        text, error = safe_words(record), record.exc_info[1] if record.exc_info else None
    traced = f"\n{describe(error)}" if isinstance(error, BaseException) else ""
    # scrub_text replaces line breaks, so mask each line separately.
    return "\n".join(scrub_text(each) for each in f"{text}{traced}".splitlines())


class LineKeeper:
    """Loop that writes the collected log lines, half a second after the first of them arrived. While the database is
    unavailable, the lines wait.
    """

    name = "log-lines"

    def __init__(self, collector: LineCollector, store: LineStore) -> None:
        self.wakeup = Wakeup()
        self._collector = collector
        self._store = store
        self._home: asyncio.AbstractEventLoop | None = None

    async def tick(self) -> Pace:
        if self._home is None:
            self._home = asyncio.get_running_loop()
            self._collector.begin(self._wake)
        return Again() if await self._write() else Idle()

    async def drain(self, grace: timedelta) -> None:
        """Write the remaining log lines, and stop collecting lines."""
        if self._home is not None:
            self._collector.end(self._wake)
        for _ in range(MOST_WAITING // AT_A_TIME):
            if not await self._write():
                return

    def _wake(self) -> None:
        """Wake the loop that stores log lines, after a short delay, so that one transaction writes the lines of many
        handlers. May be called from any thread.
        """
        home = self._home
        assert home is not None
        with suppress(RuntimeError):  # the event loop is closed
            home.call_soon_threadsafe(home.call_later, GATHER_SECONDS, self.wakeup.set)

    async def _write(self) -> bool:
        """Write one batch of log lines. Return whether more lines are waiting."""
        waiting, lines = self._collector.waiting, self._collector.take()
        if not lines:
            return False
        try:
            await self._store.add(lines)
        except BaseException:
            waiting.extendleft(reversed(lines))
            raise
        return bool(waiting)
