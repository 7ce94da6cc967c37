"""``/health`` and ``/health/ready``. They answer 200 with the truth in the body; ``?strict=1`` says it in the status too."""

from typing import Any

from fastapi import APIRouter, Request, Response

from batuta.health.ready import look, verdict
from batuta.web.context import state_of

router = APIRouter(tags=["health"])


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
