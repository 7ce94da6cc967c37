"""Runs a role in this process: configures the log, handles the signals that request the end, and logs the start and the
end. This module does not import the engine, because the parent of `batuta up` uses it too.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from datetime import timedelta, tzinfo
from typing import TextIO

from batuta import __version__
from batuta.kernel.clock import Clock
from batuta.kernel.errors import BatutaError, Recycled, StartAgain, StoreReplaced
from batuta.kernel.events import Fanout, ProcessDraining, ProcessEnded, ProcessStarted, SettingWarned
from batuta.kernel.values import dataclass
from batuta.logs import begin_logging
from batuta.logs.setup import Wanted
from batuta.processes.exit import stop_on_signals
from batuta.processes.loop_monitor import exit_now
from batuta.processes.notify import Notifier
from batuta.processes.restarts import EXIT_AGAIN
from batuta.texts import Wording

CLOSES_WITHIN = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """The objects with which a process reports on itself. ``misspelt`` pairs each unknown setting with the known setting that its
    name resembles.
    """

    events: Fanout
    clock: Clock
    zone: tzinfo
    wording: Wording
    log: Wanted
    misspelt: Sequence[tuple[str, str]] = ()


async def run_role(
    reporting: Reporting,
    role: str,
    stop: asyncio.Event,
    running: Awaitable[None],
    notifier: Notifier,
    stream: TextIO,
    stops_within: timedelta,
    service: str | None = None,
) -> None:
    """Run a role in this process, and log when the process starts and ends.

    ``stops_within`` is the longest time that a shutdown may take; it is reported to systemd. ``service`` is the
    process's name in the log; None means the role's name.
    """
    events, zone = reporting.events, reporting.zone
    begin_logging(events, reporting.log, service=service or role, stream=stream, zone=zone, wording=reporting.wording)

    def on_stop() -> None:
        notifier.stopping(stops_within)
        events.emit(ProcessDraining(role))

    with stop_on_signals(stop, on_stop):
        for name, nearest in reporting.misspelt:
            events.emit(SettingWarned(name, nearest))
        events.emit(ProcessStarted(role, __version__, reporting.clock.now().astimezone(zone)))
        try:
            await running
        except BatutaError as error:
            events.emit(ProcessEnded(role, str(error), failed=not isinstance(error, Recycled)))
            if isinstance(error, StartAgain | StoreReplaced):
                exit_now(EXIT_AGAIN)
            raise
    events.emit(ProcessEnded(role, "stop requested" if stop.is_set() else "no work left", failed=False))


async def close_soon(closing: Awaitable[None]) -> None:
    """Close connections, waiting at most CLOSES_WITHIN. The operating system closes any remaining connections when the
    process exits.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSES_WITHIN.total_seconds()):
            await closing
