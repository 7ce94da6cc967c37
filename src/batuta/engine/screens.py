"""Pages and actions that an application adds to the dashboard.

A screen is a page with its own template. An action is a POST request. The user sees a preview before performing the
action, and a result afterwards. The dashboard checks the scope, adds the CSRF token and writes the audit entry.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from batuta.access import Scope, includes
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
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
    """A user's request for a screen. ``path`` contains the parameters of the screen's path, and ``query`` contains the
    query parameters of the URL.
    """

    caller: str
    scopes: frozenset[Scope]
    path: Mapping[str, str]
    query: Mapping[str, str]
    texts: Texts
    now: datetime
    wants_personal_data: bool
    note: Callable[[int], Awaitable[None]]

    def may(self, scope: Scope) -> bool:
        """Return whether the user has the scope."""
        return includes(self.scopes, scope)

    async def reveal(self, count: int) -> bool:
        """If the user requested personal data and may see it, record the access to ``count`` records and return True.

        The user requests the data with the button that ``revealing()`` renders. A user without the scope ``pii`` may
        not see it.
        """
        if not self.wants_personal_data or not self.may(Scope.PII):
            return False
        if count:
            await self.note(count)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A page of the dashboard. ``path`` follows the prefix of the dashboard and may contain parameters: ``/printers/{name}``.

    ``read`` returns the values for the template, which extends ``panel/base.html.j2``. Elements with an id and the
    attribute ``data-live`` are updated while the page is open. All users with the same scopes and language get the same
    elements, so the elements must not depend on the user (``visit.caller``). If a page is not in the navigation, the
    navigation highlights its parent: ``/printers`` for ``/printers/{name}``.
    """

    path: str
    title: str  # text key of the title
    template: str  # file name of a template in one of ``Extension.templates``
    read: Callable[[Visit], Awaitable[Mapping[str, object]]]
    scope: Scope = Scope.READ
    in_navigation: bool = True
    is_live: bool = True


class FieldKind(StrEnum):
    """The kind of a form field."""

    HIDDEN = "hidden"  # identifies the object that the action changes; the page that offers the action fills it
    TEXT = "text"
    LINES = "lines"
    NUMBER = "number"
    CHOICE = "choice"
    SPAN = "span"  # a duration such as 30m, 2h or 1d; an empty field means no end
    DATE = "date"  # a day in the form 2026-03-11; the browser shows it in the notation of its language
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of an action's form. ``label`` and ``hint`` are keys of translated texts; ``choices`` maps each value to
    the key of its translated text.
    """

    name: str
    label: str = ""
    kind: FieldKind = FieldKind.TEXT
    required: bool = False
    hint: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    # whether the field contains personal data, which the audit entry and the command line must omit
    is_private: bool = False
    longest: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionCall:
    """One invocation of an action. ``values`` maps the names of the form fields to their values. ``chosen`` contains
    the ids of the rows that the user selected. ``files`` maps a field to the content of its uploaded file, and
    ``file_names`` maps a field to the file name that the browser sent.
    """

    caller: str
    values: Mapping[str, str]
    texts: Texts
    now: datetime
    chosen: Sequence[str] = ()
    scopes: frozenset[Scope] = frozenset()  # the caller's scopes
    files: Mapping[str, bytes] = field(default_factory=dict)
    file_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The effect that an action would have, shown before the action runs: a translated text, given by its key and
    facts, and the number of affected items. ``values`` fills form fields that the user has left empty. ``title`` is the
    key of the text for the form's title and button, which may also contain ``facts``. If ``title`` is empty, the title
    and the button show the action's label. ``choices`` limits a choice field to the values that are possible now.
    """

    says: str
    facts: Mapping[str, object] = field(default_factory=dict)
    items: int = 1
    values: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    choices: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """The result of an action. ``to`` is the path of the next screen, below the dashboard's prefix. If ``to`` is None,
    the user returns to the page that offered the action. ``secret`` is a string that the dashboard shows once, on the
    page that responds to the request, and stores nowhere.
    """

    says: str
    facts: Mapping[str, object] = field(default_factory=dict)
    tone: Tone = Tone.OK
    to: str | None = None
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A change that operators make in the dashboard. ``name`` is used in the URL and in the audit entry.

    For bad input, ``preview`` and ``perform`` raise a BatutaError, whose message is shown on the form. ``command``
    returns the arguments of the equivalent command ``batuta …``. It receives the form's values by field name; the key
    ``escolhido`` contains the ids of the selected rows, separated by spaces.
    """

    name: str  # for example ``printer.pause``
    label: str  # text key of its button
    preview: Callable[[ActionCall], Awaitable[Preview]]
    perform: Callable[[ActionCall], Awaitable[ActionResult]]
    fields: Sequence[Field] = ()
    scope: Scope = Scope.OPERATE
    command: Callable[[Mapping[str, str]], Sequence[str]] | None = None
    tone: Tone = Tone.RUNNING  # FAILING marks an action that cannot be undone
    # Whether ``perform`` writes an audit entry in its own transaction. Otherwise the dashboard writes one before the call.
    audits: bool = False
    largest_body: int | None = None  # maximum body in bytes; None means BATUTA_MAX_BODY_BYTES

    def audit_values(self, call: ActionCall) -> dict[str, Json]:
        """Return the values to write into the audit entry: the form's values without files and personal data, and the
        number of selected rows.
        """
        private = {each.name for each in self.fields if each.is_private or each.kind is FieldKind.FILE}
        values: dict[str, Json] = {name: value for name, value in call.values.items() if value and name not in private}
        return {**values, **({"chosen": len(call.chosen)} if call.chosen else {})}

    def subject(self, call: ActionCall) -> str:
        """Return the identity of the object that the action changes: the values of the form's hidden fields."""
        hidden = (call.values.get(each.name) for each in self.fields if each.kind is FieldKind.HIDDEN)
        return ":".join(filter(None, hidden)) or "-"
