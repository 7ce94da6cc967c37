"""Rewrite unusual forms of hours: military style ("das 0700h às 1900h"), start and end in two cells ("07:00; 19:00"),
or hours with a slash that look like a day and a month ("sex 09 19/7").
"""

import re
from datetime import date

from app.contexts.leitura_grupos.blocos.escrita import Linha, dito, inteiro, juntas, letras
from app.contexts.leitura_grupos.texto.texto import contem
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario

_MILITARES = re.compile(r"(?<![\w.,$/])(?P<h>[01]\d|2[0-3])(?P<m>[0-5]\d) ?h(?:s|rs|oras)?\b")
_HORA = r"(?:[01]?\d|2[0-4])(?::[0-5]\d|h(?:[0-5]\d)?)"
_CELULAS = re.compile(
    rf"(?<![\w:/-])(?P<das>{_HORA})(?P<entre>\s{{0,3}}(?:;|\||>{{1,2}}|→|\t)\s{{0,3}})(?P<ate>{_HORA})(?![\w:-])"
)
_DATADA = re.compile(r"\d ?/ ?\d|\b(?:seg|ter|qua|qui|sex|sab|dom|hoje|amanha)|\d{3,}")


_INICIO = re.compile(rf"\W{{0,8}}(?:inicio|entrada|comeco|chegada)\W{{1,8}}(?P<h>{_HORA})\W{{0,4}}")
_FIM = re.compile(rf"\W{{0,8}}(?:termino|fim|final|saida)\W{{1,8}}(?P<h>{_HORA})\W{{0,4}}")


_BARRA = re.compile(r"(?<![\d/])(?P<das>\d{1,2}) ?/ ?(?P<ate>\d{1,2})(?![\d/])")
_SEMANA = r"\b(?:seg|ter|qua|qui|sex|sab|dom)[a-z.-]{0,10}"
# Faster patterns and parts of words. A text that has none of them has no layout of hours of this kind.
_HORA_DE_BARRA = re.compile(r"/ ?(?:1[3-9]|2[0-4])(?![\d/])")
_FINS = ("termino", "fim", "final", "saida")
_QUATRO = re.compile(r"\d{4} ?h")
# Matches hours with a slash behind a label: "Horário: 19/07".
_ROTULADAS = re.compile(
    r"\b(?:horarios?|hora|turno|periodo|plantao)[ *_]{0,3}:[ *_]{0,3}"
    r"(?P<faixa>(?P<das>0?[1678]|1[389]|20) ?/ ?(?P<ate>0?[178]|1[389]|20))(?![\d/])"
)
_ROTULOS = ("hora", "horario", "turno", "periodo", "plantao")
_SEPARADORES = (";", "|", ">", "→", "\t")
_DIA_ANTES = re.compile(
    rf"{_SEMANA}[ ,(]{{1,2}}\d{{1,2}}\b(?! ?/)|\b\d{{1,2}}(?: ?/ ?|[.-](?=\d\d))(?P<mes>0?[1-9]|1[0-2])\b"
)
_DIA_E_SEMANA = re.compile(rf"\b\d{{1,2}} {{1,2}}{_SEMANA}\W{{0,3}}$")
_SO_SEMANA = re.compile(rf"{_SEMANA}\W{{0,3}}$")


# Matches a shift with the days of its start and of its end: "13/08 19h até sexta 14/08 7h", "início 13/08 19h, fim 14/08 7h".
_COM_FIM = re.compile(
    rf"(?P<d>\d(?<!\d\d)\d?)(?: ?/ ?\d{{1,2}})?(?: ?\(?{_SEMANA}\)?)?[ ,-]{{1,3}}(?:[aà]s )?(?P<das>{_HORA})"
    rf"(?P<liga>[ ,;)-]{{1,3}}(?:ate|a|as|fim|termino|final)[ :]{{1,2}}(?:o )?(?:dia )?(?:{_SEMANA}[ ,(]{{1,2}})?"
    rf"(?P<ate>\d{{1,2}})(?: ?/ ?\d{{1,2}})?(?: ?\(?{_SEMANA}\)?)?[ ,-]{{1,3}}(?:[aà]s )?)(?P<hora>{_HORA})(?![\w:])"
)


# Matches the hour before the words that lead to the end of a shift.
_ATE = re.compile(r"\d[dh]?[ ,;)-]{1,3}(?:ate|a|as|fim|termino|final)[ :]")


def _sem_o_fim(line: Linha) -> Linha:
    """Remove the end day of a shift from a line, if it is the day after the start: "dia 10 19h até dia 11 7h"."""
    if len(line.texto) > 400 or _ATE.search(line.plano) is None:
        return line
    for each in reversed([*_COM_FIM.finditer(line.plano)]):
        if int(each["ate"]) in (int(each["d"]) + 1, 1):
            line = line.trocada(*each.span("liga"), " às ")
    return line


def reescrever(found: list[Linha], hoje: date, vocabulario: Vocabulario) -> list[Linha]:
    plano = inteiro(found)
    if "/" in plano and _HORA_DE_BARRA.search(plano) is not None:
        found = _sem_barras(found)
    if "/" in plano and contem(plano, _ROTULOS) and _ROTULADAS.search(plano) is not None:
        found = [_sem_barra_no_rotulo(each) for each in found]
    if contem(plano, _FINS):
        found = _sem_rotulos(found)
    if _ATE.search(plano) is not None:
        found = [_sem_o_fim(each) for each in found]
    if _QUATRO.search(plano) is not None:
        found = [_com_dois_pontos(each) for each in found]
    return [_com_faixa(each) for each in found] if contem(letras(found), _SEPARADORES) else found


def _sem_barras(found: list[Linha]) -> list[Linha]:
    """Replace "19/7" after a day with "19h-7h" if the message also contains "7/19". There is no month 19, so "7/19"
    must be hours.
    """
    pairs = [(each, [*_BARRA.finditer(each.plano)]) for each in found]
    hours = {(pair["ate"], pair["das"]) for _, on_line in pairs for pair in on_line if 12 < int(pair["ate"]) <= 24}
    if not hours:
        return found
    result = []
    for line, on_line in pairs:
        for pair in reversed(on_line):
            is_day = pair["das"] == pair["ate"] and int(pair["das"]) in (7, 8, 19)
            if ((pair["das"], pair["ate"]) in hours or is_day) and _segue_um_dia(line.plano, pair):
                line = line.trocada(*pair.span(), f"{pair['das']}h-{pair['ate']}h")
        result.append(line)
    return result


def _segue_um_dia(plano: str, pair: re.Match[str]) -> bool:
    """Return whether two numbers with a slash are hours, because a day precedes them ("sex 09 19/7"). If that day has
    the same month ("18/7 e 19/7"), the numbers are another date and not hours.
    """
    before = plano[max(0, pair.start() - 40) : pair.start()]
    if _DIA_E_SEMANA.search(before):
        return True
    if _SO_SEMANA.search(before):
        return False
    months = [each["mes"] for each in _DIA_ANTES.finditer(before)]
    return any(month is None or int(month) != int(pair["ate"]) for month in months)


def _sem_barra_no_rotulo(line: Linha) -> Linha:
    """Replace the slash in hours behind a label by the sign for a range: "Horário: 19/07" becomes "Horário: 19h-07h"."""
    for each in reversed([*_ROTULADAS.finditer(line.plano)]):
        line = line.trocada(*each.span("faixa"), f"{each['das']}h-{each['ate']}h")
    return line


def _sem_rotulos(found: list[Linha]) -> list[Linha]:
    """Join two adjacent lines that state the start and the end of a shift: "Início: 08:00" and "Término: 20:00"."""
    result: list[Linha] = []
    for each in found:
        end = _FIM.fullmatch(each.plano) if result and len(each.texto) < 40 else None
        start = _INICIO.fullmatch(result[-1].plano) if end is not None else None
        if end is None or start is None:
            result.append(each)
            continue
        parts = (result[-1].parte(*start.span("h")), each.parte(*end.span("h")))
        result[-1] = juntas((dito("das", parts[0]), parts[0], dito("às", parts[1]), parts[1]), "")
    return result


def _com_dois_pontos(line: Linha) -> Linha:
    """Insert a colon into hours in military style: "1900h" becomes "19:00"."""
    for each in reversed([*_MILITARES.finditer(line.plano)]):
        line = line.trocada(*each.span(), f"{each['h']}:{each['m']}")
    return line


def _com_faixa(line: Linha) -> Linha:
    """Join the start and the end of a shift that are in two cells of a table row. A row with more than two hours stays
    unchanged, because its hours are columns of the table.
    """
    if ":" not in line.texto and "h" not in line.texto:
        return line
    plano = "".join("\t" if char == "\t" else plain for char, plain in zip(line.texto, line.plano, strict=True))
    pairs = [*_CELULAS.finditer(plano)]
    if len(pairs) != 1 or len(re.findall(_HORA, plano)) != 2 or not _DATADA.search(plano):
        return line
    return line.trocada(*pairs[0].span("entre"), "-")
