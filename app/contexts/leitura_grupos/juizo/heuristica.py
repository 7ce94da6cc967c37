"""Score how much a message looks like an offer, by four kinds of signals. Several signals of the same kind score only
once.
"""

import re

from app.contexts.leitura_grupos.juizo.fechamentos import fecha
from app.contexts.leitura_grupos.texto.texto import Texto
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario, frases
from app.contexts.leitura_grupos.tipos import Nota

CURTA = 15
PESOS = {"plantao": 0.30, "hospital": 0.25, "especialidade": 0.25, "valor": 0.20}
_VALOR = re.compile(r"r?\$ ?\d|\b\d[\d.,]{0,9} ?(?:k\d{0,3}|mil|reais|conto)\b|\b\d\.\d{3}\b|\b\d{2,3} ?/ ?h\b")
_DATA = re.compile(r"\b\d{1,2}/\d{1,2}\b|\b\d{1,2}h\b|\bdias? \d{1,2}\b")


def heuristica(texto: str, *, vocabulario: Vocabulario | None = None) -> Nota:
    """Score from 0 to 1 how much a text looks like an offer. A text's length does not lower the score, because the
    longest texts have the most vacancies.

    The signal "fechado" (a vacancy is taken) adds nothing to the score, because such a text need not contain an offer.
    """
    return nota(Texto.de(texto), vocabulario or Vocabulario.padrao())


def nota(lido: Texto, vocabulario: Vocabulario) -> Nota:
    if not lido.fonte.strip():
        return Nota(0.0, "texto_vazio")
    signs = frozenset(_sinais(lido, vocabulario))
    closing = ("fechado",) if fecha(lido) else ()
    if len(lido.fonte.strip()) < CURTA and len(signs) < 2:
        return Nota(0.0, "muito_curta", closing)
    score = round(sum(weight for sign, weight in PESOS.items() if sign in signs), 2)
    ordered = (*(sign for sign in PESOS if sign in signs), *closing)
    if not signs & {"plantao", "hospital"} and next(frases("negativas").todas(lido.palavras), None) is not None:
        return Nota(score, "keyword_negativa", ordered)
    return Nota(score, "sinais" if score else "score_baixo", ordered)


def _sinais(lido: Texto, vocabulario: Vocabulario) -> set[str]:
    found = {
        each.valor.removeprefix("sinais.") for each in frases("sinais.plantao", "sinais.hospital").todas(lido.palavras)
    }
    if "plantao" not in found and _DATA.search(lido.plano):
        found.add("plantao")
    if "hospital" not in found and next(vocabulario.hospitais.todas(lido.palavras), None) is not None:
        found.add("hospital")
    if next(vocabulario.especialidades.todas(lido.palavras), None) is not None:
        found.add("especialidade")
    if _VALOR.search(lido.plano):
        found.add("valor")
    return found
