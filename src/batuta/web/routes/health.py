"""``/health`` and what is below it. Everything answers 200 with the truth in the body; ``?strict=1`` says it in the status too.

``/health/alerts``, ``/health/score`` and an application's own pages are looked at once in fifteen seconds, however many ask:
``timestamp`` is the instant of that look, so an answer never passes for newer than it is.
"""

from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request, Response

from batuta.health.aggregator import look, verdict
from batuta.health.finding import THRESHOLDS, WHOLE, Assessment, Finding, Severity
from batuta.texts import Texts
from batuta.texts.findings import message_of, next_step_of
from batuta.web.context import ApiState, state_of
from batuta.web.problems import Problem, texts_for

router = APIRouter(tags=["health"])
# Asked last, so that a route of an application's own comes before a page of the same name.
pages = APIRouter(tags=["health"])
_BAD = frozenset({"critical", "unhealthy", "error"})


@router.get("/health", operation_id="health")
async def health(request: Request) -> dict[str, Any]:
    """This process lives. Touches nothing."""
    state = state_of(request)
    return {"status": "healthy", "service": state.service, "timestamp": state.now().isoformat()}


@router.get("/health/ready", operation_id="ready")
async def ready(request: Request, response: Response, strict: bool = False) -> dict[str, Any]:
    """Everything it needs is there, and it is not about to stop."""
    state = state_of(request)
    parts = await look(state.work.probes, state.work.clock)
    status = "draining" if state.draining.is_set() else verdict(parts, state.work.probes)
    if strict and status in ("draining", "not_ready"):
        response.status_code = 503
    states = {name: part.state.value for name, part in parts.items()}
    # Asked without a token: say what is wrong, not where it is.
    return {"status": status, "checks": states, "timestamp": state.now().isoformat()}


@router.get("/health/alerts", operation_id="health_alerts")
async def alerts(request: Request, response: Response, strict: bool = False) -> dict[str, Any]:
    """What is wrong now, worst first, each cause once, with the next step. Looked at once in 15 s."""
    assessment = await _assess(request, response, strict)
    findings = [
        describe_finding(finding, assessment, texts_for(request), state_of(request)) for finding in assessment.findings
    ]
    is_bad = assessment.worst not in (None, Severity.INFO)
    return {
        "status": assessment.worst.value if assessment.worst and is_bad else "ok",
        "total_alerts": len(findings),
        "alerts": findings,
        "timestamp": _local(assessment.at, state_of(request)),
    }


@router.get("/health/score", operation_id="health_score")
async def score(request: Request, response: Response, strict: bool = False) -> dict[str, Any]:
    """One score of a hundred and what it is made of. Anything critical keeps it below 40. Looked at once in 15 s."""
    assessment = await _assess(request, response, strict)
    return describe_score(assessment, texts_for(request), state_of(request))


@pages.get("/health/{name}", operation_id="health_page")
async def page(request: Request, response: Response, name: str, strict: bool = False) -> dict[str, Any]:
    """A part of the application, in the words of that part. Looked at once in 15 s, unless it says otherwise."""
    health = state_of(request).work.health
    document = await health.page(name)
    if document is None and not health.page_names:
        raise Problem(404, "not_found")
    if document is None:
        raise Problem(404, "unknown_health_page", name=name[:80], known=", ".join(sorted(health.page_names)))
    if strict and document.get("status") in _BAD:
        response.status_code = 503
    return dict(document)


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
        "timestamp": _local(assessment.at, state),
    }


def describe_finding(finding: Finding, assessment: Assessment, texts: Texts, state: ApiState) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "source": finding.source,
        "message": message_of(finding, texts),
        "value": finding.value,
        "threshold": finding.threshold,
        "cause": finding.cause,
        "since": None if finding.since is None else _local(finding.since, state),
        "next_step": next_step_of(finding, texts),
        "explained_by": assessment.silenced.get(finding.cause),
    }


async def _assess(request: Request, response: Response, strict: bool) -> Assessment:
    assessment = await state_of(request).work.health.look()
    if strict and assessment.is_critical:
        response.status_code = 503
    return assessment


def _local(instant: datetime, state: ApiState) -> str:
    return instant.astimezone(state.work.zone).isoformat()
