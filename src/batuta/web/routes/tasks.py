"""The routes for tasks: find tasks by tag and key, show the state of a task, and cancel a task."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from batuta.kernel.reasons import Reason, decode, describe_reason
from batuta.kernel.suggestions import nearest
from batuta.queue.outcome import CANCELLED_BY
from batuta.tasks.ends import hide_unknown_due
from batuta.tasks.task import DEFAULT_QUEUE
from batuta.web.auth import AuthoriseFirst
from batuta.web.context import state_of
from batuta.web.problems import Problem

router = APIRouter(tags=["tasks"], route_class=AuthoriseFirst)
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "no such task"}}
Word = Annotated[str | None, Query(min_length=1, max_length=200)]
Limit = Annotated[int, Query(ge=1, le=1000)]
ReasonText = Annotated[
    str | None, Query(min_length=1, max_length=200, description="the reason of the cancellation, shown to operators")
]


@router.get(
    "/tasks",
    operation_id="find_tasks",
    responses={404: {"description": "no such queue"}, 409: {"description": "neither a tag nor a key is given"}},
)
async def find(
    request: Request, tag: Word = None, key: Word = None, queue: str = DEFAULT_QUEUE, limit: Limit = 20
) -> dict[str, Any]:
    """Find a queue's newest tasks by tag, by key, or by both. At least one of them is required. The tasks' arguments
    and results are omitted.
    """
    work = state_of(request).work
    if tag is None and key is None:
        raise Problem(409, "tag_or_key")
    if queue not in work.task_registry.queues:
        known = list(work.task_registry.queues)
        raise Problem(404, "unknown_queue", queue=queue[:80], nearest=nearest(queue, known) or "–")
    rows = [dict(row) for row in await work.find_tasks(queue, limit, tag=tag, key=key)]
    waits = await work.explain_waits(work.queues[queue], rows)
    return {"tasks": [_describe(row, waits.get(str(row["id"]))) for row in rows]}


def _describe(row: Mapping[str, Any], waits_for: Reason | None) -> dict[str, Any]:
    error = decode(row["error"])
    return {
        "id": str(row["id"]),
        **{name: row[name] for name in ("name", "status", "attempts", "created_at", "finished_at")},
        "available_at": hide_unknown_due(row["available_at"]),
        "key": row["unique_key"],
        "tags": row["tags"] or [],
        "error": error,
        **describe_reason(error, "error"),
        "waits_for": waits_for,
        **describe_reason(waits_for, "waits_for"),
    }


@router.get("/tasks/{id}", operation_id="show_task", responses=UNKNOWN)
async def show(request: Request, id: str) -> dict[str, Any]:
    """Show a task's state: times, attempts, tags, error, and why it is waiting. The result is omitted, because it may
    contain personal data.
    """
    work = state_of(request).work
    status = await work.status(id)
    if status is None:
        raise Problem(404, "unknown_task", id=id[:80])
    shown = {name: value for name, value in asdict(status).items() if name not in ("result", "progress")}
    waits_for = await work.why_waiting(id) if status.status == "queued" else None
    return {
        **shown,
        "error": status.error,
        **describe_reason(status.error, "error"),
        "waits_for": waits_for,
        **describe_reason(waits_for, "waits_for"),
    }


@router.post(
    "/tasks/{id}/cancel", operation_id="cancel_task", responses={**UNKNOWN, 409: {"description": "the task has ended"}}
)
async def cancel(request: Request, id: str, reason: ReasonText = None) -> dict[str, Any]:
    """Cancel a task. A waiting task is cancelled immediately, and a running task when its lease is next renewed."""
    work = state_of(request).work
    caller = str(request.state.caller.name)
    if await work.tasks.cancel(id, reason or CANCELLED_BY(by=caller), by=caller):
        return {"id": id, "cancelled": True}
    if await work.status(id) is None:
        raise Problem(404, "unknown_task", id=id[:80])
    raise Problem(409, "task_ended", id=id[:80])
