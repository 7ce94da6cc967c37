"""``/metrics`` in Prometheus' words."""

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from batuta.web.context import state_of

router = APIRouter(tags=["operation"])


@router.get("/metrics", operation_id="metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Counters and histograms of this process."""
    return Response(generate_latest(state_of(request).registry), media_type=CONTENT_TYPE_LATEST)
