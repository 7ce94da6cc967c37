"""Simulated dead man's switch. The real service raises an alarm when the pings stop; the simulated service only counts
the pings.
"""

from collections import Counter

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from batuta.kernel import Clock
from simulador.recebidos import Recebidos


class Deadman:
    name = "deadman"
    path = "/ping"
    line = "Dead man's switch: GET, POST or HEAD /ping/NAME, counted per name"

    def __init__(self, clock: Clock) -> None:
        self.recebidos = Recebidos(clock)
        self._counts: Counter[str] = Counter()

    def mount(self) -> Mount:
        return Mount(self.path, routes=[Route("/{name}", self.ping, methods=["GET", "POST", "HEAD"])])

    def forget(self) -> None:
        self.recebidos.clear()
        self._counts.clear()

    async def ping(self, request: Request) -> Response:
        name = request.path_params["name"]
        self._counts[name] += 1
        self.recebidos.record(name=name, method=request.method, count=self._counts[name])
        return JSONResponse({"name": name, "count": self._counts[name]})
