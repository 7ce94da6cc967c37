"""Facts as Prometheus figures: counted as they are announced, or asked of the store when somebody looks."""

from batuta.metrics.counting import MetricsSubscriber
from batuta.metrics.readings import (
    LoopCollector,
    MetricReading,
    Readings,
    circuits_seen,
    jobs_seen,
    limits_seen,
    observe_databases,
    process_registry,
    queues_seen,
    transaction_seen,
)

__all__ = [
    "LoopCollector",
    "MetricReading",
    "MetricsSubscriber",
    "Readings",
    "circuits_seen",
    "jobs_seen",
    "limits_seen",
    "observe_databases",
    "process_registry",
    "queues_seen",
    "transaction_seen",
]
