"""Assign prices in the order of their shifts: "Clínica: 10/08 SN / Orto: 11/08 SD. 1.500 e 1.800 respectivamente"."""

import re
from collections.abc import Sequence
from itertools import groupby, pairwise

from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import linha_de
from app.contexts.leitura_grupos.montagem.condicoes_de_preco import Regra
from app.contexts.leitura_grupos.montagem.linhas import Bloco

_AND = re.compile(r" {0,2}e {0,2}(?:r\$ {0,2})?")
_OR_SIGN = re.compile(r" {0,2}(?:[/|,]|e) {0,2}(?:r\$ {0,2})?")


def em_ordem(folha: Folha, regras: Sequence[Regra], blocos: Sequence[Bloco]) -> None:
    """Assign adjacent prices without conditions in order: one per line with days, or one per day if only one line has
    days.
    """
    if not 2 <= len(regras) <= 12 or any(each.condicoes or each.preco.liquido for each in regras):
        return
    is_explicit = "respectivamente" in folha.texto.plano
    between = _OR_SIGN if is_explicit else _AND
    prices = [each.preco for each in regras]
    if not all(between.fullmatch(folha.livre, one.fim, two.inicio) for one, two in pairwise(prices)):
        return
    dated = [each for each in blocos if each.dias is not None]
    lines = [list(each) for _, each in groupby(dated, key=lambda each: linha_de(folha.texto.plano, each.inicio))]
    groups = lines if len(lines) > 1 else [[each] for each in dated]
    if len(groups) != len(regras):
        return
    for each in blocos:
        each.regras = []
    for rule, group in zip(regras, groups, strict=True):
        for each in group:
            each.regras = [rule]
