"""Resources are created before work starts, are available in tasks, jobs and loops, and are closed in the reverse order
of their creation.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from batuta import Batuta
from batuta.errors import InvalidName, ResourceFailed, ResourceMissing
from batuta.events import ItemsSettled, ResourceCloseFailed
from batuta.testing import EventRecorder


@pytest.fixture
def work(work_url: str, events: EventRecorder) -> Batuta:
    work = Batuta(work_url, timezone="UTC")
    work.events.subscribe(events)
    return work


async def test_resources_start_in_order_and_close_in_the_reverse_order(work: Batuta, events: EventRecorder) -> None:
    steps: list[str] = []

    @work.provide
    async def pool() -> AsyncIterator[str]:
        steps.append("open pool")
        yield "pool"
        steps.append("close pool")

    @work.provide
    def cache() -> Iterator[str]:
        yield f"cache of {pool.value}"
        steps.append("close cache")

    @contextmanager
    def manage() -> Iterator[int]:
        yield 7
        steps.append("close managed")

    managed = work.provide(manage)

    @work.task()
    async def read() -> str:
        return f"{cache.value} {managed.value}"

    @work.task()
    def read_in_a_thread() -> str:
        return cache.value

    async with work:  # a process that only enqueues creates no resource
        handle, other = await read.enqueue(), await read_in_a_thread.enqueue()
        assert steps == []
        with pytest.raises(ResourceMissing, match=r"with pool\.replaced_by"):
            _ = pool.value
    async with work.running("worker", "scheduler"):
        assert await handle.result(timeout=60) == "cache of pool 7"
        assert await other.result(timeout=60) == "cache of pool"
    assert steps == ["open pool", "close managed", "close cache", "close pool"]


async def test_failed_start_ends_the_process_and_closes_what_had_started(work: Batuta) -> None:
    closed = asyncio.Event()

    @work.provide
    async def first() -> AsyncIterator[int]:
        yield 1
        closed.set()

    @work.provide
    async def second() -> AsyncIterator[int]:
        raise OSError("no route")
        yield 2

    with pytest.raises(ResourceFailed, match=r"resource second could not be started \(OSError\)"):
        async with work.running("worker"):
            pytest.fail("work must not run")
    assert closed.is_set()


async def test_failed_close_is_reported_and_the_others_close(work: Batuta, events: EventRecorder) -> None:
    closed = asyncio.Event()

    @work.provide
    async def first() -> AsyncIterator[int]:
        yield 1
        closed.set()

    @work.provide
    async def second() -> AsyncIterator[int]:
        yield 2
        raise OSError("no route")

    async with work.resources.started(), work.resources.started():
        assert first.value + second.value == 3
    assert closed.is_set()
    assert [each.resource for each in events.of(ResourceCloseFailed)] == ["second"]
    assert not events.of(ItemsSettled)


async def test_test_replaces_a_resource(work: Batuta) -> None:
    @work.provide
    async def pool() -> AsyncIterator[str]:
        pytest.fail("the replaced resource must not start")
        yield ""

    with pool.replaced_by("fake"):
        async with work.resources.started():
            assert pool.value == "fake"


def test_unusable_function_is_rejected_at_registration(work: Batuta) -> None:
    async def returns() -> int:
        return 1

    async def takes(url: str) -> AsyncIterator[int]:
        yield 1

    for function, step in ((returns, "write yield instead of return"), (takes, "must take no arguments")):
        with pytest.raises(InvalidName, match=step):
            work.provide(function)  # type: ignore[arg-type]
