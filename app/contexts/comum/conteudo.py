"""A hash that identifies a text, so that the text itself need not be stored."""

import hashlib
import unicodedata


def hash_do_texto(texto: str) -> str:
    """Hash a text. White space and Unicode composition do not affect the hash, because gateways may change both."""
    plain = " ".join(unicodedata.normalize("NFC", texto).split())
    return hashlib.sha256(plain.encode(errors="replace")).hexdigest()
