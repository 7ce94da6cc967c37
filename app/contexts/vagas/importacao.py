"""Decide whether an extracted vacancy is imported, reviewed or discarded, based on a weighted score, two thresholds and
fixed exclusions.
"""

from dataclasses import field
from datetime import date
from enum import StrEnum
from typing import Final

from app.contexts.leitura_grupos.api import Periodo
from app.contexts.vagas.limiares import Limiares, alcanca
from batuta.kernel import dataclass

PESOS: Final = {"hospital": 0.30, "especialidade": 0.30, "data": 0.25, "periodo": 0.10, "valor": 0.05}
PLAUSIVEL: Final = (100, 10_000)
LONGE_DIAS: Final = 90
# A vacancy whose hospital match has a lower score always goes to review.
CERTO: Final = 0.7
LEITURA_INCERTA: Final = "leitura_incerta"
PERIODO_ID: Final = {
    Periodo.DIURNO: 1,
    Periodo.TARDE: 2,
    Periodo.NOTURNO: 3,
    Periodo.CINDERELA: 4,
    Periodo.MANHA: 5,
    Periodo.H24: 7,
}


class DecisaoDaImportacao(StrEnum):
    IMPORTAR = "importada"
    REVISAR = "aguardando_revisao"
    DESCARTAR = "descartada"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidata:
    """An extracted vacancy with normalised names. The score of each field is from 0 to 1, or None if the field is
    missing.

    ``leitura`` is the probability that the vacancy was read correctly, or None if it is unknown.
    """

    hospital: float | None
    especialidade: float | None
    data: date | None
    confianca_data: float | None
    periodo: bool
    valor: float | None
    valor_tipo: str | None
    leitura: float | None = None
    bloqueado: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parecer:
    decisao: DecisaoDaImportacao
    score: float
    motivo: str | None = None
    avisos: tuple[str, ...] = field(default=())


def score_de(vaga: Candidata) -> float:
    """Return the weighted mean confidence of the vacancy's fields, from 0 to 1."""
    parts = {
        "hospital": vaga.hospital or 0.0,
        "especialidade": vaga.especialidade or 0.0,
        "data": 0.0 if vaga.data is None else 0.8 if vaga.confianca_data is None else vaga.confianca_data,
        "periodo": 1.0 if vaga.periodo else 0.5,
        "valor": _valor(vaga),
    }
    return round(sum(PESOS[name] * part for name, part in parts.items()), 4)


def julgar(vaga: Candidata, hoje: date, limiares: Limiares) -> Parecer:
    """Decide about an extracted vacancy. It is discarded if its day is past or its hospital is blocked, and reviewed if
    it is incomplete or uncertain. Otherwise the score decides.

    ``hoje`` is today's date in São Paulo.
    """
    score = score_de(vaga)
    if vaga.data is not None and vaga.data < hoje:
        return Parecer(decisao=DecisaoDaImportacao.DESCARTAR, score=score, motivo="data_passada")
    if vaga.bloqueado:
        return Parecer(decisao=DecisaoDaImportacao.DESCARTAR, score=score, motivo="hospital_bloqueado")
    named = (("hospital", vaga.hospital), ("especialidade", vaga.especialidade), ("data", vaga.data))
    missing = [name for name, there in named if there is None]
    if missing:
        return Parecer(decisao=DecisaoDaImportacao.REVISAR, score=score, motivo=f"match_incompleto:{','.join(missing)}")
    warnings = ("data_distante",) if vaga.data is not None and (vaga.data - hoje).days > LONGE_DIAS else ()
    if not alcanca(vaga.hospital or 0.0, CERTO) and alcanca(score, limiares.revisao):
        return Parecer(decisao=DecisaoDaImportacao.REVISAR, score=score, motivo="hospital_incerto", avisos=warnings)
    if alcanca(score, limiares.importacao) and not alcanca(
        1.0 if vaga.leitura is None else vaga.leitura, limiares.leitura
    ):
        return Parecer(decisao=DecisaoDaImportacao.REVISAR, score=score, motivo=LEITURA_INCERTA, avisos=warnings)
    if alcanca(score, limiares.importacao):
        return Parecer(
            decisao=DecisaoDaImportacao.IMPORTAR, score=score, motivo=",".join(warnings) or None, avisos=warnings
        )
    if alcanca(score, limiares.revisao):
        return Parecer(decisao=DecisaoDaImportacao.REVISAR, score=score, motivo="score_baixo", avisos=warnings)
    return Parecer(decisao=DecisaoDaImportacao.DESCARTAR, score=score, motivo="score_insuficiente", avisos=warnings)


def _valor(vaga: Candidata) -> float:
    match vaga.valor_tipo:
        case "fixo" if vaga.valor is not None and PLAUSIVEL[0] <= vaga.valor <= PLAUSIVEL[1]:
            return 1.0
        case "faixa":
            return 0.9
        case "a_combinar" | None:
            return 0.7
        case _:
            return 0.3
