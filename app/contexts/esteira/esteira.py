"""Build the groups pipeline: six stages over one queue table."""

from datetime import timedelta

from app.contexts.esteira.leituras import Leituras
from app.contexts.grupos.api import DESCARTADO, FILA_GRUPOS, Estagio
from app.contexts.vagas.api import Vagas
from batuta.kernel import dataclass
from batuta.pipelines import Pipeline, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Ritmo:
    """Batch sizes and polling interval of the pipeline. ``lote`` is the number of rows that one worker processes at the
    same time in a stage. ``fora`` is the same number for stages that query a language model.

    ``intervalo`` is how often a stage polls its queue if no wake-up arrives.
    """

    lote: int = 50
    fora: int = 5
    intervalo: timedelta = timedelta(seconds=10)
    lote_do_job: int = 200
    fora_do_job: int = 20


LIMITE = timedelta(seconds=60)


def esteira(leituras: Leituras, vagas: Vagas, ritmo: Ritmo, *, pergunta_fora: bool) -> Pipeline:
    """Build the pipeline. If ``pergunta_fora`` is true, the classification and extraction stages query a language
    model.
    """
    reading = ritmo.fora if pergunta_fora else ritmo.lote
    handlers = (
        (Estagio.PENDENTE, leituras.heuristica, ritmo.lote),
        (Estagio.CLASSIFICACAO, leituras.classificacao, reading),
        (Estagio.EXTRACAO, leituras.extracao, reading),
        (Estagio.NORMALIZACAO, vagas.normalizacao, ritmo.lote),
        (Estagio.DEDUPLICACAO, vagas.deduplicacao, ritmo.lote),
        (Estagio.IMPORTACAO, vagas.importacao, ritmo.lote),
    )
    stages = tuple(Stage(name=name, handle=handle, budget=budget, timeout=LIMITE) for name, handle, budget in handlers)
    return Pipeline(table=FILA_GRUPOS, stages=stages, dropped=DESCARTADO)
