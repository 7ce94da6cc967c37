"""Access to the API and the dashboard: bearer tokens, and browser sessions.

A token is ``bat_<id>_<secret>``. Only a hash of the secret is stored, and hashes are compared in constant time.

A session is a signed cookie: ``<API_TOKEN | the token's id>.<expires, unix seconds>.<chance>.<seal>``. The server
stores no sessions and checks the token at every request. So a revoked token ends its sessions, and a changed key
ends all sessions. A sign-out is known only to the process that received it, until the cookie expires.
"""

import hmac
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from batuta.kernel.errors import require
from batuta.kernel.reasons import Reason

_FORM = re.compile(r"^bat_([0-9a-f]{12})_([0-9a-f]{48})$")


class Scope(StrEnum):
    """A permission that a token grants."""

    READ = "read"
    OPERATE = "operate"
    SEND = "send"
    PII = "pii"


EVERY_SCOPE = frozenset(Scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    id: str
    name: str
    secret_hash: str
    scopes: frozenset[Scope]
    created_by: str
    created_at: datetime
    revoked_at: datetime | None = None


def mint(
    name: str, scopes: Iterable[Scope], *, by: str, now: datetime, chance: Callable[[int], str]
) -> tuple[Token, str]:
    """Create a token with a random secret. Return the token, which keeps only a hash of the secret, and the token's
    text, which contains the secret.

    ``chance(n)`` returns n random bytes as hexadecimal, like ``secrets.token_hex``.
    """
    wanted = frozenset(scopes)
    known = ", ".join(Scope)
    require("token", name, name.strip(), Reason("no_purpose", "say what or whom it is for"))
    require("token", name, wanted, Reason("no_scope", "it opens nothing: give one of {scopes}", scopes=known))
    id, secret = chance(6), chance(24)
    token = Token(id=id, name=name, secret_hash=hash_secret(secret), scopes=wanted, created_by=by, created_at=now)
    return token, f"bat_{id}_{secret}"


def split_token(text: str) -> tuple[str, str] | None:
    """Return the id and the secret of a token's text, or None for any other text."""
    found = _FORM.match(text)
    return (found[1], found[2]) if found else None


def proves(token: Token, secret: str) -> bool:
    return token.revoked_at is None and same(token.secret_hash, hash_secret(secret))


def same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def hash_secret(secret: str) -> str:
    # One round of hashing is enough, because the secret has 192 random bits, unlike a chosen password.
    return sha256(secret.encode()).hexdigest()


LASTS = timedelta(hours=12)
_SESSION_FORM = re.compile(r"(API_TOKEN|[0-9a-f]{12})\.([0-9]{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Session:
    holder: str  # API_TOKEN, or the id of a token
    expires_at: datetime
    chance: str

    @property
    def text(self) -> str:
        return f"{self.holder}.{int(self.expires_at.timestamp())}.{self.chance}"


class Sessions:
    def __init__(self, key: str) -> None:
        self._key = sha256(f"session {key}".encode()).digest()
        self._ended: dict[str, datetime] = {}

    def begin(self, holder: str, *, now: datetime, chance: str) -> str:
        """Create the cookie of a new session. ``chance`` is 16 random bytes as hexadecimal."""
        text = Session(holder, now + LASTS, chance).text
        return f"{text}.{self._seal(text)}"

    def find(self, note: str, *, now: datetime) -> Session | None:
        """Return the session of a cookie, or None if the cookie is invalid, expired or signed out."""
        found = _SESSION_FORM.fullmatch(note)
        if found is None or not same(self._seal(note.rpartition(".")[0]), found[4]):
            return None
        session = Session(found[1], datetime.fromtimestamp(int(found[2]), UTC), found[3])
        return session if now < session.expires_at and session.chance not in self._ended else None

    def end(self, session: Session, *, now: datetime) -> None:
        self._ended = {chance: until for chance, until in self._ended.items() if until > now}
        self._ended[session.chance] = session.expires_at

    def proof(self, session: Session) -> str:
        """Return the CSRF token of a form: a value that only the dashboard's own page can contain, because other sites
        cannot compute it.
        """
        return self._seal(f"form {session.text}")

    def _seal(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), sha256).hexdigest()
