"""Simulated Slack incoming webhooks. As in the original, responses are plain words instead of JSON. Every path is a
webhook.
"""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from batuta.kernel import Clock
from simulador.body import NotAnObject, json_object
from simulador.recebidos import Recebidos

CONTENT = frozenset({"text", "blocks", "attachments"})


class Slack:
    name = "slack"
    path = "/slack"
    line = "Slack incoming webhook: POST JSON to any path below"

    def __init__(self, clock: Clock) -> None:
        self.recebidos = Recebidos(clock)

    def mount(self) -> Mount:
        return Mount(self.path, routes=[Route("/{webhook:path}", self.incoming, methods=["POST"])])

    def forget(self) -> None:
        self.recebidos.clear()

    async def incoming(self, request: Request) -> Response:
        try:
            payload = await json_object(request)
        except NotAnObject:
            return PlainTextResponse("invalid_payload", 400)
        if CONTENT.isdisjoint(payload):
            return PlainTextResponse("no_text", 400)
        self.recebidos.record(webhook=request.path_params["webhook"], payload=payload)
        return PlainTextResponse("ok")
