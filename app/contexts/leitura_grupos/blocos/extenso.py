"""Replace days written in words, as in a transcribed voice message: "dias vinte e seis e vinte e sete de setembro"."""

import re
from datetime import date

from app.contexts.leitura_grupos.blocos.escrita import Linha, inteiro
from app.contexts.leitura_grupos.texto.texto import MESES, achados, contem
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario

_UNIDADES = ("um", "dois", "tres", "quatro", "cinco", "seis", "sete", "oito", "nove")
_DEZENAS = {"dez": 10, "vinte": 20, "trinta": 30}
_OUTROS = {
    name: number
    for number, name in enumerate(
        ("onze", "doze", "treze", "quatorze", "quinze", "dezesseis", "dezessete", "dezoito", "dezenove"), 11
    )
} | {"primeiro": 1, "catorze": 14}
_UNIDADE = "|".join(_UNIDADES)
_NUMERO = rf"(?:(?:vinte|trinta) e (?:{_UNIDADE})|{'|'.join((*_DEZENAS, *_OUTROS, *_UNIDADES))})\b"
_DIAS = re.compile(rf"\bdias? (?P<lista>{_NUMERO}(?:(?:, | e | a | ate ){_NUMERO}){{0,8}})")
_DATAS = re.compile(
    r"(?<!rua )(?<!avenida )(?<!av )(?<!av\. )(?<!praca )(?<!hospital )(?<!vila )(?<!jardim )(?<!bairro )(?<!upa )(?<!ubs )"
    rf"\b(?P<lista>{_NUMERO}) de (?:{'|'.join(MESES)})\b"
)
_CADA = re.compile(_NUMERO)


def reescrever(found: list[Linha], hoje: date, vocabulario: Vocabulario) -> list[Linha]:
    plano = inteiro(found)
    if _DIAS.search(plano) is None and not contem(plano, MESES):
        return found
    return [_em_algarismos(each) if " " in each.texto else each for each in found]


def _em_algarismos(line: Linha) -> Linha:
    plano = line.plano
    found = [*achados(_DIAS, plano, "dia"), *(_DATAS.finditer(plano) if contem(plano, MESES) else ())]
    spans = {each.start("lista"): each for each in found}
    for _, days in sorted(spans.items(), reverse=True):
        for each in reversed([*_CADA.finditer(line.plano, *days.span("lista"))]):
            line = line.trocada(*each.span(), str(_valor(each[0])))
    return line


def _valor(said: str) -> int:
    first, _, unit = said.partition(" e ")
    return (_DEZENAS.get(first) or _OUTROS.get(first) or _UNIDADES.index(first) + 1) + (
        _UNIDADES.index(unit) + 1 if unit else 0
    )
