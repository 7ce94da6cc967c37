"""Mark the shifts of a published rota as taken. Each of its lines with a day names the doctor of every shift: "01 SN
Fulano", "Sáb SD Fulano | SN Beltrana".
"""

import re
from datetime import date

from app.contexts.leitura_grupos.blocos.celula import Tipo, celula
from app.contexts.leitura_grupos.blocos.escrita import Linha, inteiro
from app.contexts.leitura_grupos.texto.texto import chave
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario, municipios, todas_as_palavras

LONGA, MINIMO = 120, 3
TOMADOS = " (preenchidos)"
_TURNO = r"(?:sd|sn|diurno|noturno|manha|tarde|noite|dia|[dnmt])"
_NOME = r"(?:dra?\.? )?[a-z]{3,15}(?: (?:d[aeo]s? )?[a-z]{1,15}\.?){0,2}"
_SEMANA = r"(?:seg|ter|qua|qui|sex|sab|dom)[a-z]{0,5}(?:-feira)?"
_CADA = re.compile(rf"\b{_TURNO}[ :=–—-]{{1,3}}(?P<nome>{_NOME})[ *_]{{0,3}}(?:[/|,;][ *_]{{0,3}}|$)")
_DIA = re.compile(
    rf"[^\w\n]{{0,6}}(?:dia )?(?:\d{{1,2}}(?: ?/ ?\d{{1,2}})?(?:[ ,(]{{1,2}}{_SEMANA}\)?)?"
    rf"|{_SEMANA}(?:[ ,(]{{1,2}}\d{{1,2}}(?:/\d{{1,2}})?\)?)?)"
    rf"[ ,:|–—-]{{1,4}}(?={_TURNO}\b)"
)
# A message with a price, a telephone number or a word for an open shift is not a published rota.
_OFERTA = re.compile(
    r"\d{3}|r\$|\d ?k\b|\b(?:vag[ao]s?|abert[ao]s?|precis[a-z]+|procur[a-z]+|disponive(?:l|is)|combinar|inbox|pv|privado"
    r"|falta[a-z]*|urgente|descobert[ao]s?|livres?|passo|repasso|troco|interessad[ao]s?)\b"
)


def reescrever(found: list[Linha], hoje: date, vocabulario: Vocabulario) -> list[Linha]:
    """Mark each line with a day as taken, if all such lines name a doctor behind each shift."""
    days = [each for each in found if len(each.texto) <= LONGA and _DIA.match(each.plano) is not None]
    if not days or _OFERTA.search(inteiro(found)) is not None:
        return found
    counts = [_nomes(each, vocabulario) for each in days]
    if 0 in counts or sum(counts) < MINIMO:
        return found
    taken = {id(each) for each in days}
    return [each.com(len(each.texto), TOMADOS) if id(each) in taken else each for each in found]


def _nomes(line: Linha, vocabulario: Vocabulario) -> int:
    """Return the number of shifts on a line, each of which a doctor's name follows. Return 0 if the line has other
    content.
    """
    day = _DIA.match(line.plano)
    at = 0 if day is None else day.end()
    end, count = len(line.plano.rstrip(" *_.")), 0
    while at < end:
        each = _CADA.match(line.plano, at, end)
        if each is None or not _is_name(line, *each.span("nome"), vocabulario):
            return 0
        at, count = each.end(), count + 1
    return count


def _is_name(line: Linha, start: int, end: int, vocabulario: Vocabulario) -> bool:
    cell = celula(line, start, end, vocabulario)
    words = chave(cell.linha.texto).split()
    if words[0] in ("dr", "dra"):
        return True
    if cell.tipo is not Tipo.OUTRA or not cell.linha.texto[:1].isupper():
        return False
    return todas_as_palavras().isdisjoint(words[:1]) and " ".join(words) not in municipios()
