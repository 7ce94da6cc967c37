"""The pages for queues and items: counts, filters, error groups, and the timeline of one item."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse

from batuta.access import includes
from batuta.engine.batuta import Batuta
from batuta.health.workers import FORGOTTEN_AFTER
from batuta.kernel.clock import instant, microseconds
from batuta.kernel.errors import EncryptionError
from batuta.kernel.identity import short
from batuta.kernel.masking import mask
from batuta.kernel.reasons import decode
from batuta.kernel.spans import read_span
from batuta.kernel.storage.encryption import Encryption
from batuta.kernel.storage.json import Json
from batuta.kernel.suggestions import nearest
from batuta.kernel.values import dataclass
from batuta.queue.inspection import ErrorGroup, ItemFilter, Place, signature_of
from batuta.queue.item import ItemState, QueueTable, pause_of_queue
from batuta.queue.store import Depth
from batuta.stores.sql.queue.inspection import QueueInspection, name_of
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.history import is_uuid
from batuta.supervise.stacks import stack_of_task
from batuta.tasks.ends import hide_unknown_due
from batuta.tasks.registry import TASKS
from batuta.tasks.task import RESULT, arguments_of
from batuta.web.context import state_of
from batuta.web.panel.actions import batches
from batuta.web.panel.actions.items import FIELDS_OF
from batuta.web.panel.frame import caller_of, show, visit_of, words_of
from batuta.web.panel.timeline import DrawnPeriod, draw, periods_of
from batuta.web.panel.words import Words
from batuta.web.problems import Problem

PAGE = 50
MOST_GROUPS = 8
STACKS_SHOWN = timedelta(minutes=10)  # maximum age of a stack; an older stack does not show what is running now
_PLACE = re.compile(r"(-?\d{1,18})_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_SIGNATURE = re.compile(r"[0-9a-f]{12}")
TONES = {"ready": "waiting", "running": "running", "done": "ok", "dead": "failing", "cancelled": "unfinished"}


@dataclass(frozen=True, slots=True)
class QueueRow:
    name: str
    depth: Depth
    is_paused: bool
    has_worker: bool
    slots: int  # how many items the running workers execute at the same time


class ShownItem(NamedTuple):
    id: str
    name: str
    attempts: int
    at: datetime | None
    error: str | None


class FilterTag(NamedTuple):
    """A filter in the page's address. ``without`` is the same address without this filter."""

    label: str
    value: str
    without: str


class ShownStack(NamedTuple):
    """A running item's stack, as the item's process reported it."""

    text: str
    at: datetime


class Moment(NamedTuple):
    """A point on an item's timeline."""

    key: str
    at: datetime | None
    tone: str
    note: str = ""


async def queues(request: Request) -> HTMLResponse:
    work = state_of(request).work
    switches, now = await work.switches.all(), work.clock.now()
    signs = await work.beats.read_signs(within=FORGOTTEN_AFTER, now=work.now())
    served = {each.name: each.loops for each in work.observability.queues()}
    counts, rows = state_of(request).counts, []
    for name, queue in work.queues.items():
        switch = switches.get(pause_of_queue(name))
        is_paused = switch is not None and bool(switch.on) and (switch.until is None or switch.until > now)
        loops = served.get(name, (f"worker:{name}",))
        has_worker = not signs.living_loops.isdisjoint(loops)
        rows.append(QueueRow(name, await counts.depth(queue), is_paused, has_worker, signs.slots(loops)))
    only_dead = request.query_params.get("estado") == ItemState.DEAD
    shown = [row for row in rows if row.depth.dead or not only_dead]
    shown.sort(key=lambda row: (-row.depth.dead, -row.depth.due, row.name))
    values = {
        "rows": shown,
        "only_dead": only_dead,
        "hidden": len(rows) - len(shown),
        "batches": await work.batches.newest(batches.SHOWN),
        "batch_tones": batches.TONES,
    }
    return show(request, "panel/queues.html.j2", words_of(request), values, live=True)


async def queue(request: Request, name: str) -> HTMLResponse:
    work, found = state_of(request).work, require_queue(state_of(request).work, name)
    words, inspection = words_of(request), QueueInspection(found, work.database, work.database.dialect)
    counts = state_of(request).counts
    depth = await counts.depth(found)
    asked = read_filter(request.query_params, depth, words.now)
    given = write_query(asked, request.query_params)
    after = read_place(request.query_params.get("depois", ""))
    rows, last = await inspection.full_page(asked, after, PAGE)
    shows_groups = depth.dead and asked.state is ItemState.DEAD
    groups = await counts.groups(inspection, depth.dead) if shows_groups else []
    if asked.error is not None:
        groups = [group for group in groups if group.signature == asked.error]
    values = {
        "queue": name,
        "table": found.table,
        "depth": depth,
        "asked": asked,
        "filters": tags(given, groups, words),
        "states": states(depth, asked),
        "groups": groups[:MOST_GROUPS],
        "reason": lambda error: words.reason(decode(error)),
        "items": [show_item(row, found.table, asked.state) for row in map(dict, rows)],
        "older": None if last is None else urlencode({**given, "depois": write_place(last)}),
        "is_first": after is None,
        "operations": await work.bulk.recent(name),
        "is_paused": await _is_paused(work, name),
        "tones": TONES,
        "given": given,
        "chosen": {name: value for name, value in given.items() if name != "estado"},
        "is_tasks": found.table.name == TASKS.name,
        "may_retry": may_retry(request, name),
    }
    return show(request, "panel/queue.html.j2", words, values, live=after is None)


async def groups_of(request: Request, name: str) -> list[ErrorGroup]:
    """Return the error groups of a queue's dead items, largest first."""
    state = state_of(request)
    found = state.work.queues[name]
    inspection = QueueInspection(found, state.work.database, state.work.database.dialect)
    return await state.counts.groups(inspection, (await state.counts.depth(found)).dead)


def may_retry(request: Request, queue: str) -> bool:
    """Return whether the user may repeat items in the queue. Some queues require an additional scope for this, because
    repeating their items sends messages.
    """
    return includes(caller_of(request).scopes, state_of(request).work.scope_of_queue(queue))


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
    waits_for = (await work.explain_waits(found, [values])).get(id)
    is_allowed = may_retry(request, name)
    content = {
        "queue": name,
        "id": id,
        "name": str(values.get("name") or ""),
        "state": state,
        "tone": TONES[state],
        "story": story(values, table, state),
        "bar": draw_item(values, table, state, words.now),
        "process": None if values[table.owner] is None else short(values[table.owner]),
        "stack": await current_stack(work, values[table.owner], f"item {id}", words.now),
        "can_edit": is_allowed and table.name == TASKS.name and state != ItemState.RUNNING and bool(values.get("name")),
        "error": words.reason(decode(values.get(table.error))),
        "lines": await work.log_lines.of_item(id),
        "waits_for": None if waits_for is None else words.reason(waits_for),
        "facts": facts(values, table, words),
        "payload": pretty(decrypt_payload(payload, table, work.encryption, words)) if is_shown else None,
        "group": signature_of(name_of(row), row[table.error]) if state == ItemState.DEAD else None,
        "can_retry": is_allowed and state == ItemState.DEAD,
        "can_discard": state == ItemState.DEAD,
        "can_cancel": state in (ItemState.READY, ItemState.RUNNING),
    }
    return show(request, "panel/item.html.j2", words, content, live=state == ItemState.RUNNING)


async def current_stack(work: Batuta, owner: str | None, task: str, now: datetime) -> ShownStack | None:
    """Return the stack that the process ``owner`` last reported for the asyncio task ``task``. Return None if no stack
    was reported recently.
    """
    place = None if owner is None else short(owner)
    signs = await work.beats.read_signs(within=FORGOTTEN_AFTER, now=work.now()) if place else None
    workers = {beat.worker_id for beat in signs.beats if beat.place == place} if signs else set()
    if not workers:
        return None
    for each in await work.process_requests.since(now - STACKS_SHOWN):
        own = stack_of_task(each.stack, task) if each.stack and each.worker_id in workers else None
        if own is not None and each.taken_at is not None:
            return ShownStack(own, each.taken_at)
    return None


def draw_item(row: Mapping[str, Any], table: QueueTable, state: str, now: datetime) -> list[DrawnPeriod]:
    return draw(
        periods_of(
            created=row[table.created_at],
            due=hide_unknown_due(row[table.available_at]),
            started=row.get(table.started_at) if table.started_at else None,
            ended=row[table.finished_at],
            now=now,
            attempts=row[table.attempts],
            is_running=state == ItemState.RUNNING,
        )
    )


def require_queue(work: Batuta, name: str) -> SqlQueue:
    if name not in work.queues:
        raise Problem(404, "unknown_queue", queue=mask(name)[:80], nearest=nearest(name, list(work.queues)) or "–")
    return work.queues[name]


def read_filter(query: Mapping[str, str], depth: Depth, now: datetime) -> ItemFilter:
    """Parse the item filter in the page's address. If the address names no state, the page shows the dead items or, if
    there are none, the ready items.
    """
    given = query.get("estado", "")
    otherwise = ItemState.DEAD if depth.dead else ItemState.READY
    signature = query.get("erro", "")
    age = read_span(query.get("idade", ""))
    return ItemFilter(
        state=ItemState(given) if given in set(ItemState) else otherwise,
        name=query.get("nome") or None,
        error=signature if _SIGNATURE.fullmatch(signature) else None,
        key=query.get("chave") or None,
        tag=query.get("etiqueta") or None,
        before=None if age is None else now - age,
    )


def write_query(asked: ItemFilter, query: Mapping[str, str]) -> dict[str, str]:
    """Return the filter as query parameters. A maximum age is written as a duration, relative to the current time, so
    that a bookmarked filter keeps its meaning.
    """
    given = {field: getattr(asked, name) for name, field in FIELDS_OF.items()}
    named = {"estado": asked.state.value, **given, "idade": query.get("idade") if asked.before else None}
    return {name: value for name, value in named.items() if value}


def read_place(text: str) -> Place | None:
    """Parse the position in the item list at which a page begins, as written in the page's address. Return None if the
    text is not a position.
    """
    found = _PLACE.fullmatch(text)
    try:
        return None if found is None else Place(instant(int(found[1])), found[2])
    except (OverflowError, ValueError):
        return None


def write_place(place: Place) -> str:
    return f"{microseconds(place.at)}_{place.id}"


def tags(query: Mapping[str, str], groups: Sequence[ErrorGroup], words: Words) -> list[FilterTag]:
    """Return one tag for each filter in the page's address. The tag of an error group shows its newest error."""
    labels = {
        "nome": "panel.item_name",
        "erro": "panel.error_group",
        "chave": "panel.key_column",
        "etiqueta": "panel.tag_column",
        "idade": "panel.older_than",
    }
    errors = [words.reason(decode(group.error)) or words.texts("panel.no_error") for group in groups]
    shown = {**query, "erro": errors[0] if errors else words.texts("panel.group_is_empty")}
    return [
        FilterTag(words.texts(label), shown[name], f"?{urlencode({k: v for k, v in query.items() if k != name})}")
        for name, label in labels.items()
        if name in query
    ]


def states(depth: Depth, asked: ItemFilter) -> list[tuple[str, int | None, bool]]:
    """Return the item states with their counts. Successful and cancelled items are not counted, because there may be
    too many of them.
    """
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
        hide_unknown_due(row.get(at.get(state, table.finished_at))) or row[table.created_at],
        decode(row[table.error]),
    )


def state_of_item(row: Mapping[str, Any], table: QueueTable) -> str:
    words = {table.dead: ItemState.DEAD, table.done: ItemState.DONE, table.cancelled: ItemState.CANCELLED}
    if row[table.lease_until] is not None:
        return ItemState.RUNNING.value
    return words.get(row[table.state], ItemState.READY).value


def engine_columns(table: QueueTable) -> frozenset[str]:
    """Return the columns of a queue table that the engine fills. All other columns contain the application's data."""
    named = (getattr(table, field) for field in table.__dataclass_fields__)
    return frozenset({*(each for each in named if isinstance(each, str)), "name", "progress"}) - {table.result}


def story(row: Mapping[str, Any], table: QueueTable, state: str) -> list[Moment]:
    """Return an item's timeline: when it was created, became due, started, crashed and ended."""
    created, due = row[table.created_at], hide_unknown_due(row[table.available_at])
    started = row.get(table.started_at) if table.started_at else None
    moments = [Moment("created", created, "ok")]
    if due is not None and due - created > timedelta(seconds=1) and not row[table.attempts]:
        moments.append(Moment("due", due, "waiting"))
    if row[table.attempts]:
        moments.append(Moment("claimed", started, "running", str(row[table.attempts])))
    if row[table.crashes]:
        moments.append(Moment("crashed", None, "failing", str(row[table.crashes])))
    if state == ItemState.READY and row[table.attempts]:
        moments.append(Moment("again", due, "waiting"))
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


def decrypt_payload(
    payload: Mapping[str, Any], table: QueueTable, encryption: Encryption, words: Words
) -> Mapping[str, Any]:
    """Return an item's data as its handler receives it. If the data cannot be decrypted, return the reason instead."""
    if table.name != TASKS.name:
        return payload
    try:
        found = {"result": encryption.decrypt(payload["result"], RESULT)}
        if payload["args"]:  # the arguments are empty after they were erased
            found["args"] = [*arguments_of(payload["args"], encryption), *payload["args"][2:]]
    except EncryptionError as error:
        return {"error": words.texts.error(error)}
    return {**payload, **found}


def pretty(payload: Mapping[str, Any]) -> str:
    """Format an item's data on the server, because a browser would round large numbers."""

    def plain(value: object) -> Json:
        return value.isoformat() if isinstance(value, datetime) else str(value)

    return json.dumps(payload, ensure_ascii=False, indent=2, sort_keys=True, default=plain)


async def _is_paused(work: Batuta, name: str) -> bool:
    switch = await work.switches.read(pause_of_queue(name))
    return switch is not None and bool(switch.on) and (switch.until is None or switch.until > work.clock.now())
