"""The execution of one item, without a store or a worker. The handler's result and the retry policy decide the
settlement.
"""

import ast
import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from batuta.kernel.errors import ExitRefused, UnstorableValue
from batuta.queue import executor
from batuta.queue.executor import Executed, execute
from batuta.queue.handler import ItemHandler
from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import Cancelled, Done, Failed, Snooze, after_seconds
from batuta.queue.running import ItemStep, Running, Stop
from batuta.testing import FakeClock
from batuta.testing.clock import settle

Handle = Callable[[Lease], Awaitable[object]]
MINUTE = timedelta(minutes=1)


class Item:
    """An item whose handler is set by the test. ``executed`` waits for the execution and returns its result."""

    def __init__(self, clock: FakeClock, handle: Handle, **options: Any) -> None:
        handler = ItemHandler(handle=handle, **{"retry": after_seconds([60]), **options})
        self.running = Running(Lease("a", 1, 1, {}), handler, clock.monotonic())
        self.execution = asyncio.ensure_future(execute(self.running, clock, max_result=100, queue="letters"))
        self.running.task = self.execution  # type: ignore[assignment]

    async def executed(self) -> Executed:
        return await self.execution

    async def stop(self, why: Stop) -> None:
        await settle()
        self.running.stop = why
        self.execution.cancel()


def returning(value: object) -> Handle:
    async def handle(lease: Lease) -> object:
        return value

    return handle


def raising(error: BaseException) -> Handle:
    async def handle(lease: Lease) -> object:
        raise error

    return handle


async def for_ever(lease: Lease) -> object:
    return await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("outcome", "state", "wait", "gives_back"),
    [
        (Done(), ItemState.DONE, None, False),
        (Snooze(MINUTE, "later"), ItemState.READY, MINUTE, True),
        (Failed("no"), ItemState.READY, MINUTE, False),
        (Failed("no", permanent=True), ItemState.DEAD, None, False),
        (Cancelled(), ItemState.CANCELLED, None, False),
    ],
)
async def test_each_outcome_has_its_settlement(
    clock: FakeClock, outcome: object, state: ItemState, wait: timedelta | None, gives_back: bool
) -> None:
    settlement, error, _ = await Item(clock, returning(outcome)).executed()
    assert (settlement.state, settlement.wait, settlement.gives_back, error) == (state, wait, gives_back, None)


async def test_execution_duration_is_measured(clock: FakeClock) -> None:
    async def slow(lease: Lease) -> object:
        await clock.sleep(3)
        return Done()

    item = Item(clock, slow)
    await clock.advance(3)
    assert (await item.executed()).took == 3


async def test_item_passes_through_its_steps(clock: FakeClock) -> None:
    steps: list[ItemStep] = []

    async def handle(lease: Lease) -> object:
        steps.append(item.running.step)
        return Done()

    item = Item(clock, handle)
    steps.append(item.running.step)
    await item.executed()
    assert [*steps, item.running.step] == [ItemStep.CLAIMED, ItemStep.HANDLING, ItemStep.SETTLING]


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), asyncio.CancelledError(), GeneratorExit()])
async def test_any_exception_of_a_handler_fails_its_item(clock: FakeClock, error: BaseException) -> None:
    settlement, reported, _ = await Item(clock, raising(error)).executed()
    assert (settlement.state, settlement.wait) == (ItemState.READY, MINUTE)
    assert settlement.error is not None
    assert settlement.error.startswith(type(error).__name__)
    assert reported is error or isinstance(reported, ExitRefused)


async def test_handler_that_cancels_its_own_task_fails_and_leaves_no_cancellation(clock: FakeClock) -> None:
    async def cancelling(lease: Lease) -> object:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return Done()

    item = Item(clock, cancelling)
    assert (await item.executed()).settlement.state is ItemState.READY
    assert item.execution.cancelling() == 0


async def test_invalid_outcome_is_a_failure(clock: FakeClock) -> None:
    settlement, error, _ = await Item(clock, returning("no outcome")).executed()
    assert (settlement.state, type(error)) == (ItemState.READY, AssertionError)


async def test_result_that_cannot_be_stored_is_a_permanent_failure(clock: FakeClock) -> None:
    settlement, error, _ = await Item(clock, returning(Done("x" * 200))).executed()
    assert settlement.state is ItemState.DEAD
    assert isinstance(error, UnstorableValue)


@pytest.mark.parametrize(("retried", "state"), [(True, ItemState.READY), (False, ItemState.DEAD)])
async def test_overdue_item_fails_and_its_policy_decides_about_a_retry(
    clock: FakeClock, retried: bool, state: ItemState
) -> None:
    item = Item(clock, for_ever, retry_timeout=retried)
    await item.stop(Stop.OVERDUE)
    settlement, error, _ = await item.executed()
    assert (settlement.state, settlement.error, error) == (state, "Job timeout exceeded", None)


async def test_cancellation_request_cancels_the_item(clock: FakeClock) -> None:
    item = Item(clock, for_ever)
    await item.stop(Stop.REQUESTED)
    assert (await item.executed()).settlement.state is ItemState.CANCELLED


@pytest.mark.parametrize("why", [Stop.SHUTDOWN, Stop.LOST])
async def test_shutdown_settles_nothing(clock: FakeClock, why: Stop) -> None:
    item = Item(clock, for_ever)
    await item.stop(why)
    with pytest.raises(asyncio.CancelledError):
        await item.executed()


@pytest.mark.parametrize("why", [Stop.OVERDUE, Stop.REQUESTED])
async def test_stop_before_the_start_runs_nothing(clock: FakeClock, why: Stop) -> None:
    began: list[Lease] = []

    async def handle(lease: Lease) -> object:
        began.append(lease)
        return Done()

    item = Item(clock, handle)
    item.running.stop = why
    assert (await item.executed()).settlement.state is not ItemState.DONE
    assert began == []


@pytest.mark.parametrize(
    ("why", "steps"),
    [
        (Stop.REQUESTED, {ItemStep.CLAIMED, ItemStep.HANDLING}),
        (Stop.OVERDUE, {ItemStep.CLAIMED, ItemStep.HANDLING, ItemStep.IN_EFFECT}),
        (Stop.SHUTDOWN, set(ItemStep)),
        (Stop.LOST, set(ItemStep)),
    ],
)
def test_each_stop_applies_in_some_steps(why: Stop, steps: set[ItemStep]) -> None:
    assert {step for step in ItemStep if why.applies_in(step)} == steps


def test_execute_is_short_and_imports_neither_store_nor_worker() -> None:
    assert len(inspect.getsource(execute).splitlines()) <= 25
    tree = ast.parse(inspect.getsource(executor))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not modules & {"batuta.queue.store", "batuta.queue.worker.worker", "batuta.queue.worker.settler"}
