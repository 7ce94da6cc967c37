"""Split an address into words, and describe each word by keys for the tagger (``etiquetador``).

A key is a list of facts about a word and its neighbours; its first element is the kind of key. A feature is a subset of
a key's facts, and training gives each feature a weight. In the weights file, each feature has a name (``tracos``). The
tagger looks up the weights by the facts themselves (``indice``), which is faster than by name.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

from app.contexts.agendamentos.endereco.geografia import ESTADOS
from app.contexts.agendamentos.endereco.lugares import lugares
from app.contexts.agendamentos.endereco.vocabulario import CLASSES, ROTULOS, S_N, TIPOS_LONGOS
from app.contexts.agendamentos.texto import plano, quase

STRONG: Final = frozenset(",;|n-b():")  # separators between two fields; the letters are those that ``_gap`` returns
_TOKEN = re.compile(
    rf"[^\W\d_]+[º°]?(?:\.(?=[^\W\d_]|\s|$))?|{S_N}|(?i:(?<=km )|(?<=km))[0-9]{{1,4}}[,.][0-9]{{1,3}}(?![0-9])"
    r"|[0-9]{1,2}[aA](?=\s+(?i:rua|r|av|avenida|tv|trav|travessa)\b)|[0-9]{1,3}(?:\.[0-9]{3})+(?![0-9])|[0-9]+[ºª°]?"
)
_NUMBERS: Final = frozenset(["sn", "n1", "n2", "n3", "n4", "n5"])  # classes of numbers
# The street types that a word with this number of letters may be, with at most one typing error.
_TYPES_BY_LENGTH: Final = {
    length: [each for each in TIPOS_LONGOS if abs(len(each) - length) <= 1] for length in range(6, 10)
}
_BRASILIA = re.compile(r"e?q[ns][a-z]|sq[ns]w?")
_ROMAN = re.compile(r"[ivx]+")


class Palavra(NamedTuple):
    texto: str
    inicio: int
    fim: int
    plana: str  # lower case, without accents and final full stop
    classe: str
    antes: str  # the separator before the word, as ``_gap`` returns it


Chave = tuple[object, ...]
# The weights by the prefix of the feature's name, which has two characters, and by the rest of that name.
Pesos = Mapping[str, Mapping[str, int]]


class Forma(NamedTuple):
    """An address's shape: the facts from which the keys of the address's words are made, without the words themselves.
    Addresses typed by the same person often have the same shape, so results are cached by shape.

    ``classes``, ``nomes`` and ``rotulos`` have one entry per word: its class, its position in the name of a
    municipality, and its label (``rotulos`` is empty if the address has no labels). ``antes`` has the separator before
    each word, and a last entry for the end of the address.
    """

    classes: tuple[str, ...]
    antes: tuple[str, ...]
    nomes: tuple[str, ...]
    rotulos: tuple[str, ...]


class Descricao(NamedTuple):
    """An address in the form that the tagger (``etiquetador``) reads. ``chaves`` has the keys of each word, one of each
    kind. ``juncoes`` has each word's join to the previous word: the separator between them, or ``+`` inside the name of
    a municipality.
    """

    chaves: list[tuple[Chave, ...]]
    juncoes: list[str]


# The features of each kind of key. A feature lists the positions of its facts in the key. A key has few facts, so that
# most keys of a new address have already occurred in other addresses.
_FEATURES: Final[Mapping[str, tuple[tuple[int, ...], ...]]] = {
    # Facts: class of the word before, separator before, class
    "a": ((0, 1, 2), (1, 2), (1,), (0, 2)),
    # Facts: class, separator after, class of the word after
    "b": ((0, 1, 2), (0, 1), (1,), (1, 2)),
    # Facts: class of the second word before, class of the word before, class, class of the word after
    "c": ((0, 1, 2, 3), (0, 1, 2), (1, 2, 3)),
    # Facts: position in the name of a municipality, class, separator before, separator after, short form of the position
    "d": ((0, 1, 2, 3), (0,), (0, 1), (4, 2, 3)),
    # Facts: position in the name of a municipality, whether a street came before, whether a number came before, number
    # of segments left, whether the text is one segment, distance in segments from the street, number of municipalities
    # that follow, how many of these begin a segment, short form of the position, sign for the text after the name
    "e": (
        (0, 1, 2, 3, 4, 5),
        (0, 3),
        (0, 1, 2),
        (1, 2, 3, 4),
        (0, 5),
        (8, 6, 7, 9, 5),
        (8, 6),
        (8, 7, 9),
        (6, 7, 5),
    ),
    # Facts: distance in segments from the street, number of segments left, first class of the segment, class, number of
    # segments
    "f": ((0, 1, 2, 3, 4), (0, 1), (0, 2), (1, 2), (0, 1, 3), (2, 3), (0, 1, 4)),
    # Facts: class, whether a street, a number, a municipality and a state came before (four facts), separator before,
    # label of the field, the same label without its comma, whether the text has labels
    "g": (
        (1, 2, 3, 4, 0, 5),
        (1, 2, 0),
        (1, 2, 3, 4),
        (1, 2, 5, 0),
        (3, 4, 0),
        (6, 0, 8),
        (6,),
        (6, 8),
        (7, 0),
    ),
    # Facts: kind of the segment, position in the segment from its start, position from its end, first class of the
    # segment
    "h": ((0, 1, 2, 3), (0,), (0, 1, 2), (0, 3)),
    # Facts: first class of the segment, last class of the previous segment, first class of the next segment, length of
    # the segment
    "i": ((1, 2, 0, 3), (1, 0), (2, 0), (0, 3), (1, 2)),
}
TIPOS_DE_CHAVES: Final = tuple(_FEATURES)
# The features as (prefix of the feature's name, positions of its facts). The positions are one higher, because a key
# begins with its kind.
_NAMES: Final = {
    kind: [(f"{kind}{place:x}", [each + 1 for each in subset]) for place, subset in enumerate(subsets)]
    for kind, subsets in _FEATURES.items()
}
# The features of a word, in the order of ``fatos_da_palavra``: the word, its class, its shape, its end, its beginning.
_WORD_FEATURES: Final = "wcsfi"
LUGARES: Final = 5  # number of places of a word relative to the labelled word


def palavras(texto: str) -> list[Palavra]:
    found: list[Palavra] = []
    last = 0
    new = tuple.__new__  # faster than the constructor of a named tuple
    for each in _TOKEN.finditer(texto):
        said, (start, end) = each[0], each.span()
        gap = texto[last:start]
        kind = "^" if not last else "s" if gap == " " else _gap(gap)
        found.append(new(Palavra, (said, start, end, *_read(said), kind)))
        last = end
    if (
        texto.count("/") > 2 and sum(each.antes == "/" for each in found) > 2
    ):  # slashes separate the fields: SP/DIADEMA/CENTRO/R FOX/3
        return [each._replace(antes="b") if each.antes == "/" else each for each in found]
    return found


@lru_cache(maxsize=16384)
def _read(said: str) -> tuple[str, str]:
    plain = plano(said).rstrip(".")
    return plain, _class(plain)


@lru_cache(maxsize=1024)
def _gap(gap: str) -> str:
    """Return a short code for the text between two words: ``s`` for a space, ``g`` if the words touch, ``n`` for a line
    end, otherwise the punctuation character. Three characters have two codes, one without and one with a space beside
    the character: ``/`` and ``b`` for a slash, ``h`` and ``-`` for a hyphen, ``d`` and ``.`` for a full stop.
    """
    bare = gap.strip()
    if not bare or bare == "'":
        return "n" if "\n" in gap else "s" if gap and not bare else "g"
    if ":" in bare or "=" in bare:
        return ":"
    if ";" in bare or "|" in bare:
        return ";;" if bare.count(";") + bare.count("|") > 1 else ";"
    if "\n" in gap:
        return "n"
    for sign in "(),":
        if sign in bare:
            return sign
    for sign, glued, apart in (("/", "/", "b"), ("-", "h", "-"), (".", "d", ".")):
        if sign in bare:
            return apart if gap != bare else glued
    return "?"


@lru_cache(maxsize=16384)
def _class(word: str) -> str:
    if word == S_N:
        return "sn"
    if word[0].isdigit():
        return f"n{min(len(word.replace('.', '')), 5)}" if word[-1].isdigit() else "ordinal"
    known = CLASSES.get(word)
    if len(word) == 2 and word.upper() in ESTADOS:
        return f"{known}+uf" if known else "uf"
    if known:
        return known
    if len(word) == 1:
        return "letra"
    if len(word) > 5 and any(quase(word, full) for full in _TYPES_BY_LENGTH.get(len(word), ())):
        return "tipo"
    return "brasilia" if _BRASILIA.fullmatch(word) else "romano" if _ROMAN.fullmatch(word) else "p"


def forma(lidas: Sequence[Palavra]) -> Forma:
    texts, _, _, plain, classes, separators = zip(*lidas, strict=True)
    before = (*separators, "$")
    spans = lugares(plain, [each[-1] == "." for each in texts], before)
    labels = tuple(_labels(lidas, before)) if ":" in before else ()
    return Forma(classes, before, tuple(spans), labels)


def descrever(forma: Forma) -> Descricao:
    classes, before, spans, labels = forma
    count = len(classes)
    around = ["^", "^", *classes, "$"]
    ends = _segments(before, count)
    total = len(ends)
    labels = labels or ("",) * count
    has_labels = any(labels)
    names, whole = _later(spans)
    street = _street(classes)
    street_in = 0 if street is None else next(at for at, (_, end) in enumerate(ends) if street <= end)
    number = city = state = walked = False
    chaves: list[tuple[Chave, ...]] = []
    for its, (start, end) in enumerate(ends):
        head, size = classes[start], min(end - start, 4)
        left, most = min(total - its, 4), min(total, 6)
        behind = 9 if street is None else max(-4, min(4, its - street_in))
        few, near, is_one = min(left, 3), max(-3, min(3, behind)), total == 1
        kind, of_segment = _kind(classes, spans, start, end), ("i", head, around[start + 1], around[end + 3], size)
        sep = before[start]
        for i in range(start, end + 1):
            c, after, span, label = classes[i], before[i + 1], spans[i], labels[i]
            in_name, follows = (span[:2], span[2:3]) if span else ("", "")
            far, ahead = i - start if i < start + 3 else 3, end - i if i > end - 3 else 3
            chaves.append(
                (
                    ("a", around[i + 1], sep, c),
                    ("b", c, after, around[i + 3]),
                    ("c", around[i], around[i + 1], c, around[i + 3]),
                    ("d", span, c, sep, after, in_name),
                    ("e", span, walked, number, few, is_one, near, names[i], whole[i], in_name, follows),
                    ("f", behind, left, head, c, most),
                    ("g", c, walked, number, city, state, sep, label, label and label.rstrip(","), has_labels),
                    ("h", kind, far, ahead, head),
                    of_segment,
                )
            )
            if i == street:
                walked = True
            if c in _NUMBERS:
                number = True
            elif c == "uf":
                state = True
            if span and span[0] in "AL":
                city = True
            sep = after
    joins = ["+" if i and span and span[0] in "ALTE" and span[1] in "IE" else before[i] for i, span in enumerate(spans)]
    return Descricao(chaves, joins)


def _street(classes: Sequence[str]) -> int | None:
    """Return the position of the first street type, such as "Rua". If there is none, return the position of the first
    word that is typical of an address in Brasília or in a rural area. Return None if there is no such word either.
    """
    for i, each in enumerate(classes):
        if "tipo" in each and "rotulo" not in each:
            return i
    for i, each in enumerate(classes):
        if "brasilia" in each or "rural" in each or "sitio" in each:
            return i
    return None


def _segments(before: Sequence[str], count: int) -> list[tuple[int, int]]:
    """Divide the words of an address at strong separators, such as commas. Return the positions of the first and the
    last word of each segment.
    """
    if not count:
        return []
    starts = [i for i in range(1, count) if before[i][0] in STRONG]
    return [*zip([0, *starts], [*[each - 1 for each in starts], count - 1], strict=True)]


def _labels(lidas: Sequence[Palavra], before: Sequence[str]) -> list[str]:
    """Return a field code for each word of an address, taken from the typed label that precedes the word: words after
    "Bairro:" get ``b``. The label itself gets the same code with the prefix ``=``.
    """
    found: list[str] = []
    under = ""
    for i, each in enumerate(lidas):
        if before[i + 1] == ":":
            under = "mu" if found and found[-1] == "=m/" else ROTULOS.get(each.plana, "?")
            found.append(f"={under}")
        elif i + 2 < len(before) and before[i + 2] == ":" and before[i + 1] in "/bh-s" and each.plana in ROTULOS:
            found.append(f"={ROTULOS[each.plana]}/")  # Cidade/UF:
        else:
            is_next = before[i] in (";", ",", "n", "-", "b", ";;")
            found.append(f"{under}," if under and is_next else under)
    return found


def _kind(classes: Sequence[str], spans: Sequence[str], start: int, end: int) -> str:
    """Return a code for the content of an address segment: one word, the name of a municipality, words and a number, or
    words without a number.
    """
    if start == end:
        return f"1{classes[start]}{spans[start]}"
    is_name = spans[start][1:2] == "B" and spans[end][1:2] == "E"
    if is_name and all(spans[i][1:2] == "I" for i in range(start + 1, end)):
        return f"M{spans[start][0]}"
    has_number = not _NUMBERS.isdisjoint(classes[start : end + 1])
    return f"{'d' if has_number else 'w'}{min(end - start, 5)}"


def _later(spans: Sequence[str]) -> tuple[list[int], list[int]]:
    """Count, for each word of an address, the municipality names that begin after it, and how many of these names
    follow a separator. Counts are limited to 2.
    """
    names = whole = 0
    every_name, every_whole = [0] * len(spans), [0] * len(spans)
    for i in range(len(spans) - 1, -1, -1):
        every_name[i], every_whole[i], span = names, whole, spans[i]
        if span and span[0] in "ALT" and span[1] in "SB" and span[2] != "w":
            names, whole = min(2, names + 1), min(2, whole + (span[-1] == "|"))
    return every_name, every_whole


def indice(pesos: Pesos, tipo: str) -> list[tuple[Callable[[Chave], object], dict[object, int]]]:
    """Return the features of one kind of key (a list of facts about a word in an address). Each feature is a pair: a
    function that extracts the feature's facts from a key, and a dictionary with the weight of each combination of
    facts.
    """
    found: list[tuple[Callable[[Chave], object], dict[object, int]]] = []
    for prefix, places in _NAMES[tipo]:
        facts = ((tuple(map(_fact, said.split("\t"))), weight) for said, weight in pesos.get(prefix, {}).items())
        found.append((itemgetter(*places), {each if len(each) > 1 else each[0]: weight for each, weight in facts}))
    return found


def indice_das_palavras(pesos: Pesos) -> list[dict[str, tuple[int, ...]]]:
    """Return one dictionary for each fact in ``fatos_da_palavra``. It maps each value of the fact to its weights, one
    for each place relative to the labelled word (``tracos_da_palavra``).
    """
    found: list[dict[str, tuple[int, ...]]] = []
    for letter in _WORD_FEATURES:
        of_place = [pesos.get(f"{lugar}{letter}", {}) for lugar in range(LUGARES)]
        values = {value for weights in of_place for value in weights}
        found.append({value: tuple([weights.get(value, 0) for weights in of_place]) for value in values})
    return found


def _fact(said: str) -> object:
    """Parse a fact about a word, which a feature's name states as text: a number, a boolean or a string."""
    if said in ("True", "False"):
        return said == "True"
    return int(said) if said.lstrip("-").isdigit() else said


def tracos(chave: Chave) -> Iterator[str]:
    """Yield the names of the features of a key (a list of facts about a word in an address), as written in the weights
    file.
    """
    said = [*map(str, chave)]
    for prefix, places in _NAMES[said[0]]:
        yield prefix + "\t".join([said[each] for each in places])


def fatos_da_palavra(word: str) -> tuple[str, ...]:
    """Return the facts that a word's features use: the word, its class, its shape and, if it is long, its end and its
    beginning. The signs for the start and the end of an address have only the first fact.
    """
    if word in "^$":
        return (word,)
    facts = (word, _class(word), _shape(word))
    return (*facts, word[-4:], word[:3]) if len(word) > 4 else facts


def tracos_da_palavra(word: str, lugar: int) -> Iterator[str]:
    """Yield the names of a word's features. ``lugar`` is the word's position relative to the labelled word: 0 the
    labelled word itself, 1 the word before, 2 the word after, 3 the second word before, 4 the second word after.
    """
    facts = fatos_da_palavra(word)
    for letter, fact in zip(_WORD_FEATURES, facts if lugar == 0 else facts[:3], strict=False):
        yield f"{lugar}{letter}{fact}"


def _shape(word: str) -> str:
    return "0" * len(word) if word[0].isdigit() else "a" * min(len(word), 4)
