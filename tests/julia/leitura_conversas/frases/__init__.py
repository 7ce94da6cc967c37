"""Labelled sentences, one file per author: ``dev`` for development, ``unseen`` only for computing scores.

People who change the reader may read only the sentences in ``dev``. Commands and tests print scores for ``unseen``, but
none of its sentences.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.contexts.leitura_conversas.classificador import FILES, features
from app.contexts.leitura_conversas.texto import separate

DEV, UNSEEN = "dev", "unseen"
# The label of an opt-out in a set that does not distinguish certo from provavel.
SIM = "sim"


@dataclass(frozen=True, slots=True)
class Rotulada:
    texto: str
    opt_out: str
    classe: str = ""


def authors(part: str) -> list[str]:
    return sorted(file.stem for file in (Path(__file__).parent / part).glob("*.jsonl"))


def sentences(part: str, autor: str) -> Iterator[Rotulada]:
    for line in (Path(__file__).parent / part / f"{autor}.jsonl").read_text(encoding="utf-8").splitlines():
        yield Rotulada(**json.loads(line))


def digest() -> int:
    """Return a checksum of the training input: the labels, the features and the sentences with slots."""
    return _digest(each=1)


def digest_of_sample() -> int:
    """Return a checksum of part of the training input: the text of every sentence, but the features of only one
    sentence in ten. Computing the features of all sentences takes ten times as long.
    """
    return _digest(each=10)


def _digest(each: int) -> int:
    found = 0
    for autor in authors(DEV):
        for number, frase in enumerate(sentences(DEV, autor)):
            if each > 1:
                found = zlib.crc32(f"{frase.opt_out} {frase.classe} {frase.texto}".encode(), found)
            if number % each == 0:
                found = zlib.crc32(f"{frase.opt_out} {frase.classe} {_numbers(frase.texto)}".encode(), found)
    for file in sorted(Path(__file__).parent.glob("*.toml")):
        found = zlib.crc32(file.read_bytes(), found)
    return found


def _numbers(texto: str) -> list[list[int]]:
    read = features(separate(texto))
    return [sorted(part) for part in (*read.texto, *(part for frase in read.frases for part in frase))]


def digest_of_weights() -> str:
    """Return a checksum of the files that the training script writes for the reader."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in FILES)).hexdigest()
