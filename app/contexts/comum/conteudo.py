"""Hash that identifies a text without storing the text."""

import hashlib
import unicodedata


def hash_do_texto(texto: str) -> str:
    """Hash the text. White space and Unicode composition, which differ between gateways, do not change the hash."""
    plain = " ".join(unicodedata.normalize("NFC", texto).split())
    return hashlib.sha256(plain.encode(errors="replace")).hexdigest()
