"""A Google service account, and the signed request with which it gets an access token."""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import field
from datetime import datetime, timedelta
from typing import Final

from batuta.kernel import dataclass, dumps, loads

LASTS: Final = timedelta(hours=1)
SCOPE: Final = "https://www.googleapis.com/auth/drive.readonly"
# The DER of the digest's algorithm, which RSASSA-PKCS1-v1_5 puts before a SHA-256 digest (RFC 8017, section 9.2).
SHA256_PREFIX: Final = bytes.fromhex("3031300d060960864801650304020105000420")
INTEGER: Final = 0x02
OCTETS: Final = 0x04
SEQUENCE: Final = 0x30


class UnusableKey(ValueError):
    """Raised if the credentials are not the JSON key of a service account."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A service account. ``modulus`` and ``exponent`` are its private RSA key."""

    email: str
    token_url: str
    modulus: int = field(repr=False)
    exponent: int = field(repr=False)

    @classmethod
    def read(cls, credentials: str) -> "ServiceAccount":
        """Read the JSON key that Google issues. Raises UnusableKey if it is invalid."""
        try:
            match loads(credentials):
                case {"client_email": str(email), "private_key": str(key), "token_uri": str(url)}:
                    modulus, exponent = _private_numbers(key)
                    return cls(email, url, modulus, exponent)
        except (ValueError, IndexError, StopIteration, RecursionError):
            raise UnusableKey from None
        raise UnusableKey

    def assertion(self, now: datetime) -> str:
        """Return a JSON Web Token, signed with RS256, that requests an access token to read files."""
        claims = {
            "iss": self.email,
            "scope": SCOPE,
            "aud": self.token_url,
            "iat": int(now.timestamp()),
            "exp": int((now + LASTS).timestamp()),
        }
        signed = ".".join(_encode(dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
        return f"{signed}.{_encode(self._sign(signed.encode()))}"

    def _sign(self, message: bytes) -> bytes:
        size = (self.modulus.bit_length() + 7) // 8
        digest = SHA256_PREFIX + hashlib.sha256(message).digest()
        padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
        return pow(int.from_bytes(padded), self.exponent, self.modulus).to_bytes(size)


def _encode(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def _private_numbers(pem: str) -> tuple[int, int]:
    """Return the modulus and the private exponent of a PKCS #8 key in PEM format (RFC 5208, RFC 8017)."""
    lines = [line for line in pem.strip().splitlines() if not line.startswith("-----")]
    try:
        der = base64.b64decode("".join(lines), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    # PrivateKeyInfo contains version, algorithm and RSAPrivateKey. RSAPrivateKey contains version, modulus, public and
    # private exponent.
    (_, info), *_ = _parts(der)
    octets = next(content for tag, content in _parts(info) if tag == OCTETS)
    (_, key), *_ = _parts(octets)
    numbers = [int.from_bytes(content) for tag, content in _parts(key) if tag == INTEGER]
    return numbers[1], numbers[3]


def _parts(der: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(der):
        tag, size, at = der[at], der[at + 1], at + 2
        if size >= 0x80:
            count = size & 0x7F
            size, at = int.from_bytes(der[at : at + count]), at + count
        if at + size > len(der):
            raise ValueError("incomplete")
        yield tag, der[at : at + size]
        at += size
