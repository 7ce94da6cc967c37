"""A linear model of the opt-out and of the class of a text.

``features`` turns the sentences of ``texto`` into two lists of hashed numbers. The first list has pieces of two to five letters.
The second has words, two and three words in a row, and pairs and triples of the meanings in ``lexico.toml`` and of the fields in
``campos.toml``. ``classificador.json`` contains the calibration and the weights of the opt-out, ``classes.json`` those of the
classes: one byte per feature and output. ``python -m tests.julia.leitura_conversas.train`` writes both files. The prediction needs
only the standard library.
"""

import base64
import json
import lzma
import zlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import exp, sqrt
from pathlib import Path
from typing import Any, Final

from app.contexts.leitura_conversas.lexico import fields
from app.contexts.leitura_conversas.texto import Frase, Palavra, Texto

FILE: Final = Path(__file__).parent / "classificador.json"
CLASSES: Final = Path(__file__).parent / "classes.json"
SIZE: Final = 1 << 19
_PIECES: Final = range(2, 6)
_REACH: Final = 4
_REACH_OF_THIRD: Final = 2
_MEANINGS: Final = 3
# A word of these meanings counts as the word itself: the meaning only lets a pattern skip it.
_LIGHT: Final = frozenset(("LEVE",))


@dataclass(frozen=True, slots=True)
class Tracos:
    """Hashed features: pieces of letters; words and meanings."""

    letras: tuple[int, ...]
    palavras: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Atributos:
    """The features of a whole text and of each of its sentences."""

    texto: Tracos
    frases: tuple[Tracos, ...]


def features(texto: Texto) -> Atributos:
    """Return the features of a text. The running time is linear in the length of the text."""
    distinct = list({frase.escrita + frase.fim[:1]: frase for frase in texto.frases}.values())
    letters, words = [_letters(frase) for frase in distinct], [_words(frase) for frase in distinct]
    count = sum(len(frase.palavras) for frase in distinct)
    general = _general(count, len(distinct), is_quoting=bool(texto.citadas))
    parts = [
        _sort(pieces, found | _general(len(frase.palavras), 1, is_quoting=False))
        for pieces, found, frase in zip(letters, words, distinct, strict=True)
    ]
    return Atributos(_sort(set().union(*letters), general.union(*words)), tuple(parts))


def _sort(letras: Collection[int], palavras: Collection[int]) -> Tracos:
    return Tracos(tuple(sorted(letras)), tuple(sorted(palavras)))


def _general(words: int, sentences: int, *, is_quoting: bool) -> set[int]:
    found = {_hash(f"words{words.bit_length()}"), _hash(f"sentences{min(sentences, 4)}")}
    return found | {_hash("quoting")} if is_quoting else found


def _letters(frase: Frase) -> set[int]:
    line = f" {' '.join(each.texto for each in frase.palavras)} ".encode()
    return {zlib.crc32(line[at : at + size], size) % SIZE for size in _PIECES for at in range(len(line) - size + 1)}


def _words(frase: Frase) -> set[int]:
    words = ["^", *(each.texto for each in frase.palavras), "$?" if frase.is_question() else "$"]
    names: list[Sequence[str]] = [words[:1], *map(_names, frase.palavras), words[-1:]]
    found = {_hash(f"w{word}") for word in words}
    found.update(_hash(f"w{left} {right}") for left, right in pairwise(words))
    found.update(_hash(f"t{' '.join(words[at : at + 3])}") for at in range(len(words) - 2))
    found.update(_hash(name) for name in _combinations(names))
    for sign in frase.sinais:
        found.update(_hash(f"e{name}") for name in (sign.texto, *sign.marcas))
    found.update(_hash(f"!{mark}") for mark in "?!" if mark in frase.fim)
    return found


def _names(palavra: Palavra) -> Sequence[str]:
    """Return the meanings of a word, or else its fields and the word itself."""
    return sorted(palavra.marcas - _LIGHT)[:_MEANINGS] or (*fields().get(palavra.texto, ()), palavra.texto)


def _combinations(names: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield single meanings, and pairs and triples of meanings that are near each other."""
    for at, firsts in enumerate(names):
        for first in firsts:
            yield f"m{first}"
            for second_at in range(at + 1, min(len(names), at + 1 + _REACH)):
                gap = "_" if second_at > at + 1 else " "
                thirds = [name for third in names[second_at + 1 : second_at + 1 + _REACH_OF_THIRD] for name in third]
                for second in names[second_at]:
                    pair = f"{first}{gap}{second}"
                    yield f"m{pair}"
                    if second_at < at + _REACH:
                        yield from (f"M{first}_{second}_{third}" for third in thirds)


def _hash(name: str) -> int:
    return zlib.crc32(name.encode()) % SIZE


@dataclass(frozen=True, slots=True)
class Pesos:
    """The weights of one output. A weight is a byte times ``scale``."""

    weights: "array[int]"
    scale: float
    bias: float

    def score(self, found: Collection[int]) -> float:
        total = sum(map(self.weights.__getitem__, found))
        return self.bias + self.scale * total / sqrt(max(1, len(found)))


def logistic(score: float) -> float:
    return 1 / (1 + exp(-max(-30.0, min(30.0, score))))


@dataclass(frozen=True, slots=True)
class Classificador:
    """The trained model. ``outputs`` has the weights of each class, of ``opt_out`` and of ``certo``. ``leitor`` uses
    ``calibration`` and ``limits`` to turn scores into a decision.
    """

    outputs: Mapping[str, Pesos]
    calibration: Mapping[str, float]
    limits: Mapping[str, float]


@cache
def read_weights() -> Classificador:
    read, classes = (json.loads(file.read_text(encoding="utf-8")) for file in (FILE, CLASSES))
    outputs = {name: _unpack(each) for name, each in (read["outputs"] | classes["outputs"]).items()}
    return Classificador(outputs, read["calibration"], read["limits"])


def _unpack(packed: Mapping[str, Any]) -> Pesos:
    weights = array("b", lzma.decompress(base64.b64decode(packed["weights"])))
    return Pesos(weights, packed["scale"], packed["bias"])
