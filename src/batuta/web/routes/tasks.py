"""The routes of tasks: the status of one task, and its cancellation."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from batuta.kernel.reasons import describe_reason
from batuta.web.auth import AuthoriseFirst
from batuta.web.context import state_of
from batuta.web.problems import Problem

router = APIRouter(tags=["tasks"], route_class=AuthoriseFirst)
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "no such task"}}
ReasonText = Annotated[str, Query(min_length=1, max_length=200, description="operators read it")]


@router.get("/tasks/{id}", operation_id="show_task", responses=UNKNOWN)
async def show(request: Request, id: str) -> dict[str, Any]:
    """Show the state of a task: times, attempts, tags, and its error. The result is left out, because it may contain
    personal data.
    """
    state = state_of(request)
    status = await state.work.status(id)
    if status is None:
        raise Problem(404, "unknown_task", id=id[:80])
    shown = {name: value for name, value in asdict(status).items() if name not in ("result", "progress")}
    return {**shown, "error": status.error, **describe_reason(status.error, "error")}


@router.post(
    "/tasks/{id}/cancel", operation_id="cancel_task", responses={**UNKNOWN, 409: {"description": "it has ended"}}
)
async def cancel(request: Request, id: str, reason: ReasonText = "cancelled by an operator") -> dict[str, Any]:
    """Cancel a task: at once if it waits; if it runs, at the next renewal of its lease."""
    work = state_of(request).work
    if await work.tasks.cancel(id, reason, by=str(request.state.caller.name)):
        return {"id": id, "cancelled": True}
    if await work.status(id) is None:
        raise Problem(404, "unknown_task", id=id[:80])
    raise Problem(409, "task_ended", id=id[:80])
