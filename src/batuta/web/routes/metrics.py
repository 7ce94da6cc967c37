"""The route ``/metrics`` in the Prometheus format.

Every process serves its own counters: the API process at its own address, all others at BATUTA_METRICS_PORT. Only the
API process serves values from the database, so a sum over all processes includes each database value only once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from batuta import __version__
from batuta.access import Scope
from batuta.engine.batuta import Batuta
from batuta.metrics import readings
from batuta.metrics.counting import MetricsSubscriber
from batuta.metrics.readings import (
    LoopCollector,
    MetricReading,
    PrometheusFactory,
    Readings,
    observe_databases,
    process_registry,
)
from batuta.supervise.running import LoopState
from batuta.web.auth import AuthoriseFirst, needs
from batuta.web.context import state_of

router = APIRouter(tags=["operation"], route_class=AuthoriseFirst)


@router.get("/metrics", operation_id="metrics", response_class=PlainTextResponse, openapi_extra=needs(Scope.METRICS))
async def metrics(request: Request) -> Response:
    """Return this process's metrics, and the metrics that are read from the database, in the Prometheus format."""
    state = state_of(request)
    await state.readings.refresh()
    return Response(generate_latest(state.registry), media_type=CONTENT_TYPE_LATEST)


def observe_process(work: Batuta, role: str, loops: Callable[[], Iterable[LoopState]] = tuple) -> CollectorRegistry:
    """Start counting this process's events and database calls, and return the registry that contains the counters."""
    registry = process_registry(__version__, role)
    work.events.subscribe(MetricsSubscriber(PrometheusFactory(registry)))
    observe_databases(work.connections, registry)
    LoopCollector(loops, work.clock, registry)
    return registry


def readings_of(work: Batuta, registry: CollectorRegistry, own: Mapping[str, MetricReading]) -> Readings:
    """Return the metrics that are read from the database. ``own`` contains the application's metrics."""

    async def jobs() -> Sequence[Metric]:
        return readings.job_metrics(await work.job_health.look())

    async def queues() -> Sequence[Metric]:
        return readings.queue_metrics({name: await queue.depth() for name, queue in work.queues.items()})

    async def circuits() -> Sequence[Metric]:
        return readings.circuit_metrics(await work.circuits.look())

    async def limits() -> Sequence[Metric]:
        # Exclude per-person limits, which would create one time series per person.
        shared = [limit for limit in work.limits.values() if not limit.each]
        return readings.limit_metrics(shared, await work.rates.count_used(shared))

    async def transactions() -> Sequence[Metric]:
        return readings.transaction_metrics(await work.observability.transactions.oldest())

    asked = {"jobs": jobs, "queues": queues, "circuits": circuits, "limits": limits, "transactions": transactions}
    return Readings({**asked, **own}, work.clock, registry)
