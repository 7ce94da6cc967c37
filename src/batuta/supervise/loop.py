"""A loop is a tick: a bounded piece of work that says whether there is more. The supervisor does the rest."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeAlias

from batuta.kernel.clock import brief
from batuta.kernel.errors import InvalidLoop, InvalidName
from batuta.kernel.reasons import Reason

_note: ContextVar[Callable[[], None] | None] = ContextVar("note_progress", default=None)


def note_progress() -> None:
    """Say that the loop this is called in got somewhere: a page read, a message sent. From a tick, and whatever it calls."""
    if (note := _note.get()) is not None:
        note()


def bind(note: Callable[[], None] | None) -> None:
    """Whose progress is noted from here on. None: nobody's; for what a tick starts and does not wait for."""
    _note.set(note)


FOR_EVER = 1_000_000  # failures, or restarts, of whoever must never give up


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


class Wakeup:
    """Wakes a resting loop. Any code on the event loop may set it; one that is set during a tick holds until the next rest."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self) -> None:
        await self._event.wait()


class Loop(Protocol):
    """A loop may also have ``async def drain(self, grace: timedelta) -> None``; ``drain_of`` finds it.

    ``drain`` is awaited once, after the last tick, and waits for the work that the ticks started; at the end of ``grace`` it is
    cancelled. A loop without it is cancelled at the beginning of a shutdown, in the middle of a tick if need be.
    """

    @property
    def name(self) -> str: ...
    @property
    def wakeup(self) -> Wakeup: ...
    async def tick(self) -> Pace:
        """Do a bounded amount of work. Start things, do not wait for them."""
        ...


Drain: TypeAlias = Callable[[timedelta], Awaitable[None]]


def drain_of(loop: Loop) -> Drain | None:
    """Return the loop's ``drain``, or None for a loop that has nothing to drain."""
    return getattr(loop, "drain", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPolicy:
    """How often a loop ticks, when it counts as stuck, and how many failures end its process."""

    every: timedelta  # how long Idle() rests
    stuck_after: timedelta  # silence between notes of progress that the watchdog will not forgive
    longest_call: timedelta = timedelta(0)  # the longest it may lawfully wait for one thing, without a note
    max_failures: int = 5  # in a row; then the process ends and is started again from outside
    max_restarts: int = 5  # of a stuck tick, with no healthy stretch between them; then the same
    healthy_after: timedelta = timedelta(minutes=10)  # so long without a restart, and the budget is whole again
    backoff: timedelta = timedelta(seconds=1)
    backoff_cap: timedelta = timedelta(minutes=1)
    # At a shutdown: keep ticking while the other loops drain, and stop after them (lease renewal, heartbeat, LISTEN).
    outlives: bool = False
    # At a shutdown: let a tick in flight end, also where there is no drain (a tick that claims work and starts it elsewhere).
    finishes_tick: bool = False

    def __post_init__(self) -> None:
        if min(self.every, self.stuck_after, self.healthy_after, self.backoff, self.backoff_cap) <= timedelta(0):
            raise ValueError("a loop's every, stuck_after, healthy_after and backoff must be longer than nothing")
        if self.max_failures < 1:
            raise ValueError("a loop must be allowed at least one failure")
        if self.max_restarts < 1:
            raise ValueError("a loop must be allowed at least one restart")
        if self.stuck_after <= self.longest_call:
            raise ValueError(
                f"stuck_after ({brief(self.stuck_after)}) must be longer than the longest call"
                f" ({brief(self.longest_call)}): raise it, shorten the call's time limit, or note progress within it"
            )


class FunctionLoop:
    """A plain async function as a loop. It may return a pace; nothing means Idle."""

    def __init__(self, name: str, function: Callable[[], Awaitable[Pace | None]]) -> None:
        if not name or name != name.strip():
            raise InvalidName(
                name=name, kind="loop", why=Reason("loop_name", "it must have letters and no space around them")
            )
        if not inspect.iscoroutinefunction(function):
            raise InvalidName(
                name=name, kind="loop", why=Reason("loop_async", "its function must be written with async def")
            )
        self.name = name
        self.wakeup = Wakeup()
        self._function = function

    async def tick(self) -> Pace:
        return await self._function() or Idle()


class Ticking(Protocol):
    """A class that ``Batuta.loop`` accepts; it is made without arguments. Returning nothing means Idle."""

    async def tick(self) -> Pace | None: ...


LoopFunction: TypeAlias = Callable[[], Awaitable[Pace | None]] | Callable[[], Ticking]


class ObjectLoop:
    """Any object with an async ``tick`` as a loop. Its own wakeup and drain are used if it has them."""

    def __init__(self, name: str, ticking: Any) -> None:
        if not name or name != name.strip():
            raise InvalidName(
                name=name, kind="loop", why=Reason("loop_name", "it must have letters and no space around them")
            )
        if not inspect.iscoroutinefunction(getattr(ticking, "tick", None)):
            raise InvalidName(
                name=name,
                kind="loop",
                why=Reason("loop_tick", "its class must have a method written with async def tick(self)"),
            )
        self.name = name
        self.wakeup: Wakeup = getattr(ticking, "wakeup", None) or Wakeup()
        self.drain: Drain | None = getattr(ticking, "drain", None)
        self._ticking = ticking

    async def tick(self) -> Pace:
        return await self._ticking.tick() or Idle()


def loop_of(name: str, what: Any) -> Loop:
    """An async function, or a class that can be made without arguments."""
    return ObjectLoop(name, what()) if inspect.isclass(what) else FunctionLoop(name, what)


def policy_in_seconds(
    name: str,
    every: float,
    stuck_after: float,
    *,
    longest_call: float = 0,
    max_failures: float = 5,
    max_restarts: float = 5,
    finishes_tick: bool = False,
) -> LoopPolicy:
    """A policy as people write it. What cannot be is told with the loop's name."""
    try:
        return LoopPolicy(
            every=timedelta(seconds=every),
            stuck_after=timedelta(seconds=stuck_after),
            longest_call=timedelta(seconds=longest_call),
            max_failures=int(max_failures),
            max_restarts=int(max_restarts),
            finishes_tick=finishes_tick,
        )
    except (ValueError, OverflowError) as refused:
        raise InvalidLoop(loop=name, why=str(refused)) from None
