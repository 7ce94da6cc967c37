"""Encryption of stored values: AES-256-GCM with a ring of keys. Values are encrypted with the first key and can be
decrypted with any key in the ring.

    sealed:v1.<name of the key>.<nonce and ciphertext, base64>     an encrypted value
    sealed:v0.<text>                                               a plain text that begins like an encrypted value

``about`` names the column in which a value is stored. The cipher authenticates this name, so a value that was copied to
another column cannot be decrypted there.
"""

import base64
import binascii
import hashlib
import re
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

from batuta.kernel.errors import ConfigError, DamagedValue, KeyMissing
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import Json, dumps, loads

VERSION: Final = "v1"
NONCE: Final = 12
DATA: Final = b"batuta stored value"
MARK: Final = "sealed:"
_ESCAPED: Final = f"{MARK}v0."
_NAME: Final = re.compile(r"v1\.([0-9a-f]{8})\.")


class KeyRing:
    """Keys derived from the operator's secrets, newest first. Each ``purpose`` gets different keys from the same
    secrets.
    """

    def __init__(self, secrets_: Sequence[str], purpose: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ModuleNotFoundError:
            raise ConfigError(
                problem=Reason("no_cryptography", "encryption needs the package cryptography"),
                next_step=Reason("no_cryptography_next", "install batuta[encryption]"),
            ) from None
        derived = [hashlib.blake2b(purpose, key=hashlib.sha512(each.encode()).digest()).digest() for each in secrets_]
        # The first half of the digest is the key. The key's name comes from the second half, so the name reveals
        # nothing about the key.
        self._keys: dict[str, Any] = {each[32:36].hex(): AESGCM(each[:32]) for each in derived}
        self.names = tuple(self._keys)

    def encrypt(self, text: str, about: str) -> str:
        name, nonce = self.names[0], secrets.token_bytes(NONCE)
        sealed = nonce + self._keys[name].encrypt(nonce, text.encode(), about.encode())
        return f"{VERSION}.{name}.{base64.urlsafe_b64encode(sealed).decode()}"

    def decrypt(self, sealed: str, about: str) -> str:
        """Return the decrypted text. Raises KeyMissing if the ring lacks the key, and DamagedValue if authentication
        fails.
        """
        from cryptography.exceptions import InvalidTag

        name = name_of_key(sealed)
        if name not in self._keys:
            raise KeyMissing(key=name)
        try:
            decoded = base64.urlsafe_b64decode(sealed.split(".")[2])
            text: bytes = self._keys[name].decrypt(decoded[:NONCE], decoded[NONCE:], about.encode())
            return text.decode()
        except (ValueError, binascii.Error, InvalidTag):
            raise DamagedValue(key=name) from None

    def is_current(self, sealed: str) -> bool:
        return sealed.startswith(f"{VERSION}.{self.names[0]}.")


def name_of_key(sealed: str) -> str:
    """Return the name of the key that encrypted ``sealed``, or an empty string if ``sealed`` is not encrypted."""
    found = _NAME.match(sealed)
    return "" if found is None else found[1]


class Encryption:
    """Encrypts column values if the operator has configured keys; otherwise values are stored unencrypted."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._ring = KeyRing(keys, DATA) if keys else None

    @property
    def is_on(self) -> bool:
        return self._ring is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the keys, newest first."""
        return () if self._ring is None else self._ring.names

    def encrypt(self, value: Json, about: str) -> Json:
        """Return the encrypted form of a column value, or the value itself if no keys are configured. ``None`` stays
        ``None``.
        """
        if value is None:
            return None
        if self._ring is None:
            return f"{_ESCAPED}{value}" if is_sealed(value) else value
        return MARK + self._ring.encrypt(dumps(value), about)

    def decrypt(self, stored: Json, about: str) -> Json:
        """Return the decrypted form of a stored column value. Raises KeyMissing or DamagedValue."""
        if not isinstance(stored, str) or not is_sealed(stored):
            return stored
        if stored.startswith(_ESCAPED):
            return stored.removeprefix(_ESCAPED)
        sealed = stored.removeprefix(MARK)
        if self._ring is None:
            raise KeyMissing(key=name_of_key(sealed))
        return loads(self._ring.decrypt(sealed, about))

    def read(self, stored: Json, about: str) -> Json:
        """Return the decrypted content of a column. If the content is a list, decrypt each encrypted element."""
        if isinstance(stored, list):
            return [self.decrypt(each, about) for each in stored]
        return self.decrypt(stored, about)

    def change(self, stored: Json, about: str, change: Callable[[Json], Json]) -> Json:
        """Decrypt a stored value, apply ``change``, and encrypt the result. If the value is a list, do this for each
        element; an element that is not encrypted stays unencrypted.
        """
        if isinstance(stored, list):
            return [self.change(each, about, change) if is_sealed(each) else change(each) for each in stored]
        value = self.decrypt(stored, about)
        changed = change(value)
        return stored if changed == value else self.encrypt(changed, about)


def is_sealed(value: object) -> bool:
    return isinstance(value, str) and value.startswith(MARK)


PLAIN: Final = Encryption()
