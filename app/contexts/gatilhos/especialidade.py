"""Read the speciality in the answer to a first contact. An answer that is not clear is left to a person."""

import re
from typing import Final

from app.contexts.leitura_grupos.api import Texto, Vocabulario

# A negation, a plan or a training: the doctor names a speciality without having it.
UNSURE: Final = re.compile(
    r"\b(nao|nem|nunca|residen\w+|r[1-4]|estud\w+|intern[oa]|academic[oa]|gostaria|quero|penso|pretendo|futur\w+|exceto|menos)\b"
)


def especialidade_dita(texto: str) -> str | None:
    """Return the specialities that a doctor names as the doctor's own, joined by " / ". Return None if the text names
    none or is not clear.
    """
    read = Texto.de(texto)
    if "?" in texto or UNSURE.search(read.plano):
        return None
    found = dict.fromkeys(each.valor for each in Vocabulario.padrao().especialidades.todas(read.palavras))
    return " / ".join(found) or None
