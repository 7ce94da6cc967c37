"""Extension points of an application in addition to jobs and loops: roles, commands, checks and dashboard cards."""

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
    """A state for which the page has a sign and a colour."""

    OK = "ok"
    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"
    DEGRADED = "degraded"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number on a card. ``of``: the possible maximum."""

    says: str
    value: int | timedelta
    of: int | None = None
    tone: Tone = Tone.WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One row of progress: ``done`` of ``of``. ``cells``: further cells, in the order of the board's ``columns``."""

    name: str
    state: str  # key of a text
    tone: Tone
    done: int
    of: int
    cells: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A card of the dashboard. ``columns``: headings of its rows: name, state, progress and further cells."""

    says: str
    figures: Sequence[Figure]
    columns: Sequence[str] = ()
    courses: Sequence[Course] = ()


Command: TypeAlias = Callable[..., None] | Mapping[str, Callable[..., None]]


@dataclass(frozen=True, slots=True)
class Role:
    """A kind of process. ``run`` returns when ``stop`` is set and everything has drained."""

    name: str
    run: Callable[[asyncio.Event], Awaitable[None]]
    in_up: bool = True
    # Host, port and the setting's name: `batuta up` refuses to start if the port is taken.
    listens: tuple[str, int, str] | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """A line of `batuta doctor` about the application. ``what`` and ``step`` name texts of its tables."""

    is_well: bool
    what: str
    step: str | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """The parts of an application other than its jobs and loops."""

    service: str = "batuta"  # the name in alerts
    application: Callable[[], Any] | None = None  # the application's own object graph, for its commands
    migrations: Sequence[Migration] = ()
    texts: Sequence[Path] = ()
    roles: Sequence[Role] = ()
    commands: Mapping[str, Command] = field(default_factory=dict)  # commands under `batuta`; a mapping is a group
    examine: Callable[[], Awaitable[Sequence[Examined]]] | None = None  # further checks of `batuta doctor`
    profiles: Sequence[str] = (ONLY_PROFILE,)
    first_profile: str | None = None  # active until an operator chooses one
    wording: Wording = field(default_factory=Wording)  # phrases in the log, and names of fields
    sections: Sequence[Section] = SECTIONS
    reserved: Mapping[str, int] = field(default_factory=dict)  # categories dispatched first, with their concurrency
    windows: Mapping[str, Window] = field(default_factory=dict)  # defaults; operators may change them at run time
    switches: Mapping[str, SwitchRule] = field(default_factory=dict)  # switches for operators, by the word they type
    later: Sequence[str] = ()  # planned roles: the command says that they are not implemented
    api: Callable[[], Any] | None = None  # builds the ASGI application; None: the engine's own
    child_env: Mapping[str, str] = field(default_factory=dict)  # defaults that `batuta up` sets for its children
    # Build the same application with these settings, as the children of a running `batuta up` see it.
    rebuilt: Callable[[Mapping[str, str]], Any] | None = None
    boards: Sequence[Callable[[], Awaitable[Board]]] = ()  # cards of the first page, in this order
    # Data of the application that survives when an older backup replaces the database.
    restoring: Callable[[], Sequence[Restoring]] = tuple
    mark: Mark | None = None  # the project that must own the database; None: any database
