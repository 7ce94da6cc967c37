"""Spans connect an enqueue with the run of its task in another process. Metrics have the same names as on
``/metrics``.
"""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from batuta import Batuta, Failed
from batuta.kernel.trace import current, record_with
from batuta.otel import instrument
from batuta.testing import FakeClock


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> Iterator[TracerProvider]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider
    record_with(None)
    provider.shutdown()


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def ids(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


async def test_task_continues_the_trace_of_its_caller(
    database_url: str, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    work = Batuta(database_url, clock=FakeClock())

    @work.task()
    async def archive(order: int) -> None: ...

    @work.task(retry=[])
    def print_invoice(order: int) -> str:
        trace = current()
        assert trace is not None
        return trace.trace_id

    @work.task()
    async def send(order: int) -> None:
        await archive.enqueue(order)

    @work.task(retry=[])
    async def fail() -> Failed:
        raise ValueError("the phone of Ana is 11 91234-5678")

    instrument(work, tracer_provider=provider)
    async with work:
        with provider.get_tracer("test").start_as_current_span("request"):
            await send.enqueue(7)
        printed = await print_invoice.enqueue(7)
        await fail.enqueue()
        for _ in range(3):
            await work.work_once("default", 10)
        seen = await printed.status()
    spans = by_name(exporter)
    request, enqueued, ran, inner, archived = (
        spans[name] for name in ("request", "enqueue send", "run send", "enqueue archive", "run archive")
    )
    for parent, child in ((request, enqueued), (enqueued, ran), (ran, inner), (inner, archived)):
        assert child.parent is not None
        assert (child.parent.trace_id, child.parent.span_id) == ids(parent)
    assert (enqueued.kind, ran.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert ran.attributes is not None
    assert (ran.attributes["batuta.queue"], ran.attributes["batuta.outcome"]) == ("default", "done")
    assert seen is not None
    assert seen.result == f"{ids(spans['run print_invoice'])[0]:032x}"
    assert spans["run fail"].status.status_code is StatusCode.ERROR
    assert not any("91234" in span.to_json() for span in exporter.get_finished_spans())


async def test_stages_and_jobs_are_spans(
    database_url: str, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    clock = FakeClock()
    work = Batuta(database_url, clock=clock, timezone="UTC")

    async def pick(item: dict[str, str]) -> dict[str, str]:
        return item

    parcels = work.pipeline("parcels", [pick])

    @work.job("0 3 * * *")
    async def close_day() -> int:
        return 3

    reader = InMemoryMetricReader()
    instrument(work, tracer_provider=provider, meter_provider=MeterProvider([reader]))
    async with work:
        await parcels.put({"n": "1"})
        await work.work_once("parcels.pick", 10)
        (job,) = work.registry
        await work.scheduler().run_by_hand(job)
    spans = by_name(exporter)
    assert spans["run parcels.pick"].attributes is not None
    assert spans["job close_day"].attributes is not None
    assert spans["job close_day"].attributes["batuta.outcome"] == "success"
    data = reader.get_metrics_data()
    assert data is not None
    names = {m.name for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics}
    assert {"batuta_queue_items_settled", "batuta_job_run_duration_seconds", "batuta_queue_wait_seconds"} <= names
