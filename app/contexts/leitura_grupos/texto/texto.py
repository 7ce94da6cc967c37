"""Normalise a text for the rules: convert it to lower case without accents and decorated letters, and keep the source
position of each letter.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from app.contexts.leitura_grupos.texto.grafia import Grafias
from batuta.kernel import dataclass

MESES = (
    "janeiro", "fevereiro", "marco", "abril", "maio", "junho", "julho", "agosto", "setembro", "outubro", "novembro",
    "dezembro",
)  # fmt: skip
# Matches the name of a month or its first three letters.
MES = rf"(?:{'|'.join(MESES)}|{'|'.join(each[:3] for each in MESES)})"
# Words directly before "mar" if it means March. After any other word, it is a part of a name: "UPA Praia do Mar".
_BEFORE_MARCH = frozenset(
    (
        *("de", "em", "para", "pra", "p", "mes", "ate", "a", "ao", "dias", "jan", "fev", "abr"),
        *("escala", "escalas", "vaga", "vagas", "plantao", "plantoes", "furos", "abertos"),
    )
)
_FEBRUARY_AND = ("jan e ", "fev e ", "fevereiro e ")
_YEAR = re.compile(r" ?/ ?(?:20)?\d\d\b| (?:de )?20\d\d\b")
# Words directly after "dez" if it is a number.
_COUNTED = re.compile(
    r" (?:dias|plant|vagas|horas|noites|minutos|reais|por|anos|medic|leitos|pacientes|datas|turnos|mil|e )"
)
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
    """Maps each character to exactly one character, so that positions in the text do not change. Results are cached."""

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
# Matches a phone number. The word after it is a name, so its spelling is not corrected.
_BEHIND_NUMBER = re.compile(r"\d{4}[ -]?\d{4}[ ():-]{1,3}$")


_WORD_BEFORE = re.compile(r"\b([a-z]+) $")
_SAINTS = frozenset(("sao", "santo", "santa", "dom", "frei", "padre", "nossa", "senhora", "senhor"))
# Capitalised words that are not a part of a name before a misspelt word.
_BEFORE_SPECIALITY = frozenset(
    (
        "vaga",
        "vagas",
        "plantao",
        "plantoes",
        "medico",
        "medica",
        "clinico",
        "escala",
        "setor",
        "preciso",
        "precisa",
        "precisamos",
        "de",
        "para",
        "hospital",
        "area",
    )
)


def achados(pattern: re.Pattern[str], plano: str, *letters: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern. If the text contains none of ``letters``, the costly search is skipped."""
    return pattern.finditer(plano) if contem(plano, letters) else iter(())


def e_mes(plano: str, start: int, end: int) -> bool:
    """Return whether the name of a month in a range of the text means the month. "Mar" may be the sea in the name of a
    place, and "dez" may be a number.
    """
    word = plano[start:end]
    if word == "dez":
        return _COUNTED.match(plano, end) is None
    if word != "mar" or _YEAR.match(plano, end):
        return True
    before = plano[max(0, start - 12) : start]
    last = before[:-1].rpartition(" ")[2]
    return before[-1:] != " " or not last.isalpha() or last in _BEFORE_MARCH or before.endswith(_FEBRUARY_AND)


def contem(plano: str, letters: Iterable[str]) -> bool:
    """Return whether a text contains one of ``letters``. An explicit loop is faster than ``any`` here."""
    for each in letters:  # noqa: SIM110
        if each in plano:
            return True
    return False


# The source position of each letter of a rewritten text.
Origem = tuple[int, ...]


class Escrita(NamedTuple):
    """A message's text after the rules in ``blocos/`` have rewritten its tables and calendars as lists. ``tabelas`` has
    the numbers of the lines that were made from table cells.
    """

    texto: str
    origem: Origem
    tabelas: frozenset[int]


class Palavra(NamedTuple):
    texto: str
    inicio: int
    fim: int


_INICIO = itemgetter(1)


@dataclass(frozen=True, slots=True)
class Texto:
    """A normalised text. ``plano`` is the text in lower case without accents. ``lugares`` has each letter's position in
    the source text, or is None if no position changed.

    ``maiusculas`` is the proportion of capitals among the letters. ``tabelas`` has the numbers of the lines that were
    made from table cells.
    """

    fonte: str
    plano: str
    lugares: tuple[int, ...] | None
    palavras: tuple[Palavra, ...] = field(repr=False)
    maiusculas: float = 0.0
    tabelas: frozenset[int] = frozenset()

    @classmethod
    def de(cls, fonte: str, grafias: Grafias | None = None, escrita: Escrita | None = None) -> "Texto":
        """Normalise a text. ``grafias`` corrects words with one wrong letter. ``escrita`` is the text after the rules
        in ``blocos/`` have rewritten its tables and calendars as lists.
        """
        written = fonte if escrita is None else escrita.texto
        plano = written.translate(_FOLDING)
        lugares: tuple[int, ...] | None = None
        if "\x00" in plano:
            kept = [place for place, char in enumerate(plano) if char != "\x00"]
            plano, lugares = plano.replace("\x00", ""), tuple(kept)
        words = _palavras(plano)
        if grafias is not None:
            meant = grafias.certas({each.texto for each in words})
            right = {
                each: meant[each.texto]
                for each in (words if meant else ())
                if each.texto in meant
                and not _BEHIND_NUMBER.search(plano, max(0, each.inicio - 13), each.inicio)
                and not _is_of_a_name(written, plano, lugares, each)
            }
            if right:
                plano, lugares = _emendado(plano, lugares, right)
                words = _palavras(plano)
        if escrita is not None:
            source = escrita.origem
            lugares = source if lugares is None else tuple(source[place] for place in lugares)
        letters = sum(map(str.isalpha, fonte))
        loud = sum(map(str.isupper, fonte)) / letters if letters else 0.0
        return cls(fonte, plano, lugares, words, loud, frozenset() if escrita is None else escrita.tabelas)

    def trecho(self, inicio: int, fim: int) -> tuple[int, int]:
        """Convert a range of ``plano`` to the corresponding range of the source text."""
        places = self.lugares
        if places is None:
            return inicio, fim
        if inicio == fim:
            return 0, 0
        first, last = places[inicio], places[fim - 1]
        return (first, last + 1) if first <= last else (last, first + 1)

    def em_linhas(self, cuts: Sequence[int]) -> "Texto":
        """Return the text with a line break instead of the character at each position in ``cuts``."""
        starts = (0, *(each + 1 for each in cuts))
        parts = (self.plano[start:end] for start, end in zip(starts, (*cuts, len(self.plano)), strict=True))
        return replace(self, plano="\n".join(parts))

    def palavras_entre(self, inicio: int, fim: int) -> tuple[Palavra, ...]:
        first = bisect_left(self.palavras, inicio, key=_INICIO)
        last = bisect_left(self.palavras, fim, lo=first, key=_INICIO)
        return self.palavras[first:last]


def _is_of_a_name(written: str, plano: str, lugares: Sequence[int] | None, word: Palavra) -> bool:
    """Return whether a word is a part of a proper name such as "São Domingos" or "Raimundo Nonato". The spelling of
    such a word is not corrected.
    """
    before = _WORD_BEFORE.search(plano, max(0, word.inicio - 20), word.inicio)
    if before is None:
        return False
    first, second = (at if lugares is None else lugares[at] for at in (before.start(1), word.inicio))
    is_title = all(written[at].isupper() and written[at + 1 : at + 2].islower() for at in (first, second))
    return before[1] in _SAINTS or (is_title and before[1] not in _BEFORE_SPECIALITY)


def _palavras(plano: str) -> tuple[Palavra, ...]:
    new = tuple.__new__  # faster than the constructor of a named tuple
    return tuple([new(Palavra, (each[0], each.start(), each.end())) for each in _WORD.finditer(plano)])


def _emendado(plano: str, lugares: tuple[int, ...] | None, right: Mapping[Palavra, str]) -> tuple[str, tuple[int, ...]]:
    """Replace misspelled words in a text. The first letter of a correction gets the position of the word's start in the
    source text, and the last letter gets the position of the word's end.
    """
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


@lru_cache(maxsize=1024)
def dobrado(text: str) -> str:
    """Return the text in lower case and without accents, with the same length. The result is cached, because several
    rewriting rules process the same lines.
    """
    return text.translate(_FOLDING).replace("\x00", " ")


@lru_cache(maxsize=4096)
def chave(text: str) -> str:
    """Return a text's words in lower case without accents, joined by single spaces. Names are compared in this form.

    The result is cached, because the same names occur in many messages.
    """
    return " ".join(_WORD.findall(text.translate(_FOLDING).replace("\x00", "")))
