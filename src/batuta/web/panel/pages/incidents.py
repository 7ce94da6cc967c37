"""The incidents page and its export as CSV. The page shows a timeline of causes, restarts and recoveries and, on
request, of operators' actions.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from batuta.engine.screens import Action
from batuta.health.alerts import Incident, stats
from batuta.health.finding import Finding
from batuta.health.queues import HOUR
from batuta.kernel.masking import mask
from batuta.processes.restarts import Restart
from batuta.queue.inspection import ErrorGroup
from batuta.runlog.history import BEFORE_ANY
from batuta.stores.sql.tables.audit import Entry
from batuta.texts.findings import causes_of, findings_of
from batuta.web.auth import note_access
from batuta.web.context import state_of
from batuta.web.panel.frame import show, words_of
from batuta.web.panel.pages import now
from batuta.web.panel.pages.queues import groups_of
from batuta.web.panel.pages.records import DAY, subject_of, title_of, write_csv
from batuta.web.panel.words import Words

PERIOD = timedelta(days=30)
MOST_INCIDENTS = 100
MOST_RESTARTS = 100
MOST_ACTIONS = 200
SHOWN = 150  # maximum points on the timeline
MOST_EXPORTED = 10_000
# Prefixes of audit entries that record no change.
_ACCESS = ("access.", "session.")
_COLUMNS = ("started_at", "resolved_at", "seconds", "from", "to", "score", "source", "causes", "by")


class Cause(NamedTuple):
    """A cause of an incident as a sentence. ``page`` is the page on which an operator acts on it, or empty."""

    text: str
    page: str


class Happening(NamedTuple):
    """An event on the incidents page's timeline. ``kind`` is the text key of its title. ``codes`` are shown in code
    format.
    """

    at: datetime
    kind: str
    tone: str
    text: str
    codes: tuple[str, ...] = ()
    page: str = ""
    causes: tuple[Cause, ...] = ()


async def incidents(request: Request) -> HTMLResponse:
    work, words = state_of(request).work, words_of(request)
    since = words.now - PERIOD
    found = await work.observability.incidents.list_between(since, words.now, MOST_INCIDENTS)
    restarts = await work.observability.restarts.since(since, limit=MOST_RESTARTS)
    with_actions = request.query_params.get("acoes") == "sim"
    actions = await work.access.list_before(words.now + DAY, BEFORE_ANY, MOST_ACTIONS) if with_actions else []
    causes = await _causes(request, found, words)
    happenings = timeline(
        found, causes, restarts, (each for each in actions if each.at >= since), words, state_of(request).actions
    )
    values = {
        "happenings": happenings[:SHOWN],
        "hidden": max(len(happenings) - SHOWN, 0),
        "stats": stats(found, since, words.now),
        "days": PERIOD.days,
        "with_actions": with_actions,
    }
    return show(request, "panel/incidents.html.j2", words, values, live=True)


async def _causes(request: Request, found: Sequence[Incident], words: Words) -> dict[str, list[Cause]]:
    """Return the causes of each incident, by the incident's id."""
    work = state_of(request).work
    findings = {each.id: findings_of(each) for each in found}
    queues = {now.queue_of_dead(each) for some in findings.values() for each in some}
    groups = {queue: await groups_of(request, queue) for queue in queues & set(work.queues)}

    def page(finding: Finding, incident: Incident) -> str:
        if (queue := now.queue_of_dead(finding)) in groups:
            return now.page_of_dead(queue, [each for each in groups[queue] if _is_during(each, incident)])
        step = now.next_step(finding, work.extension).page
        return step if finding.says and step != now.ELSEWHERE else ""

    return {
        incident.id: [
            Cause(text, page(finding, incident))
            for text, finding in zip(causes_of(incident, words.texts), findings[incident.id], strict=True)
        ]
        for incident in found
    }


def _is_during(group: ErrorGroup, incident: Incident) -> bool:
    """Return whether items of an error group may have died shortly before or during an incident."""
    ended = incident.resolved_at is None or group.since <= incident.resolved_at
    return ended and group.latest >= incident.started_at - HOUR


def timeline(
    found: Iterable[Incident],
    causes: Mapping[str, Sequence[Cause]],
    restarts: Iterable[Restart],
    actions: Iterable[Entry],
    words: Words,
    known: Mapping[str, Action],
) -> list[Happening]:
    """Return the events of the timeline (causes, restarts, recoveries and operators' actions), newest first."""
    happenings = [each for incident in found for each in _of_incident(incident, causes[incident.id], words)]
    happenings += [
        Happening(
            each.at,
            "restart",
            "degraded",
            words.reason(each.detail) or "",
            (each.worker_name if each.loop is None else f"{each.worker_name} / {each.loop}",),
            "/processos",
        )
        for each in restarts
    ]
    happenings += [
        Happening(
            each.at,
            "action",
            "running",
            f"{mask(each.actor)}: {title_of(each.action, known, words)}",
            (subject_of(each, words),),
        )
        for each in actions
        if not each.action.startswith(_ACCESS)
    ]
    return sorted(happenings, key=lambda each: each.at, reverse=True)


def _of_incident(incident: Incident, causes: Sequence[Cause], words: Words) -> Iterable[Happening]:
    text = words.texts
    change = text("panel.from_to", before=grade(incident.from_status, words), after=grade(incident.to_status, words))
    score = "" if incident.to_score is None else f" · {incident.to_score}/100"
    by = f" · {mask(str(incident.details['by']))}" if incident.details.get("by") else ""
    is_open = incident.resolved_at is None
    state = f" · {text('panel.still_open')}" if is_open else ""
    yield Happening(incident.started_at, "incident", "failing", f"{change}{score}{by}{state}", causes=tuple(causes))
    if incident.resolved_at is not None:
        took = words.took((incident.duration_seconds or 0) * 1000)
        yield Happening(incident.resolved_at, "recovery", "ok", text("panel.recovered_after", took=took))


def grade(status: str, words: Words) -> str:
    """Return the translated word for a health grade. An unknown grade, as in an old row, is returned unchanged."""
    return words.texts.get(f"grade.{status}", status)


async def incidents_file(request: Request) -> Response:
    """Return the incidents of the last 30 days as CSV."""
    work, words = state_of(request).work, words_of(request)
    found = await work.observability.incidents.list_between(words.now - PERIOD, words.now, MOST_EXPORTED)
    await note_access(request, "export", count=len(found))
    rows = (
        [
            state_of(request).local(each.started_at),
            state_of(request).local(each.resolved_at),
            each.duration_seconds,
            each.from_status,
            each.to_status,
            each.to_score,
            each.trigger_source,
            "; ".join(causes_of(each, words.texts)),
            mask(str(each.details.get("by") or "")),
        ]
        for each in found
    )
    headers = {"Content-Disposition": 'attachment; filename="incidentes.csv"'}
    return Response(write_csv(_COLUMNS, rows), media_type="text/csv; charset=utf-8", headers=headers)
