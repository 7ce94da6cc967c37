"""Julia's metrics on ``/metrics``, in addition to the engine's."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric

from batuta.web import MetricReading

FIGURES: Final = {
    "processing_rate_per_minute": "Appointments read per minute, as the mean of the last five minutes",
    "error_rate": "Share of the readings in the last hour that failed for the last time",
    "average_latency_seconds": "Mean duration of a reading in the last hour, in seconds",
    "open_imports": "Imports that are not complete",
}
TELEGRAM: Final = {
    "connected": ("conectada", "Whether the Telegram account is connected"),
    "queued": ("na_fila", "Messages of the Telegram account that wait"),
    "in_doubt": ("em_duvida", "Messages of the Telegram account that may or may not have been sent"),
    "sent_last_hour": ("enviadas_ultima_hora", "Messages that the Telegram account sent in the last hour"),
    "reconnections": ("reconexoes", "Connections of the Telegram account that ended"),
}


def readings(
    saude: Callable[[], Awaitable[Mapping[str, Any]]], contas: Callable[[], Awaitable[Mapping[str, Any]]]
) -> dict[str, MetricReading]:
    """Return the metrics for appointments and Telegram. ``saude`` and ``contas`` return the documents that
    ``/health/agendamentos`` and ``/health/telegram`` show.
    """

    async def agendamentos() -> Sequence[Metric]:
        return appointment_metrics((await saude())["metrics"])

    async def telegram() -> Sequence[Metric]:
        return telegram_metrics((await contas())["contas"])

    return {"agendamentos": agendamentos, "telegram": telegram}


def telegram_metrics(contas: Sequence[Mapping[str, Any]]) -> Sequence[Metric]:
    """Return one metric family per figure, with a sample for each account."""
    families = []
    for name, (field, meaning) in TELEGRAM.items():
        family = GaugeMetricFamily(f"julia_telegram_{name}", meaning, labels=["conta"])
        for conta in contas:
            family.add_metric([conta["nome"]], float(conta[field]))
        families.append(family)
    return families


def appointment_metrics(metrics: Mapping[str, Any]) -> Sequence[Metric]:
    by_status = GaugeMetricFamily(
        "julia_appointments", "Appointments by the status of their reading", labels=["status"]
    )
    for status, count in metrics["appointments"].items():
        by_status.add_metric([status], count)
    return (
        by_status,
        *(GaugeMetricFamily(f"julia_appointments_{name}", meaning, metrics[name]) for name, meaning in FIGURES.items()),
    )
