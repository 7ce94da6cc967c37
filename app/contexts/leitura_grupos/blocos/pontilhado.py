"""Rewrite rows whose columns are joined by dots, as in a printed list: "19 ........ SD"."""

import re
from datetime import date

from app.contexts.leitura_grupos.blocos.escrita import Linha, letras
from app.contexts.leitura_grupos.texto.texto import contem
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario

_PONTOS = re.compile(r" {0,4}(?:\.{4,}|…{2,}|(?:\. ){4,}) {0,4}(?=\S)")


def reescrever(found: list[Linha], hoje: date, vocabulario: Vocabulario) -> list[Linha]:
    if not contem(letras(found), ("....", "……", ". . ")):
        return found
    return [_sem_pontos(each) for each in found]


def _sem_pontos(line: Linha) -> Linha:
    for each in reversed([*_PONTOS.finditer(line.texto)]):
        line = line.trocada(*each.span(), " - ")
    return line
