"""Apply the words for open and taken that follow the shifts of a rota: "SD ok / SN aberto", "manhã Dr. X, tarde livre".

Taken shifts are removed. From an open shift, only the word is removed, so that the rules can read the shift.
"""

import re
from datetime import date

from app.contexts.leitura_grupos.blocos.escrita import Linha, inteiro
from app.contexts.leitura_grupos.texto.texto import contem
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario

LONGA = 200
TOMADOS = " (preenchidos)"
_TURNO = (
    r"(?:sd|sn|diurno|noturno|manha|tarde|noite|dia|\d{1,2}h? ?(?:-|/|as|a) ?\d{1,2}h?(?!\d|/)|[dnmt])"
    r"(?: ?\(\d{1,2} ?[-/] ?\d{1,2}\))?"
)
_TOMADO = (
    r"(?:ok|okay|complet[ao]|fechad[ao]|cobert[ao]|preenchid[ao]|ocupad[ao]|lotad[ao]|reservad[ao]|garantid[ao]|resolvid[ao]"
    r"|(?:ja )?tem (?:medic[ao]|gente|dono)|ja (?:foi|tem)|dra?\b\.? ?[a-z]{2,15})"
)
_ABERTO = r"(?:abert[ao]|vag[ao]|livre|falta(?:ndo)?|descobert[ao]|disponivel|precisa|furo|sos|a cobrir)"
_PAR = re.compile(
    rf"(?<![\w/])(?P<turno>{_TURNO})[*_]{{0,2}} ?[:=>(-]{{0,2}} ?[*_]{{0,2}}(?<=[ *_:=>(-])"
    rf"(?:(?P<tomado>{_TOMADO})|(?P<aberto>{_ABERTO}))(?![a-z])[*_)]{{0,3}}(?P<resto>[ ,;/|e]{{0,5}})"
)
# A text that contains none of these parts of words has no word for a taken shift after a shift.
_PARTES = (
    "ok",
    "complet",
    "fechad",
    "cobert",
    "preenchid",
    "ocupad",
    "lotad",
    "reservad",
    "garantid",
    "resolvid",
    "tem",
    "foi",
    "dr",
)
_ABERTOS = ("abert", "vag", "livre", "falta", "descob", "dispon", "precisa", "furo", "sos", "a cobrir")


def aplica(plano: str) -> bool:
    """Return whether a text says of at least one shift that it is open, and of at least one that it is taken."""
    if not contem(plano, _PARTES) or not contem(plano, _ABERTOS):
        return False
    states = {each["aberto"] is not None for each in _PAR.finditer(plano)}
    return len(states) == 2


def reescrever(found: list[Linha], hoje: date, vocabulario: Vocabulario) -> list[Linha]:
    if not aplica(inteiro(found)):
        return found
    return [each if len(each.texto) > LONGA or "\t" in each.texto else _aplicado(each) for each in found]


def _aplicado(line: Linha) -> Linha:
    pairs = [*_PAR.finditer(line.plano)]
    is_taken = bool(pairs) and not any(each["aberto"] for each in pairs)
    for each in reversed(pairs):
        if each["aberto"]:
            line = line.trocada(each.end("turno"), each.start("resto"), " ")
        elif not is_taken:
            line = line.trocada(*each.span(), " ")
    return line.com(len(line.texto), TOMADOS) if is_taken else line
