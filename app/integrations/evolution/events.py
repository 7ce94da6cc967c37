"""Translate webhook deliveries from the gateway into facts. Every field may be missing or have any type."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

from app.contexts.comum.telefone import Address, address
from app.contexts.comum.whatsapp import Entrega
from app.contexts.webhooks.api import DeGrupo, Eco, EntregaDoWebhook, Fato, Ignorado, Ligacao, Recebida, Recibo
from app.integrations.evolution.answers import ENTREGAS, conexao
from app.integrations.evolution.content import MEDIA, contexts, instant_of, media_of, text_of
from batuta.kernel import Json, dumps, json_object, make_writable

CANAL = "evolution"
# Maximum size of a stored delivery. It is longer than any text that people write; media arrive without their content.
LONGEST = 512 * 1024
WANTED = frozenset({"messages.upsert", "messages.update", "send.message", "connection.update", "status.instance"})
# Longest name, state or id from outside that a column stores.
LONGEST_NAME = 200
_EARLIEST = datetime(2015, 1, 1, tzinfo=UTC)
# A message whose time is further in the future than this gets the current time. The sender's phone sets the time of a
# message.
_AHEAD = timedelta(minutes=5)


def delivery_of(body: Json) -> EntregaDoWebhook | Ignorado | None:
    """Return the delivery to store. Return ``Ignorado`` for an event that Julia does not need, and None if the payload
    is not a delivery.
    """
    match body:
        case {"event": str(event), "instance": str(instance), "data": Mapping() | list()}:
            evento = event.lower().replace("_", ".").replace("-", ".")
            instance = make_writable(instance)  # the same replacement as in the stored payload
        case _:
            return None
    if evento not in WANTED:
        return Ignorado(evento[:LONGEST_NAME])
    # Every delivery contains the instance's API key, which must never be stored.
    shown = {name: value for name, value in cast("Mapping[str, Json]", body).items() if name != "apikey"}
    payload = json_object(shown, LONGEST)
    if payload is None:
        return None
    chave = _key(evento, instance, payload)
    return EntregaDoWebhook(
        canal=CANAL, chave=chave, instance=instance[:LONGEST_NAME], evento=evento, payload=dict(payload)
    )


def facts_of(evento: str, payload: Json, now: datetime) -> Sequence[Fato]:
    match payload:
        case {"instance": str(instance), "data": data, **rest}:
            sent_at = _wall_time(rest.get("date_time"))
            items = data if isinstance(data, list) else [data]
            return [_fact(evento, instance, cast("Json", each), sent_at, now) for each in items]
        case _:
            return [Ignorado("no instance or no data")]


def _fact(evento: str, instance: str, data: Json, sent_at: datetime | None, now: datetime) -> Fato:
    if not isinstance(data, Mapping):
        return Ignorado(f"{evento} without data")
    match evento:
        case "messages.upsert" | "send.message":
            return _message(evento, instance, data, now)
        case "messages.update":
            return _receipt(instance, data)
        case _:
            return _connection(instance, data, sent_at)


def _message(evento: str, instance: str, data: Mapping[str, Json], now: datetime) -> Fato:
    match data.get("key"):
        case {"id": str(id), "remoteJid": str(jid), **key} if 0 < len(id) <= LONGEST_NAME:
            chat = address(jid, _text(key.get("remoteJidAlt")))
        case _:
            return Ignorado(f"{evento} without a valid key")
    if chat is None:
        return Ignorado("neither a person nor a group")
    at, texto = _instant(data.get("messageTimestamp"), now), text_of(data.get("message"))
    if key.get("fromMe") is True or evento == "send.message":
        entrega = ENTREGAS.get(str(data.get("status")), Entrega.PENDING)
        return Eco(message_id=id, instance=instance, para=chat, texto=texto, entrega=entrega, em=at)
    nome = _name(data.get("pushName"))
    midia = MEDIA.get(str(data.get("messageType"))) or media_of(data.get("message"))
    if texto is None and midia is None:
        return Ignorado(f"a message of type {str(data.get('messageType'))[:40]}")
    if not chat.is_group:
        return Recebida(
            message_id=id, instance=instance, de=chat, nome=nome, texto=texto or "", midia=midia, em=at
        )  # fmt: skip
    return DeGrupo(
        message_id=id,
        instance=instance,
        grupo=chat.jid,
        autor=_author(_mapping(data.get("key")), data),
        nome=nome,
        texto=texto or "",
        midia=midia,
        encaminhada=_is_forwarded(data),
        citada=_read_quoted_id(data),
        em=at,
    )


def _author(key: Mapping[str, Json], data: Mapping[str, Json]) -> Address | None:
    jid = _text(key.get("participant")) or _text(data.get("participant"))
    return None if jid is None else address(jid, _text(key.get("participantAlt")) or _text(key.get("participantPn")))


def _receipt(instance: str, data: Mapping[str, Json]) -> Fato:
    id = _text(data.get("keyId"))
    if id is None:
        key = data.get("key")
        id = _text(key.get("id")) if isinstance(key, Mapping) else None
    entrega = ENTREGAS.get(str(data.get("status")))
    if id is None or len(id) > LONGEST_NAME or entrega is None:
        return Ignorado(f"an update to {str(data.get('status'))[:40]}")
    if data.get("fromMe") is False:
        return Ignorado("a receipt of an inbound message")
    return Recibo(message_id=id, instance=instance, entrega=entrega)


def _connection(instance: str, data: Mapping[str, Json], sent_at: datetime | None) -> Fato:
    code = data.get("statusReason", data.get("disconnectionReasonCode"))
    wuid = _text(data.get("wuid"))
    owner = None if wuid is None else address(wuid)
    word = "close" if data.get("status") == "closed" else data.get("state")
    return Ligacao(
        instance=instance,
        state=conexao(word),
        code=code if isinstance(code, int) and not isinstance(code, bool) else None,
        telefone=None if owner is None else owner.telefone,
        em=sent_at,
    )


def _key(evento: str, instance: str, payload: Mapping[str, Json]) -> str:
    """Return the deduplication key of a webhook delivery: the message id if there is one, otherwise a hash of the whole
    payload.
    """
    data = _mapping(payload.get("data"))
    match data:
        case {"key": {"id": str(id), "remoteJid": str(jid), **rest}}:
            parts = [evento, instance, jid, str(rest.get("participant", "")), id, str(data.get("status", ""))]
        case {"keyId": str(id), "status": str(status)}:
            parts = [evento, instance, str(data.get("remoteJid", "")), str(data.get("participant", "")), id, status]
        case _:
            parts = [dumps(payload)]
    return hashlib.sha256("\n".join(parts).encode(errors="replace")).hexdigest()


def _instant(value: Json, now: datetime) -> datetime:
    """Parse an instant. An implausible instant is replaced by ``now``."""
    at = instant_of(value)
    return at if at is not None and _EARLIEST < at < now + _AHEAD else now


def _wall_time(value: object) -> datetime | None:
    """Parse the gateway's local time, which is wrongly marked as UTC. It can only be used to order the events of one
    instance.
    """
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def _is_forwarded(data: Mapping[str, Json]) -> bool:
    return any(each.get("isForwarded") is True for each in _contexts(data))


def _read_quoted_id(data: Mapping[str, Json]) -> str | None:
    """Return the id of the message to which this message replies."""
    return next((id[:LONGEST_NAME] for each in _contexts(data) if (id := _text(each.get("stanzaId")))), None)


def _contexts(data: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    yield _mapping(data.get("contextInfo"))
    yield from contexts(data.get("message"))


def _name(value: Json) -> str | None:
    return value.strip()[:LONGEST_NAME] or None if isinstance(value, str) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
