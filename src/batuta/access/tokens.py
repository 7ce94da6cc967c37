"""Bearer tokens: ``bat_<id>_<secret>``. Only a hash of the secret is kept, and comparing takes the same time for any guess."""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from batuta.kernel.errors import InvalidName
from batuta.kernel.reasons import Reason

_FORM = re.compile(r"^bat_([0-9a-f]{12})_([0-9a-f]{48})$")


class Scope(StrEnum):
    """What a token allows."""

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
    """A token and the text that proves it: the only moment the secret exists outside its owner's hands.

    ``chance(n)`` gives n bytes as hexadecimal, as ``secrets.token_hex`` does.
    """
    wanted = frozenset(scopes)
    if not name.strip():
        raise InvalidName(name=name, kind="token", why=Reason("no_purpose", "say what or whom it is for"))
    if not wanted:
        raise InvalidName(
            name=name,
            kind="token",
            why=Reason("no_scope", "it opens nothing: give one of {scopes}", scopes=", ".join(Scope)),
        )
    id, secret = chance(6), chance(24)
    token = Token(id=id, name=name, secret_hash=hash_secret(secret), scopes=wanted, created_by=by, created_at=now)
    return token, f"bat_{id}_{secret}"


def split_token(text: str) -> tuple[str, str] | None:
    """The id and the secret, or None for what never was a token of ours."""
    found = _FORM.match(text)
    return (found[1], found[2]) if found else None


def proves(token: Token, secret: str) -> bool:
    return token.revoked_at is None and same(token.secret_hash, hash_secret(secret))


def same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def hash_secret(secret: str) -> str:
    # The secret is 192 bits of chance, not a password somebody chose: one round is enough.
    return hashlib.sha256(secret.encode()).hexdigest()
