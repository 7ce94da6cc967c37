"""Recognise rows that stand between appointments but are not appointments themselves: "TARDE" (afternoon), "Segunda
16/03/2026", "Total: 12", "Página 2".
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final

from app.contexts.agendamentos.planilha.celulas import Celula, data_da, dito, texto_da
from app.contexts.agendamentos.texto import plano

_TOTAL = re.compile(r"(?:sub\s?)?tota(?:l|is)(?![a-z])|qtde?(?![a-z])|quantidade")
WITH_A_PATIENT: Final = ("endereco_completo", "documento_completo", "telefone", "cpf", "rg", "cns", "origem_id")


def eh_secao(colunas: Mapping[str, int], linha: Sequence[Celula]) -> bool:
    """Return whether a row only divides the sheet: it has one cell with a text or a day, or it shows a total."""
    filled = (place for place, valor in enumerate(linha) if dito(valor) is not None)
    first = next(filled, None)
    if first is not None and next(filled, None) is None:
        return isinstance(linha[first], str | date)
    name = colunas.get("nome_paciente", len(linha))
    if first is None or name >= len(linha) or (name != first and dito(linha[name]) is not None):
        return False
    patient = {colunas[field] for field in WITH_A_PATIENT if field in colunas} - {first}
    is_total = _TOTAL.match(plano(texto_da(linha[first])).strip()) is not None
    return is_total and not any(dito(linha[place]) is not None for place in patient if place < len(linha))


def dia_dito(linha: Iterable[Celula]) -> date | None:
    """Return the day that a title or a dividing row names, as in "AGENDA DO DIA 11/03/2026". A number is not a day."""
    found = [dia for valor in linha if isinstance(valor, str | date) and (dia := data_da(valor)) is not None]
    return found[0] if len(found) == 1 else None
