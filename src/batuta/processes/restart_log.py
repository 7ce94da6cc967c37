"""What a parent writes down of its children, whenever the database takes it: it never waits for that, and never ends of it."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreReplaced, StoreUnavailable
from batuta.processes.restarts import NewRestart
from batuta.processes.tree import Recorder
from batuta.supervise.loop import FOR_EVER, Again, Doorbell, Idle, LoopPolicy, Pace

MOST = 500  # of which the oldest give way
LAST_WORDS = timedelta(seconds=3)
# What cannot be written is not the children's fault: this loop never ends the parent.
WRITING = LoopPolicy(
    every=timedelta(minutes=1),
    stuck_after=timedelta(minutes=2),
    max_failures=FOR_EVER,
    max_restarts=FOR_EVER,
    backoff_cap=timedelta(seconds=10),
    outlives=True,  # the end of the children is recorded too
)


class Stalls(Protocol):
    async def stalled(self, *, host: str, pid: int) -> bool: ...


class Restarts(Protocol):
    async def add(self, restart: NewRestart, *, now: datetime | None = None) -> str: ...


@dataclass(frozen=True, slots=True)
class Stall:
    host: str
    pid: int


Entry: TypeAlias = Stall | NewRestart


class RestartLog(Recorder):
    """A loop. ``open`` is awaited before the first word, and again after the file was replaced.

    ``found`` knows where processes leave their stacks.
    """

    name = "chronicle"

    def __init__(
        self,
        open: Callable[[], Awaitable[None]],
        stalls: Stalls,
        restarts: Restarts,
        clock: Clock,
        now: Callable[[], datetime | None],
        found: Callable[[str, int], str | None] = lambda role, pid: None,
    ) -> None:
        self.doorbell = Doorbell()
        self._open = open
        self._stalls = stalls
        self._restarts = restarts
        self._clock = clock
        self._now = now
        self._found = found
        self._is_open = False
        self._failed = False
        self._waiting: deque[tuple[datetime, Entry]] = deque(maxlen=MOST)

    def stalled(self, host: str, pid: int) -> None:
        self._note(Stall(host, pid))

    def restarted(self, restart: NewRestart) -> None:
        self._note(restart)

    def found(self, role: str, pid: int) -> str | None:
        return self._found(role, pid)

    async def tick(self) -> Pace:
        if not self._waiting:
            return Idle()
        at, entry = self._waiting.popleft()
        try:
            await self._write(entry, at)
        except StoreUnavailable as error:
            self._is_open = self._is_open and not isinstance(error, StoreReplaced)
            self._failed = True
            self._waiting.appendleft((at, entry))
            raise
        self._failed = self._failed and bool(self._waiting)
        return Again()

    async def drain(self, grace: timedelta) -> None:
        """What is left is tried once more, for a moment."""
        try:
            async with asyncio.timeout(min(grace, LAST_WORDS).total_seconds()):
                for _ in range(len(self._waiting)):
                    await self.tick()
        except TimeoutError:
            self._waiting.clear()

    def _note(self, entry: Entry) -> None:
        self._waiting.append((self._clock.now(), entry))
        self.doorbell.ring()

    async def _write(self, entry: Entry, at: datetime) -> None:
        if not self._is_open:
            await self._open()
            self._is_open = True
        match entry:
            case Stall(host, pid):
                await self._stalls.stalled(host=host, pid=pid)
            case NewRestart():
                # What is written late keeps its own time; otherwise the time that decides everywhere else.
                await self._restarts.add(entry, now=at if self._failed else self._now())
