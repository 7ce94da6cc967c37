"""The routes ``/schedules``: schedules that are stored in the database. Each of them enqueues a task when it fires."""

from collections.abc import Awaitable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from batuta.dispatch.job import Overlap
from batuta.engine.declarations.schedules import Schedules, describe
from batuta.kernel.errors import BatutaError, StoreError, UnknownWord, reason_of_error
from batuta.schedule.due import CatchUp
from batuta.schedule.kinds import LONGEST_INTERVAL
from batuta.web.auth import AuthoriseFirst
from batuta.web.context import state_of
from batuta.web.problems import Problem

router = APIRouter(tags=["schedules"], route_class=AuthoriseFirst)
T = TypeVar("T")
Name = Annotated[str, Path(max_length=100)]
Seconds = Annotated[int, Field(ge=1, le=int(LONGEST_INTERVAL.total_seconds()))]
Jitter = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Word = Annotated[str, Field(max_length=200)]
ANSWERS: dict[int | str, dict[str, Any]] = {
    404: {"description": "no such schedule"},
    409: {"description": "the schedule is invalid"},
}


class ScheduleBody(BaseModel):
    """The fields of a schedule that a request may set: the task, its named arguments, the timing (one of ``cron``,
    ``every`` and ``at``), and the rules for its fires.
    """

    model_config = ConfigDict(extra="forbid")

    task: Word | None = None
    args: dict[str, Any] | None = None
    cron: Word | None = None
    every: Seconds | None = None
    at: AwareDatetime | None = None
    timezone: Word | None = None
    jitter: Jitter | None = None
    overlap: Overlap | None = None
    catch_up: CatchUp | None = None

    def options(self) -> dict[str, Any]:
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}


class NewScheduleBody(ScheduleBody):
    name: Annotated[str, Field(max_length=100)]
    task: Word

    def options(self) -> dict[str, Any]:
        return {name: value for name, value in super().options().items() if name != "name"}


class BackfillBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    since: AwareDatetime
    until: AwareDatetime


@router.get("/schedules", operation_id="list_schedules")
async def schedules(request: Request) -> dict[str, Any]:
    """List every schedule, sorted by name."""
    return {"schedules": [describe(each) for each in await _of(request).all()]}


@router.post("/schedules", operation_id="create_schedule", status_code=201, responses=ANSWERS)
async def create(request: Request, body: NewScheduleBody) -> dict[str, Any]:
    """Create a schedule. Each time the schedule fires, its task is enqueued."""
    return describe(await _answer(_of(request).create(body.name, by=_caller(request), **body.options())))


@router.patch("/schedules/{name}", operation_id="edit_schedule", responses=ANSWERS)
async def edit(request: Request, name: Name, body: ScheduleBody) -> dict[str, Any]:
    """Change the given fields of a schedule. The edit itself does not fire the schedule."""
    return describe(await _answer(_of(request).edit(name, by=_caller(request), **body.options())))


@router.delete("/schedules/{name}", operation_id="delete_schedule", responses=ANSWERS)
async def delete(request: Request, name: Name) -> dict[str, Any]:
    """Delete a schedule. Its executions and tasks are kept."""
    await _answer(_of(request).delete(name, by=_caller(request)))
    return {"name": name, "deleted": True}


@router.post("/schedules/{name}/pause", operation_id="pause_schedule", responses=ANSWERS)
async def pause(request: Request, name: Name) -> dict[str, Any]:
    """Pause a schedule. It does not fire until it is resumed."""
    return describe(await _answer(_of(request).pause(name, by=_caller(request))))


@router.post("/schedules/{name}/resume", operation_id="resume_schedule", responses=ANSWERS)
async def resume(request: Request, name: Name) -> dict[str, Any]:
    """Resume a paused schedule, so that it fires again from now on."""
    return describe(await _answer(_of(request).resume(name, by=_caller(request))))


@router.post("/schedules/{name}/backfill", operation_id="backfill_schedule", responses=ANSWERS)
async def backfill(request: Request, name: Name, body: BackfillBody) -> dict[str, Any]:
    """Enqueue the schedule's task for every past fire in the given range that has not run."""
    count = await _answer(_of(request).backfill(name, body.since, body.until, by=_caller(request)))
    return {"name": name, "fires": count}


def _of(request: Request) -> Schedules:
    return state_of(request).work.schedules


def _caller(request: Request) -> str:
    return str(request.state.caller.name)


async def _answer(acting: Awaitable[T]) -> T:
    """Await ``acting``, which changes a schedule, and respond with its result. If the change is refused, raise a
    problem with the reason.

    The status is 409 instead of 422, because 422 means that a request violates the OpenAPI document, which cannot
    describe cron expressions and task names.
    """
    try:
        return await acting
    except UnknownWord as error:
        slug, status = ("unknown_schedule", 404) if error.facts["kind"] == "schedule" else ("invalid_schedule", 409)
        raise Problem(status, slug, why=reason_of_error(error)) from None
    except StoreError:
        raise
    except BatutaError as error:
        raise Problem(409, "invalid_schedule", why=reason_of_error(error)) from None
    except (TypeError, ValueError, OverflowError):
        raise Problem(409, "invalid_schedule_values") from None
