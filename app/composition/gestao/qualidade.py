"""Builds the quality of the service: the alerts and their thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.composition.envio import hours
from app.contexts.qualidade.alertas import Alertas, Limiares
from app.settings import Settings
from batuta import Batuta
from batuta.jobs import JobHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    alertas: Alertas

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {"verificar-alertas": self.alertas.verificar_alertas}


def add_quality(work: Batuta, settings: Settings) -> Quality:
    quality = Quality(alertas=Alertas(work.database, thresholds(settings), hours(settings), work.zone, work.clock))
    work.health.add(quality.alertas.check)
    return quality


def thresholds(settings: Settings) -> Limiares:
    return Limiares(
        handoff_parte=settings.alerta_handoff_parte,
        handoff_pico=settings.alerta_handoff_pico,
        resposta_segundos=settings.alerta_resposta_segundos,
        silencio_minutos=settings.alerta_silencio_minutos,
        performance_ms=settings.alerta_performance_ms,
        recusas_parte=settings.alerta_recusas_parte,
        conversao_queda=settings.alerta_conversao_queda,
    )
