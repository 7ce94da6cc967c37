"""Send one request to the gateway with a total deadline and a size limit for the answer. Redirects and retries are
disabled.
"""

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from typing import TypeAlias
from urllib.parse import quote

import httpx2

from app.integrations.http import ANSWER_TOO_LONG, NO_ANSWER_WITHIN, open_client
from batuta.errors import DeadlineExceeded
from batuta.kernel import Clock, Json, dataclass, with_timeout

LARGEST_ANSWER = 4 * 1024 * 1024
CONNECT_SECONDS = 5.0
# Errors that prove that the request was not sent.
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer from the gateway. ``body`` is None if it is not JSON."""

    status: int
    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Silence:
    """A request that got no response. ``never_sent`` means that the request never left this process."""

    why: str
    never_sent: bool


Reply: TypeAlias = Answer | Silence


class Gateway:
    def __init__(self, base_url: str, key: str, clock: Clock) -> None:
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._clock = clock
        self._client: httpx2.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"Gateway({self._base_url!r})"  # without the key

    async def call(self, method: str, path: str, *, limit: timedelta, body: Mapping[str, Json] | None = None) -> Reply:
        try:
            return await with_timeout(limit, self._call(method, path, body), self._clock, f"{method} {path}")
        except DeadlineExceeded:
            return Silence(NO_ANSWER_WITHIN(limit=limit), never_sent=False)
        except NEVER_SENT as error:
            return Silence(type(error).__name__, never_sent=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            return Silence(type(error).__name__, never_sent=isinstance(error, httpx2.InvalidURL))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _call(self, method: str, path: str, body: Mapping[str, Json] | None) -> Reply:
        url, headers = f"{self._base_url}{path}", {"apikey": self._key}
        async with self._open().stream(method, url, headers=headers, json=body) as response:
            read = bytearray()
            async for piece in response.aiter_bytes():
                read += piece
                if len(read) > LARGEST_ANSWER:
                    return Silence(ANSWER_TOO_LONG(), never_sent=False)
            return Answer(response.status_code, _parse(bytes(read)), dict(response.headers))

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            # There is no timeout per read, because an answer in small pieces would never reach it. The deadline around
            # the call applies instead.
            timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)
            limits = httpx2.Limits(max_connections=50, max_keepalive_connections=10)
            self._client = open_client(timeout, limits)
        return self._client


def path_of(*parts: str) -> str:
    """Join the segments of a path. Each segment is quoted, so that a slash in a name does not split the segment."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _parse(body: bytes) -> Json:
    try:
        parsed: Json = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return parsed
