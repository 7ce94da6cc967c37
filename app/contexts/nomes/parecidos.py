"""Compare two names by their spelling. If a whole word differs, the names belong to two places, even if the names look
similar.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Final

_DADOS: Final = tomllib.loads((Path(__file__).parent / "nomes.toml").read_text(encoding="utf-8"))
_A_MAIS: Final = frozenset(_DADOS["a_mais"])
_MIUDAS: Final = frozenset(_DADOS["miudas"])
_ABREVIADAS: Final[Mapping[str, str]] = _DADOS["abreviadas"]
PROPRIOS: Final = frozenset(word for line in _DADOS["proprios"] for word in line.split())
# Length of the shortest word that may count as misspelt. In a shorter word, another letter often makes another word.
SHORTEST: Final = 5
_SOUNDS: Final = (("ph", "f"), ("th", "t"), ("y", "i"), ("z", "s"), ("w", "v"), ("k", "c"))
_TWICE: Final = re.compile(r"(.)\1")


def por_extenso(form: str) -> str:
    return " ".join(_ABREVIADAS.get(word, word) for word in form.split())


def so_grafia(dito: str, conhecido: str, palavras: Container[str]) -> bool:
    """Return whether two names, both normalised for searching, differ only in spelling.

    ``palavras`` has words that are certainly spelled correctly, so they are not misspellings of similar words.
    """
    said, known = _words(dito), _words(conhecido)
    ours, theirs = list((said - known).elements()), list((known - said).elements())
    for word in tuple(ours):
        twin = next((other for other in theirs if _are_same(word, other, palavras)), None)
        if twin is not None:
            ours.remove(word)
            theirs.remove(twin)
    # Only one of the names may have extra words. If both have extra words, they are two places.
    return not (ours and theirs) and all(word in _A_MAIS for word in (*ours, *theirs))


def _words(form: str) -> Counter[str]:
    return Counter(word for word in form.split() if word not in _MIUDAS)


def _are_same(word: str, other: str, palavras: Container[str]) -> bool:
    from rapidfuzz.distance import OSA  # takes half a megabyte, which most processes never need

    if _sound(word) == _sound(other):
        return True
    is_other = word in palavras or word[:-1] == other[:-1]  # Paulo and Paula: another last letter makes another name
    is_word = word.isalpha() and other.isalpha() and min(len(word), len(other)) >= SHORTEST
    return is_word and not is_other and OSA.distance(word, other) == 1


def _sound(word: str) -> str:
    for written, heard in _SOUNDS:
        word = word.replace(written, heard)
    return _TWICE.sub(r"\1", word)
