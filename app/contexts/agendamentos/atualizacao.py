"""An appointment that is known comes again in a file: what it says anew counts, and what it says nothing of stays."""

from collections.abc import Mapping
from typing import Final

from app.contexts.agendamentos.linhas import Situacao
from app.contexts.agendamentos.model import CAMPOS
from batuta.kernel.json import Json
from batuta.stores.sql.database import Row

# How far a visit is. Of two that are as far, either may follow the other.
_FAR: Final = {
    Situacao.PENDENTE: 0,
    Situacao.AUTORIZACAO: 1,
    Situacao.CADASTRAR: 1,
    Situacao.AGENDADO: 2,
    Situacao.ALTERAR: 3,
    Situacao.CONFIRMADO: 3,
    Situacao.COLETADO: 4,
    Situacao.RECOLETA: 4,
    Situacao.CANCELADO: 4,
}
# What belongs to another: with a new address an old CEP would be another place's.
_BELONGS: Final = {"cep": "endereco_completo", "hora_confirmacao": "data_confirmacao"}


def atualizado(antes: Row | Mapping[str, Json], dito: Mapping[str, Json]) -> dict[str, Json]:
    """``dito``: a row of a file, without what it says nothing of."""
    now = {name: antes[name] if dito.get(name) is None else dito[name] for name in CAMPOS}
    for name, owner in _BELONGS.items():
        if dito.get(name) is None and now[owner] != antes[owner]:
            now[name] = None
    if not _goes_on(antes["status"], now["status"]):
        now["status"] = antes["status"]
    return now


def _goes_on(antes: Json, agora: Json) -> bool:
    return _FAR[Situacao(str(agora))] >= _FAR[Situacao(str(antes))]
