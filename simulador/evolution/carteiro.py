"""Deliver the simulated gateway's events to the webhooks, with retries. As configured, some events are late, lost or
delivered twice.
"""

import asyncio
import base64
import hashlib
import heapq
import hmac
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import timedelta
from itertools import count
from zoneinfo import ZoneInfo

import httpx2

from batuta import Again, Idle
from batuta.kernel import Clock, Json, dataclass, dumps
from batuta.loops import Pace, Wakeup
from simulador.comportamento import Chance, Comportamento
from simulador.evolution.jid import jid_of
from simulador.evolution.rows import Instance

ATTEMPTS = 10
FIRST_REST, LONGEST_REST = 5.0, 300.0
POST_TIMEOUT = 30.0
BATCH = 50
# Statuses after which the original gateway does not retry.
NOT_AGAIN = frozenset({400, 401, 403, 404, 422})
# Time zone of the original's timestamps, which are wrongly labelled as UTC.
WALL = ZoneInfo("America/Sao_Paulo")


@dataclass(order=True)
class Due:
    at: float
    order: int
    happens: Callable[[], None] | None = field(compare=False, default=None)
    post: "Post | None" = field(compare=False, default=None)


@dataclass(frozen=True, slots=True)
class Post:
    url: str
    headers: Mapping[str, str]
    jwt_key: str | None
    body: bytes
    attempt: int = 1


class Carteiro:
    """Loop that delivers due events to webhooks."""

    name = "carteiro"

    def __init__(self, clock: Clock, chance: Chance, how: Callable[[], Comportamento]) -> None:
        self.wakeup = Wakeup()
        self.posted = 0
        self._clock = clock
        self._chance = chance
        self._how = how
        self._due: list[Due] = []
        self._order = count()
        self._numbers = count(1)
        self._client: httpx2.AsyncClient | None = None

    def later(self, seconds: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._due, Due(self._clock.monotonic() + seconds, next(self._order), happens=happens))
        self.wakeup.set()

    def tell(self, instance: Instance, event: str, data: Mapping[str, Json]) -> None:
        """Queue an event for the instance's webhook, if the webhook subscribes to this event."""
        webhook, n = instance.webhook, _what(event, data) or next(self._numbers)
        if webhook is None or not webhook["enabled"] or event.upper().replace(".", "_") not in _list(webhook["events"]):
            return
        how = self._how()
        if self._chance.of("lost", n) < how.lost:
            return
        post = self._post(instance, webhook, event, data)
        rest = 5 + 25 * self._chance.of("how late", n) if self._chance.of("late", n) < how.late else 0.0
        self._push(rest, post)
        if self._chance.of("twice", n) < how.duplicated:
            self._push(rest + 3 * self._chance.of("second", n), post)

    def is_due(self) -> bool:
        return bool(self._due) and self._due[0].at <= self._clock.monotonic()

    async def tick(self) -> Pace:
        now = self._clock.monotonic()
        due: list[Due] = []
        while self._due and self._due[0].at <= now and len(due) < BATCH:
            due.append(heapq.heappop(self._due))
        for each in due:
            if each.happens is not None:
                each.happens()
        await asyncio.gather(*(self._deliver(each.post) for each in due if each.post is not None))
        if not self._due:
            return Idle()
        rest = self._due[0].at - self._clock.monotonic()
        return Again() if rest <= 0 else Idle(self._clock.now() + timedelta(seconds=rest))

    async def drain(self, grace: timedelta) -> None:
        """Drop the events that have not been delivered. The original gateway also keeps its retries in memory and loses
        them on shutdown.
        """
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _push(self, seconds: float, post: Post) -> None:
        heapq.heappush(self._due, Due(self._clock.monotonic() + seconds, next(self._order), post=post))
        self.wakeup.set()

    async def _deliver(self, post: Post) -> None:
        if self._client is None:
            self._client = httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=POST_TIMEOUT)
        headers = {**post.headers, "Content-Type": "application/json"}
        if post.jwt_key is not None:
            headers["Authorization"] = f"Bearer {jwt(post.jwt_key, int(self._clock.now().timestamp()))}"
        self.posted += 1
        try:
            answer = await self._client.post(post.url, content=post.body, headers=headers)
            is_taken = answer.status_code < 300 or answer.status_code in NOT_AGAIN
        except httpx2.HTTPError:
            is_taken = False
        if not is_taken and post.attempt < ATTEMPTS:
            rest = min(FIRST_REST * 2 ** (post.attempt - 1), LONGEST_REST)
            again = Post(post.url, post.headers, post.jwt_key, post.body, post.attempt + 1)
            self._push(rest * (0.8 + 0.4 * self._chance.of("rest", post.attempt)), again)

    def _post(self, instance: Instance, webhook: Mapping[str, Json], event: str, data: Mapping[str, Json]) -> Post:
        url, headers = str(webhook["url"]), webhook.get("headers")
        given = {str(k): str(v) for k, v in headers.items()} if isinstance(headers, Mapping) else {}
        if webhook.get("webhookByEvents"):
            url = f"{url}/{event.replace('.', '-')}"
        body = {
            "event": event,
            "instance": instance.name,
            "data": data,
            "destination": url,
            "date_time": self._clock.now().astimezone(WALL).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
            "sender": jid_of(instance.number) if instance.number else None,
            "server_url": "http://simulador",
            "apikey": instance.token,
        }
        return Post(url, {k: v for k, v in given.items() if k != "jwt_key"}, given.get("jwt_key"), dumps(body).encode())


def jwt(key: str, at: int) -> str:
    """Return a signed token like the one that the original gateway creates for the header ``jwt_key``."""
    claims: Mapping[str, Json] = {"iat": at, "exp": at + 600, "app": "evolution", "action": "webhook"}
    signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(claims)}"
    signature = hmac.digest(key.encode(), signed.encode(), hashlib.sha256)
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _part(value: Mapping[str, Json]) -> str:
    return base64.urlsafe_b64encode(dumps(value).encode()).rstrip(b"=").decode()


def _what(event: str, data: Mapping[str, Json]) -> str | None:
    """Return a text that identifies an event, such as the delivery of one message, or None if the event has no id. The
    simulator derives the event's random delay or loss from this text.
    """
    key = data.get("key")
    id = data.get("keyId") or (key.get("id") if isinstance(key, Mapping) else None)
    return None if id is None else f"{event} {id} {data.get('status')}"


def _list(value: Json) -> list[Json]:
    return list(value) if isinstance(value, list | tuple) else []
