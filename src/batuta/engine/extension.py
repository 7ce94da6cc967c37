"""What an application adds to the engine beside its jobs and loops: roles, commands, checks and cards of the dashboard."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from batuta.dispatch.registry import ONLY_PROFILE
from batuta.guard.switches import SwitchRule
from batuta.health.finding import SECTIONS, Section
from batuta.schedule.window import Window
from batuta.stores.backup.restoring import Restoring
from batuta.stores.sql.migrations import Mark, Migration
from batuta.texts import Wording


class Tone(StrEnum):
    """How something is, in the words the page has signs and colours for."""

    OK = "ok"
    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"
    DEGRADED = "degraded"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """``of``: how many there could be."""

    says: str
    value: int | timedelta
    of: int | None = None
    tone: Tone = Tone.WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Work with a progress: so many of so many. ``besides``: further cells, in the order of the board's ``columns``."""

    name: str
    state: str  # names a text
    tone: Tone
    done: int
    of: int
    besides: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """``columns``: headings of its courses: name, state, progress and further cells."""

    says: str
    figures: Sequence[Figure]
    columns: Sequence[str] = ()
    courses: Sequence[Course] = ()


Command: TypeAlias = Callable[..., None] | Mapping[str, Callable[..., None]]


@dataclass(frozen=True, slots=True)
class Role:
    """Something one process can be. ``run`` returns when ``stop`` is set and everything has drained."""

    name: str
    run: Callable[[asyncio.Event], Awaitable[None]]
    in_up: bool = True  # started by `batuta up`
    listens: tuple[str, int, str] | None = (
        None  # host, port and its setting: where that is taken, `batuta up` does not begin
    )


@dataclass(frozen=True, slots=True)
class Examined:
    """One line of `batuta doctor` about something of the application's own. ``what`` and ``step`` name texts of its tables."""

    is_well: bool
    what: str
    step: str | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """The parts of an application other than its jobs and loops."""

    service: str = "batuta"  # what alerts call it
    application: Callable[[], Any] | None = None  # the application's own object graph, for its commands
    migrations: Sequence[Migration] = ()
    texts: Sequence[Path] = ()
    roles: Sequence[Role] = ()
    commands: Mapping[str, Command] = field(default_factory=dict)  # words of its own for `batuta`; a mapping is a group
    examine: Callable[[], Awaitable[Sequence[Examined]]] | None = None  # what `batuta doctor` asks besides
    profiles: Sequence[str] = (ONLY_PROFILE,)  # the timetables there are
    first_profile: str | None = None  # counts until somebody chooses at run time
    wording: Wording = field(default_factory=Wording)  # its phrases in the log, and its names for fields
    sections: Sequence[Section] = SECTIONS  # the parts of the health score
    reserved: Mapping[str, int] = field(default_factory=dict)  # categories dispatched first, with their runs at a time
    windows: Mapping[str, Window] = field(default_factory=dict)  # as declared; people may move them at run time
    switches: Mapping[str, SwitchRule] = field(default_factory=dict)  # what people can turn, by the word they use
    later: Sequence[str] = ()  # roles that are planned and not there yet: said plainly when asked for
    api: Callable[[], Any] | None = None  # makes the ASGI application; None: the engine's own
    child_env: Mapping[str, str] = field(default_factory=dict)  # what `batuta up` tells its children, unless it is set
    # The same application, told so besides: as the processes of a running `batuta up` see themselves.
    rebuilt: Callable[[Mapping[str, str]], Any] | None = None
    boards: Sequence[Callable[[], Awaitable[Board]]] = ()  # what the first page shows of its own work, in this order
    # What of the application must survive when the database is replaced by an older backup.
    restoring: Callable[[], Sequence[Restoring]] = tuple
    mark: Mark | None = None  # the project that the database must belong to; None: any database
