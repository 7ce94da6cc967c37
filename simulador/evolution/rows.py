"""JSON views of the gateway's instances, messages and contacts."""

from collections import deque
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal

from batuta.kernel import Json, dataclass
from simulador.evolution import bodies
from simulador.evolution.jid import jid_of

# Number of messages that are kept. It is large, because the original stores sent messages in a database.
MESSAGES_KEPT = 50_000

CLIENT = "simulador"


@dataclass
class Instance:
    id: str
    name: str
    token: str
    integration: str
    number: str | None
    state: Literal["open", "connecting", "close"]
    created_at: datetime
    webhook: Mapping[str, Json] | None = None
    code: int | None = None  # reason of the last disconnection
    cut_off_at: datetime | None = None
    messages: deque[Mapping[str, Json]] = field(default_factory=lambda: deque(maxlen=MESSAGES_KEPT))
    updates: dict[str, list[str]] = field(default_factory=dict)  # the delivery statuses of each message, by message id


def positive(value: Json, otherwise: int) -> int:
    return value if isinstance(value, int) and value > 0 else otherwise


def matches(message: Mapping[str, Json], query: Mapping[str, Json]) -> bool:
    """Return whether a message's key matches the key fields in the query. A field that is false or empty in the query
    matches every message, as in the original.
    """
    where = query.get("where")
    wanted = where.get("key") if isinstance(where, Mapping) else None
    key = message["key"]
    assert isinstance(key, Mapping)
    return not isinstance(wanted, Mapping) or all(
        key[name] == value for name, value in wanted.items() if name in bodies.MESSAGE_KEY and value
    )


def stored(instance: Instance, message: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a message as the gateway's database stores it: the row itself has no status, and the list
    ``MessageUpdate`` has all statuses.
    """
    key = message["key"]
    assert isinstance(key, Mapping)
    shown = {name: value for name, value in message.items() if name != "status"}
    updates: Json = [{"status": word} for word in instance.updates.get(str(key["id"]), ())]
    return {"id": key["id"], **shown, "MessageUpdate": updates}


def created(instance: Instance, asked: Mapping[str, Json]) -> Mapping[str, Json]:
    webhook = instance.webhook or {}
    return {
        "instance": {
            "instanceName": instance.name,
            "instanceId": instance.id,
            "integration": instance.integration,
            "webhookWaBusiness": None,
            "accessTokenWaBusiness": "",
            "status": instance.state,
        },
        "hash": instance.token,
        "webhook": {
            "webhookUrl": webhook.get("url"),
            "webhookHeaders": webhook.get("headers"),
            "webhookByEvents": webhook.get("webhookByEvents"),
            "webhookBase64": webhook.get("webhookBase64"),
        },
        "settings": {**{name: asked.get(name, False) for name in bodies.SWITCHES}, "msgCall": asked.get("msgCall", "")},
    }


def row(instance: Instance) -> Mapping[str, Json]:
    return {
        "id": instance.id,
        "name": instance.name,
        "connectionStatus": instance.state,
        "ownerJid": jid_of(instance.number) if instance.number and instance.state == "open" else None,
        "profileName": None,
        "profilePicUrl": None,
        "integration": instance.integration,
        "number": instance.number,
        "businessId": None,
        "token": instance.token,
        "clientName": CLIENT,
        "disconnectionReasonCode": instance.code,
        "disconnectionObject": None,
        "disconnectionAt": None if instance.cut_off_at is None else instance.cut_off_at.isoformat(),
        "createdAt": instance.created_at.isoformat(),
        "updatedAt": instance.created_at.isoformat(),
        "Chatwoot": None,
        "Proxy": None,
        "Setting": None,
        "_count": {"Message": len(instance.messages), "Contact": 0, "Chat": 0},
    }


def group_row(jid: str, name: str, instance: Instance) -> Mapping[str, Json]:
    at = int(instance.created_at.timestamp())
    member: Json = {"id": jid_of(instance.number) if instance.number else None, "admin": None}
    return {
        "id": jid,
        "subject": name,
        "subjectOwner": None,
        "subjectTime": at,
        "pictureUrl": None,
        "size": 1,
        "creation": at,
        "owner": None,
        "desc": None,
        "descId": None,
        "restrict": False,
        "announce": False,
        "participants": [member],
        "isCommunity": False,
        "isCommunityAnnounce": False,
        "linkedParent": None,
    }
