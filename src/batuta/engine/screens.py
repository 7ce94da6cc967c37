"""Pages and actions that an application adds to the dashboard.

A screen is a page with its own template. An action is a POST request: the reader sees first what the action will do,
and afterwards what it did. The dashboard checks the scope, adds the CSRF token and writes the audit entry.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from batuta.access import Scope, includes
from batuta.kernel.json import Json
from batuta.texts import Texts


class Tone(StrEnum):
    """A state that the dashboard shows with a symbol and a colour."""

    OK = "ok"
    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"
    DEGRADED = "degraded"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A reader's request for a screen. ``path`` are the parameters of the screen's path, ``query`` those of its query."""

    caller: str
    scopes: frozenset[Scope]
    path: Mapping[str, str]
    query: Mapping[str, str]
    texts: Texts
    now: datetime
    wants_personal_data: bool
    note: Callable[[int], Awaitable[None]]

    def may(self, scope: Scope) -> bool:
        """Return whether the reader has the scope."""
        return includes(self.scopes, scope)

    async def reveal(self, count: int) -> bool:
        """Return whether the page may show the personal data of ``count`` records, and record the access.

        The reader asks for it with the button that ``revealing()`` renders. Without the scope pii the answer is False.
        """
        if not self.wants_personal_data or not self.may(Scope.PII):
            return False
        if count:
            await self.note(count)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A page of the dashboard. ``path`` follows the prefix of the dashboard and may contain parameters: ``/printers/{name}``.

    ``read`` returns the values of the template, which extends ``panel/base.html.j2``. Elements with an id and the
    attribute ``data-live`` follow changes while the page is open. All readers with the same scopes and language share
    these parts, so a live screen must not depend on ``visit.caller``. On a screen that is not in the navigation, the
    navigation marks the screen above it: ``/printers`` for ``/printers/{name}``.
    """

    path: str
    title: str  # key of the text
    template: str  # name of a file in one of ``Extension.templates``
    read: Callable[[Visit], Awaitable[Mapping[str, object]]]
    scope: Scope = Scope.READ
    in_navigation: bool = True
    is_live: bool = True


class FieldKind(StrEnum):
    """The kind of a form field."""

    HIDDEN = "hidden"  # names the subject of the action; the page that offers the action fills it
    TEXT = "text"
    LINES = "lines"
    NUMBER = "number"
    CHOICE = "choice"
    SPAN = "span"  # how long: 30m, 2h, 1d; empty: without end
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of an action's form. ``label`` and ``hint`` are keys of texts; ``choices`` maps values to keys of texts."""

    name: str
    label: str = ""
    kind: FieldKind = FieldKind.TEXT
    required: bool = False
    hint: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    is_private: bool = False  # contains personal data: neither the audit entry nor the command line repeat it
    longest: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionCall:
    """The call of an action. ``values`` are the fields by name. ``chosen`` are the ids of the rows that the reader
    selected. ``files`` are the contents of uploaded files by field, and ``file_names``
    the names that the browser sent.
    """

    caller: str
    values: Mapping[str, str]
    texts: Texts
    now: datetime
    chosen: Sequence[str] = ()
    scopes: frozenset[Scope] = frozenset()  # those of the caller
    files: Mapping[str, bytes] = field(default_factory=dict)
    file_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The announced effect of an action: the key of a sentence and its facts, and the number of items that it affects.

    ``values`` fills fields of the form that the reader has not filled.
    """

    says: str
    facts: Mapping[str, object] = field(default_factory=dict)
    items: int = 1
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """The result of an action. ``to`` is the screen that follows, below the prefix; None: the page that offered the action."""

    says: str
    facts: Mapping[str, object] = field(default_factory=dict)
    tone: Tone = Tone.OK
    to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A change that operators make in the dashboard. ``name`` is its address and the name of its audit entry.

    ``preview`` and ``perform`` raise a BatutaError for bad input: the form shows its sentence. ``command`` returns the
    arguments of the equivalent command ``batuta …``.
    """

    name: str  # printer.pause
    label: str  # key of the text on its button
    preview: Callable[[ActionCall], Awaitable[Preview]]
    perform: Callable[[ActionCall], Awaitable[ActionResult]]
    fields: Sequence[Field] = ()
    scope: Scope = Scope.OPERATE
    command: Callable[[Mapping[str, str]], Sequence[str]] | None = None
    tone: Tone = Tone.RUNNING  # FAILING: the action cannot be undone
    # Whether ``perform`` writes an audit entry in its own transaction. Otherwise the dashboard writes one before the call.
    audits: bool = False
    largest_body: int | None = None  # bytes; None: BATUTA_MAX_BODY_BYTES

    def recorded(self, call: ActionCall) -> dict[str, Json]:
        """Return the values that the audit entry repeats."""
        private = {each.name for each in self.fields if each.is_private or each.kind is FieldKind.FILE}
        values: dict[str, Json] = {name: value for name, value in call.values.items() if value and name not in private}
        return {**values, **({"chosen": len(call.chosen)} if call.chosen else {})}

    def subject(self, call: ActionCall) -> str:
        """Return what the action changes: the values of its hidden fields."""
        hidden = (call.values.get(each.name) for each in self.fields if each.kind is FieldKind.HIDDEN)
        return ":".join(filter(None, hidden)) or "-"
