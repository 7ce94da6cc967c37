"""Extension points with which an application adds roles, commands, checks and dashboard cards to the engine."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from batuta.dispatch.registry import ONLY_PROFILE
from batuta.engine.screens import Action, Screen, Tone
from batuta.guard.switches import SwitchRule
from batuta.health.finding import SECTIONS, Section
from batuta.kernel.values import dataclass
from batuta.schedule.window import Window
from batuta.stores.backup.restoring import Restoring
from batuta.stores.sql.encrypted import EncryptedColumn
from batuta.stores.sql.migrations import Mark, Migration
from batuta.texts import Wording


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number on a dashboard card. ``says`` is the key of its translated label; ``of`` is the maximum, if there is
    one.
    """

    says: str
    value: int | timedelta
    of: int | None = None
    tone: Tone = Tone.WAITING
    to: str = ""  # path of the screen that lists these items, below the dashboard's prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A row of a dashboard card with a progress bar. In the bar, ``of`` is the total, and ``done`` is the part that is
    complete. ``cells`` contains the other figures, in the order of the board's ``columns``.
    """

    name: str
    label: str = ""  # text key of a word that precedes the name
    state: str  # text key of the state's name
    tone: Tone
    done: int
    of: int
    cells: Sequence[int] = ()
    to: str = ""  # page of the row, below the dashboard's prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A card on the dashboard. ``columns`` contains its column headings: name, state, progress and the cells of each
    row.
    """

    says: str
    figures: Sequence[Figure]
    note: str = ""  # text key of a sentence below the title
    to: str = ""  # path of the screen with more details, below the dashboard's prefix
    columns: Sequence[str] = ()
    courses: Sequence[Course] = ()


# A function, or a mapping of names to functions (a group). A text ``module:object`` names a function that is imported
# when an operator calls the command.
Command: TypeAlias = Callable[..., None] | str | Mapping[str, Callable[..., None] | str]


@dataclass(frozen=True, slots=True)
class Role:
    """A kind of process. ``run`` returns after ``stop`` is set and the work in progress has ended. If ``run`` is None,
    the process runs the loops and queues that the application added for this role, supervised like a worker.
    """

    name: str
    run: Callable[[asyncio.Event], Awaitable[None]] | None = None
    in_up: bool = True
    worker_name: str | None = None  # the name in ``worker_heartbeats``; None means the name of the role
    shows: tuple[str, ...] | None = None  # the loops that ``loops_status`` lists; None means all
    # Host, port and name of the port's setting. `batuta up` refuses to start if the port is in use.
    listens: tuple[str, int, str] | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """One line that `batuta doctor` prints about the application. ``what`` and ``step`` are the keys of two translated
    texts: the finding and the next step.
    """

    is_well: bool
    what: str
    step: str | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """Everything that an application adds to the engine apart from jobs and loops, for example roles, commands, checks
    and dashboard cards.
    """

    service: str = "batuta"  # name of this service in alerts
    application: Callable[[], Any] | None = None  # returns the application's own object, for its commands
    migrations: Sequence[Migration] = ()
    texts: Sequence[Path] = ()
    roles: Sequence[Role] = ()
    # Commands below `batuta`; a mapping is a group of commands.
    commands: Mapping[str, Command] = field(default_factory=dict)
    examine: Callable[[], Awaitable[Sequence[Examined]]] | None = None  # additional checks of `batuta doctor`
    profiles: Sequence[str] = (ONLY_PROFILE,)
    first_profile: str | None = None  # the profile that is active until an operator chooses another
    wording: Wording = field(default_factory=Wording)  # texts of log lines and names of their fields
    sections: Sequence[Section] = SECTIONS
    # Categories that are dispatched first, with their concurrency.
    reserved: Mapping[str, int] = field(default_factory=dict)
    # Default windows; operators may change them at run time.
    windows: Mapping[str, Window] = field(default_factory=dict)
    # switches for operators, by the name that operators type
    switches: Mapping[str, SwitchRule] = field(default_factory=dict)
    api: Callable[[], Any] | None = None  # builds the ASGI application; None means the engine's API
    # Defaults of environment variables that `batuta up` sets for its children.
    child_env: Mapping[str, str] = field(default_factory=dict)
    # Builds the application with the environment variables that `batuta up` sets for its children.
    rebuilt: Callable[[Mapping[str, str]], Any] | None = None
    boards: Sequence[Callable[[], Awaitable[Board]]] = ()  # cards of the dashboard's first page, in order
    screens: Sequence[Screen] = ()  # pages of the dashboard, in the order of the navigation
    actions: Sequence[Action] = ()  # changes that operators make in the dashboard
    # Maps the text key or the source of a finding (``Finding.says``, ``Finding.source``) to the page on which operators
    # fix it. The page of a job, such as ``/tarefas/NAME``, also offers to run the job.
    finding_pages: Mapping[str, str] = field(default_factory=dict)
    templates: Sequence[Path] = ()  # folders with the templates of the screens
    # Returns the application's components whose data must survive the restore of an older backup.
    restoring: Callable[[], Sequence[Restoring]] = tuple
    # columns that the application encrypts; a key rotation re-encrypts them too
    encrypted: Sequence[EncryptedColumn] = ()
    mark: Mark | None = None  # project to which the database must belong; None accepts any database
