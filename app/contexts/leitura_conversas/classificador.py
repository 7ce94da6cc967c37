"""A linear model that predicts whether a text is an opt-out, and the text's class.

``features`` turns the sentences of a ``Texto`` into three sets of hashes. The first set has character n-grams of two to
five letters. The second set has words, sequences of two and three words, and pairs and triples of the meanings in
``lexico.toml`` and of the semantic fields in ``campos.toml``. The third set has sequences of concepts (``conceitos``).

The weights are in three files, which ``python -m tests.julia.leitura_conversas.train`` writes. ``classificador.json``
contains the calibration and the weights of words and letters for opt-outs. ``conceitos.json`` contains the weights of
concepts. ``classes.json`` contains the weights for the classes, one byte per feature and class. The prediction needs
only the standard library.
"""

import base64
import json
import lzma
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import pairwise, product
from math import exp, sqrt
from operator import xor
from pathlib import Path
from typing import Any, Final, NamedTuple

from app.contexts.leitura_conversas.conceitos import concept_features
from app.contexts.leitura_conversas.lexico import fields
from app.contexts.leitura_conversas.texto import Frase, Palavra, Texto
from batuta.kernel import dataclass

FILE: Final = Path(__file__).parent / "classificador.json"
CONCEPTS: Final = Path(__file__).parent / "conceitos.json"
CLASSES: Final = Path(__file__).parent / "classes.json"
# The files that the training writes.
FILES: Final = (FILE, CONCEPTS, CLASSES)
SIZE: Final = 1 << 19
_MASK: Final = SIZE - 1
_PIECES: Final = range(2, 6)
# Number of letters on each side of a space in character n-grams that span the space.
_SIDE: Final = 3
# Two words that are this far apart form a pair, in addition to neighbours. For a triple, the two distances are those
# between its first two words and between its last two.
_GAPS: Final = range(2, 5)
_GAPS_OF_TRIPLES: Final = tuple(product(range(1, 4), range(1, 3)))
_MEANINGS: Final = 3
# Meanings that are ignored: a word with one of them is hashed as the word itself.
_LIGHT: Final = frozenset(("LEVE",))
_CACHED: Final = 65_536


class Tracos(NamedTuple):
    """The hashed features of a text or a sentence in three sets: character n-grams, words with their meanings, and
    concepts.
    """

    letras: Set[int]
    palavras: Set[int]
    conceitos: Set[int]


class Atributos(NamedTuple):
    """The features of a whole text and of each of its sentences."""

    texto: Tracos
    frases: tuple[Tracos, ...]


def features(texto: Texto) -> Atributos:
    """Return the hashed features of a text, by which the model classifies it. The running time is linear in the length
    of the text.
    """
    distinct = texto.distinct()
    parts = tuple(_sentence(frase) for frase in distinct)
    if len(parts) == 1 and not texto.citadas:
        return Atributos(parts[0], parts)
    count = sum(len(frase.palavras) for frase in distinct)
    general = _general(count, len(distinct), is_quoting=bool(texto.citadas))
    nothing: frozenset[int] = frozenset()
    whole = Tracos(
        nothing.union(*(each.letras for each in parts)),
        general.union(*(each.palavras for each in parts)),
        nothing.union(*(each.conceitos for each in parts)),
    )
    return Atributos(whole, parts)


def _sentence(frase: Frase) -> Tracos:
    words = [_read(each) for each in frase.palavras]
    letters: set[int] = set()
    letters.update(*[each.pieces for each in words])
    letters.update(*[_across(left.end, right.start) for left, right in pairwise(words)])
    end = _END_OF_QUESTION if frase.is_question() else _END
    row, firsts, lasts = zip(_START.salted, *[each.salted for each in words], end.salted, strict=True)
    found = _combinations(*map(_columns, (row, firsts, lasts)))
    for sign in frase.sinais:
        found.update(_hash(f"e{name}") for name in (sign.texto, *sign.marcas))
    if frase.fim:
        found.update(_hash(f"!{mark}") for mark in "?!" if mark in frase.fim)
    found.update(_general(len(words), 1, is_quoting=False))
    return Tracos(letters, found, concept_features(frase, _MASK))


class _Salgada(NamedTuple):
    """Hashes of one word or meaning. There is one hash for the word alone, and one for each position in a pair or a
    triple of words. The hash of a pair or triple is the XOR of the hashes of its words.
    """

    alone: int
    before: int
    after: int
    well_before: int
    well_after: int
    first: int
    second: int
    third: int


class _Colunas(NamedTuple):
    """The hashes of all words in a sentence, as one tuple for each position that a word can have in a pair or a triple
    of words.
    """

    alone: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    well_before: tuple[int, ...]
    well_after: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    third: tuple[int, ...]


class _Palavra(NamedTuple):
    """The hashed features of one word. ``salted`` has the hashes of the word, of its first meaning and of its last
    meaning. ``pieces`` has its character n-grams. ``start`` and ``end`` are its first and last letters.
    """

    salted: tuple[_Salgada, _Salgada, _Salgada]
    pieces: Set[int] = frozenset()
    start: str = ""
    end: str = ""


@lru_cache(maxsize=_CACHED)
def _read(palavra: Palavra) -> _Palavra:
    """Return a word's hashed features. If the lexicon has no meanings for the word, its semantic fields and the word
    itself are used as meanings.
    """
    texto = palavra.texto
    names: Sequence[str] = sorted(palavra.marcas - _LIGHT)[:_MEANINGS] or (*fields().get(texto, ()), texto)
    line = f" {texto} ".encode()
    pieces = (line[at : at + size] for size in _PIECES for at in range(len(line) - size + 1))
    return _Palavra(
        (_salt(f"w{texto}"), _salt(f"m{names[0]}"), _salt(f"m{names[-1]}")),
        frozenset(zlib.crc32(piece, len(piece)) & _MASK for piece in pieces),
        texto[:_SIDE],
        texto[-_SIDE:],
    )


def _salt(name: str) -> _Salgada:
    # CRC32 is unsuitable: the XOR of CRCs depends too little on the order of the members.
    digest = blake2b(name.encode(), digest_size=4 * len(_Salgada._fields)).digest()
    return _Salgada(*(int.from_bytes(digest[at : at + 4], "big") & _MASK for at in range(0, len(digest), 4)))


@lru_cache(maxsize=_CACHED)
def _across(left: str, right: str) -> frozenset[int]:
    """Return the character n-grams that contain the space between two words. ``left`` is the end of the first word, and
    ``right`` is the start of the second.
    """
    line, space = f"{left} {right}".encode(), len(left.encode())
    starts = ((size, at) for size in _PIECES for at in range(max(0, space - size + 2), space))
    return frozenset(zlib.crc32(line[at : at + size], size) & _MASK for size, at in starts if at + size <= len(line))


def _columns(salted: Sequence[_Salgada]) -> _Colunas:
    return _Colunas(*zip(*salted, strict=True))


def _combinations(words: _Colunas, firsts: _Colunas, lasts: _Colunas) -> set[int]:
    """Return the hashes of words, of sequences of two and three words, of single meanings, and of pairs and triples of
    meanings that are close to each other. Each word contributes its first and its last meaning. A triple has either
    only first or only last meanings.
    """
    found = {*words.alone, *firsts.alone, *lasts.alone}
    found.update(map(xor, words.before, words.after[1:]), _triples(words, 1, 1))
    for left, right in product((firsts, lasts), repeat=2):
        found.update(map(xor, left.before, right.after[1:]))
        found.update(*[map(xor, left.well_before, right.well_after[gap:]) for gap in _GAPS])
    for names in (firsts, lasts):
        found.update(*[_triples(names, gap, further) for gap, further in _GAPS_OF_TRIPLES])
    return found


def _triples(names: _Colunas, gap: int, further: int) -> Iterator[int]:
    return map(xor, map(xor, names.first, names.second[gap:]), names.third[gap + further :])


@cache
def _general(words: int, sentences: int, *, is_quoting: bool) -> frozenset[int]:
    names = (f"words{words.bit_length()}", f"sentences{min(sentences, 4)}", *(("quoting",) if is_quoting else ()))
    return frozenset(_hash(name) for name in names)


def _hash(name: str) -> int:
    return zlib.crc32(name.encode()) & _MASK


def _edge(name: str) -> _Palavra:
    return _Palavra((_salt(f"w{name}"), _salt(f"m{name}"), _salt(f"m{name}")))


_START, _END, _END_OF_QUESTION = _edge("^"), _edge("$"), _edge("$?")


@dataclass(frozen=True, slots=True)
class Pesos:
    """The weights of one output of the model. To save memory, each weight is stored as one byte, which is multiplied by
    ``scale``.
    """

    weights: "array[int]"
    scale: float
    bias: float

    def score(self, found: Collection[int]) -> float:
        total = sum(map(self.weights.__getitem__, found))
        return self.bias + self.scale * total / sqrt(max(1, len(found)))

    def best(self, found: Iterable[Collection[int]]) -> float:
        return max(map(self.score, found))


def logistic(score: float) -> float:
    return 1 / (1 + exp(-max(-30.0, min(30.0, score))))


@dataclass(frozen=True, slots=True)
class Classificador:
    """The trained model for inbound texts. ``outputs`` has the weights of each class and of four other outputs:
    ``opt_out`` (opt-out by words), ``letras`` (opt-out by letters), ``conceitos`` (opt-out by concepts) and ``certo``
    (whether an opt-out is certain). The module ``leitor`` uses ``calibration`` and ``limits`` to turn scores into a
    decision.
    """

    outputs: Mapping[str, Pesos]
    calibration: Mapping[str, Mapping[str, float]]
    limits: Mapping[str, float]


@cache
def read_weights() -> Classificador:
    read, *more = (json.loads(file.read_text(encoding="utf-8")) for file in FILES)
    outputs = {name: _unpack(each) for part in (read, *more) for name, each in part["outputs"].items()}
    return Classificador(outputs, read["calibration"], read["limits"])


def _unpack(packed: Mapping[str, Any]) -> Pesos:
    weights = array("b", lzma.decompress(base64.b64decode(packed["weights"])))
    return Pesos(weights, packed["scale"], packed["bias"])
