"""Read a doctor's answer to a request for feedback: a score from 1 to 5, or plain words. If the answer is unclear, a
person reads it.
"""

import re
from enum import StrEnum
from typing import Final

from app.contexts.comum.texto import fold
from batuta.kernel import dataclass

GREETING: Final = re.compile(r"\b(bom dia|boa tarde|boa noite|tudo bem\?)")
# Matches a score alone at the beginning, or after the word "nota". "5 horas" and "nota 10" are not scores.
MARK: Final = re.compile(
    r"^\W*([1-5])(?![\w]|[.,:/h]\d)(?:\s*/\s*5\b|\s+de\s+5\b)?(?=\s*(?:$|[^\w\s]|estrelas?\b|pontos?\b))"
    r"|^\W*([1-5])\s*(?:/|de)\s*5\b"
    r"|\bnota\s*+(?:(?:e|foi|:|=)\s*+)?([1-5])(?!\w|[.,]\d)"
)
GOOD: Final = re.compile(
    r"\b(otim[oa]|excelente|maravilhos[oa]|perfeit[oa]|bo[mn]s?|boas?|gostei|adorei|tranquil[oa]|sem problemas?|foi bem)\b"
)
BAD: Final = re.compile(
    r"\b(pessim[oa]|horrivel|terrivel|ruim|ruins|mal|decepcion\w+|desorganizad[oa]|caotic[oa]|caos|descaso|nunca mais"
    r"|atras\w+|problemas)\b"
)
FAIR: Final = re.compile(r"\b(regular|razoavel|mais ou menos|normal|medio)\b")
NEGATION: Final = re.compile(r"\b(nao|nada|nem|nunca|pouco)\b")


class Avaliacao(StrEnum):
    POSITIVA = "positiva"
    NEUTRA = "neutra"
    NEGATIVA = "negativa"
    INDEFINIDA = "indefinida"


@dataclass(frozen=True, slots=True)
class AvaliacaoLida:
    """A doctor's answer to a request for feedback, as Julia read it. ``nota`` is None if the text has no score."""

    avaliacao: Avaliacao
    nota: int | None = None


def avaliar(texto: str) -> AvaliacaoLida:
    """Read a doctor's answer to a request for feedback. The class is INDEFINIDA if the score contradicts the words, or
    if there is no score and the words are unclear or negated.
    """
    plain = GREETING.sub(" ", fold(texto))
    found = MARK.search(plain)
    nota = None if found is None else int(next(each for each in found.groups() if each))
    words = _words(plain)
    if nota is None:
        return AvaliacaoLida(words or Avaliacao.INDEFINIDA)
    by_mark = Avaliacao.NEGATIVA if nota < 3 else Avaliacao.NEUTRA if nota == 3 else Avaliacao.POSITIVA
    disagrees = {words, by_mark} == {Avaliacao.POSITIVA, Avaliacao.NEGATIVA}
    return AvaliacaoLida(Avaliacao.INDEFINIDA if disagrees else by_mark, nota)


def _words(plain: str) -> Avaliacao | None:
    """Return the feedback class that words such as "gostei" (I liked it) express. Return None if the text has no such
    words, or if they are contradictory, negated or part of a question.
    """
    kinds = [
        kind
        for kind, words in ((Avaliacao.POSITIVA, GOOD), (Avaliacao.NEGATIVA, BAD), (Avaliacao.NEUTRA, FAIR))
        if words.search(plain.replace("sem problemas", " gostei "))
    ]
    return kinds[0] if len(kinds) == 1 and "?" not in plain and not NEGATION.search(plain) else None
