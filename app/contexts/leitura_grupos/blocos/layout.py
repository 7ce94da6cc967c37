"""The list of rules that rewrite layouts of group messages, such as tables and calendars, in the order in which they
are applied. A new layout needs a new rule.
"""

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import TypeAlias

from app.contexts.leitura_grupos.blocos import (
    estados,
    extenso,
    horas,
    legenda,
    mes,
    pontilhado,
    publicada,
    situacao,
    tabela,
)
from app.contexts.leitura_grupos.blocos.escrita import Linha, escrita, linhas
from app.contexts.leitura_grupos.texto.texto import MESES, Texto, contem, dobrado
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario

Bloco: TypeAlias = Callable[[list[Linha], date, Vocabulario], list[Linha]]
BLOCOS: tuple[Bloco, ...] = (
    pontilhado.reescrever,
    extenso.reescrever,
    legenda.reescrever,
    horas.reescrever,
    publicada.reescrever,
    estados.reescrever,
    situacao.reescrever,
    tabela.reescrever,
    mes.reescrever,
)
# Signs of a layout. A text that matches none of the patterns has only ordinary lines. Each pattern begins with a set of
# characters or a letter, so that a search is fast.
_SINAIS = re.compile(r"[|;\t\]■-◿☐-☒🟠-🟫]")
_PALAVRAS = re.compile(r"[^\s] {2,}\S|[-–—] ?D[Rr]|\.{4}|[Dd]ias? [a-z]")
_NUMEROS = re.compile(
    r"\d(?: ?[(\[]?[DNMTS]|\d{3} ?[hH]\b| ?/ ?(?:1[3-9]|2[0-4])\b|[A-Za-z]{3}| (?:do corrente|d[eo]ss?t?e m[eê]s))"
)
_ANTES_DO_NUMERO = re.compile(r"[:>→➜➡=(-]\W{0,4}\d{1,2}\b")
_NA_LINHA = re.compile(r"\n[^\w\n]{0,12}\d{1,2}\W")
_NA_PRIMEIRA = re.compile(r"[^\w\n]{0,12}\d{1,2}\W")
_DE_MES = tuple(f" de {each[:3]}" for each in MESES)
_DIA_POR_EXTENSO = re.compile(
    r"(?:[dtr]ois|um|[sr][eê]s|tro|nco|eis|te|to|ove|nze|oze|eze|rze|dez|nta|eiro)"
    r" de (?:jan|fev|mar|abr|mai|jun|jul|ago|set|out|nov|dez)",
    re.IGNORECASE,
)
# Matches the hour at which a shift starts, before the day on which it ends.
_ATE_OUTRO_DIA = re.compile(
    r"\dh?[ ,)-]{1,3}(?:at[eé]|[aà]s?|fim|t[eé]rmino|final)[ :][^\n]{0,16}\d{1,2}[ ,]", re.IGNORECASE
)
# Matches italics: "_quarta_".
_ITALICO = re.compile(r"(?<![\w_])_(?P<texto>[^\s_](?:[^_\n]{0,80}[^\s_])?)_(?![\w_])")
_ALGARISMO = re.compile(r"\d")
# Parts of words. A text that contains none of them cannot match ``_PALAVRAS`` and is not searched.
_PARTES = ("  ", "Dr", "DR", "....", "dia", "Dia")


def _tem_layout(fonte: str) -> bool:
    if _SINAIS.search(fonte) is not None or (contem(fonte, _PARTES) and _PALAVRAS.search(fonte) is not None):
        return True
    if " de " in fonte and contem(fonte.lower(), _DE_MES) and _DIA_POR_EXTENSO.search(fonte) is not None:
        return True
    if _ALGARISMO.search(fonte) is None:
        return False
    if estados.aplica(fonte, dobrado(fonte)):
        return True
    return (
        _NUMEROS.search(fonte) is not None
        or _ANTES_DO_NUMERO.search(fonte) is not None
        or _ATE_OUTRO_DIA.search(fonte) is not None
        or _NA_LINHA.search(fonte) is not None
        or _NA_PRIMEIRA.match(fonte) is not None
    )


def escrito(fonte: str, hoje: date, vocabulario: Vocabulario, blocos: Sequence[Bloco] = BLOCOS) -> Texto:
    """Return the message with its tables and calendars rewritten as lists."""
    if "_" in fonte:
        fonte = _ITALICO.sub(r" \g<texto> ", fonte)
    if not _tem_layout(fonte):
        return Texto.de(fonte, vocabulario.grafias)
    before = after = linhas(fonte)
    for rewrite in blocos:
        after = rewrite(after, hoje, vocabulario)
    if len(before) == len(after) and all(one is two for one, two in zip(before, after, strict=True)):
        return Texto.de(fonte, vocabulario.grafias)
    return Texto.de(fonte, vocabulario.grafias, escrita(after))
