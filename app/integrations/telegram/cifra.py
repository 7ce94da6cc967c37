"""Encryption of stored sessions: AES-256-GCM with a ring of keys. The id of the account is authenticated too, so that
the session of one account cannot be stored for another.
"""

import base64
import binascii
import hashlib
import secrets
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.contexts.telegram.sessoes import ChaveErrada

VERSION: Final = "v1"
NONCE: Final = 12
PURPOSE: Final = b"batuta telegram session"


class AnelDeChaves:
    """Keys derived from secrets of the operator, newest first."""

    def __init__(self, secrets_: Sequence[str]) -> None:
        derived = [hashlib.blake2b(PURPOSE, key=hashlib.sha512(each.encode()).digest()).digest() for each in secrets_]
        # The first half of a digest is the key, and its name is a part of the second half: the name reveals nothing.
        self._keys = {each[32:36].hex(): AESGCM(each[:32]) for each in derived}
        self._newest = derived[0][32:36].hex()

    def encrypt(self, conta: str, clear: str) -> str:
        nonce = secrets.token_bytes(NONCE)
        sealed = nonce + self._keys[self._newest].encrypt(nonce, clear.encode(), conta.encode())
        return f"{VERSION}.{self._newest}.{base64.urlsafe_b64encode(sealed).decode()}"

    def decrypt(self, conta: str, cifrada: str) -> str:
        try:
            version, name, text = cifrada.split(".")
            sealed = base64.urlsafe_b64decode(text)
            key = self._keys[name] if version == VERSION else None
            if key is None:
                raise ChaveErrada
            return key.decrypt(sealed[:NONCE], sealed[NONCE:], conta.encode()).decode()
        except (ValueError, KeyError, binascii.Error, InvalidTag):
            raise ChaveErrada from None

    def is_current(self, cifrada: str) -> bool:
        return cifrada.startswith(f"{VERSION}.{self._newest}.")
