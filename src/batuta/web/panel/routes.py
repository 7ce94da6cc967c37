"""Routes of the dashboard's pages. Browsers get an error as a page, other clients as a problem document."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from batuta.access import Scope
from batuta.dispatch.job import Job
from batuta.dispatch.plan import rules_of
from batuta.health.jobs import DAY
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.identity import short
from batuta.kernel.masking import mask
from batuta.kernel.suggestions import nearest
from batuta.runlog.execution import Status
from batuta.runlog.history import BEFORE_ANY, Recorded
from batuta.texts.findings import message_of, next_step_of
from batuta.web.auth import AuthoriseFirst, needs
from batuta.web.context import request_id_of, state_of
from batuta.web.pages import page, static
from batuta.web.panel import charts, overview, sign_in
from batuta.web.panel import words as crons
from batuta.web.panel.overview import Cursor
from batuta.web.panel.words import Words
from batuta.web.problems import Problem, safe, texts_for, unknown_job

PAGE = 50
ERRORS = 5
REFRESH_SECONDS = 20
_FAILED = ("error", "timeout", "abandoned")


class PageRoute(AuthoriseFirst):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def render_problems(request: Request) -> Response:
            try:
                return await handle(request)
            except Problem as problem:
                if not _is_browser(request):
                    raise
                if problem.status == 401:
                    return sign_in.redirect_to_sign_in(request)
                return _problem_page(request, problem)
            except StoreUnavailable:
                if not _is_browser(request):
                    raise
                return _problem_page(request, Problem(503, "store_unavailable", headers={"Retry-After": "5"}))

        return render_problems


router = APIRouter(prefix="/painel", include_in_schema=False, route_class=PageRoute)
# Matched last, so that an application can replace the first page and add pages.
home = APIRouter(include_in_schema=False, route_class=PageRoute)
router.add_api_route("/entrar", sign_in.show_sign_in, methods=["GET"])
router.add_api_route("/entrar", sign_in.sign_in, methods=["POST"])
# Every session may end itself, whatever its scopes.
router.add_api_route("/sair", sign_in.sign_out, methods=["POST"], openapi_extra=needs(Scope.READ))


@home.get("/")
async def first_page() -> RedirectResponse:
    return RedirectResponse("/painel")


@router.get("")
async def jobs(request: Request) -> HTMLResponse:
    work = state_of(request).work
    seen = await work.job_health.look()
    since = charts.begin(seen.now)
    slices = await work.reports.activity(since=since, length=charts.SLICE)
    words = _words(request, seen.now)
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
        assessment=(assessment := await work.health.look()),
        findings=overview.root_findings(assessment),
        most_findings=overview.MOST_FINDINGS,
        message_of=message_of,
        next_step_of=next_step_of,
        windows=overview.windows(seen, work.registry, words),
        boards=[await board() for board in work.extension.boards],
        lanes=charts.lanes(categories, slices, since, words),
        hours=charts.hours(since, words),
        shares=overview.shares,
    )


@router.get("/tarefas/{name}")
async def job(request: Request, name: str) -> HTMLResponse:
    work = state_of(request).work
    declared = _require_job(request, name)
    seen = await work.job_health.look()
    words = _words(request, seen.now)
    health = next((each for each in seen.jobs if each.job.name == name), None)
    found = declared if health is None else health.job
    cursor = Cursor.read(request.query_params.get("antes", ""))
    rows, older = await _executions(request, cursor, job=name)
    errors = [
        await work.reports.recent(job=name, status=status, before=_after_every_row(request), limit=ERRORS)
        for status in _FAILED
    ]
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
        rules=rules_of(found),
        profiles=work.registry.profiles,
        fires=overview.next_fires(found, seen, words),
        rows=rows,
        older=older,
        is_first=cursor is None,
        spark=charts.spark(rows),
        errors=overview.newest(errors, ERRORS),
    )


@router.get("/execucoes")
async def executions(request: Request) -> HTMLResponse:
    params = request.query_params
    asked_job = params.get("tarefa") or None
    if asked_job is not None:
        _require_job(request, asked_job)
    asked_status = params.get("situacao") if params.get("situacao") in set(Status) else None
    cursor = Cursor.read(params.get("antes", ""))
    rows, older = await _executions(request, cursor, job=asked_job, status=asked_status)
    return _page(
        request,
        "executions",
        _words(request),
        live=cursor is None,
        rows=rows,
        older=older,
        is_first=cursor is None,
        asked_job=asked_job,
        asked_status=asked_status,
        names=sorted({each.name for each in state_of(request).work.registry}),
        statuses=[status.value for status in Status],
    )


@router.get("/execucoes/{id}")
async def execution(request: Request, id: str) -> HTMLResponse:
    work = state_of(request).work
    row = await work.reports.execution(id)
    if row is None:
        raise Problem(404, "unknown_execution", id=mask(id)[:40])
    is_known = any(each.name == row.job for each in work.registry)
    is_running = row.status == Status.RUNNING
    process = None if row.owner is None else short(row.owner)
    return _page(request, "execution", _words(request), live=is_running, row=row, is_known=is_known, process=process)


@router.get("/static/{name}")
async def file(request: Request, name: str) -> Response:
    found = static(request, name)
    if found is None:
        raise Problem(404, "not_found")
    return found


@home.get("/painel/{rest:path}")
async def nothing(rest: str) -> None:
    raise Problem(404, "not_found")


def _page(request: Request, name: str, words: Words, *, live: bool, **values: object) -> HTMLResponse:
    return page(
        request, f"panel/{name}.html.j2", {**_frame(request, words), **values, "refresh": live and REFRESH_SECONDS}
    )


def _problem_page(request: Request, problem: Problem) -> HTMLResponse:
    values = {
        "retry": problem.status == 503,
        "problem_status": problem.status,
        "title_key": f"problem.{problem.slug}.title",
        "detail_key": f"problem.{problem.slug}.detail",
        "facts": safe(problem.facts),
        "request_id": request_id_of(request.scope),
    }
    frame = _frame(request, _words(request))
    shown = page(request, "panel/problem.html.j2", {**frame, **values, "refresh": False}, status=problem.status)
    shown.headers.update(problem.headers)
    return shown


def _frame(request: Request, words: Words) -> dict[str, object]:
    return {"words": words, "service": state_of(request).service, "story": overview}


async def _executions(
    request: Request, cursor: Cursor | None, *, job: str | None = None, status: str | None = None
) -> tuple[list[Recorded], Cursor | None]:
    """Return one page of executions and the cursor of the next page, or None if there are no older rows."""
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


def _words(request: Request, now: datetime | None = None) -> Words:
    """Return the formatter for the reader's language. ``now`` is the database's time, if it was read; the default is
    the process's time.
    """
    state = state_of(request)
    return Words(texts_for(request), state.work.zone, now or state.now())


def _after_every_row(request: Request) -> datetime:
    """Return a time after the timestamp of every row, including rows of a host whose clock is ahead of ours."""
    return state_of(request).now() + DAY


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")
