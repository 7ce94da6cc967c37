"""Labelled sentences, one file per author: ``dev`` for development, ``unseen`` only for figures.

People who change the reader read only the sentences of ``dev``. Commands and tests print figures of ``unseen``, but no
sentence.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.contexts.leitura_conversas.classificador import CLASSES, FILE, features
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
    """Return a checksum of the input of the training: the labels, the features and the sentences with slots."""
    found = 0
    for autor in authors(DEV):
        for each in sentences(DEV, autor):
            read = features(separate(each.texto))
            numbers = [sorted(part) for part in (*read.texto, *(part for frase in read.frases for part in frase))]
            found = zlib.crc32(f"{each.opt_out} {each.classe} {numbers}".encode(), found)
    for file in sorted(Path(__file__).parent.glob("*.toml")):
        found = zlib.crc32(file.read_bytes(), found)
    return found


def digest_of_weights() -> str:
    """Return a checksum of the two files that the training writes for the reader."""
    return hashlib.sha256(FILE.read_bytes() + CLASSES.read_bytes()).hexdigest()
