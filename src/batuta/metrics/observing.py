"""What can be seen of this process without anybody announcing it: its loops, its calls of the database, itself."""

import platform
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreError
from batuta.stores.connections import ObservedDatabase
from batuta.supervise.running import Running

CALL_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30)


def process_registry(version: str, role: str) -> CollectorRegistry:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    Info("batuta_build", "What runs here", registry=registry).info(
        {"version": version, "python": platform.python_version(), "role": role}
    )
    return registry


def observe_databases(databases: Iterable[ObservedDatabase], registry: CollectorRegistry) -> None:
    """Every call by its kind: a statement alone, or a transaction as a whole."""
    calls = Histogram(
        "batuta_database_call_duration_seconds",
        "Time of a call of the database",
        ["call"],
        buckets=CALL_BUCKETS,
        registry=registry,
    )
    errors = Counter("batuta_database_errors", "Calls of the database that failed", ["error"], registry=registry)

    def observe(call: str, seconds: float, error: BaseException | None) -> None:
        calls.labels(call).observe(seconds)
        if isinstance(error, StoreError):  # what somebody's own code raised inside a transaction is not the database's
            errors.labels(type(error).__name__).inc()

    for database in databases:
        database.observe(observe)


class LoopCollector(Collector):
    """``running`` gives the loops of this process; it is asked each time somebody looks."""

    def __init__(self, running: Callable[[], Iterable[Running]], clock: Clock, registry: CollectorRegistry) -> None:
        self._running = running
        self._clock = clock
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        progress = GaugeMetricFamily(
            "batuta_loop_last_progress_timestamp_seconds", "When it last began a tick", labels=["loop"]
        )
        patience = GaugeMetricFamily(
            "batuta_loop_stuck_after_seconds", "Silence that is not forgiven while it ticks", labels=["loop"]
        )
        failing = GaugeMetricFamily("batuta_loop_failing", "Failed ticks in a row, up to now", labels=["loop"])
        now, here = self._clock.now().timestamp(), self._clock.monotonic()
        for each in self._running():
            name = [each.loop.name]
            if each.last_beat:
                progress.add_metric(name, now - (here - each.last_beat))
            patience.add_metric(name, each.policy.stuck_after.total_seconds())
            failing.add_metric(name, each.failures)
        yield from (progress, patience, failing)

    def describe(self) -> Iterable[Metric]:
        return ()
