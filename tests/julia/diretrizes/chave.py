"""New RSA keys for each process of a test run, in the JSON format of a Google service account key."""

import base64
import json
import secrets
from dataclasses import dataclass
from functools import cache

EXPONENT = 65_537
BITS = 512


@dataclass(frozen=True)
class Key:
    modulus: int
    credentials: str

    @property
    def account(self) -> dict[str, object]:
        return {"email": "leitor@projeto.example", "n": f"{self.modulus:x}", "e": EXPONENT}


def make_key(token_url: str, number: int = 0) -> Key:
    """Return the service account key with the given number. Each number has a different key."""
    p, q = _primes(number)
    modulus, private = p * q, pow(EXPONENT, -1, (p - 1) * (q - 1))
    rest = (p, q, private % (p - 1), private % (q - 1), pow(q, -1, p))
    key = _der(0x30, b"".join(_integer(each) for each in (0, modulus, EXPONENT, private, *rest)))
    rsa = bytes.fromhex("300d06092a864886f70d0101010500")  # the algorithm rsaEncryption
    info = _der(0x30, _integer(0) + rsa + _der(0x04, key))
    lines = base64.encodebytes(info).decode()
    kind = "PRIVATE" + " KEY"
    pem = f"-----BEGIN {kind}-----\n{lines}-----END {kind}-----\n"
    document = {"client_email": "leitor@projeto.example", "private_key": pem, "token_uri": token_url}
    return Key(modulus, json.dumps({"type": "service_account", **document}))


@cache
def _primes(number: int) -> tuple[int, int]:
    """Return the primes for a key. They are computed only once per process, because that takes half a second."""
    return _prime(), _prime()


def _prime() -> int:
    while True:
        found = secrets.randbits(BITS) | (3 << (BITS - 2)) | 1
        if found % EXPONENT != 1 and all(pow(base, found - 1, found) == 1 for base in (2, 3, 5, 7, 11, 13)):
            return found


def _integer(value: int) -> bytes:
    return _der(0x02, value.to_bytes(value.bit_length() // 8 + 1))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([tag, 0x80 | len(length)]) + length + content
