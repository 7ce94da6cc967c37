"""``/health/jobs``: every job of the timetable, judged by what was expected of it."""

from typing import Any

from fastapi import APIRouter, Request, Response

from batuta.health.jobs import JobHealth, JobsSeen, Level, level
from batuta.kernel import reasons
from batuta.texts import Texts
from batuta.texts.wording import Wording
from batuta.web.context import state_of
from batuta.web.problems import texts_for

router = APIRouter(tags=["health"])


@router.get("/health/jobs", operation_id="health_jobs")
async def health_jobs(request: Request, response: Response, strict: bool = False) -> dict[str, Any]:
    """Every job, also the one that never ran; stale is computed from the fires that were expected."""
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
        **reasons.described(health.why, "why"),
        wording.rename("category"): job.category,
        "schedule": job.cron.text,
        "endpoint": job.target.address,
        "critical": job.critical,
        "autonomous": job.autonomous,
        "last_run": last.started_at.astimezone(job.zone).isoformat() if last else None,
        "last_status": last.status if last else None,
        "last_reason": texts.reason(last.reason) if last and last.reason else None,
        **reasons.described(last.reason if last else None, "last_reason"),
        "last_error": facts.last_error and texts.reason(facts.last_error),
        **reasons.described(facts.last_error, "last_error"),
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
