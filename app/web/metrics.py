"""Julia's metrics on ``/metrics``, beside the engine's."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric

from batuta.web import MetricReading

FIGURES: Final = {
    "processing_rate_per_minute": "Appointments read in a minute, of the last five",
    "error_rate": "Share of the readings of the last hour that failed for good",
    "average_latency_seconds": "From the start of a reading to its end, on average in the last hour",
    "open_imports": "Files that are not through",
}


def readings(saude: Callable[[], Awaitable[Mapping[str, Any]]]) -> dict[str, MetricReading]:
    """Return the metrics of the appointments. ``saude`` is the document of ``/health/agendamentos``."""

    async def agendamentos() -> Sequence[Metric]:
        return appointment_metrics((await saude())["metrics"])

    return {"agendamentos": agendamentos}


def appointment_metrics(metrics: Mapping[str, Any]) -> Sequence[Metric]:
    by_status = GaugeMetricFamily("julia_appointments", "Appointments by how far their reading is", labels=["status"])
    for status, count in metrics["appointments"].items():
        by_status.add_metric([status], count)
    return (
        by_status,
        *(GaugeMetricFamily(f"julia_appointments_{name}", meaning, metrics[name]) for name, meaning in FIGURES.items()),
    )
