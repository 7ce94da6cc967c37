"""Read street and house number."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from app.contexts.agendamentos.endereco.vocabulario import (
    COM_VALOR,
    INICIAM_BAIRRO,
    TIPOS,
    TIPOS_LONGOS,
    TIPOS_RURAIS,
)
from app.contexts.agendamentos.texto import plano, quase, titulo

S_N: Final = "\ue000"  # placeholder for every spelling of "no number"
COMMA: Final = "\ue001"  # placeholder for the comma in km 12,5
SEM_NUMERO = re.compile(
    r"(?<![\w/])(?:s\s?[/.]\s?n(?:\s?[º°ro]|um(?:ero)?)?\.?(?![\w/])|s\s?n\s?[º°]|sn(?![\w/]|\.\w)|sem\s+n(?:[º°o]|[uú]mero)\.?(?!\w))",
    re.IGNORECASE,
)
_MARK = r"(?<!\w)(?:n\.?\s?[º°]\.?|n[uú]mero|num\.?|n[o.](?=\s?[0-9\ue000])|n(?=\s[0-9])|\#)\s?[:.]?\s?"
_DIGITS = r"[0-9]{1,3}(?:\.[0-9]{3})+(?![0-9])|[0-9]{1,6}"
NUMERO_SO = re.compile(
    rf"(?:{_MARK})?(?:{S_N}|(?:{_DIGITS})(?:\s?-?\s?[a-z])?|km [0-9]+(?:{COMMA}[0-9]+)?|(?:{_DIGITS})/[0-9]+[a-z]?)",
    re.IGNORECASE,
)
_NUMERO = re.compile(
    rf"(?P<mark>{_MARK})?(?:{_MARK})?(?:(?P<none>{S_N})|(?P<km>km [0-9]+(?:{COMMA}[0-9]+)?)"
    rf"|(?P<digits>{_DIGITS})(?:/(?P<extra>[0-9]{{1,5}}[a-z]?)(?!\w)|\s?-?\s?(?P<letter>[a-z])(?![\w.'])(?!\s?[0-9])|(?P<range>-[0-9]{{1,5}}))?(?![\w,]))",
    re.IGNORECASE,
)
# Dates and ordinals that are part of a name: Rua 12 de Outubro, 1º de Maio.
_NOT_A_HOUSE = re.compile(r"\s?[ºª°]|\s+de\s|\s+d[eo]s?$", re.IGNORECASE)
_BEFORE = re.compile(r"(?:(?:^|\s)(?:de|do|da|dos|das)|\se)\s+$", re.IGNORECASE)
# Names of kings and popes contain small numbers: Rua Dom Pedro 2.
_NUMBERED = re.compile(r"(?:^|\s)(?:pedro|pio|jo[aã]o paulo)\s+$", re.IGNORECASE)
_ROAD = re.compile(r"[a-z]{2,3}[\s-]?[0-9]{2,3}(?!\w)", re.IGNORECASE)
# Brasília has codes instead of street names: SQS 308, QNM 12, SHIS QI 5.
_BRASILIA = re.compile(
    r"(?:(?:s[hgc][a-z]{1,4}|st[nrs]c?|smp?w|sia|saa|sof|adhemar)\s+)?"
    r"(?:sq(?:s|n|sw|nw)|[ec]?q(?:[nsr][a-z]{0,2}|[eilrsc]|rsw|ms?w)|c(?:ls|ln|lsw|lrn|rs|sb|nb|sa|na|nm|nd)|s[hgc](?:is|in|cgn|ces|igs|tn|ts|as|an|s|n|lw)"
    r"|ar|ql|qi|qe|qr)\s*[0-9]{1,4}(?:/[0-9]{1,4})?(?![\w/])",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"([0-9]{1,2}[ªa])\s(av|avenida|rua|r|tv|trav|travessa)\b\.?", re.IGNORECASE)  # 3ª Av.
_ANOTHER = re.compile(r"\s(?:n[º°o.]?\s?)?[0-9]{1,5}(?:\s|$)", re.IGNORECASE)
_TYPE = re.compile(r"([^\W\d_]+)([.:;-]*)\s*")


class Rua(NamedTuple):
    nome: str
    numero: str | None = None
    extra: str | None = None  # in 45/102, the part after the slash
    resto: str = ""


class Numero(NamedTuple):
    numero: str
    extra: str | None
    resto: str


def rua_rural_de(parte: str, following: str) -> Rua | None:
    """Parse a part such as "Rio Jaburu S/N" or "Linha 184, km 8", whose first word also begins neighbourhoods. A number or
    a complement must follow the name.
    """
    found = _TYPE.match(parte)
    full = None if found is None else TIPOS_RURAIS.get(plano(found[1]))
    if found is None or full is None or found.end() == len(parte):
        return None
    rua = _take_apart(full, parte[found.end() :], following)
    is_followed = NUMERO_SO.fullmatch(following) is not None or _has_complement(following)
    if full == "Vila":
        return rua if rua.numero == "S/N" else None
    return rua if rua.numero or _has_complement(rua.resto) or (is_followed and following) else None


def _has_complement(texto: str) -> bool:
    words = texto.split(" ")
    return len(words) > 1 and plano(words[0]).strip(".") in COM_VALOR and words[1][:1].isdigit()


@lru_cache(maxsize=4096)
def rua_de(parte: str, *, sure: bool = False, following: str = "") -> Rua | None:
    """Parse one part of an address as a street. Return None if it does not begin like a street, unless ``sure`` is set.
    ``following`` is the next part.
    """
    brasilia = _BRASILIA.match(parte)
    if brasilia is not None:
        return Rua(brasilia[0].upper(), resto=parte[brasilia.end() :].strip(" ,-/"))
    if (ordinal := _ORDINAL.match(parte)) is not None:
        rua = _take_apart("", parte[ordinal.end() :], following)
        name = f"{ordinal[1].lower()} {TIPOS[plano(ordinal[2])]} {rua.nome}".strip()
        numero = numero_no_inicio(parte[ordinal.end() :].strip(), bare=True)
        return rua._replace(nome=name) if numero is None else Rua(name, numero.numero, numero.extra, numero.resto)
    tipo = _tipo(parte)
    if tipo is None:
        return _take_apart("", parte, following) if sure else None
    full, start = tipo
    return _take_apart(full, parte[start:], following)


def numero_no_inicio(parte: str, *, bare: bool) -> Numero | None:
    """Read a house number at the start of a text. With ``bare``, digits alone are enough; without it a mark such as
    "nº" is required.
    """
    found = _NUMERO.match(parte)
    if found is None or not (bare or found["mark"] or found["none"] or found["km"]):
        return None
    if not found["mark"] and _NOT_A_HOUSE.match(parte, found.end()):
        return None
    return _numero(found, parte[found.end() :])


@lru_cache(maxsize=4096)
def _tipo(parte: str) -> tuple[str, int] | None:
    found = _TYPE.match(parte)
    if found is None or found.end() == len(parte):
        return None
    word = plano(found[1])
    full = TIPOS.get(word)
    if full is None and len(word) > 4 and word not in ("praia", "travessao"):
        full = next((TIPOS[right] for right in TIPOS_LONGOS if quase(word, right)), None)
    if full is None or (not found[2] and found[0] == found[1]):
        return None
    return full, found.end()


def _take_apart(tipo: str, texto: str, following: str) -> Rua:
    """Split a street that is written without commas into its name, its number and the remaining text."""
    begins = _ROAD.match(texto) if tipo in ("Rodovia", "Estrada", "") else None
    start = begins.end() if begins else 0
    for found in _NUMERO.finditer(texto, start):
        if _is_a_value(texto[: found.start()], found):
            break
        if _is_of_the_name(texto, found, following):
            continue
        numero = _numero(found, texto[found.end() :])
        return Rua(_name_street(tipo, texto[: found.start()]), numero.numero, numero.extra, numero.resto)
    name, resto = _split_complement(texto)
    return Rua(_name_street(tipo, name), resto=resto)


def _is_of_the_name(texto: str, found: "re.Match[str]", following: str) -> bool:
    before = texto[: found.start()]
    if found["none"] or found["mark"] or found["km"]:
        return not before.strip()
    if not before.strip() or before[-1] not in " ,.":
        return True
    if _NOT_A_HOUSE.match(texto, found.end()) or _BEFORE.search(before):
        return True
    if len(found["digits"]) < 3 and _NUMBERED.search(before):
        return True
    if len(found["digits"]) < 3 and not found["letter"] and _ANOTHER.match(texto, found.end()):
        return True  # Travessa WE 32 145
    # In "Rua Dom Pedro 2, 300" the next part is a number, so the 2 belongs to the name.
    is_last = not texto[found.end() :].strip()
    return is_last and len(found["digits"]) < 3 and NUMERO_SO.fullmatch(following) is not None


def _is_a_value(before: str, found: "re.Match[str]") -> bool:
    """Return whether the number belongs to a complement, not to the house: "Avenida Central Bl. 12"."""
    words = before.split()
    return not found["mark"] and len(words) > 1 and len(words[-1]) > 1 and plano(words[-1]).strip(".") in COM_VALOR


def _numero(found: "re.Match[str]", resto: str) -> Numero:
    resto = resto.strip(" ,-/.")
    if found["none"]:
        return Numero("S/N", None, resto)
    if found["km"]:
        return Numero(found["km"].lower().replace(COMMA, ","), None, resto)
    digits = found["digits"].replace(".", "")
    if found["letter"] and plano(found["letter"]) in ("e", "o"):
        return Numero(digits, None, f"{found['letter']} {resto}".strip())
    return Numero(f"{digits}{(found['letter'] or '').upper()}{found['range'] or ''}", found["extra"], resto)


def _split_complement(texto: str) -> tuple[str, str]:
    """Split a name before the complement or neighbourhood that follows it: "Rua 3 casa 18", "Rua das Flores Jd.
    Primavera".
    """
    words = texto.split(" ")
    for place in range(1, len(words)):
        word = plano(words[place]).strip(".")
        bare = word.rstrip("0123456789")
        following = words[place + 1].strip(".,") if place + 1 < len(words) else ""
        has_value = bare != word or following[:1].isdigit() or (len(following) == 1 and plano(following) not in "eo")
        if len(bare) > 1 and bare in COM_VALOR and has_value:
            return " ".join(words[:place]), " ".join(words[place:])
        if word in INICIAM_BAIRRO and place > 1 and plano(words[place - 1]) not in ("da", "do", "de", "das", "dos"):
            return " ".join(words[:place]), " ".join(words[place:])
    return texto, ""


def _name_street(tipo: str, name: str) -> str:
    name = name.replace(S_N, "").strip(" ,.-/")
    if _ROAD.fullmatch(name):
        return f"{tipo} {name.upper()}".strip()
    name = titulo(name)
    if tipo and name[:1].islower() and plano(name.split(" ")[0]) not in ("de", "da", "do", "das", "dos"):
        name = titulo(name)
    first = name.split(" ")[0]
    if tipo and plano(first) in ("de", "da", "do", "das", "dos"):
        name = f"{first.lower()}{name[len(first) :]}"
    return f"{tipo} {name}".strip()
