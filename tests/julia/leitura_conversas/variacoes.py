"""Sentences used only for training: altered copies of labelled sentences, and sentences generated from patterns with
slots.

A copy keeps the labels of its original, but has additional greetings, typos, abbreviations or look-alike letters.
``moldes.toml`` contains the patterns.
"""

import random
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.julia.leitura_conversas.frases import Rotulada

FRASES = Path(__file__).parent / "frases"
AROUND = tomllib.loads((FRASES / "em_volta.toml").read_text(encoding="utf-8"))
PATTERNS = tomllib.loads((FRASES / "moldes.toml").read_text(encoding="utf-8"))
JOINTS = (". ", ", ", "! ", "\n", " ", "... ")
SHORT = {
    "você": "vc", "vocês": "vcs", "não": "n", "mensagem": "msg", "mensagens": "msgs", "quero": "qro", "que": "q", "para": "p",
    "também": "tb", "mais": "+", "número": "nr", "nada": "nd", "de": "d", "me": "mi",
}  # fmt: skip
NEIGHBOURS = {
    "a": "sq", "e": "wr", "i": "uo", "o": "ip", "m": "n", "n": "m", "r": "t", "t": "r", "s": "a", "d": "s", "c": "v", "g": "f",
}  # fmt: skip
CYRILLIC = str.maketrans("aeopcxy", "аеорсху")
DIGITS = str.maketrans("aeio", "4310")
LONGEST = 160


def fill(each_pattern: int, chance: random.Random) -> list[Rotulada]:
    """Return up to ``each_pattern`` different sentences for each pattern, with random words in the slots."""
    found = (
        Rotulada(_fill(texto, chance), pattern["opt_out"], pattern["classe"])
        for pattern in PATTERNS["moldes"]
        for texto in pattern["textos"]
        for _ in range(each_pattern)
    )
    return list(dict.fromkeys(found))


def _fill(pattern: str, chance: random.Random) -> str:
    filled = re.sub(r"\{(\w+)\}", lambda slot: chance.choice(PATTERNS["lacunas"][slot[1]]), pattern)
    return filled.replace("não não ", "não ")


def vary(rows: Sequence[Rotulada], copies: int, chance: random.Random) -> list[Rotulada]:
    """Return up to ``copies`` altered copies of each sentence, with its labels."""
    changed = ((each, _change(each.texto, chance)) for each in rows for _ in range(copies))
    return [replace(each, texto=texto) for each, texto in changed if texto != each.texto]


def _change(texto: str, chance: random.Random) -> str:
    if chance.random() < 0.5 and len(texto) < LONGEST:
        texto = _surround(texto, chance)
    drawn = chance.random()
    changes: tuple[tuple[float, Callable[[str, random.Random], str]], ...] = (
        (0.3, _mistype), (0.5, _abbreviate), (0.65, _disguise),
    )  # fmt: skip
    return next((change(texto, chance) for below, change in changes if drawn < below), texto)


def _surround(texto: str, chance: random.Random) -> str:
    drawn = chance.random()
    if drawn < 0.75:
        texto = chance.choice(AROUND["before"]) + chance.choice(JOINTS) + texto
        if chance.random() < 0.3:
            texto = chance.choice(AROUND["before"]) + chance.choice(JOINTS) + texto
    return texto + chance.choice(JOINTS[:3]) + chance.choice(AROUND["after"]) if drawn > 0.4 else texto


def _mistype(texto: str, chance: random.Random) -> str:
    words = texto.split(" ")
    long = [at for at, word in enumerate(words) if len(word) >= 4 and word.isalpha()]
    for at in chance.sample(long, min(len(long), 1 + (len(words) > 8))):
        words[at] = _slip(words[at], chance)
    return " ".join(words)


def _slip(word: str, chance: random.Random) -> str:
    at, drawn = chance.randrange(1, len(word)), chance.random()
    if drawn < 0.35:
        return word[:at] + word[at + 1 :]
    if drawn < 0.6:
        return word[:at] + word[at : at + 2][::-1] + word[at + 2 :]
    if drawn < 0.8:
        return word[: at + 1] + word[at:]
    return word[:at] + chance.choice(NEIGHBOURS.get(word[at].lower(), "a")) + word[at + 1 :]


def _abbreviate(texto: str, chance: random.Random) -> str:
    return " ".join(SHORT.get(word.lower(), word) if chance.random() < 0.6 else word for word in texto.split(" "))


def _disguise(texto: str, chance: random.Random) -> str:
    drawn = chance.random()
    if drawn < 0.25:
        return texto.upper()
    if drawn < 0.4:
        return texto.translate(CYRILLIC)
    if drawn < 0.55:
        return texto.translate(DIGITS) if len(texto) < 40 else texto.upper()
    if drawn < 0.7 and len(texto) < 14:
        return " ".join(texto)
    if drawn < 0.85:
        return texto + chance.choice(("!!!", "!!", "...", "🙏", ".", " kk"))
    return "".join(letter * (3 if chance.random() < 0.08 else 1) for letter in texto)
