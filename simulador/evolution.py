"""The WhatsApp gateway: Evolution API v2 (2.3.7), as far as Julia speaks with it so far.

The paths, the order in which it refuses and the shape of its errors follow the original, odd corners included, so that
a client that works here works there. Nothing leaves this process: an accepted message is recorded and stays PENDING.
Not here yet: pairing (an instance that is created stays closed), media, acknowledgements, and webhook deliveries (an
address that is set is kept and answered back; nothing is posted to it).
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from batuta.kernel.clock import Clock
from batuta.kernel.ids import Ids
from batuta.kernel.json import Json
from simulador import evolution_bodies as bodies
from simulador.body import NotAnObject, json_object
from simulador.jid import is_on_whatsapp, jid_of, lookup_order
from simulador.recebidos import KEPT, Recebidos
from simulador.schema import Schema, complaints

# Opens every instance. It guards nothing real, so it is printed where anybody can read it.
KEY = "simulador"
DEFAULT_INSTANCE = "julia-sim"
DEFAULT_NUMBER = "5511900000000"
VERSION = "2.3.7"
CLIENT = "simulador"
INTEGRATIONS = ("WHATSAPP-BAILEYS", "WHATSAPP-BUSINESS", "EVOLUTION")
PAGE_LENGTH = 50


class Refused(Exception):
    """An answer of 400 or more, in the envelope of the original."""

    def __init__(self, status: HTTPStatus, message: Json) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


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
    messages: deque[Mapping[str, Json]] = field(default_factory=lambda: deque(maxlen=KEPT))


class Evolution:
    name = "evolution"
    path = "/evolution"
    line = f"WhatsApp gateway, Evolution API {VERSION}: header apikey {KEY}, open instance {DEFAULT_INSTANCE}"

    def __init__(self, clock: Clock) -> None:
        self.recebidos = Recebidos(clock)
        self._clock = clock
        self._ids = Ids(clock)
        default = self._new_instance(DEFAULT_INSTANCE, INTEGRATIONS[0], number=DEFAULT_NUMBER)
        default.state = "open"
        self._instances = {default.name: default}

    def mount(self) -> Mount:
        routes = [
            Route("/", self.welcome),
            Route("/instance/create", self.create, methods=["POST"]),
            Route("/instance/fetchInstances", self.fetch_instances),
            Route("/instance/connectionState/{instance}", self.connection_state),
            Route("/message/sendText/{instance}", self.send_text, methods=["POST"]),
            Route("/chat/whatsappNumbers/{instance}", self.whatsapp_numbers, methods=["POST"]),
            Route("/chat/findMessages/{instance}", self.find_messages, methods=["POST"]),
            Route("/webhook/set/{instance}", self.set_webhook, methods=["POST"]),
            Route("/webhook/find/{instance}", self.find_webhook),
        ]
        handlers = {Refused: _refusal, 404: _no_route, 405: _no_route, 500: _breakdown}
        return Mount(self.path, Starlette(routes=routes, exception_handlers=handlers))

    def forget(self) -> None:
        """The instances and their messages stay: they are the gateway's, not a record of what came in."""
        self.recebidos.clear()

    async def welcome(self, request: Request) -> Response:
        index = str(request.base_url)  # the nearest thing to a manual there is here
        return JSONResponse(
            {
                "status": 200,
                "message": "Welcome to the Evolution API, it is working!",
                "version": VERSION,
                "clientName": CLIENT,
                "manager": index,
                "documentation": index,
                "whatsappWebVersion": None,
            }
        )

    async def create(self, request: Request) -> Response:
        body = await _body(request)
        name = _text(body, "instanceName")
        if name in self._instances:
            raise Refused(HTTPStatus.FORBIDDEN, [f'This name "{name}" is already in use.'])
        if _key(request) != KEY:
            raise _unauthorized()
        _check(body, bodies.CREATE)
        if name is None:
            raise Refused(HTTPStatus.BAD_REQUEST, [['The "instanceName" cannot be empty']])
        if body.get("integration") not in INTEGRATIONS:
            raise Refused(HTTPStatus.BAD_REQUEST, ["Invalid integration"])
        number, token = _text(body, "number"), _text(body, "token")
        instance = self._new_instance(name, str(body["integration"]), number=number, token=token)
        webhook = body.get("webhook")
        if isinstance(webhook, Mapping) and webhook.get("url"):
            instance.webhook = self._webhook_row(instance, {"enabled": True, **webhook})
        self._instances[instance.name] = instance
        return JSONResponse(_created(instance, body), HTTPStatus.CREATED)

    async def fetch_instances(self, request: Request) -> Response:
        asked = request.query_params
        # An instance's own token shows that instance alone, whatever was asked.
        name = asked.get("instanceName") if _key(request) == KEY else self._owner_of(_key(request)).name
        if name and name not in self._instances:
            raise Refused(HTTPStatus.NOT_FOUND, [f'Instance "{name}" not found'])
        found = [
            _row(instance)
            for instance in self._instances.values()
            if instance.name == (name or instance.name)
            and instance.id == (asked.get("instanceId") or instance.id)
            and instance.number == (asked.get("number") or instance.number)
        ]
        return JSONResponse(found)

    async def connection_state(self, request: Request) -> Response:
        instance = self._instance_of(request)
        return JSONResponse({"instance": {"instanceName": instance.name, "state": instance.state}})

    async def send_text(self, request: Request) -> Response:
        instance = self._instance_of(request)
        body = await _body(request)
        _check(body, bodies.SEND_TEXT)
        number, text = str(body["number"]), str(body["text"])
        if not text.strip():
            raise Refused(HTTPStatus.BAD_REQUEST, ["Text is required"])
        if instance.state != "open":
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "Connection Closed")
        contact = _contact(number)
        if not contact["exists"]:
            raise Refused(HTTPStatus.BAD_REQUEST, [contact])
        await self._type_for(body.get("delay"))
        message = self._message(instance, jid_of(number), text)
        instance.messages.append(message)
        self.recebidos.record(instance=instance.name, number=number, text=text, message=message)
        return JSONResponse(message, HTTPStatus.CREATED)

    async def whatsapp_numbers(self, request: Request) -> Response:
        self._instance_of(request)
        body = await _body(request)
        if wrong := complaints(body, bodies.NUMBERS):
            # The one call that answers the bare error, without the envelope.
            bad = HTTPStatus.BAD_REQUEST
            return JSONResponse({"status": bad, "error": bad.phrase, "message": [wrong]}, bad)
        numbers = body["numbers"]
        assert isinstance(numbers, list)
        contacts = [_contact(number) for number in numbers]
        return JSONResponse(sorted(contacts, key=lambda contact: lookup_order(str(contact["jid"]))))

    async def find_messages(self, request: Request) -> Response:
        instance = self._instance_of(request)
        body = await _body(request)
        _check(body, bodies.FIND_MESSAGES)
        page, length = _positive(body.get("page"), 1), _positive(body.get("offset"), PAGE_LENGTH)
        found = [message for message in reversed(instance.messages) if _matches(message, body)]
        return JSONResponse(
            {
                "messages": {
                    "total": len(found),
                    "pages": math.ceil(len(found) / length),
                    "currentPage": page,
                    "records": [_stored(message) for message in found[(page - 1) * length : page * length]],
                }
            }
        )

    async def set_webhook(self, request: Request) -> Response:
        instance = self._instance_of(request)
        body = await _body(request)
        _check(body, bodies.SET_WEBHOOK)
        webhook = body["webhook"]
        assert isinstance(webhook, Mapping)
        instance.webhook = self._webhook_row(instance, webhook)
        return JSONResponse(instance.webhook, HTTPStatus.CREATED)

    async def find_webhook(self, request: Request) -> Response:
        return JSONResponse(self._instance_of(request).webhook)

    def _instance_of(self, request: Request) -> Instance:
        """Whether it exists is asked before the key: an unknown instance is 404 even to a stranger."""
        name = request.path_params["instance"]
        instance = self._instances.get(name)
        if instance is None:
            raise Refused(HTTPStatus.NOT_FOUND, [f'The "{name}" instance does not exist'])
        if _key(request) not in (KEY, instance.token):
            raise _unauthorized()
        return instance

    def _owner_of(self, token: str | None) -> Instance:
        for instance in self._instances.values():
            if instance.token == token:
                return instance
        raise _unauthorized()

    def _new_instance(
        self, name: str, integration: str, *, number: str | None = None, token: str | None = None
    ) -> Instance:
        return Instance(
            id=self._ids.new(),
            name=name,
            token=token or self._ids.new().upper(),
            integration=integration,
            number=number,
            state="close",
            created_at=self._clock.now(),
        )

    def _webhook_row(self, instance: Instance, wanted: Mapping[str, Json]) -> Mapping[str, Json]:
        if not str(wanted["url"]).startswith(("http://", "https://")):
            raise Refused(HTTPStatus.BAD_REQUEST, ['Invalid "url" property'])
        now = self._clock.now().isoformat()
        before = instance.webhook or {"id": self._ids.new(), "createdAt": now}
        return {
            "id": before["id"],
            "url": wanted["url"],
            "headers": wanted.get("headers"),
            "enabled": wanted["enabled"],
            "events": (wanted.get("events") or bodies.EVENTS) if wanted["enabled"] else (),
            "webhookByEvents": wanted.get("byEvents", False),
            "webhookBase64": wanted.get("base64", False),
            "createdAt": before["createdAt"],
            "updatedAt": now,
            "instanceId": instance.id,
        }

    async def _type_for(self, delay: Json) -> None:
        """The reply is held while the gateway pretends to type; the message goes out at the end of it."""
        if isinstance(delay, int) and delay > 0:
            await self._clock.sleep(delay / 1000)

    def _message(self, instance: Instance, jid: str, text: str) -> Mapping[str, Json]:
        return {
            "key": {"remoteJid": jid, "fromMe": True, "id": "3EB0" + self._ids.new().replace("-", "").upper()},
            "pushName": "Você",
            "status": "PENDING",
            "message": {"conversation": text},
            "contextInfo": None,
            "messageType": "conversation",
            "messageTimestamp": int(self._clock.now().timestamp()),
            "instanceId": instance.id,
            "source": "unknown",
        }


def _key(request: Request) -> str | None:
    return request.headers.get("apikey")


def _unauthorized() -> Refused:
    return Refused(HTTPStatus.UNAUTHORIZED, HTTPStatus.UNAUTHORIZED.phrase)


async def _body(request: Request) -> Mapping[str, Json]:
    """An empty body is an empty object, as the original reads it."""
    if not await request.body():
        return {}
    try:
        return await json_object(request)
    except NotAnObject:
        raise Refused(HTTPStatus.BAD_REQUEST, ["The body is not a JSON object"]) from None


def _check(body: Mapping[str, Json], schema: Schema) -> None:
    if wrong := complaints(body, schema):
        # A list in a list: every other refusal has its sentences one level higher.
        raise Refused(HTTPStatus.BAD_REQUEST, [wrong])


def _contact(number: str) -> dict[str, Json]:
    jid = jid_of(number)
    return {"jid": jid, "exists": is_on_whatsapp(jid), "number": number}


def _text(body: Mapping[str, Json], name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) and value else None


def _positive(value: Json, otherwise: int) -> int:
    return value if isinstance(value, int) and value > 0 else otherwise


def _matches(message: Mapping[str, Json], query: Mapping[str, Json]) -> bool:
    """By parts of the message's key. A false or empty part asks for nothing, as in the original."""
    where = query.get("where")
    wanted = where.get("key") if isinstance(where, Mapping) else None
    key = message["key"]
    assert isinstance(key, Mapping)
    return not isinstance(wanted, Mapping) or all(
        key[name] == value for name, value in wanted.items() if name in bodies.MESSAGE_KEY and value
    )


def _stored(message: Mapping[str, Json]) -> Mapping[str, Json]:
    """As a row of the gateway's own database: its status lives in the updates, of which there are none yet."""
    key = message["key"]
    assert isinstance(key, Mapping)
    shown = {name: value for name, value in message.items() if name != "status"}
    return {"id": key["id"], **shown, "MessageUpdate": []}


def _created(instance: Instance, asked: Mapping[str, Json]) -> Mapping[str, Json]:
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


def _row(instance: Instance) -> Mapping[str, Json]:
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
        "disconnectionReasonCode": None,
        "disconnectionObject": None,
        "disconnectionAt": None,
        "createdAt": instance.created_at.isoformat(),
        "updatedAt": instance.created_at.isoformat(),
        "Chatwoot": None,
        "Proxy": None,
        "Setting": None,
        "_count": {"Message": len(instance.messages), "Contact": 0, "Chat": 0},
    }


def _envelope(status: HTTPStatus, message: Json) -> Response:
    return JSONResponse({"status": status, "error": status.phrase, "response": {"message": message}}, status)


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _envelope(error.status, error.message)


async def _no_route(request: Request, error: Exception) -> Response:
    """A known path asked with another method is an unknown route there, not a 405."""
    path = request.url.path.removeprefix(request.scope["root_path"])
    return _envelope(HTTPStatus.NOT_FOUND, [f"Cannot {request.method} {path}"])


async def _breakdown(request: Request, error: Exception) -> Response:
    broken = HTTPStatus.INTERNAL_SERVER_ERROR
    return _envelope(broken, broken.phrase)
