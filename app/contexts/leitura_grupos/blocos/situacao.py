"""Rewrite rota rows that end with a doctor's name or with a word for an open shift: "02/04 SN – VAGO", "03/04 SN – Dra.
X".
"""

import re
from datetime import date

from app.contexts.leitura_grupos.blocos.celula import Tipo, celula
from app.contexts.leitura_grupos.blocos.escrita import Linha
from app.contexts.leitura_grupos.texto.texto import dobrado
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario

LONGA = 160
TOMADA = " (preenchido)"
_ULTIMA = re.compile(r"^.*(?:\s[-–—>=]{1,2}\s*|[;:|→\t]\s*)(?P<fim>[^;:|→\t\n]{0,40})$")
_PREENCHIDA = re.compile(r"(?:ja )?(?:complet[ao]s?|lotad[ao]s?|chei[ao]s?|ok|nada|nenhum[a]?|sem vagas?)")
# Matches a row with a day and a dash instead of a shift: "qua 11: -".
_SO_TRACO = re.compile(
    r"[^\w\n]{0,6}(?:dia )?(?:\d{1,2}(?:/\d{1,2})?|[a-z-]{3,13})(?:[ ,.(]{1,3}(?:\d{1,2}(?:/\d{1,2})?|[a-z-]{3,13}))?\)?"
    r"(?: ?: ?| {1,3})-{1,3}"
)
_COM_TURNO = re.compile(r"\d ?(?:\(?[a-z-]{3,13}\)?)?[ :(-]{1,3}(?:s[dn]|[dnmt]|diurno|noturno|manha|tarde|noite)\b")
_NOME = re.compile(r"(?:[Dd]ra?\.? )?[A-ZÀ-Ý][a-zà-ÿ]{2,}(?: (?:d[aeo]s? )?[A-ZÀ-Ý][a-zà-ÿ]+){0,3}")
# Faster patterns. A text without a match of ``_SINAIS`` cannot match ``_ULTIMA``. A text without the start of a name
# cannot match ``_NOME``.
_SINAIS = re.compile(r"[-–—>=;:|→\t]")
_INICIO_DE_NOME = re.compile(r"[A-ZÀ-Ý][a-zà-ÿ]{2}")
_TURNO = re.compile(r"\W{0,6}(?:s[dn]|[dnmt]|diurno|noturno|manha|tarde|noite|dia)\b {0,2}(?:[:>=-]|$)")
_DIA = re.compile(r"\d{1,2} ?/ ?\d{1,2}|\b(?:seg|ter|qua|qui|sex|sab|dom)[a-z]{0,6}\b|^\W{0,6}(?:dia )?\d{1,2}\b")


def reescrever(found: list[Linha], hoje: date, vocabulario: Vocabulario) -> list[Linha]:
    """Mark the rows of a rota that end with a doctor's name as taken, provided that another row is marked as open."""
    ends = [_ultima(each) for each in found]
    found = _com_palavras(found, ends)
    if not any(each is not None and _INICIO_DE_NOME.search(each["fim"]) for each in ends):
        return found
    states = [
        None if last is None else _estado(each, last, vocabulario) for each, last in zip(found, ends, strict=True)
    ]
    if True not in states or False not in states:
        return found
    return [
        each.com(len(each.texto), TOMADA) if state is False else each for each, state in zip(found, states, strict=True)
    ]


def _com_palavras(found: list[Linha], ends: list[re.Match[str] | None]) -> list[Linha]:
    """Mark the rows of a rota whose last cell is a word such as "completo" (full) as taken, provided that another row
    ends with other content.
    """
    taken = [
        each is not None
        and (_PREENCHIDA.fullmatch(dobrado(each["fim"]).strip(" *_.!")) or _SO_TRACO.fullmatch(line.plano.strip()))
        is not None
        for each, line in zip(ends, found, strict=True)
    ]
    others = [
        line
        for place, line in enumerate(found)
        if not taken[place] and (ends[place] is not None or _COM_TURNO.search(line.plano) is not None)
    ]
    if True not in taken or not others:
        return found
    return [each.com(len(each.texto), TOMADA) if taken[place] else each for place, each in enumerate(found)]


def _ultima(line: Linha) -> re.Match[str] | None:
    """Return the last cell of a table row that contains a day or begins with a shift. Return None for any other line."""
    text = line.texto.rstrip(" *_.")
    if len(text) > LONGA or _SINAIS.search(text) is None or (last := _ULTIMA.search(text)) is None:
        return None
    return last if _DIA.search(line.plano) or _TURNO.match(line.plano) else None


def _estado(line: Linha, last: re.Match[str], vocabulario: Vocabulario) -> bool | None:
    """Return what the last cell of a table row says about the shift: True for open, False for taken, None for neither."""
    cell = celula(line, last.start("fim"), last.end(), vocabulario)
    if cell.tipo is Tipo.ABERTA or (cell.tipo is Tipo.VAZIA and last["fim"].strip(" _") == ""):
        return True
    is_person = _NOME.fullmatch(cell.linha.texto) is not None and cell.tipo in (Tipo.FECHADA, Tipo.OUTRA)
    return False if is_person else None
