"""The routes ``/incidents``: periods of critical health, with their duration and causes. Health checks open and close
incidents; operators may add incidents.
"""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from batuta.health.alerts import BY_HAND, Incident, NewIncident, stats
from batuta.health.finding import Grade
from batuta.kernel.storage.storable import json_object
from batuta.web.auth import AuthoriseFirst
from batuta.web.context import ApiState, state_of
from batuta.web.problems import Problem

router = APIRouter(tags=["incidents"], route_class=AuthoriseFirst)


def _refuse_bool(value: object) -> object:
    """Refuse ``true`` and ``false``, which pydantic would accept as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("a score is a number")  # noqa: TRY004 - pydantic turns it into a response
    return value


Days = Annotated[int, Query(ge=1, le=3650, description="how far back")]
Score = Annotated[int, Field(ge=0, le=100), BeforeValidator(_refuse_bool)]
LONGEST_DETAILS = 8_000


class IncidentBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    from_status: Grade
    to_status: Grade
    from_score: Score | None = None
    to_score: Score | None = None
    trigger_source: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")] = BY_HAND
    details: dict[str, Any] = Field(default_factory=dict)


@router.get("/incidents", operation_id="list_incidents")
async def incidents(
    request: Request, days: Days = 30, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> dict[str, Any]:
    """List the incidents that were open at some time during the requested number of days, newest first."""
    state = state_of(request)
    now = state.now()
    found = await state.work.observability.incidents.list_between(now - timedelta(days=days), now, limit)
    return {
        "incidents": [describe_incident(incident, state) for incident in found],
        "total": len(found),
        "period_days": days,
        "timestamp": now.isoformat(),
    }


@router.get("/incidents/stats", operation_id="incident_stats")
async def incident_stats(request: Request, days: Days = 30) -> dict[str, Any]:
    """Count incidents by severity, with the mean time to recover and the share of time without a critical incident."""
    state = state_of(request)
    now = state.now()
    since = now - timedelta(days=days)
    figures = stats(await state.work.observability.incidents.list_between(since, now, 100_000), since, now)
    return {
        "period_days": days,
        **figures.describe(),
        "timestamp": now.isoformat(),
    }


@router.post(
    "/incidents",
    operation_id="write_incident",
    status_code=201,
    responses={200: {"description": "The incident that was open"}},
)
async def write_incident(request: Request, response: Response, body: IncidentBody) -> dict[str, Any]:
    """Record an incident by hand. A change in health to critical opens an incident; a change from critical to another
    grade closes the open incident from the same source.

    Any other change is stored as an incident that has already ended.
    """
    state = state_of(request)
    if (details := json_object(body.details, LONGEST_DETAILS)) is None:
        raise Problem(422, "invalid", count=1)
    new = NewIncident(
        from_status=body.from_status.value,
        to_status=body.to_status.value,
        from_score=body.from_score,
        to_score=body.to_score,
        trigger_source=body.trigger_source,
        details={**details, "by": request.state.caller.name},
    )
    incident, is_new = await state.work.observability.incidents.write(new, now=state.work.clock.now())
    response.status_code = 201 if is_new else 200
    return describe_incident(incident, state)


def describe_incident(incident: Incident, state: ApiState) -> dict[str, Any]:
    return {
        "id": incident.id,
        "from_status": incident.from_status,
        "to_status": incident.to_status,
        "from_score": incident.from_score,
        "to_score": incident.to_score,
        "trigger_source": incident.trigger_source,
        "details": incident.details,
        "started_at": state.local(incident.started_at),
        "resolved_at": state.local(incident.resolved_at),
        "duration_seconds": incident.duration_seconds,
    }
