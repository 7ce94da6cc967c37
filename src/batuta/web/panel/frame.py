"""The elements that all dashboard pages share: addresses, navigation, the result of the last action, and action
buttons.
"""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from batuta.access import Scope, includes
from batuta.engine.screens import Tone, Visit
from batuta.kernel.values import dataclass
from batuta.web.auth import ANYBODY, Caller, note_access
from batuta.web.context import ApiState, base_of, state_of
from batuta.web.pages import page
from batuta.web.panel.words import Words
from batuta.web.problems import page_texts

REFRESH_SECONDS = 20
RESULT_COOKIE, SECURE_RESULT_COOKIE = "batuta_result", "__Host-batuta_result"
RESULT_KEPT = 60  # seconds for which the result of an action is kept
# Longest text and command in a result's cookie. A longer command is omitted, because half a command would be wrong.
LONGEST_RESULT, LONGEST_COMMAND = 600, 2200
BACK, REVEAL, CHOSEN = "voltar", "mostrar", "escolhido"
# The engine's screens in navigation order. Each path (below the prefix) maps to the text key of its title.
ENGINE_SCREENS = {
    "": "panel.now",
    "/tarefas": "panel.jobs",
    "/programacoes": "panel.schedules",
    "/execucoes": "panel.executions",
    "/filas": "panel.queues",
    "/processos": "panel.processes",
    "/freios": "panel.brakes",
    "/incidentes": "panel.incidents",
    "/auditoria": "panel.audit",
    "/tokens": "panel.tokens",
}
# The scopes of the engine's screens that need more than ``read``.
SCREEN_SCOPES = {"/tokens": Scope.TOKENS}


class NavigationEntry(NamedTuple):
    href: str
    title: str
    is_here: bool
    is_first: bool = False  # whether this is the first screen of the application


@dataclass(frozen=True, slots=True)
class Result:
    """An action's result, which is shown once, on the next page."""

    tone: str
    text: str
    command: str


def words_of(request: Request, now: datetime | None = None) -> Words:
    """Return the formatter for the user's language. ``now`` is the database's time if the page has read it, otherwise
    the process's time.
    """
    state = state_of(request)
    return Words(page_texts(request), state.work.zone, now or state.now())


def caller_of(request: Request) -> Caller:
    caller: Caller = getattr(request.state, "caller", ANYBODY)
    return caller


def visit_of(request: Request) -> Visit:
    caller = caller_of(request)

    async def note(count: int) -> None:
        await note_access(request, "unmask", count=count)

    return Visit(
        caller=caller.name,
        scopes=caller.scopes,
        path={name: str(value) for name, value in request.path_params.items()},
        query=dict(request.query_params),
        texts=page_texts(request),
        now=state_of(request).now(),
        wants_personal_data=request.query_params.get(REVEAL) == "dados",
        note=note,
    )


def show(
    request: Request, template: str, words: Words, values: Mapping[str, object], *, live: bool, status: int = 200
) -> HTMLResponse:
    result = read_result(request)
    # A page with personal data is not live, because every access to personal data is recorded.
    shows_personal_data = REVEAL in request.query_params or getattr(request.state, "is_recorded", False)
    request.state.is_live = live = live and not shows_personal_data
    frame = {
        "words": words,
        "service": state_of(request).service,
        "navigation": navigation(request),
        "act": Acts(request),
        "revealing": lambda: _revealing(request),
        "result": result,
        "refresh": live and REFRESH_SECONDS,
    }
    shown = page(request, template, {**frame, **values}, status=status)
    if result is not None:
        state = state_of(request)
        shown.delete_cookie(result_cookie(state), httponly=True, samesite="strict", secure=state.settings.has_https)
    return shown


def is_live(request: Request) -> bool:
    """Return whether the page that responds to this request is updated while it is open in the browser."""
    return bool(getattr(request.state, "is_live", False))


def navigation(request: Request) -> list[NavigationEntry]:
    """Return the screens that the user may open: first the engine's, then the application's."""
    state, base, here = state_of(request), base_of(request), request.url.path
    scopes = caller_of(request).scopes
    engine = [
        (path, title) for path, title in ENGINE_SCREENS.items() if includes(scopes, SCREEN_SCOPES.get(path, Scope.READ))
    ]
    own = [
        (screen.path, screen.title)
        for screen in state.work.extension.screens
        if screen.in_navigation and includes(scopes, screen.scope)
    ]
    texts = page_texts(request)
    entries: list[NavigationEntry] = []
    for path, title in (*engine, *own):
        href = base + path
        is_here = here == href or (path != "" and here.startswith(f"{href}/"))
        entries.append(NavigationEntry(href, texts(title), is_here, len(entries) == len(engine)))
    return entries


def screen_titles(request: Request) -> dict[str, str]:
    """Return the titles of the screens in the navigation, keyed by their path below the prefix."""
    base = base_of(request)
    return {entry.href.removeprefix(base): entry.title for entry in navigation(request)}


class Acts:
    """Buttons for actions. An action that the user may not perform has no button."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._texts = page_texts(request)
        self._actions = state_of(request).actions
        self._scopes = caller_of(request).scopes

    def may(self, name: str) -> bool:
        return includes(self._scopes, self._actions[name].scope)

    def link(
        self, name: str, /, label: str | None = None, *, key: str = "", count: int | None = None, **values: object
    ) -> Markup:
        """Return a button that opens the action's form. The form shows what the action will do.

        ``values`` fills in the form's fields. If ``label`` is given, it is the key of the text to use as the button's
        label instead of the default; this text may contain ``{count}``. ``key`` is a keyboard shortcut.
        """
        if not self.may(name):
            return Markup("")
        action = self._actions[name]
        query = urlencode({**_drop_missing(values), BACK: here(self._request)})
        return Markup('<a class="button b-{}" href="{}/acoes/{}?{}" data-action{}>{}</a>').format(
            action.tone.value,
            base_of(self._request),
            name,
            query,
            _shortcut(key),
            self._texts(label or action.label, **({} if count is None else {"count": count})),
        )

    def form(self, name: str, /, label: str | None = None, *, key: str = "", **values: object) -> Markup:
        """Return a button that performs the action immediately, for an action that can be undone."""
        if not self.may(name):
            return Markup("")
        action = self._actions[name]
        given = {
            **_drop_missing(values),
            BACK: here(self._request),
            "csrf": getattr(self._request.state, "proof", None) or "",
        }
        inputs = Markup("").join(
            Markup('<input type="hidden" name="{}" value="{}">').format(field, value) for field, value in given.items()
        )
        return Markup(
            '<form class="act" method="post" action="{}/acoes/{}" data-act>{}<button class="b-{}"{}>{}</button></form>'
        ).format(
            base_of(self._request),
            name,
            inputs,
            action.tone.value,
            _shortcut(key),
            self._texts(label or action.label),
        )

    def choose(self, name: str, /, label: str | None = None) -> Markup:
        """Return a submit button that acts on the rows that the user has selected, for use inside a form with method
        get.

        Each row has a checkbox with the name ``escolhido``.
        """
        if not self.may(name):
            return Markup("")
        action = self._actions[name]
        return Markup('<button class="b-{}" formaction="{}/acoes/{}" data-action>{}</button>').format(
            action.tone.value, base_of(self._request), name, self._texts(label or action.label)
        )


def here(request: Request) -> str:
    """Return the address of the current page, without the parameters that must not be repeated in links (such as the
    language switch).
    """
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in (REVEAL, "lang")]
    return f"{request.url.path}?{urlencode(kept)}" if kept else request.url.path


def result_cookie(state: ApiState) -> str:
    """Return the name of the cookie that contains an action's result. With HTTPS, the name has the prefix ``__Host-``,
    because browsers do not let any other host set a cookie with this prefix.
    """
    return SECURE_RESULT_COOKIE if state.settings.has_https else RESULT_COOKIE


def keep_result(response: Response, state: ApiState, tone: Tone, text: str, command: str) -> None:
    content = json.dumps([tone.value, text[:LONGEST_RESULT], command if len(command) <= LONGEST_COMMAND else ""])
    response.set_cookie(
        result_cookie(state),
        base64.urlsafe_b64encode(content.encode()).decode().rstrip("="),
        max_age=RESULT_KEPT,
        httponly=True,
        samesite="strict",
        secure=state.settings.has_https,
    )


def read_result(request: Request) -> Result | None:
    """Return the last action's result, or None if there is no result or it cannot be decoded."""
    stored = request.cookies.get(result_cookie(state_of(request)))
    if stored is None:
        return None
    try:
        tone, text, command = map(str, json.loads(base64.urlsafe_b64decode(stored + "=" * (-len(stored) % 4))))
    except (ValueError, TypeError):
        return None
    return Result(tone if tone in set(Tone) else Tone.OK.value, text, command)


def _revealing(request: Request) -> Markup:
    """Return the button that shows or hides this page's personal data. If the user may not see the data, return an
    empty string.
    """
    if not includes(caller_of(request).scopes, Scope.PII):
        return Markup("")
    texts, is_shown = page_texts(request), request.query_params.get(REVEAL) == "dados"
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != REVEAL]
    query = urlencode([*kept, *([] if is_shown else [(REVEAL, "dados")])])
    label = texts("panel.hide_data" if is_shown else "panel.show_data")
    return Markup('<a class="button reveal" href="{}?{}" rel="nofollow">{}</a>').format(request.url.path, query, label)


def _drop_missing(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}


def _shortcut(key: str) -> Markup:
    return Markup(' data-key="{0}" aria-keyshortcuts="{0}"').format(key) if key else Markup("")
