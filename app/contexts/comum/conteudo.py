"""Recognising a message again by what it says, without keeping what it says."""

import hashlib
import unicodedata


def hash_do_texto(texto: str) -> str:
    """The same however a gateway breaks, trims or composes it."""
    plain = " ".join(unicodedata.normalize("NFC", texto).split())
    return hashlib.sha256(plain.encode(errors="replace")).hexdigest()
