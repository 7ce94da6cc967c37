"""Django tasks run on the workers of a Batuta application: results, failures, priorities, delays and transactions."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django_tasks.exceptions import TaskResultDoesNotExist

from batuta import Batuta
from tests.engine.tasks.test_other_libraries import Abandoned, configure_django, of_django

OPTIONS: dict[str, str] = {"app": "tests.engine.django.shop:work"}


@pytest.fixture
async def shop(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModuleType]:
    configure_django()
    settings.TASKS = {
        "default": {"BACKEND": "batuta.django.BatutaBackend", "QUEUES": ["default", "mail"], "OPTIONS": OPTIONS}
    }
    from batuta.django import serve_django
    from tests.engine.django import shop

    work = Batuta(database_url, timezone="UTC")
    serve_django(work, queues=["default", "mail"])
    monkeypatch.setattr(shop, "work", work)
    async with work:
        yield shop


async def result_of(task: Any, id: str) -> Any:
    return await asyncio.to_thread(task.get_result, id)


async def test_results_failures_and_contexts(shop: Any) -> None:
    added = await shop.add.aenqueue(2, b=3)
    counted = await shop.count_attempts.aenqueue()
    failed = await shop.fail.aenqueue()
    assert (await result_of(shop.add, added.id)).status == "READY"
    for queue in ("default", "mail"):
        await shop.work.work_once(queue, 10)
    done = await result_of(shop.add, added.id)
    assert (done.status, done.return_value, done.args, done.kwargs) == ("SUCCESSFUL", 5, [2], {"b": 3})
    assert done.finished_at >= done.started_at >= done.enqueued_at
    assert (await result_of(shop.count_attempts, counted.id)).return_value == 1
    dead = await result_of(shop.fail, failed.id)
    assert (dead.status, dead.attempts, len(dead.errors)) == ("FAILED", 1, 1)
    assert dead.errors[0].exception_class.__name__ == "TaskFailed"
    assert "91234" not in dead.errors[0].traceback
    with pytest.raises(TaskResultDoesNotExist):
        await result_of(shop.add, "01a1e530-8547-7000-a171-b18a613fdae9")


async def test_urgent_tasks_run_first_and_deferred_ones_wait(shop: Any) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    later = await shop.add.using(run_after=tomorrow, priority=100).aenqueue(0, 0)
    low = await shop.add.using(priority=-10).aenqueue(1, 1)
    high = await shop.add.using(priority=10).aenqueue(2, 2)
    await shop.work.work_once("default", 1)
    states = [(await result_of(shop.add, each.id)).status for each in (later, low, high)]
    assert states == ["READY", "READY", "SUCCESSFUL"]


async def test_task_rolls_back_with_the_transaction_of_the_caller(
    shop: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "pooler" in database_url:
        pytest.skip("Django connects without the pooler")
    monkeypatch.setitem(OPTIONS, "database", "default")

    def enqueue(*, fails: bool) -> Any:
        with of_django(database_url):
            stored = shop.add.enqueue(1, 1)
            if fails:
                raise Abandoned
        return stored

    with pytest.raises(Abandoned):
        await asyncio.to_thread(enqueue, fails=True)
    kept = await asyncio.to_thread(enqueue, fails=False)
    assert await shop.work.work_once("default", 10) == 1
    assert (await result_of(shop.add, kept.id)).return_value == 2


async def test_wrong_application_is_named(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIONS, "app", "tests.engine.django.shop:wrk")
    with pytest.raises(ImproperlyConfigured, match="cannot be imported"):
        await shop.add.aenqueue(1, 1)
