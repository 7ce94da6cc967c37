"""A hash that identifies a text without storing it."""

import hashlib
import unicodedata


def hash_do_texto(texto: str) -> str:
    """Hash the text, ignoring differences in white space and Unicode composition between gateways."""
    plain = " ".join(unicodedata.normalize("NFC", texto).split())
    return hashlib.sha256(plain.encode(errors="replace")).hexdigest()
