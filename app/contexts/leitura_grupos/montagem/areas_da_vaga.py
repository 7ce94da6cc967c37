"""Choose the specialities of a block among those that its message names."""

from collections.abc import Sequence

from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Area
from app.contexts.leitura_grupos.montagem.linhas import Bloco

# Departments that imply no speciality. Unlike "plantonista", they do not describe the doctor of another department.
_SETORES = frozenset(
    ("porta", "ps", "pa", "enfermaria", "emergencia", "emergencia adulto", "pronto socorro", "pronto atendimento")
)


def fortes(block: Bloco) -> list[Area]:
    return [each for each in block.areas if not each.fraca] if block.areas else []


def setor_da_linha(folha: Folha, blocos: Sequence[Bloco], place: int, other: int | None) -> Sequence[Area]:
    """Return the department that a block names for itself: "PS" in "PS 06/08 SN" below "UTI 05/08 SN". The speciality of
    the block ``other`` does not apply then, unless that block is a heading.
    """
    named = blocos[place].areas[:1]
    if not named or not named[0].fraca or fortes(blocos[place]):
        return ()
    if folha.texto.plano[named[0].inicio : named[0].fim] not in _SETORES:
        return ()
    return () if other is not None and other < place and _is_heading(blocos, other) else named


def _is_heading(blocos: Sequence[Bloco], at: int) -> bool:
    """Return whether a block is a line without days and prices, rather than the start of a line with days."""
    begins_line = at + 1 < len(blocos) and blocos[at + 1].dias is not None and blocos[at + 1].inicio == blocos[at].fim
    return blocos[at].dias is None and not blocos[at].regras and not begins_line


def alternativas(found: Sequence[Area], folha: Folha) -> list[Area]:
    """Keep only the first of several alternative specialities, because "clínico ou cirurgião" is one vacancy, which
    either of them may take.
    """
    return [
        each
        for before, each in zip([None, *found], found, strict=False)
        if before is None or folha.texto.plano[before.fim : each.inicio].strip() != "ou"
    ]
