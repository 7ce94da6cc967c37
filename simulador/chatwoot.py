"""Simulated Chatwoot: the requests that Julia uses, the webhooks of the account, and the actions of a person who uses
it.

Requests and answers below ``/chatwoot/api/v1/accounts/1`` have the format of the original. The original does not have
the routes below ``/chatwoot/controle``:

PUT    /chatwoot/controle/webhook               {"url", "secret"}: where events are delivered; without url they are only listed
GET    /chatwoot/controle/eventos               the events with their headers
PUT    /chatwoot/controle/falhas                {"status": 503, "times": 2, "skip": 0, "after": false}: answer ``skip`` more
                                                requests, then refuse ``times``; ``after`` does their work before it refuses them
POST   /chatwoot/controle/conversas/{id}        {"person", "message" | "assign" | "unassign" | "resolve" | "label"}
GET    /chatwoot/controle                       contacts and conversations with their messages
"""

import hashlib
import hmac
from collections import deque
from collections.abc import Mapping
from itertools import count
from typing import Any

import httpx2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from batuta.kernel import Clock, Json, dumps
from simulador.body import NotAnObject, json_object
from simulador.recebidos import KEPT, Recebidos

TOKEN = "simulado"  # noqa: S105 - the simulator has no secrets
INBOX = 1
PAGE = 20
TYPES = {"incoming": 0, "outgoing": 1}


class Chatwoot:
    name = "chatwoot"
    path = "/chatwoot"
    line = "Chatwoot: /chatwoot/api/v1/accounts/1/…, token simulado, inbox 1; /chatwoot/controle acts as a person"

    def __init__(self, clock: Clock) -> None:
        self.recebidos = Recebidos(clock)
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        self.recebidos.clear()
        self._ids = count(1)
        self.contacts: dict[int, dict[str, Any]] = {}
        self.conversations: dict[int, dict[str, Any]] = {}
        self._webhook: Mapping[str, Json] = {}
        self._events: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._fault: dict[str, Any] = {}

    def mount(self) -> Mount:
        api = "/api/v1/accounts/{account:int}"
        routes = [
            Route(f"{api}/contacts/search", self._guarded(self.search)),
            Route(f"{api}/contacts", self._guarded(self.add_contact), methods=["POST"]),
            Route(f"{api}/contacts/{{id:int}}/conversations", self._guarded(self.of_contact)),
            Route(f"{api}/conversations", self._guarded(self.add_conversation), methods=["POST"]),
            Route(f"{api}/conversations/{{id:int}}/messages", self._guarded(self.messages)),
            Route(f"{api}/conversations/{{id:int}}/messages", self._guarded(self.add_message), methods=["POST"]),
            Route(f"{api}/conversations/{{id:int}}/labels", self._guarded(self.labels)),
            Route(f"{api}/conversations/{{id:int}}/labels", self._guarded(self.set_labels), methods=["POST"]),
            Route(f"{api}/conversations/{{id:int}}/toggle_status", self._guarded(self.toggle), methods=["POST"]),
            Route("/controle", self.show),
            Route("/controle/eventos", self.events),
            Route("/controle/webhook", self.set_webhook, methods=["PUT"]),
            Route("/controle/falhas", self.set_faults, methods=["PUT"]),
            Route("/controle/conversas/{id:int}", self.act, methods=["POST"]),
        ]
        return Mount(self.path, routes=routes)

    # Requests of the original

    async def search(self, request: Request, body: Mapping[str, Json]) -> Response:
        wanted = request.query_params.get("q", "")
        found = [each for each in self.contacts.values() if wanted and wanted in (each["identifier"], each["name"])]
        return JSONResponse({"meta": {"count": len(found), "current_page": 1}, "payload": found})

    async def add_contact(self, request: Request, body: Mapping[str, Json]) -> Response:
        identifier, inbox = body.get("identifier"), body.get("inbox_id")
        if any(each["identifier"] == identifier for each in self.contacts.values()):
            return JSONResponse({"message": "Identifier has already been taken", "attributes": ["identifier"]}, 422)
        if inbox != INBOX:
            return _error(404, "Resource could not be found")
        id = next(self._ids)
        entry = {"source_id": f"source-{id}", "inbox": {"id": inbox, "channel_type": "Channel::Api"}}
        contact = {"id": id, "name": body.get("name"), "identifier": identifier, "contact_inboxes": [entry]}
        self.contacts[id] = contact
        return JSONResponse({"payload": {"contact": contact, "contact_inbox": entry}})

    async def of_contact(self, request: Request, body: Mapping[str, Json]) -> Response:
        id = request.path_params["id"]
        if id not in self.contacts:
            return _error(404, "Resource could not be found")
        found = [_shown(each) for each in self.conversations.values() if each["contact_id"] == id]
        return JSONResponse({"payload": found})

    async def add_conversation(self, request: Request, body: Mapping[str, Json]) -> Response:
        contact = body.get("contact_id")
        if not isinstance(contact, int) or contact not in self.contacts or body.get("inbox_id") != INBOX:
            return _error(404, "Resource could not be found")
        id = next(self._ids)
        self.conversations[id] = {
            "id": id, "inbox_id": INBOX, "contact_id": contact, "status": body.get("status") or "open", "labels": [],
            "custom_attributes": body.get("custom_attributes") or {}, "assignee": None, "messages": [],
        }  # fmt: skip
        await self._deliver(self._event("conversation_created", id))
        return JSONResponse(_shown(self.conversations[id]))

    async def messages(self, request: Request, body: Mapping[str, Json]) -> Response:
        conversation = self.conversations.get(request.path_params["id"])
        if conversation is None:
            return _error(404, "Resource could not be found")
        shown = [{**each, "message_type": TYPES[each["message_type"]]} for each in conversation["messages"][-PAGE:]]
        return JSONResponse({"meta": {"labels": conversation["labels"]}, "payload": shown})

    async def add_message(self, request: Request, body: Mapping[str, Json]) -> Response:
        id, content = request.path_params["id"], body.get("content")
        if id not in self.conversations:
            return _error(404, "Resource could not be found")
        if not isinstance(content, str) or not content:
            return _error(422, "Content can't be blank")
        kind = body.get("message_type") or "outgoing"
        private, source = bool(body.get("private")), body.get("source_id")
        message = await self._say(id, content, str(kind), private=private, source_id=source, person="Integração")
        return JSONResponse({**message, "message_type": TYPES[message["message_type"]]})

    async def labels(self, request: Request, body: Mapping[str, Json]) -> Response:
        conversation = self.conversations.get(request.path_params["id"])
        return (
            _error(404, "Resource could not be found")
            if conversation is None
            else JSONResponse({"payload": conversation["labels"]})
        )

    async def set_labels(self, request: Request, body: Mapping[str, Json]) -> Response:
        id, wanted = request.path_params["id"], body.get("labels")
        if id not in self.conversations or not isinstance(wanted, list):
            return _error(404, "Resource could not be found")
        await self._change(id, "labels", wanted, "label_list")
        return JSONResponse({"payload": wanted})

    async def toggle(self, request: Request, body: Mapping[str, Json]) -> Response:
        id, status = request.path_params["id"], body.get("status")
        if id not in self.conversations or status not in ("open", "resolved", "pending"):
            return _error(404, "Resource could not be found")
        await self._change(id, "status", status, "status")
        return JSONResponse({"payload": {"success": True, "current_status": status, "conversation_id": id}})

    # Routes that the original does not have

    async def show(self, request: Request) -> Response:
        return JSONResponse({"contacts": [*self.contacts.values()], "conversations": [*self.conversations.values()]})

    async def events(self, request: Request) -> Response:
        return JSONResponse([*self._events])

    async def set_webhook(self, request: Request) -> Response:
        self._webhook = await json_object(request)
        return Response(status_code=204)

    async def set_faults(self, request: Request) -> Response:
        self._fault = dict(await json_object(request))
        return Response(status_code=204)

    async def act(self, request: Request) -> Response:
        body, id = await json_object(request), request.path_params["id"]
        if id not in self.conversations:
            return _error(404, "Resource could not be found")
        person = str(body.get("person") or "Atendente Teste")
        match body:
            case {"message": str(text)}:
                await self._say(id, text, "outgoing", private=False, source_id=None, person=person)
            case {"assign": _}:
                await self._change(id, "assignee", {"id": 7, "name": person}, "assignee_id")
            case {"unassign": _}:
                await self._change(id, "assignee", None, "assignee_id")
            case {"resolve": _}:
                await self._change(id, "status", "resolved", "status")
            case {"label": str(label)}:
                await self._change(id, "labels", [*self.conversations[id]["labels"], label], "label_list")
            case _:
                return _error(400, "send message, assign, unassign, resolve or label")
        return JSONResponse(_shown(self.conversations[id]))

    def _guarded(self, handle: Any) -> Any:
        """Wrap a route: check the token, record the request, and respond with the configured fault or with the route's
        result.
        """

        async def run(request: Request) -> Response:
            if request.headers.get("api_access_token") != TOKEN:
                return _error(401, "You need to sign in or sign up before continuing.")
            try:
                body = await json_object(request) if request.method == "POST" else {}
            except NotAnObject:
                return _error(400, "the body must be a JSON object")
            self.recebidos.record(method=request.method, path=request.url.path, body=dict(body))
            skip = self._fault.get("skip", 0)
            if not self._fault.get("times") or skip > 0:
                self._fault["skip"] = skip - 1
                return await handle(request, body)  # type: ignore[no-any-return]
            self._fault["times"] -= 1
            if self._fault.get("after"):
                await handle(request, body)
            return _error(int(self._fault.get("status", 500)), "the prepared error")

        return run

    async def _say(
        self, id: int, text: str, kind: str, *, private: bool, source_id: Json, person: str
    ) -> dict[str, Any]:
        message = {
            "id": next(self._ids), "content": text, "message_type": kind, "private": private, "source_id": source_id,
            "conversation_id": id, "content_type": "text", "content_attributes": {},
        }  # fmt: skip
        self.conversations[id]["messages"].append(message)
        sender = {"id": 7, "name": person, "type": "user"} if kind == "outgoing" else {"type": "contact"}
        conversation = _shown(self.conversations[id])
        await self._deliver(
            {**message, "event": "message_created", "sender": sender, "conversation": conversation,
             "inbox": {"id": INBOX, "name": "Julia"}, "account": {"id": 1}}
        )  # fmt: skip
        return message

    async def _change(self, id: int, name: str, value: Any, attribute: str) -> None:
        conversation = self.conversations[id]
        before, conversation[name] = conversation[name], value
        if before == value:
            return
        changed = {attribute: {"previous_value": before, "current_value": value}}
        for event in ("conversation_updated", *(["conversation_status_changed"] if name == "status" else [])):
            await self._deliver({**self._event(event, id), "changed_attributes": [changed]})

    def _event(self, event: str, id: int) -> dict[str, Any]:
        conversation = self.conversations[id]
        meta = {"assignee": conversation["assignee"]}
        shown = _shown(conversation)
        return {**shown, "event": event, "meta": meta, "updated_at": self._clock.now().timestamp()}

    async def _deliver(self, event: Mapping[str, Any]) -> None:
        """Deliver an event once. As in the original, a failed delivery is not retried."""
        body, stamp = dumps(dict(event)).encode(), str(int(self._clock.now().timestamp()))
        secret = str(self._webhook.get("secret") or "")
        signature = hmac.digest(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hex()
        headers = {
            "content-type": "application/json",
            "x-chatwoot-timestamp": stamp,
            "x-chatwoot-signature": f"sha256={signature}",
            "x-chatwoot-delivery": f"delivery-{next(self._ids)}",
        }
        self._events.append({"body": body.decode(), "headers": headers})
        if not isinstance(url := self._webhook.get("url"), str):
            return
        async with httpx2.AsyncClient(trust_env=False, timeout=5.0) as client:
            try:
                await client.post(url, content=body, headers=headers)
            except httpx2.HTTPError as error:
                self.recebidos.record(undelivered=str(event["event"]), error=type(error).__name__)


def _shown(conversation: Mapping[str, Any]) -> dict[str, Any]:
    names = ("id", "inbox_id", "status", "labels", "custom_attributes")
    return {name: conversation[name] for name in names}


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)
