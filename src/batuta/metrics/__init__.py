"""Facts as Prometheus counts. Labels are bounded: routes are templates, endpoints and loops are registered names."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from batuta.kernel.events import Event, JobAnswered, LoopFailed, LoopRecovered, RequestAnswered, SubscriberFailed

BUCKETS = (0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120, 300)


class MetricsSubscriber:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Histogram(
            "batuta_request_duration_seconds",
            "Time to answer a request",
            ["method", "route", "status"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._jobs = Histogram(
            "batuta_job_call_duration_seconds",
            "Time a job endpoint took",
            ["endpoint", "outcome"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._loop_failures = Counter("batuta_loop_failures", "Failed ticks", ["loop"], registry=registry)
        self._loop_recoveries = Counter("batuta_loop_recoveries", "Loops that work again", ["loop"], registry=registry)
        self._deaf = Counter("batuta_subscriber_failures", "Listeners that failed", ["subscriber"], registry=registry)

    def __call__(self, event: Event) -> None:
        match event:
            case RequestAnswered():
                self._requests.labels(event.method, event.route, event.status).observe(event.took.total_seconds())
            case JobAnswered():
                self._jobs.labels(event.endpoint, event.outcome).observe(event.took.total_seconds())
            case LoopFailed():
                self._loop_failures.labels(event.loop).inc()
            case LoopRecovered():
                self._loop_recoveries.labels(event.loop).inc()
            case SubscriberFailed():
                self._deaf.labels(event.subscriber).inc()
            case _:
                return  # not every fact is a number
