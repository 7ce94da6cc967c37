"""The pages for processes and the audit log."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from batuta.engine.screens import Action
from batuta.health.workers import FORGOTTEN_AFTER, Beat
from batuta.kernel.identity import has_ended
from batuta.kernel.masking import mask
from batuta.kernel.reasons import decode
from batuta.kernel.storage.json import Json
from batuta.processes.requests import ProcessRequest
from batuta.processes.restarts import Restart
from batuta.runlog.history import BEFORE_ANY
from batuta.stores.sql.tables.audit import Entry
from batuta.web.auth import note_access
from batuta.web.context import state_of
from batuta.web.panel.frame import show, words_of
from batuta.web.panel.pages.overview import Cursor
from batuta.web.panel.words import Words

PAGE = 50
MOST_RESTARTS = 20
MOST_REQUESTS = 100
SHOWN_REQUESTS = 3  # maximum requests shown per process
MOST_EXPORTED = 10_000
DAY = timedelta(days=1)
RECORDED_WITHIN = timedelta(seconds=2)  # the parent may record a restart this long after the new process started
REPLACED_WITHIN = timedelta(minutes=3)  # the parent waits at most a minute before it starts a replacement
PAUSE = "pause."  # prefix of the switches that pauses set
MISSING, REPLACED = "failing", "unfinished"  # states of a process that has ended: without and with a successor
_ORDER = {MISSING: 0, REPLACED: 2}
NOTHING: tuple[object, ...] = (None, {}, [], "", "-")  # stored values that carry no information
_COLUMNS = ("at", "actor", "action", "subject", "facts")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d$")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


async def processes(request: Request) -> HTMLResponse:
    work = state_of(request).work
    signs = await work.beats.read_signs(within=FORGOTTEN_AFTER, now=work.now())
    alive = [beat for beat in signs.beats if not beat.is_offline]
    restarts = await work.observability.restarts.since(words_of(request).now - DAY, limit=MOST_RESTARTS)
    states = process_states(alive, restarts, signs.now)
    running = [beat for beat in alive if states[beat.worker_id] not in (MISSING, REPLACED)]
    requests: dict[str, list[ProcessRequest]] = {}
    for each in await work.process_requests.since(words_of(request).now - DAY, limit=MOST_REQUESTS):
        requests.setdefault(each.worker_id, []).append(each)
    values = {
        "now": signs.now,
        "beats": sorted(alive, key=lambda beat: (_ORDER.get(states[beat.worker_id], 1), beat.role, beat.started_at)),
        "states": states,
        "versions": sorted(Counter(beat.version for beat in running if beat.version).items()),
        "requests": requests,
        "shown_requests": SHOWN_REQUESTS,
        "restarts": restarts,
        "restarted": restarts_of(alive, restarts),
    }
    return show(request, "panel/processes.html.j2", words_of(request), values, live=True)


def restarts_of(beats: Sequence[Beat], restarts: Sequence[Restart]) -> dict[str, Restart]:
    """Return a mapping from a process's worker id to the restart that created the process. Each restart is matched with
    the first process of the same role and host that started after it. A process that started much later did not replace
    the ended one: an operator has restarted the whole program since.
    """
    found = {}
    for restart in sorted((each for each in restarts if each.loop is None), key=lambda each: each.at):
        later = [
            beat
            for beat in beats
            if (beat.role, beat.host) == (restart.worker_name, restart.host)
            and beat.pid != restart.pid
            and -RECORDED_WITHIN <= beat.started_at - restart.at <= REPLACED_WITHIN
        ]
        if later:
            found[min(later, key=lambda beat: beat.started_at).worker_id] = restart
    return found


def process_states(beats: Sequence[Beat], restarts: Iterable[Restart], now: datetime) -> dict[str, str]:
    """Return the state of each process, by worker id. Even a process with a recent heartbeat is treated as ended if its
    restart was recorded after that heartbeat, or if this host's kernel reports that the process no longer exists.
    """
    ends: dict[tuple[str | None, int | None], datetime] = {
        (each.host, each.pid): each.at for each in restarts if each.loop is None
    }
    ended = {each.worker_id for each in beats if (at := ends.get((each.host, each.pid))) and at >= each.beat_at}
    dead = ended | {each.worker_id for each in beats if not each.lives(now) or has_ended(each.worker_id)}
    states = {}
    for beat in beats:
        if beat.worker_id in dead:
            others = (each for each in beats if each.role == beat.role and each.worker_id not in dead)
            is_replaced = any(each.started_at > beat.beat_at for each in others)
            states[beat.worker_id] = REPLACED if is_replaced else MISSING
        elif not beat.works(now):
            states[beat.worker_id] = "degraded"
        else:
            states[beat.worker_id] = "held" if beat.status == "draining" else "ok"
    return states


async def audit(request: Request) -> Response:
    work, words = state_of(request).work, words_of(request)
    start = Cursor.read(request.query_params.get("antes", "")) or Cursor(words.now + DAY, BEFORE_ANY)
    entries = await work.access.list_before(start.at, start.id, PAGE + 1)
    shown = entries[:PAGE]
    values = {
        "entries": shown,
        "older": Cursor(shown[-1].at, shown[-1].id) if len(entries) > PAGE else None,
        "is_first": "antes" not in request.query_params,
        "facts": partial(describe, words=words),
        "title_of": lambda action: title_of(action, state_of(request).actions, words),
        "mask": mask,
        "subject_of": partial(subject_of, words=words),
    }
    return show(request, "panel/audit.html.j2", words, values, live=values["is_first"] is True)


async def audit_file(request: Request) -> Response:
    """Return the newest audit-log entries as CSV."""
    work = state_of(request).work
    entries = await work.access.list_before(words_of(request).now + DAY, BEFORE_ANY, MOST_EXPORTED)
    await note_access(request, "export", count=len(entries))
    rows = (
        [
            state_of(request).local(each.at),
            mask(each.actor),
            each.action,
            mask(each.subject),
            describe(each, words_of(request)),
        ]
        for each in entries
    )
    headers = {"Content-Disposition": 'attachment; filename="auditoria.csv"'}
    return Response(write_csv(_COLUMNS, rows), media_type="text/csv; charset=utf-8", headers=headers)


def describe(entry: Entry, words: Words) -> str:
    """Return the facts of an audit-log entry in the user's language and time zone, with personal data masked."""
    after = entry.after if isinstance(entry.after, dict) else None
    if after is None:
        sides = (entry.before, entry.after)
        return mask(" → ".join(_value("", each, words) for each in sides if each is not None))
    return mask(" · ".join(_fact(name, value, words) for name, value in after.items() if value not in NOTHING))


def title_of(action: str, actions: Mapping[str, Action], words: Words) -> str:
    """Return the title of an audited action: its own text if there is one, otherwise its button's label, otherwise its
    code.
    """
    known = words.texts.get(f"audit_action.{action}", "")
    return known or (words.texts(actions[action].label) if action in actions else action)


def subject_of(entry: Entry, words: Words) -> str:
    """Return the object of an audit-log entry, with personal data masked. Switches and pauses are shown under the same
    names as on other pages.
    """
    texts = words.texts
    if known := texts.get(f"switch_name.{entry.subject}", ""):
        return known
    kind, _, name = entry.subject.removeprefix(PAUSE).partition(".")
    if entry.subject.startswith(PAUSE) and (target := texts.get(f"panel.target_{kind}", "")):
        return texts("panel.pause_of", target=target.format(name=name))
    return mask(entry.subject)


def _fact(name: str, value: Json, words: Words) -> str:
    return f"{words.texts.get(f'audit_fact.{name}', name)}: {_value(name, value, words)}"


def _value(name: str, value: Json, words: Words) -> str:
    match value:
        case bool():
            return words.texts("panel.on" if value else "panel.off")
        case dict():
            return ", ".join(_fact(each, inner, words) for each, inner in value.items() if inner not in NOTHING)
        case list():
            return ", ".join(_value(name, each, words) for each in value)
        case str() if _INSTANT.match(value):
            return words.minute(datetime.fromisoformat(value))
        case str() if name == "state":
            return words.texts.get(f"item_state.{value}", words.texts.get(f"circuit.{value}", value))
        case str():
            return words.texts.get(f"audit_value.{value}", "") or words.reason(decode(value)) or value
        case _:
            return str(value)


def write_csv(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV. A cell that a spreadsheet would evaluate as a formula is prefixed with an apostrophe."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(columns)
    for row in rows:
        cells = ["" if cell is None else str(cell) for cell in row]
        writer.writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells])
    return file.getvalue()
