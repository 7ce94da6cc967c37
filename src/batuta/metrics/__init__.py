"""Facts as Prometheus figures: counted as they are announced, or asked of the store when somebody looks."""

from batuta.metrics.counting import MetricsSubscriber
from batuta.metrics.readings import (
    LoopCollector,
    MetricReading,
    Readings,
    circuit_metrics,
    job_metrics,
    limit_metrics,
    observe_databases,
    process_registry,
    queue_metrics,
    transaction_metrics,
)

__all__ = [
    "LoopCollector",
    "MetricReading",
    "MetricsSubscriber",
    "Readings",
    "circuit_metrics",
    "job_metrics",
    "limit_metrics",
    "observe_databases",
    "process_registry",
    "queue_metrics",
    "transaction_metrics",
]
