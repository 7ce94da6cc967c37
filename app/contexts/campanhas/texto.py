"""Placeholders of a campaign's text: ``{nome}`` and ``{especialidade}``, in single or double braces.

Any other text in braces is refused, because doctors would receive the braces unchanged.
"""

import re
from collections.abc import Mapping
from typing import Final

from app.contexts.campanhas.model import CampoDesconhecido, ChaveSolta, TextoAusente, TextoRecusado
from batuta.kernel import is_writable

KNOWN: Final = ("nome", "especialidade")
LONGEST: Final = 4_000
_PLACE = re.compile(r"\{\{([^{}]*)\}\}|\{([^{}]*)\}")


def campos(corpo: str | None) -> frozenset[str]:
    """Return the placeholders in a campaign's text."""
    if corpo is None or not corpo.strip():
        raise TextoAusente
    if len(corpo) > LONGEST or not is_writable(corpo):
        raise TextoRecusado(longest=LONGEST)
    asked = {_name(place) for place in _PLACE.finditer(corpo)}
    if strange := sorted(asked - set(KNOWN)):
        raise CampoDesconhecido(campo=strange[0][:40], known=", ".join(KNOWN))
    if re.search(r"[{}]", _PLACE.sub("", corpo)):
        raise ChaveSolta
    return frozenset(asked)


def preenchido(corpo: str, valores: Mapping[str, str | None]) -> str | None:
    """Fill in a text's placeholders for one doctor. Returns None if the doctor has no value for one of the
    placeholders.
    """
    known = {name: " ".join((value or "").split()) for name, value in valores.items()}
    if not all(known.get(name) for name in campos(corpo)):
        return None
    return _PLACE.sub(lambda place: known[_name(place)], corpo)


def _name(place: re.Match[str]) -> str:
    return (place[1] if place[1] is not None else place[2]).strip().lower()
