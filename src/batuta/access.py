"""Access to the API and the dashboard: bearer tokens, and browser sessions.

A token is ``bat_<id>_<secret>``. Only a hash of the secret is stored, and hashes are compared in constant time.

A session is a signed cookie: ``<API_TOKEN | the token's id>.<expires, unix seconds>.<random>.<signature>``. The server
checks the session's token at every request, so the session ends when its token is revoked or expires. A new signing key
ends all sessions. A sign-out is stored in the database, so it ends the session in every process, even after a restart.
"""

import hmac
import ipaddress
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import TypeAlias

from batuta.kernel.errors import InvalidToken, require
from batuta.kernel.reasons import Reason
from batuta.kernel.values import dataclass

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
NO_NETWORK = "'{each}' is not an address or network such as 10.0.0.0/8"
_FORM = re.compile(r"^bat_([0-9a-f]{12})_([0-9a-f]{48})$")


class Scope(StrEnum):
    """A permission that a token grants."""

    READ = "read"
    OPERATE = "operate"
    SEND = "send"
    TOKENS = "tokens"
    PII = "pii"
    METRICS = "metrics"


EVERY_SCOPE = frozenset(Scope)


class UserRole(StrEnum):
    """The role of a human user: a named set of scopes. ``READER`` has the scope ``read``, ``OPERATOR`` also has
    ``operate``, and ``ADMIN`` also has ``send`` and ``tokens``. No role has the scope ``pii``.
    """

    READER = "reader"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def scopes(self) -> frozenset[Scope]:
        added = ((Scope.READ,), (Scope.OPERATE,), (Scope.SEND, Scope.TOKENS))
        return frozenset(scope for each in added[: list(UserRole).index(self) + 1] for scope in each)


def includes(scopes: frozenset[Scope], scope: Scope) -> bool:
    """Return whether a token with ``scopes`` has the permission ``scope``. Every scope except ``metrics`` includes
    ``read``; ``metrics`` is for monitoring programs and permits nothing else.
    """
    return scope in scopes or (scope is Scope.READ and bool(scopes - {Scope.METRICS}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    id: str
    name: str
    secret_hash: str
    scopes: frozenset[Scope]
    created_by: str
    created_at: datetime
    revoked_at: datetime | None = None
    expires_at: datetime | None = None
    networks: tuple[str, ...] = ()  # addresses and networks that may use the token; an empty tuple means every address
    last_used_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def serves(self, address: str) -> bool:
        """Return whether a client at this address may use the token."""
        return not self.networks or belongs(address, parse_networks(self.networks))


def mint(
    name: str,
    scopes: Iterable[Scope],
    *,
    by: str,
    now: datetime,
    chance: Callable[[int], str],
    expires_at: datetime | None = None,
    networks: Sequence[str] = (),
) -> tuple[Token, str]:
    """Create a token with a random secret. Return two values: the token, which contains only a hash of the secret, and
    the token's text, which contains the secret.

    ``chance(n)`` must return n random bytes in hexadecimal, as ``secrets.token_hex`` does.
    """
    try:
        parse_networks(networks)
    except ValueError:
        why = Reason("no_network", NO_NETWORK, each=", ".join(networks))
        raise InvalidToken(name=name, why=why) from None
    wanted = frozenset(scopes)
    require("token", name, name.strip(), Reason("no_purpose", "name the person or program that will use the token"))
    if not wanted:
        raise InvalidToken(
            name=name, why=Reason("no_scope", "without a scope it gives no access; give --scope or --role")
        )
    id, secret = chance(6), chance(24)
    token = Token(
        id=id,
        name=name,
        secret_hash=hash_secret(secret),
        scopes=wanted,
        created_by=by,
        created_at=now,
        expires_at=expires_at,
        networks=tuple(networks),
    )
    return token, f"bat_{id}_{secret}"


def mint_successor(old: Token, *, by: str, now: datetime, chance: Callable[[int], str]) -> tuple[Token, str]:
    """Create a token's successor, with the same name, scopes, networks and lifetime. Return two values: the new token,
    which contains only a hash of its secret, and the new token's text, which contains the secret.
    """
    expires = None if old.expires_at is None else now + (old.expires_at - old.created_at)
    return mint(old.name, old.scopes, by=by, now=now, chance=chance, expires_at=expires, networks=old.networks)


def split_token(text: str) -> tuple[str, str] | None:
    """Return the id and the secret contained in a token's text, or None if the text is not a token."""
    found = _FORM.match(text)
    return (found[1], found[2]) if found else None


def proves(token: Token | None, secret: str, *, now: datetime) -> bool:
    """Return whether the secret belongs to a valid token. The check takes as long for an unknown token as for a known
    one, so its duration does not reveal which tokens exist.
    """
    is_right = same("" if token is None else token.secret_hash, hash_secret(secret))
    return token is not None and token.is_valid(now) and is_right


def same(one: str, other: str) -> bool:
    """Compare two secrets in constant time. Digests are compared, because a comparison of the secrets themselves would
    reveal their length.
    """
    return hmac.compare_digest(sha256(one.encode()).digest(), sha256(other.encode()).digest())


def hash_secret(secret: str) -> str:
    # One round of hashing is enough, because the secret has 192 random bits (a password that a human chose would need
    # more).
    return sha256(secret.encode()).hexdigest()


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse IP addresses and networks such as 10.0.0.0/8. Raise ValueError if a string is neither."""
    return tuple(ipaddress.ip_network(each) for each in texts)


def belongs(address: str, networks: Iterable[Network]) -> bool:
    """Return whether the address is in one of the networks. The address may be an IPv4 address in IPv6 notation
    (``::ffff:10.0.0.1``).
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    plain = getattr(found, "ipv4_mapped", None) or found
    return any(plain in each for each in networks)


SESSION_LENGTH = timedelta(hours=12)
_SESSION_FORM = re.compile(r"(API_TOKEN|[0-9a-f]{12})\.([0-9]{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Session:
    holder: str  # ``API_TOKEN``, or the id of a token
    expires_at: datetime
    chance: str

    @property
    def text(self) -> str:
        return f"{self.holder}.{int(self.expires_at.timestamp())}.{self.chance}"


class Sessions:
    def __init__(self, key: str) -> None:
        self._key = sha256(f"session {key}".encode()).digest()

    def begin(self, holder: str, *, now: datetime, chance: str) -> str:
        """Create the cookie for a new session. ``chance`` is 16 random bytes in hexadecimal."""
        text = Session(holder, now + SESSION_LENGTH, chance).text
        return f"{text}.{self._seal(text)}"

    def find(self, note: str, *, now: datetime) -> Session | None:
        """Return the session that a cookie belongs to, or None if the cookie is invalid or expired."""
        found = _SESSION_FORM.fullmatch(note)
        if found is None or not same(self._seal(note.rpartition(".")[0]), found[4]):
            return None
        session = Session(found[1], datetime.fromtimestamp(int(found[2]), UTC), found[3])
        return session if now < session.expires_at <= now + SESSION_LENGTH else None

    def proof(self, session: Session) -> str:
        """Return the CSRF token for the forms of a session. Other sites cannot compute this token, so only the
        dashboard's own pages contain it.
        """
        return self._seal(f"form {session.text}")

    def _seal(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), sha256).hexdigest()
