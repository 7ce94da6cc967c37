"""Live pages: one loop renders each open view once and sends the changed elements to all of the view's readers.

    page in a browser ── GET the same address, Accept: text/event-stream ──▶ Reader ─┐
    the same view in another browser ───────────────────────────────────────▶ Reader ─┴─ View ◀── LiveViews.tick renders

Readers share a view if they have the same address, scopes and language. The rendered elements are then the same, except
for the session's CSRF token, which each stream inserts itself. A page that shows personal data is not updated live,
because every access to personal data must be recorded.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import timedelta
from typing import NamedTuple, TypeAlias

from batuta.access import Scope
from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.values import dataclass
from batuta.supervise.loop import FOR_EVER, Idle, LoopPolicy, Pace, Wakeup, note_progress

POLICY = LoopPolicy(every=timedelta(seconds=3), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER)
PUSH_EVERY = 3.0  # minimum seconds between two renderings of a view
# rendering one view may take at most one twentieth of the time, so a slow view is rendered less often
SHARE_OF_TIME = 20
# The loop rests this many times as long as it rendered, so that rendering uses at most a fifth of the time and leaves
# the processor to other work.
RESTS = 4
MOST_READERS = 200
MOST_VIEWS = 60
_LIVE = re.compile(r"<(\w+)\b[^<>]*\bdata-live(-rows)?(?=[\s>=])[^<>]*>")
_ID = re.compile(r'\bid="([^"]+)"')


@dataclass(frozen=True, slots=True)
class ViewKey:
    path: str
    query: str
    scopes: frozenset[Scope]
    language: str
    has_session: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """The elements of a page that are updated live, by element id. ``lists`` maps a list's id to the ids of its rows,
    in display order.
    """

    html: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def whole(self) -> dict[str, str]:
        """Return all of the page's live elements. A list contains its rows, so the rows are not returned separately."""
        rows = {row for ids in self.lists.values() for row in ids}
        return {id: html for id, html in self.html.items() if id not in rows}

    def since(self, earlier: "Parts") -> dict[str, str]:
        """Return the live elements that differ from ``earlier``. A list is returned as a whole only if rows were added,
        removed or reordered; otherwise only its changed rows are returned.
        """
        moved = {id for id, rows in self.lists.items() if rows != earlier.lists.get(id)}
        inside = {row for id in moved for row in self.lists[id]}
        return {
            id: html
            for id, html in self.html.items()
            if id not in inside and (id in moved or (id not in self.lists and html != earlier.html.get(id)))
        }


class Rendered(NamedTuple):
    """A rendered page. ``is_live`` is true if the page's content may still change."""

    html: str
    is_live: bool


# Function that renders a page, or returns None if the page no longer exists.
Render: TypeAlias = Callable[[], Awaitable[Rendered | None]]


class Reader:
    """One browser's stream of changes to a live page. A new version of an element replaces a version that is still
    waiting to be sent, so a slow reader uses bounded memory.
    """

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.is_over = False
        # True after any session has ended: the stream must check its own session before it sends more
        self.is_doubted = False
        self.is_last = False  # True if nothing will change any more, so that the browser does not reconnect
        self._waiting: dict[str, str] = {}

    def put(self, parts: Mapping[str, str]) -> None:
        for id, html in parts.items():
            self._waiting.pop(
                id, None
            )  # in the order of the last change, so that a list precedes later changes of its rows
            self._waiting[id] = html
        if parts:
            self.changed.set()

    def take(self) -> dict[str, str]:
        self.changed.clear()
        taken, self._waiting = self._waiting, {}
        return taken

    def end(self) -> None:
        self.is_over = True
        self.changed.set()


@dataclass(eq=False)
class View:
    render: Render
    due_at: float
    parts: Parts = field(default_factory=Parts)
    readers: set[Reader] = field(default_factory=set)

    def end(self) -> None:
        for reader in self.readers:
            reader.end()


class LiveViews:
    """A loop that renders the live pages that are open in browsers (the views). While this loop is not running, pages
    reload themselves at intervals.
    """

    name = "live-pages"

    def __init__(self, clock: Clock) -> None:
        self.wakeup = Wakeup()
        self.is_running = False
        self._clock = clock
        self._views: dict[ViewKey, View] = {}

    @property
    def readers(self) -> int:
        return sum(len(view.readers) for view in self._views.values())

    def join(self, key: ViewKey, render: Render) -> Reader | None:
        """Add a browser's stream (a reader) to the live page with this key (a view). Return None if the loop is not
        running, or if the maximum number of readers or views is reached.
        """
        has_room = key in self._views or len(self._views) < MOST_VIEWS
        if not self.is_running or not has_room or self.readers >= MOST_READERS:
            return None
        view = self._views.setdefault(key, View(render, self._clock.monotonic()))
        reader = Reader()
        reader.put(view.parts.whole())
        view.readers.add(reader)
        self.wakeup.set()
        return reader

    def leave(self, key: ViewKey, reader: Reader) -> None:
        view = self._views.get(key)
        if view is not None:
            view.readers.discard(reader)
            if not view.readers:
                del self._views[key]

    def refresh(self) -> None:
        """Make the loop render every open page immediately, because an operator has changed something."""
        for view in self._views.values():
            view.due_at = self._clock.monotonic()
        self.wakeup.set()

    def doubt(self) -> None:
        """Make every stream check its session before it sends the next change. Called when a session ends."""
        for view in self._views.values():
            for reader in view.readers:
                reader.is_doubted = True
                reader.changed.set()

    async def tick(self) -> Pace:
        self.is_running = True
        for key, view in list(self._views.items()):
            if view.due_at <= self._clock.monotonic():
                took = await self._update(key, view)
                note_progress()
                await self._clock.sleep(took * RESTS)
        left = min((view.due_at for view in self._views.values()), default=None)
        if left is None:
            return Idle()
        return Idle(self._clock.now() + timedelta(seconds=max(0.0, left - self._clock.monotonic())))

    async def drain(self, grace: timedelta) -> None:
        self.is_running = False
        for view in self._views.values():
            view.end()

    async def _update(self, key: ViewKey, view: View) -> float:
        """Render an open page and send its changed elements to its readers. Return the rendering time in seconds."""
        started, rendered = self._clock.monotonic(), None
        try:
            rendered = await view.render()
        except StoreUnavailable:  # keep the streams open, because the next rendering may succeed
            rendered = Rendered("", is_live=True)
        finally:
            if rendered is None:
                self._end(key, view)
        took = self._clock.monotonic() - started
        view.due_at = started + max(PUSH_EVERY, took * SHARE_OF_TIME)
        if rendered is not None and rendered.html:
            parts = live_parts(rendered.html)
            changed, view.parts = parts.since(view.parts), parts
            for reader in view.readers:
                reader.put(changed)
            if not rendered.is_live:
                self._end(key, view)
        return took

    def _end(self, key: ViewKey, view: View) -> None:
        self._views.pop(key, None)
        for reader in view.readers:
            reader.is_last = True
        view.end()


def live_parts(html: str) -> Parts:
    """Find the elements with the attribute data-live, and the lists (data-live-rows) with the ids of their live rows.

    Values are escaped, so a page contains no tags except those in its template.
    """
    found: dict[str, str] = {}
    spans: dict[str, tuple[int, int]] = {}
    lists = set()
    for begin in _LIVE.finditer(html):
        if (named := _ID.search(begin[0])) is not None:
            id, end = named[1], _end_of(html, begin)
            found[id], spans[id] = html[begin.start() : end], (begin.start(), end)
            if begin[2]:
                lists.add(id)
    rows = {
        id: tuple(each for each, (at, _) in spans.items() if each != id and spans[id][0] < at < spans[id][1])
        for id in lists
    }
    return Parts(found, rows)


def _end_of(html: str, begin: "re.Match[str]") -> int:
    """Return the position after the closing tag of the element whose opening tag is ``begin``."""
    depth = 0
    for tag in re.compile(rf"<(/?){begin[1]}\b").finditer(html, begin.start()):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return html.index(">", tag.end()) + 1
    return len(html)
