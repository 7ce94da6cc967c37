"""Remove the shifts of a rota that are marked as taken by the word or doctor's name after them: "SD ok / SN aberto",
"manhã Dr. X, tarde livre".

For an open shift, only the word after it ("aberto") is removed, so that the rules can read the shift.
"""

import re
from datetime import date
from operator import itemgetter

from app.contexts.leitura_grupos.blocos.escrita import Linha, inteiro, letras
from app.contexts.leitura_grupos.texto.texto import chave, contem
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario, palavras_soltas, todas_as_palavras

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
_ABERTO = r"(?:_{2,}|\?+|abert[ao]|vag[ao]|livre|falta(?:ndo)?|descobert[ao]|disponivel|precisa|furo|sos|a cobrir)"
_PAR = re.compile(
    rf"(?<![\w/])(?P<turno>{_TURNO})[*_]{{0,2}} ?[:=>(-]{{0,2}} ?[*_]{{0,2}}(?<=[ *_:=>(-])"
    rf"(?:(?P<tomado>{_TOMADO})|(?P<aberto>{_ABERTO}))(?![a-z])[*_)]{{0,3}}(?P<resto>[ ,;/|e]{{0,5}})"
)
_CONTAGEM = re.compile(r" ?\d(?!\w|[.,/:]\d)(?: ?vagas?\b)?")
_LETRAS = {"d": "SD", "n": "SN", "m": "manhã", "t": "tarde"}
_PERGUNTA = re.compile(r"[dn)][*_]{0,2}[ :=>-]{1,3}\?")
# Matches a shift with the name of its doctor: "SD Fulano |", "SN: Fulana".
_COM_NOME = re.compile(
    r"(?<![\w/])(?:SD|SN|D|N)\b(?P<fim>[ :=-]{1,3}(?P<nome>[A-ZÀ-Ý][a-zà-ÿ]{2,14})(?: [A-ZÀ-Ý]\.?)?)"
    r"[ ]*(?=[/|,;\n]|$|(?:SD|SN|D|N)\b ?[:=-])"
)
# A text that contains none of these signs and parts of words has no word for an open shift after a shift.
_ABERTOS = ("__", "??", "abert", "vag", "livre", "falta", "descob", "dispon", "precisa", "furo", "sos", "a cobrir")


def aplica(fonte: str, plano: str) -> bool:
    """Return whether a text marks at least one shift as open and at least one as taken. A doctor's name after a shift
    also marks it as taken, provided that at least two shifts have such a name.
    """
    if not contem(plano, _ABERTOS) and ("?" not in plano or _PERGUNTA.search(plano) is None):
        return False
    states = [each["aberto"] is not None for each in _PAR.finditer(plano)]
    return True in states and (False in states or len(_nomes(fonte)) > 1)


def reescrever(found: list[Linha], hoje: date, vocabulario: Vocabulario) -> list[Linha]:
    if not aplica(letras(found), inteiro(found)):
        return found
    return [each if len(each.texto) > LONGA or "\t" in each.texto else _aplicado(each) for each in found]


def _aberto(line: Linha, found: re.Match[str]) -> Linha:
    """Remove the word for an open shift, and the number of vacancies after it. A single letter, which names a shift only
    next to a day, becomes the usual abbreviation: "N falta 1" becomes "SN".
    """
    count = _CONTAGEM.match(line.plano, found.start("resto"))
    line = line.trocada(found.end("turno"), found.start("resto") if count is None else count.end(), " ")
    letter = _LETRAS.get(found["turno"])
    return line if letter is None else line.trocada(*found.span("turno"), letter)


def _nomes(fonte: str) -> list[re.Match[str]]:
    known = todas_as_palavras() - palavras_soltas("cidades_em_nomes")
    return [each for each in _COM_NOME.finditer(fonte) if chave(each["nome"]) not in known]


def _aplicado(line: Linha) -> Linha:
    pairs = [(each.start(), each, each["aberto"] is not None) for each in _PAR.finditer(line.plano)]
    starts = {start for start, _, _ in pairs}
    pairs += [(each.start(), each, False) for each in _nomes(line.texto) if each.start() not in starts]
    pairs.sort(key=itemgetter(0))
    is_taken = bool(pairs) and not any(is_open for _, _, is_open in pairs)
    for _, each, is_open in reversed(pairs):
        if is_open:
            line = _aberto(line, each)
        elif not is_taken:
            line = line.trocada(*each.span(), " ")
    return line.com(len(line.texto), TOMADOS) if is_taken else line
