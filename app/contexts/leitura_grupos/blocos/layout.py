"""The list of blocks in the order in which they are applied. To support a new layout, add a block."""

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import TypeAlias

from app.contexts.leitura_grupos.blocos import extenso, horas, legenda, mes, pontilhado, situacao, tabela
from app.contexts.leitura_grupos.blocos.escrita import Linha, escrita, linhas
from app.contexts.leitura_grupos.texto.texto import Texto
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario

Bloco: TypeAlias = Callable[[list[Linha], date, Vocabulario], list[Linha]]
BLOCOS: tuple[Bloco, ...] = (
    pontilhado.reescrever,
    extenso.reescrever,
    legenda.reescrever,
    horas.reescrever,
    situacao.reescrever,
    tabela.reescrever,
    mes.reescrever,
)
# Matches signs of a layout. A text without a match has only ordinary lines.
_LAYOUT = re.compile(
    r"[|;\t]|[^\s] {2,}\S|^[^\w\n]{0,12}\d{1,2}\W|[:>→➜➡=(-]\W{0,4}\d{1,2}\b|\d ?[(\[]?[DNMTS]|\d{4} ?[hH]\b|[-–—] ?D[Rr]"
    r"|\d ?/ ?(?:1[3-9]|2[0-4])\b|\d[A-Za-z]{3}|\d (?:do corrente|d[eo]ss?t?e m[eê]s)|\.{4}|[Dd]ias? [a-z]|[\]■-◿☐-☒🟠-🟫]",
    re.MULTILINE,
)


def escrito(fonte: str, hoje: date, vocabulario: Vocabulario, blocos: Sequence[Bloco] = BLOCOS) -> Texto:
    """Return a message whose tables and calendars are rewritten as lists."""
    if _LAYOUT.search(fonte) is None:
        return Texto.de(fonte, vocabulario.grafias)
    before = after = linhas(fonte)
    for rewrite in blocos:
        after = rewrite(after, hoje, vocabulario)
    if len(before) == len(after) and all(one is two for one, two in zip(before, after, strict=True)):
        return Texto.de(fonte, vocabulario.grafias)
    return Texto.de(fonte, vocabulario.grafias, escrita(after))
