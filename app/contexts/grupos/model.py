"""What becomes of a group's message at first sight."""

import re

SHORTEST = 5
_APART = re.compile(r"\s+[-–|]\s+")


def primeiro_status(texto: str, midia: str | None) -> str:
    """A caption is a text like any other: advertisements are often pictures with one."""
    if len(texto.strip()) >= SHORTEST:
        return "pendente"
    return "ignorada_midia" if midia is not None else "ignorada_curta"


def nome_e_empresa(push_name: str | None) -> tuple[str | None, str | None]:
    """ "Fulana Teste - Empresa Teste" is a person and whom she works for."""
    if not push_name:
        return None, None
    nome, *rest = _APART.split(push_name.strip(), maxsplit=1)
    return nome.strip() or None, (rest[0].strip() or None) if rest else None
