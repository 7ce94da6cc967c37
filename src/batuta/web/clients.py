"""The API's clients: their addresses, and their refused requests.

Refused requests are counted by client and minute. Each count becomes one audit entry and one log line. A client above
the limit gets 429 until the minute ends. A valid credential still works, so that an attacker cannot lock out legitimate
users behind the same proxy.

The limit check must not wait for the database. The process therefore keeps digests of the credentials that it has
accepted. While the limit is refusing requests, a loop also reads the digests of all valid tokens every 20 s. A session
is recognised by the signature in its cookie.
"""

import hmac
import ipaddress
import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256

from starlette.datastructures import Headers
from starlette.types import Scope

from batuta.access import Network, Sessions, belongs, hash_secret, split_token
from batuta.kernel.clock import EARLIEST, Clock
from batuta.kernel.events import Events, RequestsRefused
from batuta.kernel.values import dataclass
from batuta.stores.sql.tables.audit import AccessLog
from batuta.stores.sql.tables.tokens import SqlTokens
from batuta.supervise.loop import FOR_EVER, Idle, LoopPolicy, Pace, Wakeup

MINUTE = timedelta(minutes=1)
POLICY = LoopPolicy(every=timedelta(seconds=20), stuck_after=timedelta(minutes=2), max_failures=FOR_EVER)
REFUSED = frozenset({401, 403, 429})
# Maximum clients per minute that are counted separately. All other clients share one count, so that a flood of
# addresses uses bounded memory.
MOST_CLIENTS = 1000
OTHERS = "others"
MOST_CREDENTIALS = 10_000
# A failed sign-in counts as this many refusals, because a person types only a few tokens per minute.
SIGN_IN_COST = 6


@dataclass(slots=True)
class Refusals:
    """One client's refused requests in one minute."""

    since: datetime
    counts: Counter[int] = field(default_factory=Counter)
    cost: int = 0


class Clients:
    """A loop that counts refused requests by client and minute. It writes each count when the minute has ended, and
    reads the valid tokens while a client is above the limit.
    """

    name = "refusals"

    def __init__(
        self,
        clock: Clock,
        events: Events,
        log: AccessLog,
        tokens: SqlTokens,
        sessions: Sessions,
        *,
        proxies: Iterable[Network] = (),
        limit: int,
    ) -> None:
        self.wakeup = Wakeup()
        self._clock = clock
        self._events = events
        self._log = log
        self._tokens = tokens
        self._sessions = sessions
        self._proxies = tuple(proxies)
        self._limit = limit
        self._minutes: dict[tuple[str, datetime], Refusals] = {}
        self._limiting_until = EARLIEST
        self._accepted: dict[bytes, None] = {}
        self._ended: dict[bytes, None] = {}
        self._key = secrets.token_bytes(32)

    def address(self, scope: Scope) -> str:
        """Return the client's address. If a trusted proxy sent the request, return the address that the proxy
        reports.
        """
        peer = scope["client"][0] if scope.get("client") else ""
        if not self._proxies or not belongs(peer, self._proxies):
            return peer
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        for hop in reversed([each.strip() for each in forwarded]):
            if not belongs(hop, self._proxies):
                return hop if _is_address(hop) else peer
        return peer

    def refuse(self, client: str, status: int, *, cost: int = 0) -> None:
        """Count a refused request from this client."""
        client, minute = _group_by_network(client), self._clock.now().replace(second=0, microsecond=0)
        if (client, minute) not in self._minutes and len(self._minutes) >= MOST_CLIENTS:
            client = OTHERS
        refusals = self._minutes.setdefault((client, minute), Refusals(minute))
        refusals.counts[status] += 1
        refusals.cost += cost

        if refusals.cost >= self._limit and self._limiting_until < minute + MINUTE:
            self._limiting_until = minute + MINUTE
            self.wakeup.set()

    @property
    def is_limiting(self) -> bool:
        """Whether any client is currently above the limit of refused requests."""
        return self._clock.now() < self._limiting_until

    def accept(self, credential: str) -> None:
        """Remember a valid credential. Only a digest of the credential is stored."""
        _remember(self._accepted, self._digest(credential))

    def forget(self, credential: str) -> None:
        """Forget a credential that is no longer valid. Requests with it are then refused again while their client is
        above the limit.
        """
        self._accepted.pop(digest := self._digest(credential), None)
        if self._is_sealed(credential):
            _remember(self._ended, digest)

    def wait(self, client: str, credential: str) -> int:
        """Return how many seconds the client must wait before its credential is checked; 0 means that it may be checked
        now.
        """
        now = self._clock.now()
        minute = now.replace(second=0, microsecond=0)
        found = self._minutes.get((_group_by_network(client), minute)) or self._minutes.get((OTHERS, minute))
        if found is None or found.cost < self._limit or self._is_known(credential):
            return 0
        return max(1, int((found.since + MINUTE - now).total_seconds()))

    async def tick(self) -> Pace:
        await self._write(before=self._clock.now() - MINUTE)
        if self.is_limiting:
            now = self._clock.now()
            for token in await self._tokens.all():
                if token.is_valid(now):
                    _remember(self._accepted, _token_digest(token.id, token.secret_hash))
        return Idle()

    async def drain(self, grace: timedelta) -> None:
        await self._write(before=self._clock.now())

    async def _write(self, before: datetime) -> None:
        for key, refusals in [each for each in self._minutes.items() if each[1].since <= before]:
            counts = {str(status): count for status, count in sorted(refusals.counts.items())}
            since = refusals.since.isoformat()
            await self._log.note(actor=key[0], action="access.refused", subject="api", since=since, counts=counts)
            del self._minutes[key]
            self._events.emit(RequestsRefused(key[0], refusals.since, sum(refusals.counts.values())))

    def _is_known(self, credential: str) -> bool:
        digest = self._digest(credential)
        return digest in self._accepted or (digest not in self._ended and self._is_sealed(credential))

    def _is_sealed(self, credential: str) -> bool:
        return self._sessions.find(credential, now=self._clock.now()) is not None

    def _digest(self, credential: str) -> bytes:
        """Return a credential's digest. For a token, this is the digest that the database stores. For any other
        credential, it is a digest with a secret key.
        """
        if parts := split_token(credential):
            return _token_digest(parts[0], hash_secret(parts[1]))
        return hmac.digest(self._key, credential.encode(), sha256)


def _token_digest(id: str, secret_hash: str) -> bytes:
    return f"{id} {secret_hash}".encode()


def _remember(digests: dict[bytes, None], digest: bytes) -> None:
    digests.pop(digest, None)
    digests[digest] = None
    if len(digests) > MOST_CREDENTIALS:
        del digests[next(iter(digests))]


@lru_cache(maxsize=MOST_CLIENTS)
def _group_by_network(client: str) -> str:
    """Return the name under which a client is counted. IPv6 addresses are counted per network, because one client
    usually owns a whole network.
    """
    try:
        address = ipaddress.IPv6Address(client.partition("%")[0])
    except ValueError:
        return client
    return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))


def bearer_of(headers: Headers) -> str:
    """Return a request's bearer token, or an empty string."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
