"""Metrics as a scraper sees them: names follow the conventions, labels have a bounded number of values, and a figure
that cannot be read does not break the page.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from batuta.kernel.errors import StatementRefused, StoreUnavailable
from batuta.kernel.events import (
    ChildEnded,
    Event,
    ExecutionEnded,
    ExecutionStarted,
    FireExplained,
    FiresMissed,
    ItemsClaimed,
    ItemsRescued,
    ItemsSettled,
    RequestAnswered,
)
from batuta.metrics.counting import MetricsSubscriber
from batuta.metrics.readings import CACHED_FOR, LIMIT, PrometheusFactory, Readings, process_registry
from batuta.testing import FakeClock
from scripts.public_api import list_events

AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def counted(*events: Event) -> CollectorRegistry:
    registry = CollectorRegistry()
    subscriber = MetricsSubscriber(PrometheusFactory(registry))
    for event in events:
        subscriber(event)
    return registry


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"batuta_{name}", labels)


def test_run_is_counted_by_ending_with_duration_and_lateness() -> None:
    registry = counted(
        ExecutionStarted("resumo", "report", "id", "schedule", AT, 1, timedelta(milliseconds=30)),
        ExecutionEnded("resumo", "report", "id", "success", None, None, 3, 2 * SECOND),
        FireExplained("resumo", "report", AT, "skipped", "it was running"),
        FiresMissed(3, 1, AT, AT, {"resumo": 3}),
        ExecutionStarted("resumo", "report", "id", "catch_up", AT, 1, timedelta(hours=2)),
    )
    assert value(registry, "job_runs_total", job="resumo", status="success") == 1
    assert value(registry, "job_runs_total", job="resumo", status="skipped") == 1
    assert value(registry, "job_runs_total", job="resumo", status="missed") == 3
    assert value(registry, "job_run_duration_seconds_sum", job="resumo") == 2
    assert value(registry, "job_lateness_seconds_count", category="report") == 1
    assert value(registry, "job_lateness_seconds_bucket", category="report", le="0.05") == 1


def test_duration_is_never_negative_when_the_clock_is_set_back() -> None:
    registry = counted(ExecutionEnded("resumo", "report", "id", "success", None, None, 3, -SECOND))
    assert value(registry, "job_run_duration_seconds_sum", job="resumo") == 0


def test_items_are_counted_by_outcome_with_wait_and_duration() -> None:
    registry = counted(
        ItemsClaimed("default", (0.2, 0.7, 3.0)),
        ItemsSettled("default", {"done": 2, "retried": 1}, 1, (0.01, 4.0)),
        ItemsRescued("default", 3, 1),
    )
    assert value(registry, "queue_items_claimed_total", queue="default") == 3
    assert value(registry, "queue_wait_seconds_bucket", queue="default", le="0.5") == 1
    assert value(registry, "queue_handler_duration_seconds_sum", queue="default") == pytest.approx(4.01)
    assert value(registry, "queue_items_settled_total", queue="default", outcome="retried") == 1
    assert value(registry, "queue_items_settled_total", queue="default", outcome="dead") == 1
    assert value(registry, "queue_items_lost_total", queue="default") == 1
    assert value(registry, "queue_items_rescued_total", queue="default") == 3


def test_unknown_http_methods_share_one_series() -> None:
    registry = counted(*(RequestAnswered(f"X{n}", "/jobs", 405, SECOND, "id") for n in range(50)))
    assert value(registry, "http_request_duration_seconds_count", method="other", route="/jobs", status="405") == 50


def test_restarted_child_counts_as_a_restart() -> None:
    registry = counted(ChildEnded("api", 7, 1, SECOND), ChildEnded("api", 8, 0, None))
    assert value(registry, "process_restarts_total", role="api") == 1


@pytest.mark.parametrize("kind", list_events(), ids=lambda kind: kind.__name__)
def test_every_event_can_be_counted(kind: type[Any]) -> None:
    samples: dict[object, Any] = {
        str: "x",
        int: 1,
        bool: True,
        timedelta: SECOND,
        datetime: AT,
        BaseException: ValueError(),
        str | None: None,
        int | None: None,
        datetime | None: None,
        timedelta | None: SECOND,
        Mapping[str, int]: {"done": 1},
        tuple[float, ...]: (1.0,),
        tuple[str, ...]: ("x",),
    }
    given = [samples[hint] for hint in get_type_hints(kind).values()]
    scraped = generate_latest(counted(kind(*given))).decode()
    assert all(sample.value >= 0 for family in text_string_to_metric_families(scraped) for sample in family.samples)


def test_metrics_have_base_units_and_a_description() -> None:
    registry = process_registry("1.2.3", "worker")
    MetricsSubscriber(PrometheusFactory(registry))
    text = generate_latest(registry).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert text.count("batuta_build_info{") == 1
    assert 'role="worker"' in text
    assert "process_resident_memory_bytes" in families
    for name, family in families.items():
        assert family.documentation, name
        assert not name.endswith(("_ms", "_minutes", "_count", "_total_total")), name
        if family.type == "histogram":
            assert name.endswith("_seconds"), name


def reading(*values: float) -> Callable[[], Awaitable[Sequence[Metric]]]:
    left = list(values)

    async def read() -> Sequence[Metric]:
        return [GaugeMetricFamily("batuta_thing", "a thing", value=left.pop(0))]

    return read


async def test_reading_that_fails_or_hangs_harms_neither_the_others_nor_the_page(clock: FakeClock) -> None:
    async def away() -> Sequence[Metric]:
        raise StoreUnavailable(where="there", why="away")

    async def broken() -> Sequence[Metric]:
        raise StatementRefused(why="a mistake of ours")

    async def hangs() -> Sequence[Metric]:
        await asyncio.Event().wait()
        return ()

    registry = CollectorRegistry()
    readings = Readings({"fine": reading(7), "away": away, "broken": broken, "hangs": hangs}, clock, registry)
    looking = asyncio.create_task(readings.refresh())
    await clock.advance(LIMIT.total_seconds() + 1)
    await looking
    assert registry.get_sample_value("batuta_thing") == 7
    up = {
        name: registry.get_sample_value("batuta_reading_up", {"reading": name})
        for name in ("fine", "away", "broken", "hangs")
    }
    assert up == {"fine": 1, "away": 0, "broken": 0, "hangs": 0}


async def test_reading_is_cached_for_a_moment(clock: FakeClock) -> None:
    registry = CollectorRegistry()
    readings = Readings({"thing": reading(1, 2)}, clock, registry)
    await asyncio.gather(readings.refresh(), readings.refresh())
    await readings.refresh()
    assert registry.get_sample_value("batuta_thing") == 1
    await clock.advance(CACHED_FOR.total_seconds())
    await readings.refresh()
    assert registry.get_sample_value("batuta_thing") == 2


async def test_cancelled_scraper_does_not_cancel_the_shared_reading(clock: FakeClock) -> None:
    gate = asyncio.Event()

    async def slow() -> Sequence[Metric]:
        await gate.wait()
        return [GaugeMetricFamily("batuta_thing", "a thing", value=1)]

    registry = CollectorRegistry()
    readings = Readings({"slow": slow}, clock, registry)
    first, second = asyncio.create_task(readings.refresh()), asyncio.create_task(readings.refresh())
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    await second
    assert registry.get_sample_value("batuta_thing") == 1
