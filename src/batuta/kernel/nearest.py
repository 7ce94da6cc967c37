"""Did you mean …?"""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like ``word``; a dash if there is none at all."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0)
    return found[0] if found else "-"
