"""Client for one structured query to a language model: instruction, data and schema. It uses no tools, no conversation
history and no retries.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import httpx2

from app.contexts.llm.service import Calou, Respondeu, Resposta
from app.integrations.http import ANSWER_TOO_LONG, NO_ANSWER_WITHIN, UNKNOWN_FORMAT, open_client
from batuta.errors import DeadlineExceeded
from batuta.guards import Effect, EffectReport, effect_of_status
from batuta.kernel import Clock, Json, with_timeout

WITHIN: Final = timedelta(seconds=30)
LARGEST: Final = 256 * 1024
MOST_TOKENS: Final = 3000
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class ChatClient:
    def __init__(self, base_url: str, key: str, model: str, clock: Clock) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._key = key
        self._model = model
        self._clock = clock
        # A pooled HTTP client checks all its connections at each call. Therefore each client here has one connection
        # and makes one call at a time.
        self._lines: list[httpx2.AsyncClient] = []
        self._free: list[httpx2.AsyncClient] = []

    def __repr__(self) -> str:
        return f"ChatClient({self._url!r}, {self._model!r})"  # without the key

    async def perguntar(self, instrucao: str, dados: str, schema: Mapping[str, Any]) -> Resposta:
        try:
            return await with_timeout(WITHIN, self._ask(instrucao, dados, schema), self._clock, "the model")
        except DeadlineExceeded:
            return Calou(EffectReport(Effect.TIMED_OUT, NO_ANSWER_WITHIN(limit=WITHIN)))
        except NEVER_SENT as error:
            return Calou(EffectReport(Effect.UNREACHED, type(error).__name__))
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            return Calou(EffectReport(Effect.BROKE, type(error).__name__))

    async def close(self) -> None:
        lines, self._lines, self._free = self._lines, [], []
        for line in lines:
            await line.aclose()

    async def _ask(self, instrucao: str, dados: str, schema: Mapping[str, Any]) -> Resposta:
        body = {
            "model": self._model,
            "temperature": 0,
            "max_tokens": MOST_TOKENS,
            "messages": [{"role": "system", "content": instrucao}, {"role": "user", "content": dados}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "leitura", "strict": True, "schema": schema},
            },
        }
        headers = {"Authorization": f"Bearer {self._key}"}
        async with self._line() as line, line.stream("POST", self._url, headers=headers, json=body) as response:
            read = bytearray()
            async for piece in response.aiter_bytes():
                read += piece
                if len(read) > LARGEST:
                    return Calou(EffectReport(Effect.BROKE, ANSWER_TOO_LONG()))
        if response.status_code != 200:
            retry_at = _retry_at(response.headers.get("retry-after"), self._clock.now())
            return Calou(EffectReport(effect_of_status(response.status_code), f"HTTP {response.status_code}", retry_at))
        return _answer(bytes(read))

    @asynccontextmanager
    async def _line(self) -> AsyncIterator[httpx2.AsyncClient]:
        """Yield the most recently released HTTP client. If all clients are busy, open another, so that no
        query waits.
        """
        if not self._free:
            self._lines.append(self._open())
            self._free.append(self._lines[-1])
        line = self._free.pop()
        try:
            yield line
        finally:
            self._free.append(line)

    def _open(self) -> httpx2.AsyncClient:
        # There is no timeout per read, because an answer in small pieces would never reach it. The deadline around the
        # call applies instead.
        timeout = httpx2.Timeout(None, connect=5.0, pool=5.0)
        return open_client(timeout)


def _answer(read: bytes) -> Resposta:
    match _parse(read):
        case {"choices": [{"message": {"content": str(content)}}, *_], **rest}:
            usage = rest.get("usage")
            tokens = usage if isinstance(usage, Mapping) else {}
            return Respondeu(_document(content), _count(tokens, "prompt_tokens"), _count(tokens, "completion_tokens"))
        case _:
            return Calou(EffectReport(Effect.BROKE, UNKNOWN_FORMAT()))


def _document(content: str) -> Json:
    """Return the JSON in the model's answer, which may have a code fence or prose around it. Return None if there is no
    JSON.
    """
    start, end = content.find("{"), content.rfind("}")
    return _parse(content[start : end + 1]) if 0 <= start < end else None


def _parse(text: str | bytes) -> Json:
    try:
        parsed: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed


def _count(tokens: Mapping[Any, Any], name: str) -> int:
    value = tokens.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else 0


def _retry_at(said: str | None, now: datetime) -> datetime | None:
    return now + timedelta(seconds=int(said)) if said and said.isdigit() and int(said) <= 86_400 else None
