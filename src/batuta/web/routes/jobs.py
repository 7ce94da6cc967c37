"""The routes for job endpoints. The scheduler or an operator (for example with curl) runs a job by sending ``POST
/jobs/<endpoint>``.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, assert_never

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse

from batuta.engine.batuta import Batuta
from batuta.kernel.errors import JobRefused
from batuta.kernel.reasons import read_reason
from batuta.kernel.storage.json import Json
from batuta.receive.endpoints import Endpoint
from batuta.receive.receiver import Busy, KeyReused, Received, Reply
from batuta.runlog.execution import Status
from batuta.targets.endpoint import EndpointTarget, find_job
from batuta.texts import Texts
from batuta.web.auth import AuthoriseFirst
from batuta.web.context import state_of
from batuta.web.problems import Problem, texts_for, unknown_job

router = APIRouter(tags=["jobs"], route_class=AuthoriseFirst)
KeyHeader = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=128)]
# A failed job returns its own document with an error status.
_JSON_OBJECT: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
ANSWERS: dict[int | str, dict[str, Any]] = {
    400: {"description": "a parameter or the deadline is invalid", "content": _JSON_OBJECT},
    404: {"description": "no such job"},
    409: {"description": "the job is already running"},
    500: {"description": "it failed", "content": _JSON_OBJECT},
    504: {"description": "the job did not end by its deadline", "content": _JSON_OBJECT},
}
DeadlineHeader = Annotated[datetime | None, Header(alias="X-Batuta-Deadline")]
LONGEST_TIMEOUT = 24 * 3600
TimeoutHeader = Annotated[
    float | None, Header(alias="X-Batuta-Timeout", gt=0, le=LONGEST_TIMEOUT, allow_inf_nan=False, description="seconds")
]


@router.get("/jobs", operation_id="list_job_endpoints")
async def endpoints(request: Request) -> dict[str, Any]:
    """List every endpoint with its time limit."""
    known = state_of(request).work.endpoints
    return {"endpoints": [_describe(endpoint) for endpoint in known]}


@router.post("/jobs/{endpoint}", operation_id="run_job", responses=ANSWERS)
async def run(
    request: Request,
    endpoint: str,
    idempotency_key: KeyHeader = None,
    deadline: DeadlineHeader = None,
    timeout: TimeoutHeader = None,
) -> JSONResponse:
    """Run a job now. The query string contains its parameters; a repeated idempotency key returns the first result.

    A call with an idempotency key comes from a program and gets its reason in English. Any other caller is a person,
    who gets the reason in their language.
    If both headers are sent, ``X-Batuta-Timeout`` overrides ``X-Batuta-Deadline``, because the clocks of two machines
    may differ.
    """
    work = state_of(request).work
    found = work.endpoints.find(endpoint)
    params = {name: value for name, value in request.query_params.items() if name != "lang"}
    if found is None and endpoint in work.registry.names:
        return await _run_function(work, endpoint, params)
    if found is None:
        raise unknown_job(endpoint, work.endpoints.nearest(endpoint))
    if deadline is not None and deadline.tzinfo is None:
        raise Problem(400, "deadline_without_zone")
    if timeout is not None:
        deadline = work.clock.now() + timedelta(seconds=timeout)
    by = str(request.state.caller.name)
    if idempotency_key is None:
        received = await _run_by_hand(work, found, params, deadline, by)
    else:
        received = await work.receiver.receive(found, params, key=idempotency_key, deadline=deadline, by=by)
    match received:
        case Reply(status=status, body=body, replayed=replayed):
            if idempotency_key is None:
                body = _translate_reason(body, texts_for(request))
            return JSONResponse(body, status, headers={"Idempotency-Replayed": "true"} if replayed else None)
        case Busy(same_key=True):
            raise Problem(409, "still_running", endpoint=endpoint, headers={"Retry-After": "1"})
        case Busy():
            raise Problem(409, "already_running", endpoint=endpoint, headers={"Retry-After": "5"})
        case KeyReused():
            raise Problem(422, "key_reused")
        case _:
            assert_never(received)


def _translate_reason(body: Mapping[str, Json], texts: Texts) -> Mapping[str, Json]:
    name = "error" if "error" in body else "reason"
    said = body.get(name)
    if not isinstance(said, str):
        return body
    return {**body, name: texts.reason(read_reason(said, body.get(f"{name}_code"), body.get(f"{name}_facts")))}


async def _run_by_hand(
    work: Batuta, endpoint: Endpoint, params: Mapping[str, str], deadline: datetime | None, by: str
) -> Received:
    """Run the endpoint and record the call as a manual run of its job. The endpoint's handler checks the switches. If
    no job uses this endpoint, the call is not recorded.
    """
    jobs = work.registry.timetable(await work.controls.read())
    job = find_job(jobs.values(), endpoint.name, params)
    if job is None:
        return await work.receiver.receive(endpoint, params, key=None, deadline=deadline, by=by)
    target = EndpointTarget(work.receiver, endpoint, deadline, by)
    try:
        await work.scheduler().run_by_hand(replace(job, target=target), params, even_if_held=True)
    except JobRefused:
        return Busy()
    return target.received


async def _run_function(work: Batuta, name: str, params: Mapping[str, str]) -> JSONResponse:
    """Run a job whose target is not an endpoint, such as a function, and respond with its execution."""
    try:
        ran = await work.run_job(name, params, even_if_held=True)
    except JobRefused as refused:
        raise Problem(409, "already_running", endpoint=name, headers={"Retry-After": "5"}) from refused
    body = {"job": name, "execution": ran.id, "status": ran.status}
    return JSONResponse(body, 500 if ran.status in (Status.ERROR, Status.TIMEOUT) else 200)


def _describe(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "endpoint": f"/jobs/{endpoint.name}",
        "timeout_seconds": endpoint.timeout.total_seconds(),
        "manual": endpoint.manual,
    }
