"""Correct unknown words that have one wrong letter. A correction is always a word that matters to the rules for group
messages.
"""

from collections.abc import Iterable, Iterator, Mapping, Set

MENOR = 6
# Capacity of the cache.
MAIS_PALAVRAS = 8192


class Grafias:
    """Index that finds the intended word for a word with one wrong letter. The keys are the correct words with one
    letter removed: a misspelled word without its wrong letter equals a key of the intended word.
    """

    __slots__ = ("_alvos", "_conhecidas", "_faltando", "_lidas", "_maior")

    def __init__(self, alvos: Iterable[str], conhecidas: Iterable[str]) -> None:
        self._alvos = frozenset(word for word in alvos if len(word) >= MENOR and word.isalpha())
        self._conhecidas = self._alvos | frozenset(conhecidas)
        self._faltando: Mapping[str, str] = _faltando(self._alvos)
        self._maior = max(map(len, self._alvos), default=0) + 1
        self._lidas: dict[str, str | None] = {}

    def certas(self, words: Set[str]) -> dict[str, str]:
        """Map each misspelled word in ``words`` to the intended word."""
        return {word: meant for word in words - self._conhecidas if (meant := self._lida(word)) is not None}

    def _lida(self, word: str) -> str | None:
        """Return the intended word for a misspelled word, or None. The result is cached, because most unknown words are
        names that occur in many messages.
        """
        try:
            return self._lidas[word]
        except KeyError:
            if len(self._lidas) >= MAIS_PALAVRAS:
                self._lidas.clear()
            self._lidas[word] = meant = self.certa(word)
            return meant

    def certa(self, word: str) -> str | None:
        """Return the word that a misspelled word is meant to be. Return None if the word is correct or resembles no
        known word.
        """
        if not MENOR - 1 <= len(word) <= self._maior or word in self._conhecidas or not word.isalpha():
            return None
        if (whole := self._faltando.get(word)) is not None:
            return whole
        shorter = tuple(_sem_uma(word))
        if (doubled := next((each for each in shorter if each in self._alvos), None)) is not None:
            return doubled
        near = (self._faltando.get(each) for each in shorter) if len(word) > MENOR else ()
        return next((each for each in near if each is not None and each[0] == word[0]), None)


def _faltando(alvos: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in sorted(alvos):
        for shorter in _sem_uma(word):
            found.setdefault(shorter, word)
    return found


def _sem_uma(word: str) -> Iterator[str]:
    return (word[:at] + word[at + 1 :] for at in range(len(word)))
