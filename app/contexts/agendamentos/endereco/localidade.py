"""Expand a neighbourhood's name: "Jd. Primavera" becomes "Jardim Primavera"."""

import re
from functools import lru_cache

from app.contexts.agendamentos.endereco.vocabulario import BAIRROS, BAIRROS_LONGOS
from app.contexts.agendamentos.texto import diz_nada, plano, quase, titulo

_DROPPED = re.compile(r"\A(?:bairro|bair\.|bairro:|b\.|b[º°]|distrito\s+d[eoa])\s*:?\s*(?=\S)", re.IGNORECASE)
_PREFIX = re.compile(r"([^\W\d_]+)(?:(\.)\s*|\s+)(?=\S)")
_OF_WATER = re.compile(r"\b[Dd][ '’]?[ÁáAa]gua\b")


@lru_cache(maxsize=8192)
def bairro_de(texto: str) -> str | None:
    """Return a neighbourhood's full name. The word "Bairro" (neighbourhood) is removed."""
    texto = _DROPPED.sub("", texto.strip(" .,;:-"), count=1)
    if diz_nada(texto):
        return None
    if (alone := BAIRROS.get(plano(texto))) is not None and len(texto) > 1:
        return alone
    texto = titulo(texto)
    found = _PREFIX.match(texto)
    if found is not None and (full := _prefix(found[1], has_stop=bool(found[2]))) is not None:
        texto = f"{full} {texto[found.end() :]}"
    return _OF_WATER.sub("d'Água", texto)


def _prefix(word: str, *, has_stop: bool) -> str | None:
    bare = plano(word)
    full = BAIRROS.get(bare)
    if full is not None:
        return full if has_stop or len(bare) > 1 else None
    if len(bare) < 5:
        return None
    return next((BAIRROS[right] for right in BAIRROS_LONGOS if quase(bare, right)), None)
