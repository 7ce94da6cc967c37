"""Simulated WhatsApp gateway: the part of Evolution API v2 (2.3.7) that Julia uses.

The paths, the order of the checks and the shape of the errors follow the original, including its oddities, so that a
client that works here works with the original. Nothing is sent outside this machine. An accepted message is recorded
(``vida``), its acknowledgements and replies are posted to the instance's webhook (``carteiro``), and ``controle`` sets
the faults of the gateway. Pairing succeeds two seconds after the code is requested. Media are not simulated.
"""

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from batuta.kernel import Clock, Ids, Json
from simulador.body import NotAnObject, json_object
from simulador.comportamento import Chance, Comportamento
from simulador.evolution import bodies
from simulador.evolution.carteiro import Carteiro
from simulador.evolution.controle import Controle
from simulador.evolution.jid import is_on_whatsapp, jid_of, lookup_order
from simulador.evolution.rows import CLIENT, Instance, created, group_row, matches, positive, row, stored
from simulador.evolution.schema import Schema, complaints
from simulador.evolution.vida import FINAL_CODES, GROUP_NAMES, Answer, Falatorio, Vida, key_of
from simulador.recebidos import Recebidos

# API key of every instance. It protects nothing real, so the start-up output prints it.
KEY = "simulador"
DEFAULT_INSTANCE = "julia-sim"
DEFAULT_NUMBER = "5511900000000"
VERSION = "2.3.7"
INTEGRATIONS = ("WHATSAPP-BAILEYS", "WHATSAPP-BUSINESS", "EVOLUTION")
PAGE_LENGTH = 50
PAIRED_AFTER = 2.0


class Refused(Exception):
    """A response with a status of 400 or more, in the same envelope as the original's."""

    def __init__(self, status: HTTPStatus, message: Json, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


class Unlicensed(Exception):
    """Raised to answer as gateway versions 2.4 and later do before their licence is activated."""


class CutOff(Response):
    """A response that breaks the connection: its length header announces more bytes than the body has."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"key"', "more_body": True})


class Evolution:
    name = "evolution"
    path = "/evolution"
    line = f"WhatsApp gateway, Evolution API {VERSION}: header apikey {KEY}, open instance {DEFAULT_INSTANCE}"

    def __init__(
        self,
        clock: Clock,
        *,
        seed: int = 0,
        at_rest: Comportamento | None = None,
        webhook: Mapping[str, Json] | None = None,
        instances: Sequence[str] = (),
    ) -> None:
        """Create the simulated gateway. ``webhook`` is set on the instances that exist from the start. ``instances``
        contains the names of the instances that exist in addition to the default one.
        """
        self.recebidos = Recebidos(clock)
        self._clock = clock
        self._ids = Ids(clock)
        self._chance = Chance(seed)
        self.carteiro = Carteiro(clock, self._chance, lambda: self.controle.comportamento)
        self.vida = Vida(clock, self._chance, self.carteiro, lambda: self.controle.comportamento)
        self.controle = Controle(self.vida, lambda: self._instances, at_rest or Comportamento())
        self._instances: dict[str, Instance] = {}
        for n, name in enumerate((DEFAULT_INSTANCE, *instances)):
            made = self._new_instance(name, INTEGRATIONS[0], number=str(int(DEFAULT_NUMBER) + 900_000 * n))
            made.state = "open"
            made.webhook = None if webhook is None else self._webhook_row(made, webhook)
            self._instances[name] = made
        self.falatorio = Falatorio(
            self.vida, clock, lambda: self.controle.comportamento, lambda: list(self._instances.values())
        )

    def mount(self) -> Mount:
        routes = [
            Route("/", self.welcome),
            Route("/instance/create", self.create, methods=["POST"]),
            Route("/instance/fetchInstances", self.fetch_instances),
            Route("/instance/connectionState/{instance}", self.connection_state),
            Route("/instance/connect/{instance}", self.connect),
            Route("/instance/restart/{instance}", self.restart, methods=["POST"]),
            Route("/instance/logout/{instance}", self.logout, methods=["DELETE"]),
            Route("/instance/delete/{instance}", self.delete, methods=["DELETE"]),
            Route("/message/sendText/{instance}", self.send_text, methods=["POST"]),
            Route("/chat/whatsappNumbers/{instance}", self.whatsapp_numbers, methods=["POST"]),
            Route("/chat/findMessages/{instance}", self.find_messages, methods=["POST"]),
            Route("/group/findGroupInfos/{instance}", self.find_group),
            Route("/webhook/set/{instance}", self.set_webhook, methods=["POST"]),
            Route("/webhook/find/{instance}", self.find_webhook),
        ]
        handlers = {Refused: _refusal, Unlicensed: _unlicensed, 404: _no_route, 405: _no_route, 500: _breakdown}
        return Mount(self.path, Starlette(routes=routes, exception_handlers=handlers))

    def forget(self) -> None:
        """Delete the record of received calls. The instances and their messages stay, because they are the state of the
        simulated gateway.
        """
        self.recebidos.clear()

    async def welcome(self, request: Request) -> Response:
        index = str(request.base_url)  # the answer also contains this address, as that of the manual
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
        self._require_licence()
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
        return JSONResponse(created(instance, body), HTTPStatus.CREATED)

    async def fetch_instances(self, request: Request) -> Response:
        self._require_licence()
        asked = request.query_params
        # A request with the token of one instance shows only that instance, whatever the query.
        name = asked.get("instanceName") if _key(request) == KEY else self._owner_of(_key(request)).name
        if name and name not in self._instances:
            raise Refused(HTTPStatus.NOT_FOUND, [f'Instance "{name}" not found'])
        found = [
            row(instance)
            for instance in self._instances.values()
            if instance.name == (name or instance.name)
            and instance.id == (asked.get("instanceId") or instance.id)
            and instance.number == (asked.get("number") or instance.number)
        ]
        return JSONResponse(found)

    async def connection_state(self, request: Request) -> Response:
        instance = self._instance_of(request)
        return JSONResponse({"instance": {"instanceName": instance.name, "state": instance.state}})

    async def connect(self, request: Request) -> Response:
        """Return a pairing code. The simulated phone scans it, unless the number is banned."""
        instance = self._instance_of(request)
        if instance.state == "open":
            return await self.connection_state(request)
        self.vida.connection(instance, "connecting")
        if instance.code not in FINAL_CODES - {HTTPStatus.UNAUTHORIZED}:
            self.carteiro.later(PAIRED_AFTER, lambda: self.vida.connection(instance, "open"))
        return JSONResponse({"pairingCode": "SIMULADO", "code": "simulado", "base64": None, "count": 1})

    async def restart(self, request: Request) -> Response:
        instance = self._instance_of(request)
        return JSONResponse({"instance": {"instanceName": instance.name, "state": instance.state}})

    async def logout(self, request: Request) -> Response:
        instance = self._instance_of(request)
        if instance.state == "close":
            raise Refused(HTTPStatus.BAD_REQUEST, [f'The "{instance.name}" instance is not connected'])
        self.vida.connection(instance, "close", HTTPStatus.UNAUTHORIZED)
        return JSONResponse(_success("Instance logged out"))

    async def delete(self, request: Request) -> Response:
        del self._instances[self._instance_of(request).name]
        return JSONResponse(_success("Instance deleted"))

    async def send_text(self, request: Request) -> Response:
        try:
            return await self._send_text(request)
        except Refused as error:
            self.vida.refused(str(request.path_params["instance"]), error.status)
            raise

    async def _send_text(self, request: Request) -> Response:
        instance = self._instance_of(request)
        body = await _body(request)
        _check(body, bodies.SEND_TEXT)
        number, text = str(body["number"]), str(body["text"])
        if not text.strip():
            raise Refused(HTTPStatus.BAD_REQUEST, ["Text is required"])
        how = self.controle.comportamento
        if instance.name in how.restricted:
            raise Refused(HTTPStatus.BAD_REQUEST, HTTPStatus.BAD_REQUEST.phrase)
        if how.too_many:
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "Too Many Requests", {"Retry-After": str(how.too_many)})
        if instance.state != "open" or how.connection_closed:
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "Connection Closed")
        contact = self._contact(number)
        if not contact["exists"]:
            raise Refused(HTTPStatus.BAD_REQUEST, [contact])
        await self._type_for(body.get("delay"))
        message = self._message(instance, jid_of(number), text)
        lot = self._chance.of("answer", key_of(message)[0])
        answer: Answer = (
            "cut" if lot < how.lost_answers else "500" if lot < how.lost_answers + how.broken_answers else "answered"
        )
        self.recebidos.record(instance=instance.name, number=number, text=text, message=message)
        self.vida.left(instance, number, message, answer)
        await self._clock.sleep(how.slow_seconds)
        if answer == "500":
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.INTERNAL_SERVER_ERROR.phrase)
        return CutOff() if answer == "cut" else JSONResponse(message, HTTPStatus.CREATED)

    async def whatsapp_numbers(self, request: Request) -> Response:
        self._instance_of(request)
        body = await _body(request)
        if wrong := complaints(body, bodies.NUMBERS):
            # This is the only route that returns the error without the envelope.
            bad = HTTPStatus.BAD_REQUEST
            return JSONResponse({"status": bad, "error": bad.phrase, "message": [wrong]}, bad)
        numbers = body["numbers"]
        assert isinstance(numbers, list)
        contacts = [self._contact(number) for number in numbers]
        return JSONResponse(sorted(contacts, key=lambda contact: lookup_order(str(contact["jid"]))))

    async def find_messages(self, request: Request) -> Response:
        instance = self._instance_of(request)
        body = await _body(request)
        _check(body, bodies.FIND_MESSAGES)
        page, length = positive(body.get("page"), 1), positive(body.get("offset"), PAGE_LENGTH)
        found = [message for message in reversed(instance.messages) if matches(message, body)]
        return JSONResponse(
            {
                "messages": {
                    "total": len(found),
                    "pages": math.ceil(len(found) / length),
                    "currentPage": page,
                    "records": [stored(instance, message) for message in found[(page - 1) * length : page * length]],
                }
            }
        )

    async def find_group(self, request: Request) -> Response:
        instance, jid = self._instance_of(request), request.query_params.get("groupJid", "")
        if not jid:
            raise Refused(
                HTTPStatus.BAD_REQUEST, ["The group id needs to be informed in the query", 'ex: "groupJid=120362@g.us"']
            )
        if instance.state != "open":
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "Connection Closed")
        if jid not in GROUP_NAMES:
            raise Refused(HTTPStatus.NOT_FOUND, ["Error fetching group", "item-not-found"])
        return JSONResponse(group_row(jid, GROUP_NAMES[jid], instance))

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

    def _require_licence(self) -> None:
        if self.controle.comportamento.licence:
            raise Unlicensed

    def _contact(self, number: str) -> dict[str, Json]:
        jid = jid_of(number)
        unknown = {jid_of(each) for each in self.controle.comportamento.unknown_numbers}
        return {"jid": jid, "exists": is_on_whatsapp(jid) and jid not in unknown, "number": number}

    def _instance_of(self, request: Request) -> Instance:
        """Return the instance of the request. The name is checked before the key, so an unknown instance gives 404 even
        without a key.
        """
        self._require_licence()
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
        """Wait while the gateway simulates typing. The message is sent after this wait."""
        if isinstance(delay, int) and delay > 0:
            await self._clock.sleep(delay / 1000)

    def _message(self, instance: Instance, jid: str, text: str) -> Mapping[str, Json]:
        return {
            "key": {"remoteJid": jid, "fromMe": True, "id": self.vida.new_id(instance, jid)},
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
    """Read the JSON body. An empty body is an empty object, as in the original."""
    if not await request.body():
        return {}
    try:
        return await json_object(request)
    except NotAnObject:
        raise Refused(HTTPStatus.BAD_REQUEST, ["The body is not a JSON object"]) from None


def _check(body: Mapping[str, Json], schema: Schema) -> None:
    if wrong := complaints(body, schema):
        # Schema errors are a list inside a list. All other errors have their sentences one level higher.
        raise Refused(HTTPStatus.BAD_REQUEST, [wrong])


def _text(body: Mapping[str, Json], name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) and value else None


def _success(message: str) -> Mapping[str, Json]:
    return {"status": "SUCCESS", "error": False, "response": {"message": message}}


def _envelope(status: HTTPStatus, message: Json, headers: Mapping[str, str] | None = None) -> Response:
    content = {"status": status, "error": status.phrase, "response": {"message": message}}
    return JSONResponse(content, status, headers=headers)


async def _unlicensed(request: Request, error: Exception) -> Response:
    content = {"error": "service not activated", "code": "LICENSE_REQUIRED", "message": "simulado"}
    return JSONResponse(content, HTTPStatus.SERVICE_UNAVAILABLE)


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _envelope(error.status, error.message, error.headers)


async def _no_route(request: Request, error: Exception) -> Response:
    """Return 404 if a known path does not accept the method of the request. The original does the same, although 405 is
    usual.
    """
    path = request.url.path.removeprefix(request.scope["root_path"])
    return _envelope(HTTPStatus.NOT_FOUND, [f"Cannot {request.method} {path}"])


async def _breakdown(request: Request, error: Exception) -> Response:
    broken = HTTPStatus.INTERNAL_SERVER_ERROR
    return _envelope(broken, broken.phrase)
