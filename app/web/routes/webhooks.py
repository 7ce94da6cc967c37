"""``POST /webhook/evolution`` and ``POST /webhook/chatwoot`` store a delivery before they respond. The worker processes
the delivery later.
"""

from typing import Any

from fastapi import APIRouter, Request

from app.contexts.webhooks.api import Ignorado
from app.contexts.webhooks.inbox import Inbox
from app.integrations.chatwoot import events as chatwoot
from app.integrations.evolution.events import delivery_of
from app.integrations.evolution.secret import is_proved
from app.settings import Settings
from batuta.kernel import Json, loads, mask_text
from batuta.web import AuthoriseFirst, Problem, is_local, refuse_above_limit, state_of

EVOLUTION = "/webhook/evolution"
CHATWOOT = "/webhook/chatwoot"
LONGEST_WORD = 80
ANSWERS: dict[int | str, dict[str, Any]] = {
    400: {"description": "not a delivery of the gateway"},
    401: {"description": "the delivery is not authenticated with WEBHOOK_SECRET"},
    429: {"description": "too many refused requests of this client"},
}
# An example of a delivery for a group message, without the fields that Julia ignores.
EXAMPLE: dict[str, Any] = {
    "event": "messages.upsert",
    "instance": "escuta",
    "data": {
        "key": {
            "id": "TESTE-0001",
            "remoteJid": "120363000000000099@g.us",
            "participant": "5511900000077@s.whatsapp.net",
            "fromMe": False,
        },
        "pushName": "Pessoa Teste",
        "messageType": "conversation",
        "message": {"conversation": "Plantão de pediatria amanhã no Hospital Inventado, 19h às 7h, R$ 1.500"},
    },
}
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "a delivery of the gateway: `event`, `instance` and `data`; other events are acknowledged but not stored",
        "content": {"application/json": {"schema": {"type": "object"}, "example": EXAMPLE}},
    }
}
DESK_ANSWERS: dict[int | str, dict[str, Any]] = {
    400: {"description": "not an event of Chatwoot"},
    401: {"description": "the event is not signed with CHATWOOT_WEBHOOK_SECRET, or Chatwoot is not configured"},
    429: {"description": "too many refused requests of this client"},
}
DESK_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "an event of Chatwoot; other events than messages and changes of conversations are not stored",
        "content": {"application/json": {"schema": {"type": "object"}, "example": {"event": "conversation_typing_on"}}},
    }
}


def router(inbox: Inbox, settings: Settings) -> APIRouter:
    routes = APIRouter(tags=["webhooks"], route_class=AuthoriseFirst)

    @routes.post(EVOLUTION, operation_id="receive_evolution", responses=ANSWERS, openapi_extra=BODY)
    async def evolution(request: Request) -> dict[str, Any]:
        """Store a delivery from the WhatsApp gateway before answering. A repeated delivery has no effect."""
        _require_proof(request, settings)
        delivery = delivery_of(await _body(request))
        if delivery is None:
            raise Problem(400, "webhook_strange")
        if isinstance(delivery, Ignorado):
            return {"status": "ignored", "event": mask_text(delivery.why, LONGEST_WORD)}
        return {"status": "ok", "new": await inbox.keep(delivery)}

    @routes.post(CHATWOOT, operation_id="receive_chatwoot", responses=DESK_ANSWERS, openapi_extra=DESK_BODY)
    async def chatwoot_event(request: Request) -> dict[str, Any]:
        """Store an event from the help desk before answering. A repeated event has no effect."""
        secret, inbox_id = settings.chatwoot_webhook_secret, settings.chatwoot_inbox_id
        if secret is None or inbox_id is None:
            raise Problem(401, "chatwoot_off")
        body, now = await request.body(), state_of(request).work.clock.now()
        if not chatwoot.is_proved(secret.get_secret_value(), request.headers, request.query_params, body, now):
            refuse_above_limit(request)
            raise Problem(401, "chatwoot_unproved")
        delivery = chatwoot.delivery_of(await _body(request), inbox_id, request.headers.get("x-chatwoot-delivery"))
        if delivery is None:
            raise Problem(400, "webhook_strange")
        if isinstance(delivery, Ignorado):
            return {"status": "ignored", "event": mask_text(delivery.why, LONGEST_WORD)}
        return {"status": "ok", "new": await inbox.keep(delivery)}

    return routes


def _require_proof(request: Request, settings: Settings) -> None:
    if settings.webhook_secret is None:
        if settings.in_development and is_local(request):
            return
        # The status is 503 and not 4xx, so that the gateway retries for a while and no delivery is lost while an
        # operator sets the secret.
        raise Problem(503, "webhook_closed", headers={"Retry-After": "60"})
    secret, now = settings.webhook_secret.get_secret_value(), state_of(request).work.clock.now()
    if not is_proved(secret, request.headers, request.query_params, now):
        refuse_above_limit(request)
        raise Problem(401, "webhook_unproved")


async def _body(request: Request) -> Json:
    try:
        return loads(await request.body())
    except (ValueError, RecursionError):
        return None
