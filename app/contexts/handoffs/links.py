"""Signed confirmation links. A link belongs to one hand-off, can be used for one decision, and is valid until the
hand-off's time limit.

The token contains the hand-off's id, its own id (jti) and the expiry, followed by an HMAC with the secret key.
"""

import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from batuta.kernel import dataclass

PATH: Final = "/handoffs/confirmar"
# Prefix of the signed text, so that these signatures are invalid for every other use of the key.
_PURPOSE: Final = b"batuta external hand-off\0"
_IDS, _TIME, _MAC = 32, 8, 32


@dataclass(frozen=True, slots=True)
class Prova:
    """The content of a confirmation link's token, whose signature has been checked."""

    handoff_id: str
    jti: str


class Links:
    def __init__(self, address: str, key: str) -> None:
        """Create the service that makes and checks confirmation links. ``address`` is the api's public address, and
        ``key`` is the secret key for the signatures.
        """
        self._address = address.rstrip("/")
        self._key = key.encode()

    def criar(self, handoff_id: str, jti: str, ate: datetime) -> str:
        body = UUID(handoff_id).bytes + UUID(jti).bytes + int(ate.timestamp()).to_bytes(_TIME, "big")
        token = urlsafe_b64encode(body + self._sign(body)).rstrip(b"=").decode()
        return f"{self._address}{PATH}?token={token}"

    def ler(self, token: str, *, now: datetime) -> Prova | None:
        """Return the content of a token, or None if the signature is wrong or the token has expired."""
        try:
            raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            return None
        body, mac = raw[:-_MAC], raw[-_MAC:]
        if len(body) != _IDS + _TIME or not hmac.compare_digest(mac, self._sign(body)):
            return None
        if now >= datetime.fromtimestamp(int.from_bytes(body[_IDS:], "big"), UTC):
            return None
        return Prova(str(UUID(bytes=body[:16])), str(UUID(bytes=body[16:_IDS])))

    def _sign(self, body: bytes) -> bytes:
        return hmac.digest(self._key, _PURPOSE + body, "sha256")
