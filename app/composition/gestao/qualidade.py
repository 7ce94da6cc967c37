"""Builds the quality services: alerts with thresholds, conversation evaluations, and guidance for the model."""

from collections.abc import Mapping
from datetime import timedelta

from app.composition.envio import hours
from app.contexts.llm.service import Consulta
from app.contexts.qualidade.alertas import Alertas, Limiares
from app.contexts.qualidade.avaliacoes import Avaliacoes
from app.contexts.qualidade.orientacao import Orientacoes
from app.settings import Settings
from batuta import Batuta
from batuta.jobs import JobHandler
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    alertas: Alertas
    avaliacoes: Avaliacoes
    orientacoes: Orientacoes

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {
            "verificar-alertas": self.alertas.verificar_alertas,
            "avaliar-conversas-pendentes": self.avaliacoes.avaliar_conversas_pendentes,
            "atualizar-prompt-feedback": self.orientacoes.atualizar_prompt_feedback,
        }


def add_quality(work: Batuta, settings: Settings, llm: Consulta | None) -> Quality:
    """Register the quality alerts and the conversation evaluations. If ``llm`` is None, rules evaluate the
    conversations.
    """
    database, ids, clock = work.database, work.ids, work.clock
    guidance, quiet = Orientacoes(database, ids, clock), timedelta(hours=settings.qualidade_quieta_horas)
    asked = llm if settings.qualidade_model_enabled else None
    quality = Quality(
        alertas=Alertas(database, thresholds(settings), hours(settings), work.zone, clock),
        avaliacoes=Avaliacoes(database, guidance, asked, quiet, ids, clock),
        orientacoes=guidance,
    )
    work.health.add(quality.alertas.check)
    return quality


def thresholds(settings: Settings) -> Limiares:
    return Limiares(
        handoff_parte=settings.alerta_handoff_parte,
        handoff_pico=settings.alerta_handoff_pico,
        resposta_segundos=settings.alerta_resposta_segundos,
        silencio_minutos=settings.alerta_silencio_minutos,
        nota_minima=settings.alerta_nota_minima,
        performance_ms=settings.alerta_performance_ms,
        recusas_parte=settings.alerta_recusas_parte,
        conversao_queda=settings.alerta_conversao_queda,
    )
