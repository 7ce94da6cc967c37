"""The pages of processes and of the audit log."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from batuta.health.workers import FORGOTTEN_AFTER
from batuta.kernel.json import Json
from batuta.kernel.masking import mask
from batuta.processes.requests import ProcessRequest
from batuta.runlog.history import BEFORE_ANY
from batuta.stores.sql.audit import Entry
from batuta.web.auth import note_access
from batuta.web.context import state_of
from batuta.web.panel.frame import show, words_of
from batuta.web.panel.overview import Cursor

PAGE = 50
MOST_RESTARTS = 20
MOST_REQUESTS = 100
SHOWN_REQUESTS = 3  # maximum requests shown per process
MOST_EXPORTED = 10_000
DAY = timedelta(days=1)
_COLUMNS = ("at", "actor", "action", "subject", "facts")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


async def processes(request: Request) -> HTMLResponse:
    work = state_of(request).work
    signs = await work.beats.read_signs(within=FORGOTTEN_AFTER, now=work.now())
    alive = [beat for beat in signs.beats if not beat.is_offline]
    running = [beat for beat in alive if beat.lives(signs.now)]
    requests: dict[str, list[ProcessRequest]] = {}
    for each in await work.process_requests.since(words_of(request).now - DAY, limit=MOST_REQUESTS):
        requests.setdefault(each.worker_id, []).append(each)
    values = {
        "now": signs.now,
        "beats": sorted(alive, key=lambda beat: (beat.lives(signs.now), beat.role, beat.started_at)),
        "versions": sorted(Counter(beat.version for beat in running if beat.version).items()),
        "requests": requests,
        "shown_requests": SHOWN_REQUESTS,
        "restarts": await work.observability.restarts.since(words_of(request).now - DAY, limit=MOST_RESTARTS),
    }
    return show(request, "panel/processes.html.j2", words_of(request), values, live=True)


async def audit(request: Request) -> Response:
    work, words = state_of(request).work, words_of(request)
    start = Cursor.read(request.query_params.get("antes", "")) or Cursor(words.now + DAY, BEFORE_ANY)
    entries = await work.access.list_before(start.at, start.id, PAGE + 1)
    shown = entries[:PAGE]
    values = {
        "entries": shown,
        "older": Cursor(shown[-1].at, shown[-1].id) if len(entries) > PAGE else None,
        "is_first": "antes" not in request.query_params,
        "facts": describe,
        "mask": mask,
    }
    return show(request, "panel/audit.html.j2", words, values, live=values["is_first"] is True)


async def audit_file(request: Request) -> Response:
    """Return the newest entries of the audit log as CSV."""
    work = state_of(request).work
    entries = await work.access.list_before(words_of(request).now + DAY, BEFORE_ANY, MOST_EXPORTED)
    await note_access(request, "export", count=len(entries))
    rows = (
        [state_of(request).local(each.at), mask(each.actor), each.action, mask(each.subject), describe(each)]
        for each in entries
    )
    headers = {"Content-Disposition": 'attachment; filename="auditoria.csv"'}
    return Response(write_csv(_COLUMNS, rows), media_type="text/csv; charset=utf-8", headers=headers)


def describe(entry: Entry) -> str:
    """Return the facts of an entry as text, with personal data masked."""
    if isinstance(entry.after, dict):
        return mask(" · ".join(f"{name}: {_plain(value)}" for name, value in entry.after.items() if value is not None))
    return mask(" → ".join(_plain(each) for each in (entry.before, entry.after) if each is not None))


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write_csv(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV. A cell that a spreadsheet would evaluate as a formula is prefixed with an apostrophe."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(columns)
    for row in rows:
        cells = ["" if cell is None else str(cell) for cell in row]
        writer.writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells])
    return file.getvalue()
