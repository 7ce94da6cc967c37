"""A loop is a tick: a bounded piece of work that says whether there is more. The supervisor does the rest."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from batuta.kernel.errors import InvalidName


@dataclass(frozen=True, slots=True)
class Again:
    """There is more to do right now."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing to do. Wake me at ``until``, or at my usual interval."""

    until: datetime | None = None

    def __post_init__(self) -> None:
        if self.until is not None and self.until.tzinfo is None:
            raise ValueError("Idle(until) needs an instant with a zone, as work.clock.now() gives")


Pace: TypeAlias = Again | Idle


class Doorbell:
    """Anyone on the event loop may ring it; a ring during a tick is kept until the next rest."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    def answer(self) -> None:
        self._rung.clear()

    async def wait(self) -> None:
        await self._rung.wait()


class Loop(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def doorbell(self) -> Doorbell: ...
    async def tick(self) -> Pace:
        """Do a bounded amount of work. Start things, do not wait for them."""
        ...

    async def drain(self, grace: timedelta) -> None:
        """Let what was started end. Called once, after the last tick; cut off when ``grace`` is over."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPolicy:
    every: timedelta  # how long Idle() rests
    stuck_after: timedelta  # silence between notes of progress that the watchdog will not forgive
    max_failures: int = 5  # in a row; then the process ends and is started again from outside
    backoff: timedelta = timedelta(seconds=1)
    backoff_cap: timedelta = timedelta(minutes=1)

    def __post_init__(self) -> None:
        if min(self.every, self.stuck_after, self.backoff, self.backoff_cap) <= timedelta(0):
            raise ValueError("a loop's every, stuck_after and backoff must be longer than nothing")
        if self.max_failures < 1:
            raise ValueError("a loop must be allowed at least one failure")


class FunctionLoop:
    """A plain async function as a loop. It may return a pace; nothing means Idle."""

    def __init__(self, name: str, function: Callable[[], Awaitable[Pace | None]]) -> None:
        if not name or name != name.strip():
            raise InvalidName(name=name, kind="loop", why="it must have letters and no space around them")
        if not inspect.iscoroutinefunction(function):
            raise InvalidName(name=name, kind="loop", why="its function must be written with async def")
        self.name = name
        self.doorbell = Doorbell()
        self._function = function

    async def tick(self) -> Pace:
        return await self._function() or Idle()

    async def drain(self, grace: timedelta) -> None:
        """Nothing was started that outlives a tick."""
