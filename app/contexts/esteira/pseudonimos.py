"""Replace people's names, numbers and addresses in a group message before it is sent to a language model. Restore them
in the answer.

The rules find contacts' phone numbers and names, and replace each by a numbered mark. They also replace names after a
title, street addresses, and all data that the log masks (CPF, e-mail addresses, other numbers).
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from app.contexts.leitura_grupos.api import Texto, Vocabulario, folha
from batuta.kernel import dataclass, mask_text

LONGEST: Final = 100_000
_TITLED = re.compile(
    r"\b(?:dra?|doutora?|enf|enfermeir[oa]|sra?|dona)\b\.? +((?:[A-ZÀ-Ý][\wÀ-ÿ']+ ?){1,4})", re.IGNORECASE
)
_STREET = re.compile(
    r"\b(?:rua|r\.|avenida|av\.?|travessa|alameda|rodovia|estrada|praça)[ \t]++"
    r"[^\n,;|]{3,60}[, ]{1,5}(?:n[º°o.]{0,3} ?)?\d{1,9}[^\n,;|]{0,20}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Coberto:
    """A text in which marks replace personal data. ``originais`` maps each mark to the original words."""

    texto: str
    originais: Mapping[str, str]


def cobrir(texto: str, hoje: date, vocabulario: Vocabulario) -> Coberto:
    read = Texto.de(texto, vocabulario.grafias)
    contacts = folha(read, hoje, vocabulario, None).contatos
    spans = {read.trecho(each.fone.inicio, each.fone.fim): "telefone" for each in contacts if each.fone is not None}
    spans |= {read.trecho(each.nome.inicio, each.nome.fim): "nome" for each in contacts if each.nome is not None}
    spans |= {found.span(1): "nome" for found in _TITLED.finditer(texto) if found[1][0].isupper()}
    spans |= {found.span(): "endereço" for found in _STREET.finditer(texto)}
    originals: dict[str, str] = {}
    parts, at = [], 0
    for (start, end), kind in sorted(spans.items()):
        words = texto[start:end].strip()
        if start < at or not words:
            continue
        mark = next((mark for mark, known in originals.items() if known == words), f"[{kind} {len(originals) + 1}]")
        originals[mark] = words
        parts += [texto[at:start], mark, texto[start:end][len(texto[start:end].rstrip()) :]]
        at = end
    return Coberto(mask_text("".join([*parts, texto[at:]]), LONGEST), originals)


def devolver(resposta: Any, originais: Mapping[str, str]) -> Any:
    """Return the model's answer with the original words in place of the marks."""
    match resposta:
        case str():
            for mark, words in originais.items():
                resposta = resposta.replace(mark, words)
            return resposta
        case Mapping():
            return {name: devolver(value, originais) for name, value in resposta.items()}
        case list():
            return [devolver(each, originais) for each in resposta]
        case _:
            return resposta
