"""Read the speciality that a doctor names in the answer to a first contact. If the answer is unclear, a person reads
it.
"""

import re
from typing import Final

from app.contexts.leitura_grupos.api import Texto, Vocabulario

# Matches a negation, a plan or a training: the doctor names a speciality but does not have it.
UNSURE: Final = re.compile(
    r"\b(nao|nem|nunca|residen\w+|r[1-4]|estud\w+|intern[oa]|academic[oa]|gostaria|quero|penso|pretendo|futur\w+|exceto|menos)\b"
)


def especialidade_dita(texto: str) -> str | None:
    """Return the specialities that the doctor names, joined by " / ". Return None if the text names none or
    is unclear.
    """
    read = Texto.de(texto)
    if "?" in texto or UNSURE.search(read.plano):
        return None
    found = dict.fromkeys(each.valor for each in Vocabulario.padrao().especialidades.todas(read.palavras))
    return " / ".join(found) or None
