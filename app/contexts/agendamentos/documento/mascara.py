"""Mask document numbers for clients without the ``pii`` scope, and detect a mask that a client sends back."""

import re
from typing import Final

from app.contexts.agendamentos.documento.documento import cpf_valido

COVERED: Final = "***"
# Columns that are masked completely. In all other columns only CPFs are masked.
COBRIVEIS: Final = ("documento_completo", "carteira_convenio", "numero_convenio")
_CPF = re.compile(r"(?<![0-9])([0-9]{3})[. ]?([0-9]{3})[. ]?([0-9]{3})[- ]?([0-9]{2})(?![0-9])")
_CPF_COBERTO = re.compile(r"\*{3}\.[0-9]{3}\.[0-9]{3}-\*{2}")


def cpf_coberto(cpf: str | None) -> str | None:
    return f"***.{cpf[3:6]}.{cpf[6:9]}-**" if cpf else None


def sem_cpf(texto: str) -> str:
    """Mask every valid CPF in a text."""
    return _CPF.sub(lambda found: _cover("".join(found.groups())) or found[0], texto)


def esta_coberto(campo: str, texto: str) -> bool:
    """Return whether a value is a mask. A client that received a masked value may send it back in an update; the caller
    then keeps the stored value.
    """
    return texto == COVERED or (COVERED in texto and (campo in COBRIVEIS or _CPF_COBERTO.search(texto) is not None))


def _cover(digits: str) -> str | None:
    return cpf_coberto(digits) if cpf_valido(digits) else None
