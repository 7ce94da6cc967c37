"""Facts about processes and their loops: what began, ended, was stuck or had to be started again. Part of ``kernel.events``."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    role: str
    version: str
    hora_atual: datetime  # in the application's zone, so that an operator can compare it with the wall


@dataclass(frozen=True, slots=True)
class ProcessServing:
    role: str
    address: str


@dataclass(frozen=True, slots=True)
class ProcessDraining:
    """It was asked to end: nothing new is taken, what runs may end."""

    role: str


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    role: str
    reason: str
    failed: bool


@dataclass(frozen=True, slots=True)
class ProcessHeld:
    """The shutdown is over, but ``what`` (threads or tasks that it started) would keep the process alive: it exits by force."""

    role: str
    what: str


@dataclass(frozen=True, slots=True)
class ChildStarted:
    role: str
    pid: int


@dataclass(frozen=True, slots=True)
class ChildReady:
    role: str
    pid: int
    took: timedelta


@dataclass(frozen=True, slots=True)
class ChildSilent:
    """It showed its parent no sign of life for too long, and is ended. ``state``: why it cannot answer, where that is known."""

    role: str
    pid: int
    silent_for: timedelta
    state: str | None


@dataclass(frozen=True, slots=True)
class ChildEnded:
    role: str
    pid: int
    exit_code: int
    again_in: timedelta | None  # None: it is not started again
    how: str = ""
    stack: str | None = None


@dataclass(frozen=True, slots=True)
class ChildLooping:
    """It ends as often as it is started. From now on it is tried once in ``again_every``, for as long as it takes."""

    role: str
    ends: int
    within: timedelta
    again_every: timedelta


@dataclass(frozen=True, slots=True)
class ChildRecovered:
    """It was in a crash loop, and lives."""

    role: str
    ends: int


@dataclass(frozen=True, slots=True)
class LoopFailed:
    loop: str
    error: BaseException
    failures: int
    again_in: timedelta


@dataclass(frozen=True, slots=True)
class LoopAbandoned:
    """It failed too often in a row; its process ends."""

    loop: str
    error: BaseException
    failures: int


@dataclass(frozen=True, slots=True)
class LoopRecovered:
    loop: str
    failures: int
    down_for: timedelta


@dataclass(frozen=True, slots=True)
class LoopStuck:
    """It made no note of progress for longer than it may, and is being stopped. ``stack``: where it was."""

    loop: str
    silent_for: timedelta
    limit: timedelta
    stack: str


@dataclass(frozen=True, slots=True)
class LoopRestarted:
    """It was stuck, has been stopped, and begins anew. ``restarts``: without a healthy stretch between them."""

    loop: str
    silent_for: timedelta
    restarts: int
    again_in: timedelta
    stack: str


@dataclass(frozen=True, slots=True)
class TaskDeaf:
    """It goes on although it was cancelled, more than once. The process drains and ends."""

    loop: str
    what: str
    stack: str


@dataclass(frozen=True, slots=True)
class EventLoopBlocked:
    """The event loop does not answer its process's sentry; at ``limit`` the process ends. ``stack``: None at first."""

    silent_for: timedelta
    limit: timedelta
    stack: str | None


@dataclass(frozen=True, slots=True)
class EventLoopAnswers:
    """Again, after it was blocked."""

    silent_for: timedelta


@dataclass(frozen=True, slots=True)
class StackFound:
    """What a process that ended without a word left behind."""

    role: str
    pid: int
    stack: str


@dataclass(frozen=True, slots=True)
class ProcessRecycled:
    """It has grown too large or too old: it drains and ends, and is started again."""

    role: str
    why: str


@dataclass(frozen=True, slots=True)
class ShutdownPhase:
    """A shutdown enters a phase (``supervise.shutdown``). ``loops``: those it waits for; ``left``: until the deadline."""

    phase: str
    loops: tuple[str, ...]
    left: timedelta


@dataclass(frozen=True, slots=True)
class LoopEnded:
    """``drained``: False if the deadline cut off its tick or its drain, or its drain failed."""

    loop: str
    drained: bool


ProcessEvent: TypeAlias = (
    ProcessStarted
    | ProcessServing
    | ProcessDraining
    | ProcessEnded
    | ProcessHeld
    | ChildStarted
    | ChildReady
    | ChildSilent
    | ChildEnded
    | ChildLooping
    | ChildRecovered
    | LoopFailed
    | LoopAbandoned
    | LoopRecovered
    | LoopStuck
    | LoopRestarted
    | TaskDeaf
    | EventLoopBlocked
    | EventLoopAnswers
    | StackFound
    | ProcessRecycled
    | ShutdownPhase
    | LoopEnded
)
