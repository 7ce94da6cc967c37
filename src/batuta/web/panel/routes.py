"""Registers the routes for the dashboard's pages."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from batuta.access import Scope
from batuta.dispatch.job import Job
from batuta.dispatch.plan import pause_of_job, possible_holds
from batuta.engine.extension import Extension
from batuta.engine.screens import Action
from batuta.health.jobs import DAY, JobHealth, JobsSeen, JobState
from batuta.kernel.identity import short
from batuta.kernel.masking import mask
from batuta.kernel.suggestions import nearest
from batuta.runlog.execution import Status
from batuta.runlog.history import BEFORE_ANY, Recorded
from batuta.stores.sql.tables.history import is_uuid
from batuta.web.auth import needs
from batuta.web.context import base_of, state_of
from batuta.web.pages import static
from batuta.web.panel import charts, screens, sign_in
from batuta.web.panel import words as crons
from batuta.web.panel.actions import perform, schedules, tokens
from batuta.web.panel.frame import SCREEN_SCOPES, screen_titles, show, words_of
from batuta.web.panel.page_route import PageRoute
from batuta.web.panel.pages import brakes, incidents, now, overview, queues, records
from batuta.web.panel.pages.overview import Cursor
from batuta.web.panel.timeline import draw, periods_of
from batuta.web.panel.words import Words
from batuta.web.problems import Problem, unknown_job

PAGE = 50
ERRORS = 5
FIRES = 10
AROUND = 500  # maximum executions that are searched for one fire
_FAILED = ("error", "timeout", "abandoned")
COMPARED = "comparar"
LONGEST_NAME = 200


def build_routers(prefix: str, extension: Extension, actions: Mapping[str, Action]) -> tuple[APIRouter, APIRouter]:
    """Return two routers with the dashboard's routes. The routes of the second router are matched last, so that an
    application can replace the first page and add pages.
    """
    router = APIRouter(prefix=prefix, include_in_schema=False, route_class=PageRoute)
    add = router.add_api_route
    add("/entrar", sign_in.show_sign_in, methods=["GET"])
    add("/entrar", sign_in.sign_in, methods=["POST"])
    # Every session may end itself, regardless of its scopes.
    add("/sair", sign_in.sign_out, methods=["POST"], openapi_extra=needs(Scope.READ))
    for path, handler in _PAGES.items():
        add(path, handler, methods=["GET"], openapi_extra=needs(SCREEN_SCOPES.get(path, Scope.READ)))
    perform.add_routes(router, actions)
    screens.add_routes(router, extension.screens)
    last = APIRouter(include_in_schema=False, route_class=PageRoute)
    last.add_api_route("/", first_page, methods=["GET"])
    last.add_api_route(prefix + "/{rest:path}", nothing, methods=["GET"])
    return router, last


def open_routes(prefix: str) -> frozenset[str]:
    """Return the routes that need no session: the sign-in page and the pages' static files."""
    return frozenset({f"{prefix}/entrar", f"{prefix}/static/{{name}}"})


async def first_page(request: Request) -> RedirectResponse:
    return RedirectResponse(base_of(request))


async def overview_page(request: Request) -> HTMLResponse:
    work = state_of(request).work
    seen = await work.job_health.look()
    since = charts.begin(seen.now)
    words = words_of(request, seen.now)
    categories = tuple(dict.fromkeys(health.job.category for health in seen.jobs))
    assessment = await work.health.look()
    counts = state_of(request).counts
    dead = {queue for each in overview.root_findings(assessment) if (queue := now.queue_of_dead(each)) in work.queues}
    groups = {queue: await queues.groups_of(request, queue) for queue in dead}
    pulses = [await counts.pulse(queue) for queue in work.observability.queues()]
    held = sum(health.state is JobState.HELD for health in seen.jobs) + sum(pulse.is_held for pulse in pulses)
    return _page(
        request,
        "now",
        words,
        live=True,
        seen=seen,
        verdict=now.verdict(assessment, words),
        assessment=assessment,
        findings=now.show_findings(assessment, words, work.extension, screen_titles(request), groups),
        may_retry=lambda queue: queues.may_retry(request, queue),
        most_findings=overview.MOST_FINDINGS,
        numbers=now.key_numbers(seen, pulses, held),
        not_run=now.jobs_not_run(seen, words),
        most_not_run=overview.MOST_FINDINGS,
        windows=overview.windows(seen, work.registry, words),
        boards=[await board() for board in work.extension.boards],
        lanes=charts.lanes(
            categories,
            await work.reports.activity(since=since, length=charts.SLICE, now=seen.now),
            since,
            words,
            charts.missing_fires(seen.jobs, since, seen.now),
        ),
        hours=charts.hours(since, words),
        running=await work.reports.recent(status=Status.RUNNING.value, before=_after_every_row(request), limit=FIRES),
        fires=sorted(seen.jobs, key=lambda health: health.next_at)[:FIRES],
    )


async def jobs(request: Request) -> HTMLResponse:
    work = state_of(request).work
    seen = await work.job_health.look()
    words = words_of(request, seen.now)
    categories = tuple(dict.fromkeys(health.job.category for health in seen.jobs))
    asked = overview.JobFilter.read(request.query_params, categories)
    return _page(
        request,
        "jobs",
        words,
        live=True,
        seen=seen,
        asked=asked,
        categories=categories,
        rows=overview.rows(seen, asked, words),
        counts=overview.counts(seen),
        verdict=overview.verdict(seen),
        windows=overview.windows(seen, work.registry, words),
        shares=overview.shares,
    )


async def job(request: Request, name: str) -> HTMLResponse:
    work = state_of(request).work
    declared = _require_job(request, name)
    seen = await work.job_health.look()
    words = words_of(request, seen.now)
    health = next((each for each in seen.jobs if each.job.name == name), None)
    found = declared if health is None else health.job
    cursor = Cursor.read(request.query_params.get("antes", ""))
    rows, older = await _executions(request, cursor, job=name)
    errors = [
        await work.reports.recent(job=name, status=status, before=_after_every_row(request), limit=ERRORS)
        for status in _FAILED
    ]
    asked_time = request.query_params.get("hora", "")
    if not asked_time and health is not None and health.is_stale and health.expected_at is not None:
        asked_time = f"{health.expected_at.astimezone(found.zone):%H:%M}"
    return _page(
        request,
        "job",
        words,
        live=cursor is None,
        seen=seen,
        job=found,
        health=health,
        why=None if health is None else overview.explain(health, seen, words),
        schedule=crons.in_words(found.cron, words),
        holds=possible_holds(found),
        profiles=work.registry.profiles,
        fires=overview.next_fires(found, seen, words),
        rows=rows,
        older=older,
        is_first=cursor is None,
        spark=charts.spark(rows),
        errors=overview.newest(errors, ERRORS),
        is_paused=_is_paused(found, seen),
        asked_time=asked_time,
        why_not=await _why_not(request, found, asked_time, health, words),
        comparison=await _comparison(request, name, words),
    )


async def _comparison(request: Request, job: str, words: Words) -> list[overview.Compared]:
    """Compare the two executions that the page's address names, the older one first."""
    ids = [id for id in request.query_params.getlist(COMPARED) if is_uuid(id)]
    found = [await state_of(request).work.reports.execution(id) for id in ids[:2]]
    rows = sorted((row for row in found if row is not None and row.job == job), key=lambda row: row.started_at)
    return overview.compare(rows[0], rows[1], words) if len(rows) == 2 else []


async def _why_not(
    request: Request, job: Job, asked: str, health: JobHealth | None, words: Words
) -> overview.WhyNot | None:
    at = overview.fire_at(job, asked, words.now)
    if at is None:
        return None
    around = await state_of(request).work.reports.recent(job=job.name, before=at + DAY, limit=AROUND)
    return overview.why_not(job, at, around, words, held=None if health is None else health.held)


def _is_paused(job: Job, seen: JobsSeen) -> bool:
    switch = seen.switches.get(pause_of_job(job.name))
    return switch is not None and bool(switch.on) and (switch.until is None or switch.until > seen.now)


async def executions(request: Request) -> HTMLResponse:
    params = request.query_params
    asked_job = params.get("tarefa", "")[:LONGEST_NAME] or None
    asked_status = params.get("situacao") if params.get("situacao") in set(Status) else None
    cursor = Cursor.read(params.get("antes", ""))
    rows, older = await _executions(request, cursor, job=asked_job, status=asked_status)
    return _page(
        request,
        "executions",
        words_of(request),
        live=cursor is None,
        rows=rows,
        older=older,
        is_first=cursor is None,
        asked_job=asked_job,
        asked_status=asked_status,
        # Includes the requested job even if it is no longer declared, because its executions remain.
        names=sorted({each.name for each in state_of(request).work.registry} | {asked_job or ""} - {""}),
        statuses=[status.value for status in Status],
    )


async def execution(request: Request, id: str) -> HTMLResponse:
    work = state_of(request).work
    row = await work.reports.execution(id)
    if row is None:
        raise Problem(404, "unknown_execution", id=mask(id)[:40])
    is_known = any(each.name == row.job for each in work.registry)
    is_running = row.status == Status.RUNNING
    process = None if row.owner is None else short(row.owner)
    lines = await work.log_lines.of_item(id)
    words = words_of(request)
    return _page(
        request,
        "execution",
        words,
        live=is_running,
        row=row,
        is_known=is_known,
        process=process,
        lines=lines,
        bar=draw(
            periods_of(
                created=row.scheduled_for or row.started_at,
                due=None,
                started=row.started_at,
                ended=row.finished_at,
                now=words.now,
                attempts=1,
                is_running=is_running,
            )
        ),
        stack=await queues.current_stack(work, row.owner, f"run {row.id}", words.now) if is_running else None,
    )


async def file(request: Request, name: str) -> Response:
    found = static(request, name)
    if found is None:
        raise Problem(404, "not_found")
    return found


async def nothing(request: Request, rest: str) -> RedirectResponse:
    """Redirect an address that ends in a slash to the address without the slash. For any other address, raise a 404
    problem.
    """
    if request.url.path.endswith("/"):
        return RedirectResponse(request.url.path.rstrip("/"))
    raise Problem(404, "not_found")


def _page(request: Request, name: str, words: Words, *, live: bool, **values: object) -> HTMLResponse:
    return show(request, f"panel/{name}.html.j2", words, {"story": overview, **values}, live=live)


async def _executions(
    request: Request, cursor: Cursor | None, *, job: str | None = None, status: str | None = None
) -> tuple[list[Recorded], Cursor | None]:
    """Return one page of executions, and the cursor for the next page. The cursor is None if there are no older
    rows.
    """
    reports = state_of(request).work.reports
    start = cursor or Cursor(_after_every_row(request), BEFORE_ANY)
    rows = await reports.recent(job=job, status=status, before=start.at, before_id=start.id, limit=PAGE + 1)
    shown = list(rows[:PAGE])
    return shown, Cursor.after(shown[-1]) if len(rows) > PAGE else None


def _require_job(request: Request, name: str) -> Job:
    registry = state_of(request).work.registry
    for each in registry:
        if each.name == name:
            return each
    raise unknown_job(name, nearest(name, [each.name for each in registry]))


def _after_every_row(request: Request) -> datetime:
    """Return an instant later than the timestamp of any row, including rows from a host whose clock is ahead."""
    return state_of(request).now() + DAY


_PAGES: dict[str, Callable[..., Awaitable[Response]]] = {
    "": overview_page,
    "/tarefas": jobs,
    "/tarefas/{name}": job,
    "/execucoes": executions,
    "/execucoes/{id}": execution,
    "/filas": queues.queues,
    "/filas/{name}": queues.queue,
    "/filas/{name}/{id}": queues.item,
    "/programacoes": schedules.schedules,
    "/processos": records.processes,
    "/freios": brakes.brakes,
    "/incidentes": incidents.incidents,
    "/incidentes.csv": incidents.incidents_file,
    "/auditoria": records.audit,
    "/auditoria.csv": records.audit_file,
    "/tokens": tokens.tokens,
    "/static/{name}": file,
}
