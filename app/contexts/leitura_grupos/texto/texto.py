"""A text as the rules see it: lower case, no accents, no fancy letters, each letter knowing where it stood."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from app.contexts.leitura_grupos.texto.grafia import Grafias

_NOTHING = frozenset("\u00ad\u200b\u200c\u200e\u200f\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_DASHES = "‐‑‒–—―−➖"
_LIKE_ASCII = {
    **dict.fromkeys(_DASHES, "-"),
    **dict.fromkeys("“”„«»‟", '"'),
    **dict.fromkeys("‘’‚‛´`ʼ", "'"),
    **dict.fromkeys("•·●▪◦‣∙⁃■▫", "•"),
    **dict.fromkeys("→➜➡➔⇒➤▶►👉", ">"),
    **dict.fromkeys("🏻🏼🏽🏾🏿", " "),
    "\t": " ",
    "\r": " ",
    "\v": "\n",
    "\f": "\n",
    "\u2028": "\n",
    "\u2029": "\n",
    "\x85": "\n",
    "\u200d": " ",
    "…": ".",
}


class _Folding(dict[int, str]):
    """One character for each, so that places stay what they were; learns as it goes."""

    def __missing__(self, code: int) -> str:
        folded = _fold(chr(code))
        self[code] = folded
        return folded


def _fold(char: str) -> str:
    known = _LIKE_ASCII.get(char)
    if known is not None:
        return known
    if char in _NOTHING:
        return "\x00"
    category = unicodedata.category(char)
    if category == "Mn":
        return " " if 0xFE00 <= ord(char) <= 0xFE0F else "\x00"
    if category in ("Zs", "Me"):
        return " "
    if category in ("Cc", "Cs", "Co", "Cn") and char != "\n":
        return " "
    base = unicodedata.normalize("NFKD", char).lower()[:1]
    return base if base and base != "\x00" else " "


_FOLDING = _Folding()
_WORD = re.compile(r"[a-z0-9]+")
# A name stands there.
_BEHIND_NUMBER = re.compile(r"\d{4}[ -]?\d{4}[ ():-]{1,3}$")


def achados(pattern: re.Pattern[str], plano: str, *letters: str) -> Iterator[re.Match[str]]:
    """All that a pattern finds; ``letters``: without one of them there is no use in looking, and looking is what costs."""
    return pattern.finditer(plano) if any(each in plano for each in letters) else iter(())


class Palavra(NamedTuple):
    texto: str
    inicio: int
    fim: int


_INICIO = itemgetter(1)


@dataclass(frozen=True, slots=True)
class Texto:
    """``plano`` is the folded text; ``lugares`` where each of its letters stood (None: at the same place).

    ``maiusculas`` is the share of capitals among the letters.
    """

    fonte: str
    plano: str
    lugares: tuple[int, ...] | None
    palavras: tuple[Palavra, ...] = field(repr=False)
    maiusculas: float = 0.0

    @classmethod
    def de(cls, fonte: str, grafias: Grafias | None = None) -> "Texto":
        """``grafias`` puts right the words that are written with one letter wrong."""
        plano = fonte.translate(_FOLDING)
        lugares: tuple[int, ...] | None = None
        if "\x00" in plano:
            kept = [place for place, char in enumerate(plano) if char != "\x00"]
            plano, lugares = plano.replace("\x00", ""), tuple(kept)
        words = tuple(Palavra(each[0], each.start(), each.end()) for each in _WORD.finditer(plano))
        if grafias is not None:
            meant = {each: grafias.certa(each) for each in {each.texto for each in words}}
            right = {
                each: word
                for each in words
                if (word := meant[each.texto]) is not None
                and not _BEHIND_NUMBER.search(plano, max(0, each.inicio - 13), each.inicio)
            }
            if right:
                plano, lugares = _emendado(plano, lugares, right)
                words = tuple(Palavra(each[0], each.start(), each.end()) for each in _WORD.finditer(plano))
        letters = sum(map(str.isalpha, fonte))
        return cls(fonte, plano, lugares, words, sum(map(str.isupper, fonte)) / letters if letters else 0.0)

    def trecho(self, inicio: int, fim: int) -> tuple[int, int]:
        """The place in the source of a place in ``plano``."""
        if self.lugares is None or inicio == fim:
            return (inicio, fim) if self.lugares is None else (0, 0)
        return self.lugares[inicio], self.lugares[fim - 1] + 1

    def palavras_entre(self, inicio: int, fim: int) -> tuple[Palavra, ...]:
        first = bisect_left(self.palavras, inicio, key=_INICIO)
        last = bisect_left(self.palavras, fim, lo=first, key=_INICIO)
        return self.palavras[first:last]


def _emendado(plano: str, lugares: tuple[int, ...] | None, right: Mapping[Palavra, str]) -> tuple[str, tuple[int, ...]]:
    """The first letter of a word put right stands where the word began, its last one where it ended."""
    before = lugares if lugares is not None else range(len(plano))
    parts: list[str] = []
    places: list[int] = []
    free = 0
    for word, meant in right.items():
        parts += (plano[free : word.inicio], meant)
        places.extend(before[free : word.inicio])
        within = [min(word.inicio + at, word.fim - 1) for at in range(len(meant) - 1)]
        places.extend(before[at] for at in (*within, word.fim - 1))
        free = word.fim
    parts.append(plano[free:])
    places.extend(before[free:])
    return "".join(parts), tuple(places)


def chave(text: str) -> str:
    """Words alone, folded and joined by one space: how two names are compared."""
    return " ".join(_WORD.findall(text.translate(_FOLDING).replace("\x00", "")))
