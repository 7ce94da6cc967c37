"""Routes that control the simulated WhatsApp, for tests, demonstrations and developers. The original does not have
these routes.

GET    /controle/evolution                      the current behaviour
PATCH  /controle/evolution                      change it: {"lost_answers": 0.1, "reply_share": 0.3}
DELETE /controle/evolution                      restore the default behaviour
GET    /controle/evolution/recibos?depois=N     messages that were sent, in order, after receipt N
GET    /controle/evolution/recusas              the latest rejected sends
POST   /controle/evolution/instancias/{name}    {"state": "open|connecting|close", "code": 403} or {"flap": 5, "every": 0.5}
POST   /controle/evolution/mensagens            a person writes: {"instance", "number", "text", "hidden"}
POST   /controle/evolution/grupos               a group message: {"instance", "messages": 3} or {"instance", "text", "group"}
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import islice

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from batuta.kernel import Json
from simulador.body import NotAnObject, json_object
from simulador.comportamento import Comportamento, Unheard
from simulador.evolution.rows import Instance
from simulador.evolution.vida import GROUPS, Vida

PAGE = 5_000
MOST_AT_ONCE = 1_000


class Controle:
    def __init__(self, vida: Vida, instances: Callable[[], Mapping[str, Instance]], at_rest: Comportamento) -> None:
        self.comportamento = at_rest
        self._at_rest = at_rest
        self._vida = vida
        self._instances = instances

    def mount(self) -> Mount:
        routes = [
            Route("/", self.show),
            Route("/", self.change, methods=["PATCH"]),
            Route("/", self.rest, methods=["DELETE"]),
            Route("/recibos", self.receipts),
            Route("/recusas", self.refusals),
            Route("/instancias/{instance}", self.connection, methods=["POST"]),
            Route("/mensagens", self.message, methods=["POST"]),
            Route("/grupos", self.group, methods=["POST"]),
        ]
        return Mount("/controle/evolution", Starlette(routes=routes, exception_handlers={HTTPException: _refusal}))

    async def show(self, request: Request) -> Response:
        return JSONResponse(self.comportamento.shown())

    async def change(self, request: Request) -> Response:
        try:
            self.comportamento = self.comportamento.changed(await _body(request))
        except Unheard as error:
            raise HTTPException(400, str(error)) from None
        return JSONResponse(self.comportamento.shown())

    async def rest(self, request: Request) -> Response:
        self.comportamento = self._at_rest
        return JSONResponse(self.comportamento.shown())

    async def receipts(self, request: Request) -> Response:
        after = request.query_params.get("depois", "0")
        if not after.isdecimal():
            raise HTTPException(400, "depois must be the number of a receipt")
        left = (each for each in self._vida.receipts if each.n > int(after))
        return JSONResponse([asdict(each) for each in islice(left, PAGE)])

    async def refusals(self, request: Request) -> Response:
        return JSONResponse([asdict(each) for each in self._vida.refusals])

    async def connection(self, request: Request) -> Response:
        body, instance = await _body(request), self._instance(request.path_params["instance"])
        match body:
            case {"flap": int(times)}:
                every = body.get("every", 1.0)
                if not 0 < times <= MOST_AT_ONCE or not isinstance(every, int | float) or every < 0:
                    raise HTTPException(400, "flap must be a number of times, and every a number of seconds")
                self._vida.flap(instance, times, float(every))
            case {"state": ("open" | "connecting" | "close") as state}:
                code = body.get("code")
                self._vida.connection(instance, state, code if isinstance(code, int) else None)
            case _:
                raise HTTPException(400, "send a state (open, connecting, or close with a code) or flap")
        return JSONResponse({"instance": instance.name, "state": instance.state})

    async def message(self, request: Request) -> Response:
        body = await _body(request)
        match body:
            case {"number": str(number), "text": str(text)}:
                hidden = body.get("hidden") is True
                id = self._vida.writes(self._instance(body.get("instance")), number, text, hidden=hidden)
            case _:
                raise HTTPException(400, "send the sender (number) and the message (text)")
        return JSONResponse({"id": id}, 201)

    async def group(self, request: Request) -> Response:
        body = await _body(request)
        instance, group, text = self._instance(body.get("instance")), body.get("group"), body.get("text")
        times = body.get("messages", 1)
        if not isinstance(times, int) or not 0 < times <= MOST_AT_ONCE:
            raise HTTPException(400, f"messages must be a number up to {MOST_AT_ONCE}")
        ids = [
            self._vida.group_talks(
                instance,
                text if isinstance(text, str) else None,
                group if isinstance(group, str) else GROUPS[n % len(GROUPS)],
            )
            for n in range(times)
        ]
        return JSONResponse({"ids": ids}, 201)

    def _instance(self, name: Json) -> Instance:
        known = self._instances()
        if name is None and known:
            return next(iter(known.values()))
        if not isinstance(name, str) or name not in known:
            raise HTTPException(404, f"no instance has this name; the instances are {', '.join(known)}")
        return known[name]


async def _body(request: Request) -> Mapping[str, Json]:
    try:
        return await json_object(request)
    except NotAnObject:
        raise HTTPException(400, "the body must be a JSON object") from None


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    content = {"status": error.status_code, "title": error.detail, "detail": "GET / lists the simulated services"}
    return JSONResponse(content, error.status_code, media_type="application/problem+json")
