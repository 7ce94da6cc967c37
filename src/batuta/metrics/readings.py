"""Metrics that are read from the store on request, within a time limit, and cached for a few seconds. If one query
fails, the other metrics are still read.

The module also adds metrics about this process that no event reports: its loops, database calls, memory and CPU.
"""

import asyncio
import collections
import platform
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from batuta.guard.breaker import Circuit, CircuitState
from batuta.guard.rate import Limit
from batuta.health.checks import OpenTransaction
from batuta.health.jobs import JobsSeen
from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreError
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import with_timeout
from batuta.metrics.counting import BUCKETS, CounterMetric, HistogramMetric, family_of
from batuta.queue.store import Depth
from batuta.stores.connections import ObservedDatabase
from batuta.supervise.running import LoopState

MetricReading: TypeAlias = Callable[[], Awaitable[Sequence[Metric]]]
LIMIT = timedelta(seconds=3)
# All scrapes within this time share one reading of the store.
CACHED_FOR = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class CachedReading:
    families: Sequence[Metric]
    took: float
    worked: bool


class Readings(Collector):
    """Collects metrics from the store. ``refresh`` reads the metrics, and ``collect`` returns the last result, because
    prometheus-client cannot await.
    """

    def __init__(
        self, readings: Mapping[str, MetricReading], clock: Clock, registry: CollectorRegistry | None = None
    ) -> None:
        self._readings = readings
        self._clock = clock
        self._looked: dict[str, CachedReading] = {}
        self._fresh_until = float("-inf")
        self._refreshing: asyncio.Task[None] | None = None
        if registry is not None:
            registry.register(self)

    async def refresh(self) -> None:
        """Read the metrics if the cache has expired. Concurrent callers share one query, which continues if one of the
        callers is cancelled.
        """
        if self._clock.monotonic() < self._fresh_until:
            return
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._look())
        await asyncio.shield(self._refreshing)

    async def _look(self) -> None:
        looked = await asyncio.gather(*(self._read(name) for name in self._readings))
        self._looked = dict(zip(self._readings, looked, strict=True))
        self._fresh_until = self._clock.monotonic() + CACHED_FOR.total_seconds()

    async def _read(self, name: str) -> CachedReading:
        started = self._clock.monotonic()
        (found,) = await asyncio.gather(
            with_timeout(LIMIT, self._readings[name](), self._clock, f"metrics of {name}"), return_exceptions=True
        )
        took = self._clock.monotonic() - started
        return (
            CachedReading((), took, worked=False)
            if isinstance(found, BaseException)
            else CachedReading(found, took, worked=True)
        )

    def collect(self) -> Iterator[Metric]:
        worked = GaugeMetricFamily("batuta_reading_up", "1: the last reading succeeded in time", labels=["reading"])
        took = GaugeMetricFamily("batuta_reading_duration_seconds", "Duration of the last reading", labels=["reading"])
        for name, looked in self._looked.items():
            worked.add_metric([name], float(looked.worked))
            took.add_metric([name], looked.took)
            yield from looked.families
        yield from (worked, took)

    def describe(self) -> Iterable[Metric]:
        return ()  # no metrics yet: their names are known only after the first reading


def job_metrics(seen: JobsSeen) -> Sequence[Metric]:
    running = _gauge("job_running", "Runs in progress", "job")
    stale = _gauge(
        "job_stale",
        "1: no successful run has started since the last expected fire, and the SLA of that fire has passed",
        "job",
    )
    held = _gauge("job_held", "1: a switch, a pause or a closed window holds the job", "job")
    last_day = _gauge("job_last_day_runs", "Fires of the last 24 hours by status", "job", "status")
    last = _gauge("job_last_start_timestamp_seconds", "Start of the last run", "job")
    upcoming = _gauge("job_next_fire_timestamp_seconds", "Next fire", "job")
    for health in seen.jobs:
        name, facts = health.job.name, health.facts
        running.add_metric([name], facts.running)
        stale.add_metric([name], float(health.is_stale))
        held.add_metric([name], float(health.held is not None))
        upcoming.add_metric([name], health.next_at.timestamp())
        if facts.last is not None:
            last.add_metric([name], facts.last.started_at.timestamp())
        for status, runs in sorted(facts.counts.by_status.items()):
            last_day.add_metric([name, status], runs)
    return (running, stale, held, last_day, last, upcoming)


def queue_metrics(depths: Mapping[str, Depth]) -> Sequence[Metric]:
    items = _gauge("queue_items", "Items by state; due: ready and not delayed", "queue", "state")
    oldest = _gauge("queue_oldest_due_age_seconds", "Wait of the oldest due item; 0: no item is due", "queue")
    for queue, depth in depths.items():
        for state in ("due", "later", "running", "dead"):
            items.add_metric([queue, state], getattr(depth, state))
        oldest.add_metric([queue], depth.oldest_due.total_seconds())
    return (items, oldest)


def transaction_metrics(oldest: OpenTransaction | None) -> Sequence[Metric]:
    age = _gauge("database_oldest_transaction_seconds", "Age of the transaction that keeps dead rows; 0: there is none")
    since = _gauge("database_transactions_since_oldest", "Transactions since the oldest one began; 0: there is none")
    age.add_metric([], 0 if oldest is None else oldest.lasts.total_seconds())
    since.add_metric([], 0 if oldest is None else oldest.transactions_since)
    return (age, since)


def circuit_metrics(circuits: Iterable[Circuit]) -> Sequence[Metric]:
    """Return the number of circuits by family and state. The metrics do not name individual circuits, because their
    names may contain phone numbers.
    """
    states = _gauge("circuits", "Circuit breakers by state", "circuit", "state")
    seen = collections.Counter((family_of(each.name), each.state.value) for each in circuits)
    for name in sorted({name for name, _ in seen}):
        for state in CircuitState:
            states.add_metric([name, state.value], seen[name, state.value])
    return (states,)


def limit_metrics(limits: Iterable[Limit], used: Mapping[str, int]) -> Sequence[Metric]:
    tokens = _gauge("rate_limit_used", "Tokens of a rate limit in use", "limit")
    most = _gauge("rate_limit_most", "Size of a rate limit", "limit")
    for limit in limits:
        tokens.add_metric([limit.name], used[limit.name])
        most.add_metric([limit.name], limit.most)
    return (tokens, most)


def _gauge(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"batuta_{name}", meaning, labels=labels)


CALL_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30)


class PrometheusFactory:
    """Creates this process's metrics and adds them to a Prometheus registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, meaning: str, labels: str) -> CounterMetric:
        return Counter(f"batuta_{name}", meaning, labels.split(), registry=self._registry)

    def histogram(self, name: str, meaning: str, labels: str, buckets: tuple[float, ...] = BUCKETS) -> HistogramMetric:
        return Histogram(f"batuta_{name}", meaning, labels.split(), buckets=buckets, registry=self._registry)


def process_registry(version: str, role: str) -> CollectorRegistry:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    Info("batuta_build", "Version and role of this process", registry=registry).info(
        {"version": version, "python": platform.python_version(), "role": role}
    )
    return registry


def observe_databases(databases: Iterable[ObservedDatabase], registry: CollectorRegistry) -> None:
    """Measure the duration of every database call, by kind of call: a single statement or a whole transaction."""
    calls = Histogram(
        "batuta_database_call_duration_seconds",
        "Duration of a database call",
        ["call"],
        buckets=CALL_BUCKETS,
        registry=registry,
    )
    errors = Counter("batuta_database_errors", "Failed database calls", ["error"], registry=registry)

    def observe(call: str, seconds: float, error: BaseException | None) -> None:
        calls.labels(call).observe(seconds)
        # An error that application code raises inside a transaction is not a database error.
        if isinstance(error, StoreError):
            errors.labels(type(error).__name__).inc()

    for database in databases:
        database.observe(observe)


class LoopCollector(Collector):
    """Metrics about the process's loops. ``running`` is called at each collection and returns the loops that are
    currently running.
    """

    def __init__(self, running: Callable[[], Iterable[LoopState]], clock: Clock, registry: CollectorRegistry) -> None:
        self._running = running
        self._clock = clock
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        progress = _gauge("loop_last_progress_timestamp_seconds", "Start of the last tick", "loop")
        timeout = _gauge(
            "loop_stuck_after_seconds", "Time without progress after which the watchdog restarts the loop", "loop"
        )
        failing = _gauge("loop_failing", "Failed ticks in a row", "loop")
        now, here = self._clock.now().timestamp(), self._clock.monotonic()
        for each in self._running():
            name = [each.loop.name]
            if each.last_beat:
                progress.add_metric(name, now - (here - each.last_beat))
            timeout.add_metric(name, each.policy.stuck_after.total_seconds())
            failing.add_metric(name, each.failures)
        yield from (progress, timeout, failing)

    def describe(self) -> Iterable[Metric]:
        return ()
