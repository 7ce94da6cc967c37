"""Requests to the Chatwoot API. Each request has a total deadline and a size limit, and is made once.

Contacts are found by their identifier, conversations by a custom attribute, and messages by their ``source_id``. If a
request is repeated because its answer was lost, it therefore finds the earlier result.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import httpx2

from app.contexts.equipe.central import Falha, Ficha, Publicacao
from app.integrations.http import ANSWER_TOO_LONG, NO_ANSWER_WITHIN, UNKNOWN_FORMAT, open_client
from batuta.errors import DeadlineExceeded
from batuta.guards import Effect, EffectReport, effect_of_status
from batuta.kernel import Clock, Json, loads, with_timeout

WITHIN: Final = timedelta(seconds=15)
LARGEST: Final = 2 * 1024 * 1024
CONNECT_SECONDS: Final = 5.0
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
# Custom attribute of a help desk conversation that contains the id of Julia's conversation.
ATTRIBUTE: Final = "julia_conversa"
STRANGE: Final = Falha(EffectReport(Effect.BROKE, UNKNOWN_FORMAT()))


class ChatwootClient:
    """Help desk client for one account and one inbox, which must be an API inbox. ``token`` is a secret."""

    def __init__(self, base_url: str, token: str, account: int, inbox: int, clock: Clock) -> None:
        self._base = f"{base_url.rstrip('/')}/api/v1/accounts/{account}"
        self._token = token
        self._inbox = inbox
        self._clock = clock
        self._client: httpx2.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"ChatwootClient({self._base!r})"  # without the token

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def abrir(self, ficha: Ficha) -> int | Falha:
        contact = await self._contact(ficha)
        if isinstance(contact, Falha):
            return contact
        contact_id, source_id = contact
        listed = await self._call("GET", f"/contacts/{contact_id}/conversations")
        if isinstance(listed, Falha):
            return listed
        for each in _list(listed, "payload"):
            attributes = each.get("custom_attributes")
            known = attributes.get(ATTRIBUTE) if isinstance(attributes, Mapping) else None
            if known == ficha.conversa_id and isinstance(found := each.get("id"), int):
                return found
        body: dict[str, Json] = {
            "source_id": source_id,
            "inbox_id": self._inbox,
            "contact_id": contact_id,
            "status": "open",
            "custom_attributes": {ATTRIBUTE: ficha.conversa_id},
        }
        made = await self._call("POST", "/conversations", body)
        if isinstance(made, Falha):
            return made
        return made["id"] if isinstance(made.get("id"), int) else STRANGE

    async def publicadas(self, central_id: int) -> frozenset[str] | Falha:
        answer = await self._call("GET", f"/conversations/{central_id}/messages")
        if isinstance(answer, Falha):
            return answer
        found = (each.get("source_id") for each in _list(answer, "payload"))
        return frozenset(each for each in found if isinstance(each, str))

    async def publicar(self, central_id: int, publicacao: Publicacao) -> Falha | None:
        body: dict[str, Json] = {
            "content": publicacao.texto,
            "message_type": "incoming" if publicacao.do_medico else "outgoing",
            "private": publicacao.privada,
            "source_id": publicacao.chave,
        }
        return _nothing(await self._call("POST", f"/conversations/{central_id}/messages", body))

    async def etiquetar(self, central_id: int, mais: Sequence[str], menos: Sequence[str]) -> Falha | None:
        path = f"/conversations/{central_id}/labels"
        answer = await self._call("GET", path)
        if isinstance(answer, Falha):
            return answer
        known = answer.get("payload")
        before = [each for each in known if isinstance(each, str)] if isinstance(known, list) else []
        after: list[Json] = [each for each in dict.fromkeys([*before, *mais]) if each not in menos]
        if after == before:
            return None
        # This request replaces all labels.
        return _nothing(await self._call("POST", path, {"labels": after}))

    async def mudar(self, central_id: int, *, aberta: bool) -> Falha | None:
        body: dict[str, Json] = {"status": "open" if aberta else "resolved"}
        return _nothing(await self._call("POST", f"/conversations/{central_id}/toggle_status", body))

    async def _contact(self, ficha: Ficha) -> tuple[int, str] | Falha:
        """Return the id of a doctor's contact, and the contact's address in the inbox."""
        identifier = f"julia:{ficha.cliente_id}"
        found = await self._call("GET", f"/contacts/search?q={quote(identifier, safe='')}")
        if isinstance(found, Falha):
            return found
        for each in _list(found, "payload"):
            if each.get("identifier") == identifier and (known := self._address(each)) is not None:
                return known
        body: dict[str, Json] = {"inbox_id": self._inbox, "name": ficha.nome, "identifier": identifier}
        made = await self._call("POST", "/contacts", body)
        if isinstance(made, Falha):
            return made
        match made:
            case {"payload": {"contact": {"id": int(id)}, "contact_inbox": {"source_id": str(source_id)}}}:
                return id, source_id
            case _:
                return STRANGE

    def _address(self, contact: Mapping[str, Any]) -> tuple[int, str] | None:
        inboxes = contact.get("contact_inboxes")
        for each in inboxes if isinstance(inboxes, list) else []:
            match each:
                case {"source_id": str(source_id), "inbox": {"id": int(inbox)}} if inbox == self._inbox:
                    return int(contact["id"]), source_id
        return None

    async def _call(self, method: str, path: str, body: Mapping[str, Json] | None = None) -> Mapping[str, Any] | Falha:
        try:
            return await with_timeout(WITHIN, self._send(method, path, body), self._clock, f"{method} chatwoot")
        except DeadlineExceeded:
            return Falha(EffectReport(Effect.TIMED_OUT, NO_ANSWER_WITHIN(limit=WITHIN)))
        except NEVER_SENT as error:
            return Falha(EffectReport(Effect.UNREACHED, type(error).__name__))
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            return Falha(EffectReport(Effect.BROKE, type(error).__name__))

    async def _send(self, method: str, path: str, body: Mapping[str, Json] | None) -> Mapping[str, Any] | Falha:
        headers = {"api_access_token": self._token}
        async with self._open().stream(method, f"{self._base}{path}", headers=headers, json=body) as response:
            read = bytearray()
            async for piece in response.aiter_bytes():
                read += piece
                if len(read) > LARGEST:
                    return Falha(EffectReport(Effect.BROKE, ANSWER_TOO_LONG()))
        if not 200 <= response.status_code < 300:
            retry_at = _retry_at(response.headers.get("retry-after"), self._clock.now())
            return Falha(EffectReport(effect_of_status(response.status_code), f"HTTP {response.status_code}", retry_at))
        try:
            parsed = loads(bytes(read) or b"{}")
        except (ValueError, RecursionError):
            return STRANGE
        return parsed if isinstance(parsed, Mapping) else {}

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)
            self._client = open_client(timeout)
        return self._client


def _list(answer: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    listed = answer.get(name)
    return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []


def _nothing(answer: Mapping[str, Any] | Falha) -> Falha | None:
    return answer if isinstance(answer, Falha) else None


def _retry_at(said: str | None, now: datetime) -> datetime | None:
    return now + timedelta(seconds=int(said)) if said and said.isdigit() and int(said) <= 86_400 else None
