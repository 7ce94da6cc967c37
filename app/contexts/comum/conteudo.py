"""Hash that identifies a text without storing the text."""

import hashlib
import unicodedata


def hash_do_texto(texto: str) -> str:
    """Hash the text. White space and Unicode composition do not change the hash, because gateways change them."""
    plain = " ".join(unicodedata.normalize("NFC", texto).split())
    return hashlib.sha256(plain.encode(errors="replace")).hexdigest()
