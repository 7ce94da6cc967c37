"""``/health`` and the routes below it. Every response has the status 200 and reports the health in its body; with
``?strict=1`` the status is 503 if the health is bad.

``/health/alerts``, ``/health/score`` and an application's pages are computed at most once every 15 s and cached;
``timestamp`` is when they were computed. ``/health/jobs`` assesses every job in the timetable by its expected fires.
``/health/circuits`` shows every circuit breaker and its transitions.
"""

from collections import defaultdict
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from batuta.guard.breaker import Circuit, Transition
from batuta.health.aggregator import verdict
from batuta.health.finding import THRESHOLDS, WHOLE, Assessment, Severity
from batuta.health.jobs import JobHealth, JobsSeen, Level, level
from batuta.kernel import reasons
from batuta.texts import Texts, Wording
from batuta.texts.findings import describe_findings, message_of
from batuta.web.auth import AuthoriseFirst
from batuta.web.context import ApiState, state_of
from batuta.web.problems import Problem, texts_for

router = APIRouter(tags=["health"], route_class=AuthoriseFirst)
# Routes about the application rather than the process. Only the api role serves them.
details = APIRouter(tags=["health"], route_class=AuthoriseFirst)
# Matched last, so that a route of the application takes precedence over a page with the same name.
pages = APIRouter(tags=["health"], route_class=AuthoriseFirst)
TRANSITIONS_SHOWN = 50
Hours = Annotated[int, Query(ge=1, le=24 * 366)]
_BAD = frozenset({"critical", "unhealthy", "error"})


@router.get("/health", operation_id="health")
async def health(request: Request) -> dict[str, Any]:
    """Report that this process is alive. The database is not queried."""
    state = state_of(request)
    return {"status": "healthy", "service": state.service, "timestamp": state.now().isoformat()}


@router.get("/health/ready", operation_id="ready")
async def ready(request: Request, response: Response, strict: bool = False) -> dict[str, Any]:
    """Report whether this process is ready: every required probe succeeds, and the process is not draining. The probes
    run at most once every two seconds.
    """
    state = state_of(request)
    parts = await state.ready.get()
    probes = {name: probe for name, probe in state.work.probes.items() if name in parts}
    status = "draining" if state.draining.is_set() else verdict(parts, probes)
    if strict and status in ("draining", "not_ready"):
        response.status_code = 503
    states = {name: part.state.value for name, part in parts.items()}
    # This route needs no token, so it reports states without addresses.
    return {"status": status, "checks": states, "timestamp": state.now().isoformat()}


@router.get("/health/alerts", operation_id="health_alerts")
async def alerts(request: Request, response: Response, strict: bool = False) -> dict[str, Any]:
    """List the problems that health checks found, worst first. Each cause has one entry, which includes the next step.
    The list is computed at most once every 15 s.
    """
    assessment = await _assess(request, response, strict)
    findings = describe_findings(assessment, texts_for(request), state_of(request).local)
    is_bad = assessment.worst not in (None, Severity.INFO)
    return {
        "status": assessment.worst.value if assessment.worst and is_bad else "ok",
        "total_alerts": len(findings),
        "alerts": findings,
        "timestamp": state_of(request).local(assessment.at),
    }


@router.get("/health/score", operation_id="health_score")
async def score(request: Request, response: Response, strict: bool = False) -> dict[str, Any]:
    """Return the health score from 0 to 100 and its components. While a health check reports a critical problem, the
    score is below 40. The score is computed at most once every 15 s.
    """
    assessment = await _assess(request, response, strict)
    return describe_score(assessment, texts_for(request), state_of(request))


@pages.get("/health/{name}", operation_id="health_page")
async def page(request: Request, response: Response, name: str, strict: bool = False) -> dict[str, Any]:
    """Return the application's health page with this name. The page is computed at most once every 15 s, unless the
    application sets a different interval for it.
    """
    health = state_of(request).work.health
    document = await health.page(name)
    if document is None and not health.page_names:
        raise Problem(404, "not_found")
    if document is None:
        raise Problem(404, "unknown_health_page", name=name[:80], known=", ".join(sorted(health.page_names)))
    if strict and document.get("status") in _BAD:
        response.status_code = 503
    return dict(texts_for(request).render(document))


def describe_score(assessment: Assessment, texts: Texts, state: ApiState) -> dict[str, Any]:
    return {
        "score": assessment.score,
        "max_score": WHOLE,
        "level": assessment.grade.value,
        "color": assessment.grade.colour,
        "breakdown": {
            label: {"score": section.points, "max": section.most} for label, section in assessment.sections.items()
        },
        "thresholds": {grade.value: floor for grade, floor in THRESHOLDS.items()},
        "why": [message_of(finding, texts) for finding in assessment.findings if finding.severity is not Severity.INFO],
        "timestamp": state.local(assessment.at),
    }


async def _assess(request: Request, response: Response, strict: bool) -> Assessment:
    assessment = await state_of(request).work.health.look()
    if strict and assessment.is_critical:
        response.status_code = 503
    return assessment


@details.get("/health/jobs", operation_id="health_jobs")
async def health_jobs(request: Request, response: Response, strict: bool = False) -> dict[str, Any]:
    """List every job, including jobs that have never run. A job is stale if no run has succeeded since its last
    expected fire.
    """
    state = state_of(request)
    seen, texts, wording = await state.work.job_health.look(), texts_for(request), state.work.extension.wording
    found = level(seen.jobs)
    if strict and found is Level.CRITICAL:
        response.status_code = 503
    return {
        "status": found.value,
        "profile": seen.profile,
        "jobs": {health.job.name: describe_job(health, seen, texts, wording) for health in seen.jobs},
        "alerts": _alerts(seen),
        "sla_config": {
            "critical_jobs": [health.job.name for health in seen.jobs if health.job.critical],
            "sla_definitions": {health.job.name: int(health.job.sla.total_seconds()) for health in seen.jobs},
        },
        "period": "24h",
        "total_executions": sum(health.facts.counts.rows for health in seen.jobs),
        "timestamp": state.now().isoformat(),
    }


def describe_job(health: JobHealth, seen: JobsSeen, texts: Texts, wording: Wording) -> dict[str, Any]:
    job, facts, counts = health.job, health.facts, health.facts.counts
    last = facts.last
    return {
        "state": health.state.value,
        "why": health.why and texts.reason(health.why),
        **reasons.describe_reason(health.why, "why"),
        wording.rename("category"): job.category,
        "schedule": job.cron.text,
        "endpoint": job.target.address,
        "critical": job.critical,
        "autonomous": job.autonomous,
        "last_run": last.started_at.astimezone(job.zone).isoformat() if last else None,
        "last_status": last.status if last else None,
        "last_reason": texts.reason(last.reason) if last and last.reason else None,
        **reasons.describe_reason(last.reason if last else None, "last_reason"),
        "last_error": facts.last_error and texts.reason(facts.last_error),
        **reasons.describe_reason(facts.last_error, "last_error"),
        "next_run": health.next_at.astimezone(job.zone).isoformat(),
        "running": facts.running,
        "runs_24h": counts.rows,
        "success_24h": counts.total("success"),
        "errors_24h": counts.total("error"),
        "timeouts_24h": counts.total("timeout"),
        "skipped_24h": counts.total("skipped"),
        "missed_24h": counts.total("missed"),
        "abandoned_24h": counts.total("abandoned"),
        "avg_duration_ms": counts.mean_ms,
        "p95_duration_ms": counts.p95_ms,
        "total_items_processed": counts.items,
        "sla_seconds": int(job.sla.total_seconds()),
        "expected_at": health.expected_at.astimezone(job.zone).isoformat() if health.expected_at else None,
        "is_stale": health.is_stale,
        "seconds_since_last_run": int((seen.now - last.started_at).total_seconds()) if last else None,
    }


def _alerts(seen: JobsSeen) -> dict[str, list[str]]:
    jobs = seen.jobs
    stale = [health for health in jobs if health.is_stale]
    return {
        "jobs_with_errors": [health.job.name for health in jobs if health.facts.counts.total("error", "abandoned")],
        "jobs_with_timeouts": [health.job.name for health in jobs if health.facts.counts.total("timeout")],
        "stale_jobs": [health.job.name for health in stale],
        "critical_stale": [health.job.name for health in stale if health.job.critical],
        "missing_critical": [health.job.name for health in stale if health.job.critical and health.never_ran],
    }


@details.get("/health/circuits", operation_id="health_circuits")
async def health_circuits(request: Request) -> dict[str, Any]:
    """Return the state of every circuit breaker. This state is shared by all processes."""
    state = state_of(request)
    circuits = await state.work.circuits.look()
    return {
        "circuits": {circuit.name: describe_circuit(circuit, state) for circuit in circuits},
        "timestamp": state.now().isoformat(),
    }


@details.get("/health/circuits/history", operation_id="health_circuits_history")
async def health_circuits_history(
    request: Request, circuit_name: str | None = None, horas: Hours = 24
) -> dict[str, Any]:
    """List the transitions of circuit breakers during the requested number of hours, newest first."""
    state = state_of(request)
    since = state.work.clock.now() - timedelta(hours=horas)
    transitions = await state.work.circuits.history(circuit_name or None, since)
    described = [(each.circuit, _describe_transition(each, state, texts_for(request))) for each in transitions]
    by_circuit: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for circuit, transition in described:
        by_circuit[circuit].append(transition)
    return {
        "circuit_filter": circuit_name,
        "period_hours": horas,
        "total_transitions": len(transitions),
        "by_circuit": by_circuit,
        "transitions": [{"circuit": circuit, **each} for circuit, each in described[:TRANSITIONS_SHOWN]],
        "timestamp": state.now().isoformat(),
    }


def describe_circuit(circuit: Circuit, state: ApiState) -> dict[str, Any]:
    return {
        "nome": circuit.name,
        "estado": circuit.state.value,
        "falhas_consecutivas": circuit.failures,
        "ultima_falha": state.local(circuit.last_failure),
        "ultimo_sucesso": state.local(circuit.last_success),
        "tentativas_half_open": circuit.half_open_attempts,
        "tempo_reset_atual": circuit.reset.total_seconds(),
        "ultimo_erro_tipo": circuit.last_error,
        "proxima_tentativa": state.local(circuit.tries_at or circuit.wait_until),
    }


def _describe_transition(transition: Transition, state: ApiState, texts: Texts) -> dict[str, Any]:
    return {
        "from": transition.before.value,
        "to": transition.after.value,
        "reason": texts.reason(transition.reason),
        **reasons.describe_reason(transition.reason),
        "falhas": transition.failures,
        "at": state.local(transition.at),
    }
