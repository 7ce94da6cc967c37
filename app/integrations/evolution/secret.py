"""Authenticate a delivery from the gateway. The gateway does not sign its deliveries.

A delivery is authenticated in one of three ways. The first is a header that we configure (``X-Webhook-Secret``). The
second is an HS256 JWT that the gateway creates from a header called ``jwt_key`` and that expires after ten minutes. The
third is the secret in the address's query (``?token=…``), for set-ups where only the address can be configured.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime

from app.integrations.evolution.client import SECRET_HEADER
from batuta.kernel import Json, loads

# Tolerance between the clocks of the gateway and of this machine.
LEEWAY_SECONDS = 60
# Longest token that is checked. A token of the gateway has a few hundred characters.
LONGEST = 2_000


def is_proved(secret: str, headers: Mapping[str, str], query: Mapping[str, str], now: datetime) -> bool:
    given = [headers.get(SECRET_HEADER.lower(), ""), query.get("token", "")]
    # Compare every candidate, even after a match, so that the duration reveals nothing about the secret.
    plain = [hmac.compare_digest(secret.encode(), each.encode()) for each in given]
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return any(plain) or (scheme.lower() == "bearer" and _is_signed(secret, token.strip(), now))


def _is_signed(secret: str, token: str, now: datetime) -> bool:
    parts = token[: LONGEST + 1].split(".")
    if len(parts) != 3 or len(token) > LONGEST:
        return False
    signed, signature = f"{parts[0]}.{parts[1]}", _decode(parts[2])
    expected = hmac.digest(secret.encode(), signed.encode(errors="replace"), hashlib.sha256)
    if signature is None or not hmac.compare_digest(expected, signature):
        return False
    head, claims = _object(parts[0]), _object(parts[1])
    ends = claims.get("exp")
    return (
        head.get("alg") == "HS256"
        and claims.get("action") == "webhook"
        and isinstance(ends, int)
        and now.timestamp() < ends + LEEWAY_SECONDS
    )


def _decode(part: str) -> bytes | None:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        return None


def _object(part: str) -> Mapping[str, Json]:
    try:
        parsed = loads(_decode(part) or b"null")
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, Mapping) else {}
