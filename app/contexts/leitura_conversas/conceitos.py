"""Turn a sentence's concepts into features. ``conceitos.toml`` gives each known word one concept, and every other word
is skipped. Optional words therefore do not separate a verb from its negation and its object: after the first concept,
"pode tirar, por gentileza, o meu nome" and "tira meu nome" have the same sequence.
"""

import tomllib
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from app.contexts.leitura_conversas.lexico import fold
from app.contexts.leitura_conversas.texto import Frase

_FILE: Final = Path(__file__).parent / "conceitos.toml"
# Maximum number of concepts in a sequence, with and without the forms of verbs.
_LONGEST, _LONGEST_PLAIN = 5, 4
# Maximum distance between two concepts that count as a pair.
_FARTHEST: Final = 6
_COMMA: Final = ","
_ENDINGS: Final = {
    "ar": {
        "pedido": ("ar", "a", "e", "em", "es", "arem", "asse", "assem", "emos", "armos"),
        "gerundio": ("ando",),
        "eu": ("o", "ei", "ava", "amos"),
        "fato": ("ou", "aram", "am", "avam"),
        "participio": ("ado", "ada", "ados", "adas"),
    },
    "er": {
        "pedido": ("er", "e", "a", "am", "as", "erem", "esse", "essem"),
        "gerundio": ("endo",),
        "eu": ("o", "i", "ia", "emos"),
        "fato": ("eu", "eram", "em", "iam"),
        "participio": ("ido", "ida", "idos"),
    },
    "ir": {
        "pedido": ("ir", "i", "e", "a", "am", "as", "irem", "isse", "issem"),
        "gerundio": ("indo",),
        "eu": ("o", "i", "ia", "imos"),
        "fato": ("iu", "iram", "em", "iam"),
        "participio": ("ido", "ida", "idos"),
    },
}


def concept_features(frase: Frase, mask: int) -> set[int]:
    """Return the hashes of all sequences of concepts in a sentence, and of pairs of concepts that are not adjacent."""
    found = [_COMMA if each.texto == _COMMA else _concepts().get(each.texto, "") for each in frase.palavras]
    row = ["^", *(each for each in found if each), "$?" if frase.is_question() else "$"]
    joined = [each for each in row if each != _COMMA]
    plain = [each.partition(".")[0] for each in joined]
    names = {
        *_sequences("c", row, _LONGEST),
        *_sequences("c", joined, _LONGEST),
        *_sequences("b", plain, _LONGEST_PLAIN),
        *(f"s{plain[left]}~{plain[right]}" for left, right in _pairs(len(plain))),
    }
    return {zlib.crc32(name.encode()) & mask for name in names}


def _sequences(kind: str, row: Sequence[str], longest: int) -> Iterator[str]:
    for size in range(1, longest + 1):
        for at in range(len(row) - size + 1):
            yield kind + "|".join(row[at : at + size])


def _pairs(length: int) -> Iterator[tuple[int, int]]:
    for left in range(length):
        for right in range(left + 2, min(length, left + _FARTHEST + 1)):
            yield left, right


@cache
def _concepts() -> dict[str, str]:
    """Map each word's phonetic form to the word's concept. For a verb, the concept also names the verb form:
    ``TIRA.pedido``.
    """
    read = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for name, verbs in read["verbos"].items():
        for verb in verbs:
            for form, written in _forms(verb):
                found.setdefault(fold(written), f"{name}.{form}")
    for table in ("formas", "palavras"):
        found.update({fold(word): name for name, words in read[table].items() for word in words})
    return found


def _forms(verb: str) -> Iterator[tuple[str, str]]:
    stem, ending = verb[:-2], verb[-2:]
    for form, suffixes in _ENDINGS[ending].items():
        for suffix in suffixes:
            yield form, _before_e(stem) + suffix if ending == "ar" and suffix[0] == "e" else stem + suffix


def _before_e(stem: str) -> str:
    """Return the stem of a verb in -ar as it is spelled before the letter e: "ligar" has "ligu", "abdicar" has
    "abdiqu".
    """
    return stem[:-1] + "qu" if stem.endswith("c") else stem + "u" if stem.endswith("g") else stem
