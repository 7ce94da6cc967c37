"""The routes ``/batches``: sets of tasks that are counted and cancelled as a unit."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from batuta.kernel.reasons import describe_reason
from batuta.queue.outcome import CANCELLED_BY
from batuta.tasks.batch import Batch, BatchProgress
from batuta.web.auth import AuthoriseFirst
from batuta.web.context import state_of
from batuta.web.problems import Problem
from batuta.web.routes.tasks import ReasonText

router = APIRouter(tags=["batches"], route_class=AuthoriseFirst)
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "no such batch"}}
CHANGED: dict[int | str, dict[str, Any]] = {
    **UNKNOWN,
    409: {"description": "the state of the batch does not allow the action"},
}
Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/batches", operation_id="list_batches")
async def batches(request: Request, limit: Limit = 100) -> dict[str, Any]:
    """List the newest batches, each with the number of its tasks in each state."""
    return {"batches": [_describe(each) for each in await state_of(request).work.batches.newest(limit)]}


@router.get("/batches/{id}", operation_id="show_batch", responses=UNKNOWN)
async def show(request: Request, id: str) -> dict[str, Any]:
    """Show a batch's state and the number of its tasks in each state."""
    return _describe((await _find(request, id))[1])


@router.post("/batches/{id}/cancel", operation_id="cancel_batch", responses=CHANGED)
async def cancel(request: Request, id: str, reason: ReasonText = None) -> dict[str, Any]:
    """Cancel a batch. Its waiting tasks are cancelled immediately, and its running tasks when their leases are next
    renewed.
    """
    batch, progress = await _find(request, id)
    caller = str(request.state.caller.name)
    if not await batch.cancel(reason or CANCELLED_BY(by=caller), by=caller):
        raise Problem(409, "batch_ended", id=id[:80], state=progress.state)
    return _describe(await batch.progress())


@router.post("/batches/{id}/close", operation_id="close_batch", responses=CHANGED)
async def close(request: Request, id: str) -> dict[str, Any]:
    """Close a batch that a dead program left open. The batch then ends when its last task ends."""
    batch, progress = await _find(request, id)
    if not await batch.close(by=str(request.state.caller.name)):
        raise Problem(409, "batch_closed", id=id[:80], state=progress.state)
    return _describe(await batch.progress())


async def _find(request: Request, id: str) -> tuple[Batch, BatchProgress]:
    work = state_of(request).work
    progress = await work.batch_store.progress(id)
    if progress is None:
        raise Problem(404, "unknown_batch", id=id[:80])
    return work.batches.handle(progress.id), progress


def _describe(progress: BatchProgress) -> dict[str, Any]:
    return {**progress.as_json(), **describe_reason(progress.reason, "reason")}
