"""Expand a street's name: "Av. Brasil" becomes "Avenida Brasil"."""

import re
from functools import lru_cache
from typing import Final

from app.contexts.agendamentos.endereco.vocabulario import S_N, TIPOS, TIPOS_LONGOS, TIPOS_RURAIS
from app.contexts.agendamentos.texto import plano, quase, titulo

SEM_NUMERO = re.compile(
    r"(?<![\w/])(?:s\s?[/.]\s?n(?:\s?[º°ro]|um(?:ero)?)?\.?(?![\w/])|s\s?n\s?[º°]|sn(?![\w/]|\.\w)|sem\s+n(?:[º°o]|[uú]mero)\.?(?!\w))|(?<=/)s/?n[º°]?(?!\w)",
    re.IGNORECASE,
)
_ROAD = re.compile(r"[a-z]{2,3}[\s-]?[0-9]{2,3}(?!\w)", re.IGNORECASE)
# Brasília has codes instead of street names: SQS 308, QNM 12, SHIS QI 5.
_BRASILIA = re.compile(
    r"(?:(?:s[hgc][a-z]{1,4}|st[nrs]c?|smp?w|sia|saa|sof|adhemar)\s+)?"
    r"(?:sq(?:s|n|sw|nw)|[ec]?q(?:[nsr][a-z]{0,2}|[eilrsc]|rsw|ms?w)|s?c(?:ls|ln|lsw|lrn|rs|rn|sb|nb|sa|na|nm|nd)|s[hgc](?:is|in|cgn|ces|igs|tn|ts|as|an|s|n|lw)"
    r"|ar|ql|qi|qe|qr)\s*[0-9]{1,4}(?:/[0-9]{1,4})?(?![\w/])",
    re.IGNORECASE,
)
_BRASILIA_BLOCK = re.compile(r"(s[a-z]{1,4})\s+q(?:d|uadra)?\.?\s?([0-9]{1,4})", re.IGNORECASE)  # SCS Qd. 6
_ORDINAL = re.compile(r"([0-9]{1,2}[ªa])\s(av|avenida|rua|r|tv|trav|travessa)\b\.?", re.IGNORECASE)  # 3ª Av.
_TYPE = re.compile(r"([^\W\d_]+)([.:;-]*)\s*")
# Words that are not street types, but are expanded at the beginning of a street's name.
_FIRST: Final = {
    **TIPOS_RURAIS,
    **dict.fromkeys(["quadra", "qd", "qda", "q"], "Quadra"),
    **dict.fromkeys(["conjunto", "conj", "cj"], "Conjunto"),
}
_JOINING: Final = ("de", "da", "do", "das", "dos")


def nome_da_rua(texto: str) -> str | None:
    texto = texto.replace(S_N, "").strip(" ,;.-/")
    if _BRASILIA.fullmatch(texto):
        return texto.upper()
    if (block := _BRASILIA_BLOCK.fullmatch(texto)) is not None:
        return f"{block[1].upper()} Quadra {block[2]}"
    if (ordinal := _ORDINAL.match(texto)) is not None:
        return f"{ordinal[1].lower()} {TIPOS[plano(ordinal[2])]} {titulo(texto[ordinal.end() :].strip())}".strip()
    tipo, start = _tipo(texto)
    return _spell(tipo, texto[start:]) or None


@lru_cache(maxsize=4096)
def _tipo(texto: str) -> tuple[str, int]:
    """Return the street type in full, and the position where the street's name begins. Without a type the position is
    0.
    """
    found = _TYPE.match(texto)
    if found is None or found.end() == len(texto) or not (found[2] or found[0] != found[1]):
        return "", 0
    word = plano(found[1])
    full = TIPOS.get(word) or _FIRST.get(word)
    if full is None and len(word) > 4 and word not in ("praia", "travessao"):
        full = next((TIPOS[right] for right in TIPOS_LONGOS if quase(word, right)), None)
    return ("", 0) if full is None else (full, found.end())


def _spell(tipo: str, nome: str) -> str:
    nome = nome.strip(" ,.-/")
    if _ROAD.fullmatch(nome):
        return f"{tipo} {nome.upper()}".strip()
    nome = titulo(nome)
    first = nome.split(" ")[0]
    if tipo and plano(first) in _JOINING:
        nome = f"{first.lower()}{nome[len(first) :]}"
    return f"{tipo} {nome}".strip()
