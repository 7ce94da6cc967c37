"""Metrics of this process, counted from its events. Label values are only route templates, registered names and states,
so their number is bounded.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from batuta.kernel import events

# Bucket bounds, from a fast page to a job that uses its whole timeout.
BUCKETS = (0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120, 300)
# Bucket bounds, from a punctual fire to a fire that waited for a scheduler.
LATE_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120, 600)
# HTTP allows any word as a method; words outside this set share the label "other".
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

# Events with their own counter. The label's value is a field of the event.
COUNTERS: tuple[tuple[type[events.Event], str, str, str], ...] = (
    (events.RequestCrashed, "http_crashes", "Requests that ended with an unexpected error", "route"),
    (events.ExecutionLost, "job_runs_lost", "Runs that another process took over from this one", "job"),
    (
        events.ExecutionTakenOver,
        "job_runs_taken_over",
        "Runs taken over from processes that ended or stopped renewing",
        "job",
    ),
    (events.ItemOverdue, "queue_items_overdue", "Items that exceeded their time limit", "queue"),
    (events.ItemCrashed, "queue_items_crashed", "Handlers that raised an unexpected error", "queue"),
    (events.LoopFailed, "loop_failures", "Failed ticks", "loop"),
    (events.LoopRecovered, "loop_recoveries", "Recoveries of failing loops", "loop"),
    (events.LoopAbandoned, "loops_abandoned", "Loops that failed too often and ended their process", "loop"),
    (events.LoopRestarted, "loop_restarts", "Restarts of stuck loops", "loop"),
    (events.TaskUncancellable, "uncancellable_tasks", "Tasks that ignored their cancellation", "loop"),
    (events.ProcessRecycled, "process_recycled", "Processes recycled because of their size or age", "role"),
    (events.SubscriberFailed, "subscriber_failures", "Failures of event subscribers", "subscriber"),
)


class MetricsSubscriber:
    def __init__(self, make: "MetricFactory") -> None:
        self._create_metrics(make)
        self._counted: Mapping[type[events.Event], Callable[[Any], None]] = {
            **{kind: _increment(make.counter(name, meaning, label), label) for kind, name, meaning, label in COUNTERS},
            events.RequestAnswered: self._request,
            events.JobAnswered: lambda event: self._calls.labels(event.endpoint, event.outcome).observe(
                _seconds(event.took)
            ),
            events.ExecutionStarted: self._count_start,
            events.ExecutionEnded: self._count_end,
            events.FireExplained: lambda event: self._runs.labels(event.job, event.status).inc(),
            events.FiresMissed: self._count_missed,
            events.ItemsClaimed: self._count_claims,
            events.ItemsSettled: self._count_settlements,
            events.ItemsRescued: self._count_rescues,
            events.CircuitMoved: lambda event: self._circuits.labels(family_of(event.circuit), event.after).inc(),
            events.EventLoopBlocked: lambda event: self._blocked.inc(),
            events.ChildEnded: self._count_child_end,
        }

    def __call__(self, event: events.Event) -> None:
        if (count := self._counted.get(type(event))) is not None:
            count(event)

    def _create_metrics(self, make: "MetricFactory") -> None:
        self._requests = make.histogram(
            "http_request_duration_seconds", "Time to answer a request", "method route status"
        )
        self._calls = make.histogram(
            "job_call_duration_seconds", "Time to run a job that was called over HTTP", "endpoint outcome"
        )
        self._runs = make.counter("job_runs", "Fires by status, including fires without a run", "job status")
        self._durations = make.histogram("job_run_duration_seconds", "Duration of a run", "job")
        self._lateness = make.histogram(
            "job_lateness_seconds", "Delay between a scheduled fire and its delivery", "category", LATE_BUCKETS
        )
        self._claimed = make.counter("queue_items_claimed", "Claimed items", "queue")
        self._settled = make.counter("queue_items_settled", "Settled items by outcome", "queue outcome")
        self._lost = make.counter("queue_items_lost", "Items whose lease was lost before they were settled", "queue")
        self._rescued = make.counter(
            "queue_items_rescued", "Items rescued from workers that died or stopped renewing", "queue"
        )
        self._waits = make.histogram("queue_wait_seconds", "From the instant an item is due to its start", "queue")
        self._handlers = make.histogram("queue_handler_duration_seconds", "Time to process an item", "queue")
        self._blocked = make.counter("event_loop_blocked", "Times the event loop was found blocked", "")
        self._circuits = make.counter("circuit_transitions", "Transitions of circuit breakers", "circuit to")
        self._restarts = make.counter("process_restarts", "Restarts of child processes", "role")

    def _request(self, event: events.RequestAnswered) -> None:
        method = event.method if event.method in METHODS else "other"
        self._requests.labels(method, event.route, event.status).observe(_seconds(event.took))

    def _count_start(self, event: events.ExecutionStarted) -> None:
        # only scheduled runs: a catch-up is always late, and a manual run has no planned instant
        if event.trigger == "schedule":
            self._lateness.labels(event.category).observe(_seconds(event.late))

    def _count_end(self, event: events.ExecutionEnded) -> None:
        self._runs.labels(event.job, event.status).inc()
        self._durations.labels(event.job).observe(_seconds(event.took))

    def _count_claims(self, event: events.ItemsClaimed) -> None:
        self._claimed.labels(event.queue).inc(len(event.waited))
        waits = self._waits.labels(event.queue)
        for seconds in event.waited:
            waits.observe(seconds)

    def _count_settlements(self, event: events.ItemsSettled) -> None:
        for outcome, items in event.counts.items():
            self._settled.labels(event.queue, outcome).inc(items)
        if event.lost:
            self._lost.labels(event.queue).inc(event.lost)
        handlers = self._handlers.labels(event.queue)
        for seconds in event.took:
            handlers.observe(seconds)

    def _count_missed(self, event: events.FiresMissed) -> None:
        for job, fires in event.counts.items():
            self._runs.labels(job, "missed").inc(fires)

    def _count_rescues(self, event: events.ItemsRescued) -> None:
        self._rescued.labels(event.queue).inc(event.rescued)
        if event.dead:
            self._settled.labels(event.queue, "dead").inc(event.dead)

    def _count_child_end(self, event: events.ChildEnded) -> None:
        if event.again_in is not None:
            self._restarts.labels(event.role).inc()


class CounterMetric(Protocol):
    def labels(self, *values: Any) -> "CounterMetric": ...

    def inc(self, amount: float = 1) -> None: ...


class HistogramMetric(Protocol):
    def labels(self, *values: Any) -> "HistogramMetric": ...

    def observe(self, amount: float) -> None: ...


class MetricFactory(Protocol):
    """Creates metrics with the prefix ``batuta_``; ``labels`` is a string of names separated by spaces."""

    def counter(self, name: str, meaning: str, labels: str) -> CounterMetric: ...

    def histogram(
        self, name: str, meaning: str, labels: str, buckets: tuple[float, ...] = BUCKETS
    ) -> HistogramMetric: ...


def _increment(counter: CounterMetric, label: str) -> Callable[[Any], None]:
    return lambda event: counter.labels(getattr(event, label)).inc()


def family_of(circuit: str) -> str:
    """Return the metric label for a circuit: ``printer:*`` for ``printer:5``; for a circuit without a colon in its
    name, the name itself.
    """
    family, colon, _ = circuit.partition(":")
    return f"{family}:*" if colon else circuit


def _seconds(span: Any) -> float:
    """Return a duration in seconds, at least 0, because the clock may have been set back."""
    return max(0.0, float(span.total_seconds()))
