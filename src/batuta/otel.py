"""OpenTelemetry: spans for enqueued calls, items and runs, and the counters and histograms that ``/metrics`` serves.

    instrument(work)

A worker continues the trace of the caller that enqueued the task, because the trace context is stored with the task.
The extra ``otel`` installs OpenTelemetry's API; the program chooses an SDK and an exporter.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, Status, StatusCode, TraceFlags, TracerProvider
from opentelemetry.trace import SpanKind as OtelKind

from batuta import Batuta, __version__
from batuta.kernel.suggestions import check_options
from batuta.kernel.trace import EndSpan, SpanKind, Trace, bound, record_with
from batuta.metrics.counting import BUCKETS, CounterMetric, HistogramMetric, MetricsSubscriber

__all__ = ["instrument"]

KINDS: Mapping[SpanKind, OtelKind] = {
    "enqueue": OtelKind.PRODUCER,
    "item": OtelKind.CONSUMER,
    "run": OtelKind.INTERNAL,
}


@check_options
def instrument(
    work: Batuta, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> None:
    """Record this process's spans and the metrics of ``work``. By default, OpenTelemetry's global providers are used.

    Spans contain names, ids and outcomes. They contain no arguments, results or error messages, because these may
    contain personal data.
    """
    record_with(_OtelRecorder(trace.get_tracer("batuta", __version__, tracer_provider)))
    meter = metrics.get_meter("batuta", __version__, meter_provider)
    work.events.subscribe(MetricsSubscriber(_OtelFactory(meter)))


class _OtelRecorder:
    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def span(
        self, kind: SpanKind, name: str, parent: Trace | None, facts: Mapping[str, str | int]
    ) -> Iterator[EndSpan]:
        with self._tracer.start_as_current_span(
            name,
            context=_context(kind, parent),
            kind=KINDS[kind],
            attributes={"messaging.system": "batuta", **facts},
            # An error's message may contain personal data.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            made = span.get_span_context()
            with bound(_trace_of(made)) if made.is_valid else nullcontext():
                try:
                    yield lambda outcome, failed: _end(span, outcome, failed=failed)
                except BaseException as error:
                    span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                    raise


def _context(kind: SpanKind, parent: Trace | None) -> Context | None:
    """Return the context for a new span. If the result is None, the program's current span becomes the parent."""
    if kind == "enqueue" and (parent is None or trace.get_current_span().get_span_context().is_valid):
        return None
    if parent is None:
        return Context()
    remote = SpanContext(
        int(parent.trace_id, 16), int(parent.span_id, 16), is_remote=True, trace_flags=TraceFlags(int(parent.flags, 16))
    )
    return trace.set_span_in_context(NonRecordingSpan(remote), Context())


def _trace_of(span: SpanContext) -> Trace:
    return Trace(f"{span.trace_id:032x}", f"{span.span_id:016x}", "01" if span.trace_flags.sampled else "00")


def _end(span: Span, outcome: str, *, failed: bool) -> None:
    span.set_attribute("batuta.outcome", outcome)
    if failed:
        span.set_status(Status(StatusCode.ERROR, outcome))


class _OtelFactory:
    """Creates OpenTelemetry instruments for the metrics that ``/metrics`` serves, with the same names and labels."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._meter = meter

    def counter(self, name: str, meaning: str, labels: str) -> CounterMetric:
        return _Instrument(self._meter.create_counter(f"batuta_{name}", description=meaning).add, labels.split())

    def histogram(self, name: str, meaning: str, labels: str, buckets: tuple[float, ...] = BUCKETS) -> HistogramMetric:
        created = self._meter.create_histogram(
            f"batuta_{name}", unit="s", description=meaning, explicit_bucket_boundaries_advisory=list(buckets)
        )
        return _Instrument(created.record, labels.split())


class _Instrument:
    """An OpenTelemetry instrument with the methods of a Prometheus metric."""

    def __init__(
        self, record: Callable[[float, Mapping[str, str]], None], names: Sequence[str], values: Sequence[Any] = ()
    ) -> None:
        self._record = record
        self._names = names
        self._values = values

    def labels(self, *values: Any) -> "_Instrument":
        return _Instrument(self._record, self._names, values)

    def inc(self, amount: float = 1) -> None:
        self._record(amount, dict(zip(self._names, map(str, self._values), strict=True)))

    observe = inc
