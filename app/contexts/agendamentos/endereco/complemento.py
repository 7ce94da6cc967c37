"""Read the complements that follow the house number of an address, such as Apto 45, Bloco B, Fundos or
Edifício Solar.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from app.contexts.agendamentos.endereco.vocabulario import (
    COM_NOME,
    COM_VALOR,
    COMPLEMENTOS_LONGOS,
    INICIAM_BAIRRO,
    PROPRIEDADES,
    SEM_VALOR,
    TIPOS,
    TIPOS_RURAIS,
)
from app.contexts.agendamentos.texto import plano, quase, titulo

_PARTED = re.compile(r"[\s,;:/.&-]*(?:e\s+)?")
_WORD = re.compile(r"([^\W\d_]+)\s*[.º°]?\s*:?\s*")
_VALUE = re.compile(
    r"(?:n\s?[º°o.]\s*)?(?:([0-9]{1,4}\se\s[0-9]{1,4}(?!\w)|[0-9]\.[0-9]{3}(?![0-9])|[0-9]{1,5}(?:[-/][0-9]{1,4}(?!\w)|\s?-?\s?(?!(?<=\s)e\s)[a-z](?![\w'.])|[a-z]?[0-9]{0,3}(?![\w'])))"
    r"|([a-z]-?[0-9]{0,4}(?![\w'.])|i{2,3}(?!\w)))",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[\s.]|(?<=[0-9])-(?=[a-zA-Z])")
_AT_THE_BACK = re.compile(r"(casa\s+)?(?:[dn]?os\s+)fundos(?!\w)", re.IGNORECASE)
_FLOOR = re.compile(r"([0-9]{1,2})\s?[ºª°oa]?\.?\s?(?:andar|and|pavimento|pav)\b\.?", re.IGNORECASE)


_RURAL: Final = (*PROPRIEDADES, "assentamento", "assent", "vicinal", "vic")
# Words that a name follows, with their full forms.
_NAMED: Final = {**{word: full for word in _RURAL if (full := TIPOS.get(word) or TIPOS_RURAIS.get(word))}, **COM_NOME}


class Itens(NamedTuple):
    itens: tuple[str, ...]
    resto: str  # text after the last complement


def complementos(texto: str) -> Itens:
    """Return the complements at the start of a text, in the order in which they are written, and the rest
    of the text.
    """
    itens: list[str] = []
    place = 0
    while place < len(texto):
        start = place + len(_PARTED.match(texto, place)[0]) if place else 0  # type: ignore[index]
        found = _phrase(texto, start) or _item(texto, start)
        if found is None:
            break
        item, place = found
        itens.append(item)
    resto = texto[place:].strip(" ,;-/.")
    if itens and itens[-1].startswith("Quadra") and plano(resto) in ("norte", "sul", "leste", "oeste"):
        return Itens((*itens[:-1], f"{itens[-1]} {titulo(resto.lower())}"), "")
    return Itens(tuple(itens), resto)


def _phrase(texto: str, start: int) -> tuple[str, int] | None:
    found = _AT_THE_BACK.match(texto, start)
    if found is not None:
        return "Casa dos Fundos" if found[1] else "Fundos", found.end()
    found = _FLOOR.match(texto, start)
    return None if found is None else (f"{found[1]}º Andar", found.end())


def _item(texto: str, start: int) -> tuple[str, int] | None:
    word = _WORD.match(texto, start)
    if word is None:
        return None
    name = _look_up(plano(word[1]))
    if name in COM_VALOR and (value := _VALUE.match(texto, word.end())) is not None and _is_value(name, value):
        return _spell(COM_VALOR[name], value), value.end()
    if name in _NAMED and (named := _name(texto, word.end())) is not None:
        text, end = named
        return f"{_NAMED[name]} {titulo(text)}", end
    if name in SEM_VALOR and (SEM_VALOR[name] != "Casa" or not texto[word.end() :].strip(" .,-")):
        return SEM_VALOR[name], word.end()
    return None


@lru_cache(maxsize=8192)
def _look_up(word: str) -> str:
    if word in COM_VALOR or word in SEM_VALOR or word in COM_NOME or len(word) < 5:
        return word
    return next((right for right in COMPLEMENTOS_LONGOS if quase(word, right)), word)


def _is_value(name: str, value: "re.Match[str]") -> bool:
    """Return whether the next word is the value of an address complement. The "E" of "Conjunto E" is a value, the "e"
    of "casa e fundos" (house and back) is not. After a one-letter abbreviation, only digits are a value.
    """
    if len(name) == 1:
        return value[1] is not None
    return value[2] is None or name not in SEM_VALOR or plano(value[2]) not in ("e", "o")


def _spell(full: str, value: "re.Match[str]") -> str:
    said = value[1] or value[2]
    return f"{full} {said if ' e ' in said else _BETWEEN.sub('', said).upper()}"


def _name(texto: str, start: int) -> tuple[str, int] | None:
    """Return the name of a building or estate and the position at which the name ends, or None. The name ends before
    the next complement: in "Solar das Flores apto 71", the name is "Solar das Flores".
    """
    text = texto[start:]
    if not text or not text[0].isalpha():
        return None
    words = text.split(" ")
    for place in range(1, len(words)):
        word = plano(words[place]).strip(".,")
        bare = word.rstrip("0123456789")
        is_complement = bare in COM_VALOR and len(bare) > 1 and (bare != word or place + 1 < len(words))
        if is_complement or (
            word in INICIAM_BAIRRO and plano(words[place - 1]) not in ("de", "da", "do", "das", "dos")
        ):
            return " ".join(words[:place]).strip(" ,-"), start + len(" ".join(words[:place]))
    return text.strip(" ,-."), len(texto)
