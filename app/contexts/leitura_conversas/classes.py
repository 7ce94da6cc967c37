"""Find the class of a text that is not an opt-out: acceptance, refusal, question, request for a person, objection,
confirmation.
"""

from typing import Final

from app.contexts.leitura_conversas.padroes import named
from app.contexts.leitura_conversas.texto import Texto
from app.contexts.leitura_conversas.tipos import Classe

_SURE: Final = 0.8
_LIKELY: Final = 0.6
_UNSURE: Final = 0.3

WANTS_PERSON = named("classes", "wants_person")
_CONFIRMS = named("classes", "confirms")
_ACCEPTS = named("classes", "accepts")
_REFUSES = named("classes", "refuses")
_OBJECTS = named("classes", "objects")
_ASKS = named("classes", "asks")


def classify(texto: Texto) -> tuple[Classe, float, str]:
    """Return the class, its confidence, and the words that decided."""
    for classe, shape, needs_question in _ORDER:
        for frase in texto.frases:
            match = shape.search(frase)
            if match is None or (needs_question is not None and needs_question != frase.is_question()):
                continue
            start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
            return classe, _SURE if classe is not Classe.RECUSA else _LIKELY, frase.words(start, end)
    for frase in texto.frases:
        if frase.is_question():
            return Classe.PERGUNTA, _SURE, frase.words(0, 4)
    return Classe.OUTRO, _UNSURE, ""


_ORDER: Final = (
    (Classe.HUMANO, WANTS_PERSON, None),
    (Classe.OBJECAO, _OBJECTS, None),
    (Classe.ACEITE, _ACCEPTS, False),
    (Classe.PERGUNTA, _ASKS, None),
    (Classe.CONFIRMACAO, _CONFIRMS, False),
    (Classe.RECUSA, _REFUSES, False),
)
