"""What is covered for whoever may not see documents, and how a cover is known when it comes back."""

import re
from typing import Final

from app.contexts.agendamentos.documento.documento import cpf_valido

COVERED: Final = "***"
# Covered whole; in every other text only what is a CPF.
COBRIVEIS: Final = ("documento_completo", "carteira_convenio", "numero_convenio")
_CPF = re.compile(r"(?<![0-9])([0-9]{3})[. ]?([0-9]{3})[. ]?([0-9]{3})[- ]?([0-9]{2})(?![0-9])")
_CPF_COBERTO = re.compile(r"\*{3}\.[0-9]{3}\.[0-9]{3}-\*{2}")


def cpf_coberto(cpf: str | None) -> str | None:
    return f"***.{cpf[3:6]}.{cpf[6:9]}-**" if cpf else None


def sem_cpf(texto: str) -> str:
    """With every CPF in it covered, wherever somebody wrote it."""
    return _CPF.sub(lambda found: _cover("".join(found.groups())) or found[0], texto)


def esta_coberto(campo: str, texto: str) -> bool:
    """It was shown to somebody who may not see it: it says nothing of what is kept."""
    return COVERED in texto and (campo in COBRIVEIS or _CPF_COBERTO.search(texto) is not None)


def _cover(digits: str) -> str | None:
    return cpf_coberto(digits) if cpf_valido(digits) else None
