"""The interface of a loop. A loop's ``tick`` does a bounded amount of work and returns whether more work is ready. The
supervisor calls ``tick`` repeatedly.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeAlias, cast

from batuta.kernel.calls.usercode import Threads
from batuta.kernel.clock import brief
from batuta.kernel.errors import InvalidLoop, require
from batuta.kernel.reasons import Reason
from batuta.kernel.values import dataclass
from batuta.supervise.stacks import thread_stack

_note: ContextVar[Callable[[], None] | None] = ContextVar("note_progress", default=None)


def note_progress() -> None:
    """Record that the current loop has made progress, so that the watchdog does not treat the loop as stuck. Call this
    function from code that a tick runs, for example after each of many requests.
    """
    if (note := _note.get()) is not None:
        note()


def bind(note: Callable[[], None] | None) -> None:
    """Set the function that ``note_progress`` calls in the current context (``contextvars``). With None,
    ``note_progress`` does nothing; use None for work that a tick starts but does not wait for.
    """
    _note.set(note)


FOR_EVER = 1_000_000  # the maximum failures or restarts for a loop that must never end its process


@dataclass(frozen=True, slots=True)
class Again:
    """The result of a tick after which more work is ready. The next tick follows immediately."""


@dataclass(frozen=True, slots=True)
class Idle:
    """The result of a tick after which no work is ready. The next tick comes at ``until``, or after the usual interval
    if ``until`` is None.
    """

    until: datetime | None = None

    def __post_init__(self) -> None:
        if self.until is not None and self.until.tzinfo is None:
            raise ValueError("Idle(until) needs an instant with a time zone, such as work.clock.now()")


Pace: TypeAlias = Again | Idle


class Wakeup:
    """Wakes a loop that is waiting for its next tick. Any code on the event loop may set the wake-up. If the wake-up is
    set during a tick, the next tick follows immediately.

    Unlike an asyncio.Event, a wake-up can be used on several event loops, one after another. A program needs this if it
    runs its roles a second time on a new event loop.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._waiters: set[asyncio.Future[None]] = set()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> bool:
        """Wait until the wake-up is set, then return True. If it is already set, return immediately."""
        if self._is_set:
            return True
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
        return True


class Loop(Protocol):
    """Work that the supervisor repeats. A loop may also have ``async def drain(self, grace: timedelta) -> None``.

    The supervisor awaits ``drain`` once, after the last tick, and cancels it at the end of ``grace``. A drain waits for
    the work that the ticks started. A loop without a drain is cancelled at the start of a shutdown, in the middle of a
    tick if necessary.
    """

    @property
    def name(self) -> str: ...
    @property
    def wakeup(self) -> Wakeup: ...
    async def tick(self) -> Pace:
        """Do a bounded amount of work. A tick may start longer work, but must not wait for it."""


Drain: TypeAlias = Callable[[timedelta], Awaitable[None]]


def drain_of(loop: Loop) -> Drain | None:
    """Return the loop's method ``drain``, or None if the loop has none."""
    return getattr(loop, "drain", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPolicy:
    """A loop's settings: how often it ticks, when the watchdog treats it as stuck, and how many failures end its
    process.
    """

    every: timedelta  # wait after Idle() without an instant
    stuck_after: timedelta  # longest time without progress before the watchdog stops the tick
    longest_call: timedelta = timedelta(0)  # longest legitimate wait for one operation that records no progress
    max_failures: int = 5  # number of consecutive failures after which the process ends, so that its parent restarts it
    # number of restarts of a stuck tick, without a healthy period in between, after which the process ends
    max_restarts: int = 5
    # After this time without a restart, the count of restarts is reset.
    healthy_after: timedelta = timedelta(minutes=10)
    backoff: timedelta = timedelta(seconds=1)
    backoff_cap: timedelta = timedelta(minutes=1)
    # At shutdown, keep ticking until the other loops have drained (lease renewal, heartbeat, LISTEN).
    outlives: bool = False
    # At shutdown, let the current tick end even if the loop has no drain (a tick that claims work and starts it
    # elsewhere).
    finishes_tick: bool = False

    def __post_init__(self) -> None:
        if min(self.every, self.stuck_after, self.healthy_after, self.backoff, self.backoff_cap) <= timedelta(0):
            raise ValueError("a loop's every, stuck_after, healthy_after and backoff must be positive")
        if self.max_failures < 1:
            raise ValueError("a loop must be allowed at least one failure")
        if self.max_restarts < 1:
            raise ValueError("a loop must be allowed at least one restart")
        if self.stuck_after <= self.longest_call:
            raise ValueError(
                f"stuck_after ({brief(self.stuck_after)}) must be longer than the longest call"
                f" ({brief(self.longest_call)}): raise it, shorten the call's time limit, or record progress within it"
            )


class ThreadTick:
    """Runs each tick of a plain function in a thread. A thread cannot be stopped, so a cancelled tick ends only when
    its thread ends. The supervisor therefore treats a stuck thread as a tick that ignores its cancellation. Two ticks
    of the same loop never run at the same time.
    """

    def __init__(self, name: str, function: Callable[[], Pace | None]) -> None:
        self._name = name
        self._function = function
        self._threads = Threads()

    async def __call__(self) -> Pace | None:
        ending = asyncio.create_task(self._threads.call(self._function, name=f"loop {self._name}"))
        try:
            return cast("Pace | None", await asyncio.shield(ending))
        except asyncio.CancelledError:
            await _outlast(ending)
            raise

    def stack(self) -> str:
        """Return the stack of the thread that is running the tick."""
        return "".join(thread_stack(ident) for ident in self._threads.idents)


async def _outlast(ending: "asyncio.Task[object]") -> None:
    """Wait until a thread has ended. If the waiting asyncio task is cancelled, continue to wait. The supervisor limits
    the length of this wait.
    """
    ended = asyncio.Event()

    def end(done: "asyncio.Task[object]") -> None:
        done.cancelled() or done.exception()  # read the error, so that Python does not log it as never retrieved
        ended.set()

    ending.add_done_callback(end)
    with suppress(asyncio.CancelledError):
        await ended.wait()
    if not ended.is_set():
        await _outlast(ending)


@dataclass(eq=False)
class FunctionLoop:
    """A loop that calls an async function. The function may return Again or Idle; None means Idle."""

    name: str
    function: Callable[[], Awaitable[Pace | None]]
    wakeup: Wakeup = field(default_factory=Wakeup)
    drain: Drain | None = None

    async def tick(self) -> Pace:
        return await self.function() or Idle()

    def stack(self) -> str:
        """Return the stack of the tick's thread, or an empty string if the tick runs on the event loop."""
        return self.function.stack() if isinstance(self.function, ThreadTick) else ""


class Ticking(Protocol):
    """The interface of a class that ``Batuta.loop`` accepts and instantiates without arguments. If ``tick`` returns
    None, the loop is idle.
    """

    async def tick(self) -> Pace | None: ...


class Blocking(Protocol):
    """The interface of a class whose ``tick`` is a plain ``def``, which runs in a thread."""

    def tick(self) -> Pace | None: ...


LoopFunction: TypeAlias = (
    Callable[[], Awaitable[Pace | None]] | Callable[[], Pace | None] | Callable[[], Ticking] | Callable[[], Blocking]
)


def loop_of(name: str, what: Any) -> FunctionLoop:
    """Create a loop from a function, or from a class that has a ``tick`` method and optionally ``wakeup`` and
    ``drain``. A plain ``def`` runs in a thread.
    """
    is_name = name and name == name.strip()
    require("loop", name, is_name, Reason("loop_name", "it must be a name without spaces around it"))
    if not inspect.isclass(what):
        return FunctionLoop(name, _tick_of(name, what))
    ticking: Any = what()
    require(
        "loop", name, callable(getattr(ticking, "tick", None)), Reason("loop_tick", "its class must have a method tick")
    )
    tick = _tick_of(name, ticking.tick)
    return FunctionLoop(name, tick, getattr(ticking, "wakeup", None) or Wakeup(), drain_of(ticking))


def _tick_of(name: str, function: Any) -> Callable[[], Awaitable[Pace | None]]:
    is_plain = not inspect.isgeneratorfunction(function) and not inspect.isasyncgenfunction(function)
    require("loop", name, callable(function) and is_plain, Reason("loop_yield", "its function must not yield"))
    try:
        inspect.signature(function).bind()
    except TypeError:
        require("loop", name, None, Reason("loop_arguments", "its function must take no arguments"))
    return function if inspect.iscoroutinefunction(function) else ThreadTick(name, function)


def runs_in_thread(loop: "Loop") -> bool:
    return isinstance(loop, FunctionLoop) and isinstance(loop.function, ThreadTick)


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
    """Build a policy from durations in seconds. Raise InvalidLoop with the loop's name if a value is invalid."""
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
