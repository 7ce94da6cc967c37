"""The route that returns stored log lines."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from batuta.web.auth import AuthoriseFirst
from batuta.web.context import state_of

router = APIRouter(tags=["tasks"], route_class=AuthoriseFirst)
Limit = Annotated[int, Query(ge=1, le=1000)]
After = Annotated[str | None, Query(max_length=36, description="the value of the field `after` in the previous answer")]


@router.get("/logs/{id}", operation_id="show_log_lines")
async def show(request: Request, id: str, after: After = None, limit: Limit = 1000) -> dict[str, Any]:
    """Show the stored log lines of a task, an item or a run, oldest first. To get the next lines, send the request
    again with the value of ``after`` from the response.
    """
    lines = await state_of(request).work.log_lines.of_item(id, after=after, limit=limit)
    shown = [{name: value for name, value in asdict(line).items() if name not in ("id", "item_id")} for line in lines]
    return {"lines": shown, "after": lines[-1].id if lines else after}
