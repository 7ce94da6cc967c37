"""What becomes of a group's message at first sight."""

import re
from typing import Final

SHORTEST = 5
_APART = re.compile(r"\s+[-–|]\s+")
# Who works for one of these often writes it behind his name, without anything between.
EMPRESAS: Final = ("Quero Plantão", "SMPV", "SERGES", "Medtrust", "Hapvida", "Medscalle", "Medopen", "MP Doctor")
_NO_NAME = re.compile(r"\b(?:adm|jr)\b\.?", re.IGNORECASE)


def primeiro_status(texto: str, midia: str | None, *, monitorado: bool = True) -> str:
    """A caption is a text like any other: advertisements are often pictures with one."""
    if not monitorado:
        return "descartada"
    if len(texto.strip()) >= SHORTEST:
        return "pendente"
    return "ignorada_midia" if midia is not None else "ignorada_curta"


def nome_e_empresa(push_name: str | None) -> tuple[str | None, str | None]:
    """ "Fulana Teste - Empresa Teste" is a person and whom she works for."""
    if not push_name:
        return None, None
    nome, *rest = _APART.split(push_name.strip(), maxsplit=1)
    empresa = rest[0].strip() if rest else next((each for each in EMPRESAS if _ends_with(nome, each)), None)
    if not rest and empresa:
        nome = nome.strip()[: -len(empresa)]
    return " ".join(_NO_NAME.sub(" ", nome).split()) or None, empresa or None


def _ends_with(nome: str, empresa: str) -> bool:
    plain, known = nome.strip().casefold(), empresa.casefold()
    return plain.endswith(f" {known}")
