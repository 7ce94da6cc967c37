"""Removes personal data and secrets from text, for logs and other output. The functions are pure, idempotent and linear
in the length of the text.
"""

import re

from batuta.kernel.masking.credentials import without_credentials
from batuta.kernel.masking.fields import SENSITIVE_FIELDS, is_sensitive
from batuta.kernel.masking.numbers import without_numbers

__all__ = ["SENSITIVE_FIELDS", "is_sensitive", "mask"]

EMAIL, WHATSAPP = "[email]", "[whatsapp]"


def mask(text: str) -> str:
    """Replace personal data and secrets in a text with marks such as ``[cpf]`` or ``[token]``."""
    for _ in range(_MOST_PASSES):
        masked = _mask_once(text)
        if masked == text:
            break
        # A replacement may expose an adjacent value, which only another pass recognises.
        text = masked
    return text


_MOST_PASSES = 4


def _mask_once(text: str) -> str:
    text = without_credentials(text)
    if "@" in text or "%40" in text:
        text = _JID.sub(WHATSAPP, text)
        text = _EMAIL.sub(EMAIL, text)
    return without_numbers(text)


_AT = r"(?:@|%40)"
# 5511…@s.whatsapp.net, 5511…:12@s.whatsapp.net (a device), 5511…-1612345678@g.us (a group), …@lid (a hidden number).
_JID = re.compile(
    rf"(?<![0-9])[0-9]{{5,20}}(?:[-.:_][0-9]{{1,15}}){{0,2}}{_AT}(?:s\.whatsapp\.net|c\.us|g\.us|lid|newsletter|broadcast)\b"
)
# In postgresql://user@host, user@host is not an e-mail address.
_EMAIL = re.compile(rf"(?<![\w.+-])(?<!://)[\w.+-]++{_AT}(?:[\w-]++\.)+[^\W\d_]{{2}}[\w-]*+")
