"""Authenticate Chatwoot's webhooks, and translate them into facts for the contexts.

Chatwoot signs a delivery with the webhook's secret: ``X-Chatwoot-Signature`` is ``sha256=`` followed by the HMAC of
``{X-Chatwoot-Timestamp}.{body}``. Versions that do not sign can send the secret in the address (``?token=…``).
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from app.contexts.webhooks.api import EntregaDoWebhook, EscritaNaCentral, Fato, Ignorado, MudancaNaCentral
from batuta.kernel import Json

CANAL: Final = "chatwoot"
PREFIX: Final = "chatwoot:"
MESSAGE: Final = "message_created"
CHANGES: Final = ("conversation_updated", "conversation_status_changed")
# Maximum age of a signed delivery in seconds, so that a recorded delivery cannot be replayed later.
OLDEST_SECONDS: Final = 300
LONGEST_NAME: Final = 80


def is_proved(secret: str, headers: Mapping[str, str], query: Mapping[str, str], body: bytes, now: datetime) -> bool:
    """Return whether a delivery has the secret in its address or a valid, recent signature."""
    stamp, given = headers.get("x-chatwoot-timestamp", ""), headers.get("x-chatwoot-signature", "")
    expected = hmac.digest(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hex()
    is_signed = hmac.compare_digest(f"sha256={expected}".encode(), given.encode())
    is_recent = stamp.isdecimal() and len(stamp) < 16 and abs(now.timestamp() - int(stamp)) <= OLDEST_SECONDS
    has_token = hmac.compare_digest(secret.encode(), query.get("token", "").encode())
    return has_token or (is_signed and is_recent)


def delivery_of(body: Json, inbox: int, delivery: str | None) -> EntregaDoWebhook | Ignorado | None:
    """Return the delivery to store, the reason to ignore it, or None if the body is not a Chatwoot delivery.

    ``delivery`` is the X-Chatwoot-Delivery header. Only the fields that ``facts_of`` needs are stored.
    """
    if not isinstance(body, Mapping) or not isinstance(event := body.get("event"), str):
        return None
    if event == MESSAGE:
        kept = _message(body, inbox)
        key = None if kept is None else f"{event}:{kept['message_id']}"
    elif event in CHANGES:
        kept = _change(body, inbox)
        digest = hashlib.sha256(repr(sorted((kept or {}).items())).encode()).hexdigest()
        key = f"{event}:{delivery or digest}"
    else:
        return Ignorado(event)
    if kept is None or key is None:
        return Ignorado(event)
    return EntregaDoWebhook(canal=CANAL, chave=key, instance=CANAL, evento=f"{PREFIX}{event}", payload=kept)


def facts_of(evento: str, payload: Json) -> Sequence[Fato]:
    """Translate a stored delivery into facts: a team member's answer, or a change of the conversation's state."""
    if not isinstance(payload, Mapping):
        return [Ignorado(evento)]
    match payload:
        case {"central_id": int(central_id), "message_id": int(message_id), "autor": str(autor), "texto": str(texto)}:
            return [EscritaNaCentral(central_id=central_id, message_id=message_id, autor=autor, texto=texto)]
        case {"central_id": int(central_id), "mudou": list(changed), "resolvida": bool(resolved)}:
            labels, em, assignee = payload.get("etiquetas"), payload.get("em"), payload.get("autor")
            return [
                MudancaNaCentral(
                    central_id=central_id,
                    mudou=frozenset(str(each) for each in changed),
                    resolvida=resolved,
                    autor=assignee if isinstance(assignee, str) else None,
                    etiquetas=frozenset(str(each) for each in labels) if isinstance(labels, list) else frozenset(),
                    em=datetime.fromtimestamp(em, UTC) if isinstance(em, int | float) else None,
                )
            ]
        case _:
            return [Ignorado(evento)]


def _message(body: Mapping[str, Any], inbox: int) -> dict[str, Json] | None:
    """Return the fields of a message that a team member wrote to a doctor in the given inbox. Return None for any other
    message.

    Messages with a ``source_id`` were published by Julia and are ignored.
    """
    match body:
        case {"id": int(id), "content": str(text), "message_type": "outgoing", "conversation": {"id": int(talk)}}:
            sender, source = body.get("sender"), body.get("source_id")
            if body.get("private") or source or _inbox(body) != inbox or _type(sender) not in ("user", None):
                return None
            return {"central_id": talk, "message_id": id, "autor": _name(sender) or "-", "texto": text}
        case _:
            return None


def _change(body: Mapping[str, Any], inbox: int) -> dict[str, Json] | None:
    if not isinstance(id := body.get("id"), int) or _inbox(body) != inbox:
        return None
    listed, meta, labels, em = (body.get(name) for name in ("changed_attributes", "meta", "labels", "updated_at"))
    changed = (
        [str(name) for each in listed if isinstance(each, Mapping) for name in each] if isinstance(listed, list) else []
    )
    if body.get("event") == "conversation_status_changed" and "status" not in changed:
        changed.append("status")
    return {
        "central_id": id,
        "mudou": sorted(changed),
        "resolvida": body.get("status") == "resolved",
        "autor": _name(meta.get("assignee")) if isinstance(meta, Mapping) else None,
        "etiquetas": [str(each) for each in labels] if isinstance(labels, list) else [],
        "em": em if isinstance(em, int | float) and not isinstance(em, bool) and 0 < em < 10**11 else None,
    }


def _inbox(body: Mapping[str, Any]) -> int | None:
    match body:
        case {"inbox": {"id": int(id)}} | {"inbox_id": int(id)} | {"conversation": {"inbox_id": int(id)}}:
            return id
        case _:
            return None


def _type(sender: Any) -> str | None:
    return sender.get("type") if isinstance(sender, Mapping) else None


def _name(person: Any) -> str | None:
    match person:
        case {"name": str(name)} if name.strip():
            return name.strip()[:LONGEST_NAME]
        case {"id": int(id)}:
            return str(id)
        case _:
            return None
