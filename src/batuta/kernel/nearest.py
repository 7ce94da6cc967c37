"""Did you mean …? Only where there is real likeness: a far word as a guess sends people the wrong way."""

import difflib
from collections.abc import Iterable
from typing import Final

from batuta.kernel.errors import StrangeWord, UnknownWord

LIKE_ENOUGH: Final = 0.65
SHORTEST_BEGINNING: Final = 3
MOST_TOLD: Final = 8


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like ``word``, or the only one that begins like it."""
    words = list(dict.fromkeys(known))
    if found := difflib.get_close_matches(word, words, n=1, cutoff=LIKE_ENOUGH):
        return found[0]
    begun = [each for each in words if len(word) >= SHORTEST_BEGINNING and each.startswith(word)]
    return begun[0] if len(begun) == 1 else None


def unknown(kind: str, word: str, known: Iterable[str]) -> UnknownWord:
    """What to say of a word that nothing is called by: the one that was meant, or else those there are."""
    words = list(dict.fromkeys(known))
    near = nearest(word, words)
    if near is not None:
        return UnknownWord(kind=kind, word=word, nearest=near)
    rest = [] if len(words) <= MOST_TOLD else ["…"]
    return StrangeWord(kind=kind, word=word, known=", ".join([*words[:MOST_TOLD], *rest]) or "-")
