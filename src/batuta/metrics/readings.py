"""What is asked at the moment somebody looks: within a time limit, kept for a few seconds, and one that fails harms no other."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from batuta.guard.deadline import within
from batuta.kernel.clock import Clock

Reading: TypeAlias = Callable[[], Awaitable[Sequence[Metric]]]
LIMIT = timedelta(seconds=3)
# Several who look at once, and one who looks too often, cost the store one look.
KEPT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Looked:
    families: Sequence[Metric]
    took: float
    worked: bool


class Readings(Collector):
    """``refresh`` asks, ``collect`` shows what was last found: prometheus-client itself cannot wait for an answer."""

    def __init__(
        self, readings: Mapping[str, Reading], clock: Clock, registry: CollectorRegistry | None = None
    ) -> None:
        self._readings = readings
        self._clock = clock
        self._looked: dict[str, Looked] = {}
        self._fresh_until = float("-inf")
        self._refreshing: asyncio.Task[None] | None = None
        if registry is not None:
            registry.register(self)

    async def refresh(self) -> None:
        """Whoever comes while somebody looks waits for him; a reader who leaves takes nobody's look with him."""
        if self._clock.monotonic() < self._fresh_until:
            return
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._look())
        await asyncio.shield(self._refreshing)

    async def _look(self) -> None:
        looked = await asyncio.gather(*(self._read(name) for name in self._readings))
        self._looked = dict(zip(self._readings, looked, strict=True))
        self._fresh_until = self._clock.monotonic() + KEPT.total_seconds()

    async def _read(self, name: str) -> Looked:
        started = self._clock.monotonic()
        (found,) = await asyncio.gather(
            within(LIMIT, self._readings[name](), self._clock, f"metrics of {name}"), return_exceptions=True
        )
        took = self._clock.monotonic() - started
        return Looked((), took, worked=False) if isinstance(found, BaseException) else Looked(found, took, worked=True)

    def collect(self) -> Iterator[Metric]:
        worked = GaugeMetricFamily("batuta_reading_up", "Whether the store answered in time", labels=["reading"])
        took = GaugeMetricFamily("batuta_reading_duration_seconds", "How long the store took", labels=["reading"])
        for name, looked in self._looked.items():
            worked.add_metric([name], float(looked.worked))
            took.add_metric([name], looked.took)
            yield from looked.families
        yield from (worked, took)

    def describe(self) -> Iterable[Metric]:
        return ()  # known only once somebody has looked
