"""The pages of queues and items: counts, filters, groups of equal errors, and the story of one item."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse

from batuta.engine.batuta import Batuta
from batuta.health.workers import FORGOTTEN_AFTER
from batuta.kernel.clock import instant, microseconds
from batuta.kernel.identity import short
from batuta.kernel.json import Json
from batuta.kernel.masking import mask
from batuta.kernel.reasons import decode
from batuta.kernel.suggestions import nearest
from batuta.queue.inspection import ItemFilter, Place
from batuta.queue.item import ItemState, QueueTable, pause_of_queue
from batuta.queue.store import Depth
from batuta.stores.sql.history import is_uuid
from batuta.stores.sql.queue.inspection import QueueInspection
from batuta.stores.sql.queue.store import SqlQueue
from batuta.web.context import state_of
from batuta.web.panel.frame import show, visit_of, words_of
from batuta.web.panel.words import Words
from batuta.web.problems import Problem

PAGE = 50
MOST_GROUPS = 8
_PLACE = re.compile(r"(-?\d{1,18})_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_SIGNATURE = re.compile(r"[0-9a-f]{12}")
TONES = {"ready": "waiting", "running": "running", "done": "ok", "dead": "failing", "cancelled": "unfinished"}


@dataclass(frozen=True, slots=True)
class QueueRow:
    name: str
    depth: Depth
    is_paused: bool
    has_worker: bool


class ShownItem(NamedTuple):
    id: str
    name: str
    attempts: int
    at: datetime | None
    error: str | None


class FilterTag(NamedTuple):
    """A filter in the address. ``without`` is the address without it."""

    label: str
    value: str
    without: str


class Moment(NamedTuple):
    """A point of an item's timeline."""

    key: str
    at: datetime | None
    tone: str
    note: str = ""


async def queues(request: Request) -> HTMLResponse:
    work = state_of(request).work
    switches, now = await work.switches.all(), work.clock.now()
    living = (await work.beats.read_signs(within=FORGOTTEN_AFTER, now=work.now())).living_loops
    served = {each.name: each.loops for each in work.observability.queues()}
    rows = []
    for name, queue in work.queues.items():
        switch = switches.get(pause_of_queue(name))
        is_paused = switch is not None and bool(switch.on) and (switch.until is None or switch.until > now)
        has_worker = any(loop in living for loop in served.get(name, (f"worker:{name}",)))
        rows.append(QueueRow(name, await queue.depth(), is_paused, has_worker))
    only_dead = request.query_params.get("estado") == ItemState.DEAD
    shown = [row for row in rows if row.depth.dead or not only_dead]
    shown.sort(key=lambda row: (-row.depth.dead, -row.depth.due, row.name))
    values = {"rows": shown, "only_dead": only_dead, "hidden": len(rows) - len(shown)}
    return show(request, "panel/queues.html.j2", words_of(request), values, live=True)


async def queue(request: Request, name: str) -> HTMLResponse:
    work, found = state_of(request).work, require_queue(state_of(request).work, name)
    words, inspection = words_of(request), QueueInspection(found, work.database, work.database.dialect)
    depth = await found.depth()
    asked = read_filter(request.query_params, depth)
    after = read_place(request.query_params.get("depois", ""))
    rows, last = await inspection.page(asked, after, PAGE)
    groups = (await inspection.groups())[:MOST_GROUPS] if depth.dead and asked.error is None else []
    values = {
        "queue": name,
        "table": found.table,
        "depth": depth,
        "asked": asked,
        "filters": tags(asked, words),
        "states": states(depth, asked),
        "groups": groups,
        "reason": lambda error: words.reason(decode(error)),
        "items": [show_item(row, found.table, asked.state) for row in map(dict, rows)],
        "older": None if last is None else urlencode({**asked_query(asked), "depois": write_place(last)}),
        "is_first": after is None,
        "operations": await work.bulk.recent(name),
        "is_paused": await _is_paused(work, name),
        "tones": TONES,
        "given": asked_query(asked),
    }
    return show(request, "panel/queue.html.j2", words, values, live=after is None)


async def item(request: Request, name: str, id: str) -> HTMLResponse:
    work = state_of(request).work
    found = require_queue(work, name)
    row = await found.item(id) if is_uuid(id) else None
    if row is None:
        raise Problem(404, "unknown_item", id=mask(id)[:40], queue=name)
    words, table, values = words_of(request), found.table, dict(row)
    payload = {column: value for column, value in values.items() if column not in engine_columns(table)}
    is_shown = await visit_of(request).reveal(1)
    state = state_of_item(values, table)
    content = {
        "queue": name,
        "id": id,
        "name": str(values.get("name") or ""),
        "state": state,
        "tone": TONES[state],
        "story": story(values, table, state),
        "error": words.reason(decode(values.get(table.error))),
        "facts": facts(values, table, words),
        "payload": pretty(payload) if is_shown else None,
        "can_retry": state == ItemState.DEAD,
        "can_cancel": state in (ItemState.READY, ItemState.RUNNING),
    }
    return show(request, "panel/item.html.j2", words, content, live=state == ItemState.RUNNING)


def require_queue(work: Batuta, name: str) -> SqlQueue:
    if name not in work.queues:
        raise Problem(404, "unknown_queue", queue=mask(name)[:80], nearest=nearest(name, list(work.queues)) or "–")
    return work.queues[name]


def read_filter(query: Mapping[str, str], depth: Depth) -> ItemFilter:
    """Read the filter in the address. Without a state the page shows the dead items, if there are any."""
    given = query.get("estado", "")
    otherwise = ItemState.DEAD if depth.dead else ItemState.READY
    signature = query.get("erro", "")
    return ItemFilter(
        state=ItemState(given) if given in set(ItemState) else otherwise,
        name=query.get("nome") or None,
        error=signature if _SIGNATURE.fullmatch(signature) else None,
    )


def asked_query(asked: ItemFilter) -> dict[str, str]:
    named = {"estado": asked.state.value, "nome": asked.name, "erro": asked.error}
    return {name: value for name, value in named.items() if value}


def read_place(text: str) -> Place | None:
    """Read the place of a page in its address, or return None for any other text."""
    found = _PLACE.fullmatch(text)
    try:
        return None if found is None else Place(instant(int(found[1])), found[2])
    except (OverflowError, ValueError):
        return None


def write_place(place: Place) -> str:
    return f"{microseconds(place.at)}_{place.id}"


def tags(asked: ItemFilter, words: Words) -> list[FilterTag]:
    query = asked_query(asked)
    labels = {"nome": "panel.item_name", "erro": "panel.error_group"}
    return [
        FilterTag(words.texts(label), query[name], f"?{urlencode({k: v for k, v in query.items() if k != name})}")
        for name, label in labels.items()
        if name in query
    ]


def states(depth: Depth, asked: ItemFilter) -> list[tuple[str, int | None, bool]]:
    """Return the states of items with their counts. Items that ended well are not counted: they are the most."""
    counts = {
        ItemState.READY: depth.due + depth.later,
        ItemState.RUNNING: depth.running,
        ItemState.DEAD: depth.dead,
        ItemState.DONE: None,
        ItemState.CANCELLED: None,
    }
    return [(state.value, count, state is asked.state) for state, count in counts.items()]


def show_item(row: Mapping[str, Any], table: QueueTable, state: ItemState) -> ShownItem:
    at = {ItemState.READY: table.available_at, ItemState.RUNNING: table.started_at or table.created_at}
    return ShownItem(
        str(row[table.id]),
        str(row.get("name") or ""),
        row[table.attempts],
        row.get(at.get(state, table.finished_at)) or row[table.created_at],
        decode(row[table.error]),
    )


def state_of_item(row: Mapping[str, Any], table: QueueTable) -> str:
    words = {table.dead: ItemState.DEAD, table.done: ItemState.DONE, table.cancelled: ItemState.CANCELLED}
    if row[table.lease_until] is not None:
        return ItemState.RUNNING.value
    return words.get(row[table.state], ItemState.READY).value


def engine_columns(table: QueueTable) -> frozenset[str]:
    """Return the columns that the engine fills. All others are data of the application."""
    named = (getattr(table, field) for field in table.__dataclass_fields__)
    return frozenset({*(each for each in named if isinstance(each, str)), "name", "progress"}) - {table.result}


def story(row: Mapping[str, Any], table: QueueTable, state: str) -> list[Moment]:
    """Return the timeline of an item: created, due, started, crashes, and its end."""
    created, due = row[table.created_at], row[table.available_at]
    started = row.get(table.started_at) if table.started_at else None
    moments = [Moment("created", created, "ok")]
    if due is not None and due - created > timedelta(seconds=1):
        moments.append(Moment("due", due, "waiting"))
    if row[table.attempts]:
        moments.append(Moment("claimed", started, "running", str(row[table.attempts])))
    if row[table.crashes]:
        moments.append(Moment("crashed", None, "failing", str(row[table.crashes])))
    if state == ItemState.RUNNING:
        moments.append(Moment("lease", row[table.lease_until], "running", short(row[table.owner] or "")))
    elif row[table.finished_at] is not None:
        moments.append(Moment(f"end_{state}", row[table.finished_at], TONES[state]))
    return moments


def facts(row: Mapping[str, Any], table: QueueTable, words: Words) -> list[tuple[str, str]]:
    number = {
        "panel.attempt": row[table.attempts],
        "panel.crashes": row[table.crashes],
        "panel.priority": row.get(table.priority) if table.priority else None,
        "panel.fence": row[table.fence],
        "panel.key_column": row.get(table.key) if table.key else None,
    }
    return [(words.texts(key), mask(str(value))) for key, value in number.items() if value is not None]


def pretty(payload: Mapping[str, Any]) -> str:
    """Format the data of an item on the server, because a browser would round large numbers."""

    def plain(value: object) -> Json:
        return value.isoformat() if isinstance(value, datetime) else str(value)

    return json.dumps(payload, ensure_ascii=False, indent=2, sort_keys=True, default=plain)


async def _is_paused(work: Batuta, name: str) -> bool:
    switch = await work.switches.read(pause_of_queue(name))
    return switch is not None and bool(switch.on) and (switch.until is None or switch.until > work.clock.now())
