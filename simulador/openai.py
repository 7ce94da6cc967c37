"""Simulated API of a language model: the structured chat completions that Julia uses, with configured answers."""

from collections import deque

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from batuta.kernel import Clock, Json, dumps
from simulador.body import NotAnObject, json_object
from simulador.recebidos import Recebidos

LONGEST_THOUGHT = 600
NOTHING: dict[str, Json] = {"eh_oferta": False, "confianca": 0.9, "vagas": []}


class OpenAI:
    name = "openai"
    path = "/openai"
    line = "OpenAI-compatible: POST /openai/v1/chat/completions; PUT /openai/respostas sets the next answers"

    def __init__(self, clock: Clock) -> None:
        self.recebidos = Recebidos(clock)
        self._clock = clock
        self._next: deque[dict[str, Json]] = deque()

    def mount(self) -> Mount:
        routes = [
            Route("/v1/chat/completions", self.complete, methods=["POST"]),
            Route("/respostas", self.prepare, methods=["PUT"]),
        ]
        return Mount(self.path, routes=routes)

    def forget(self) -> None:
        self.recebidos.clear()
        self._next.clear()

    async def prepare(self, request: Request) -> Response:
        """Set the answers, each ``{"status": 200, "content": …, "seconds": 0}``. The last answer repeats.

        ``content`` is the answer as text or JSON. ``seconds`` is the delay before the answer.
        """
        try:
            body = await json_object(request)
        except NotAnObject:
            return _error(400, "the body must be a JSON object")
        listed = body.get("respostas")
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            return _error(400, "respostas must be a list of objects")
        self._next = deque(each for each in listed if isinstance(each, dict))
        return Response(status_code=204)

    async def complete(self, request: Request) -> Response:
        if not request.headers.get("authorization", "").startswith("Bearer "):
            return _error(401, "the API key is missing")
        try:
            body = await json_object(request)
        except NotAnObject:
            return _error(400, "the body must be a JSON object")
        if not isinstance(body.get("messages"), list) or not isinstance(body.get("model"), str):
            return _error(400, "model and messages are required")
        self.recebidos.record(body=dict(body))
        behaviour = self._next_behaviour()
        seconds = behaviour.get("seconds", 0)
        if isinstance(seconds, int | float) and 0 < seconds <= LONGEST_THOUGHT:
            await self._clock.sleep(seconds)
        status = behaviour.get("status", 200)
        if isinstance(status, int) and status != 200:
            return _error(status, "the prepared error")
        content = behaviour.get("content", NOTHING)
        said = content if isinstance(content, str) else dumps(content)
        return JSONResponse(
            {
                "id": "chatcmpl-simulado",
                "object": "chat.completion",
                "model": body["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}],
                "usage": {"prompt_tokens": len(dumps(body)) // 4, "completion_tokens": max(1, len(said) // 4)},
            }
        )

    def _next_behaviour(self) -> dict[str, Json]:
        if not self._next:
            return {}
        return self._next[0] if len(self._next) == 1 else self._next.popleft()


def _error(status: int, message: str) -> Response:
    headers = {"Retry-After": "30"} if status == 429 else {}
    return JSONResponse({"error": {"message": message, "type": "simulado", "code": status}}, status, headers=headers)
