"""The public API as one program. `mypy --strict` accepts it, and ``tests/end_to_end/test_public_api.py`` runs it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from batuta import Batuta, Handle, Limits, TaskContext, TaskStatus, enqueue_in, enqueue_in_sync
from batuta.pipelines import step

work = Batuta()
instant = datetime.now(UTC) + timedelta(hours=1)
rows = [{"to": "d@example.com", "subject": "hi"}, ("e@example.com",), "f@example.com"]
reports: list[str] = []
stored: list[dict[str, int]] = []
is_broken = True


@work.job(every=30, jitter=5)
async def ping() -> None: ...


@work.job("*/5 * * * *", timezone="Europe/Lisbon")
def every_five_minutes() -> None: ...


@work.job("*/10 * * * * *")
async def every_ten_seconds() -> None: ...


@work.task(retry=[10, 60], concurrency=5, rate="100/minute", per_key=Limits(by="to", concurrency=1, rate="3/hour"))
async def send(to: str, *, subject: str = "") -> str:
    return f"{to}: {subject}"


@work.task()
def count(context: TaskContext, n: int) -> int:
    return n + context.attempt


@work.task()
async def report() -> None:
    reports.append("import 7")


async def fetch(item: dict[str, int]) -> dict[str, int]:
    return {**item, "fetched": 1}


def parse(item: dict[str, int]) -> dict[str, int]:
    if is_broken:
        raise ValueError("not readable")
    return {**item, "parsed": 1}


async def store(item: dict[str, int]) -> None:
    stored.append(item)


orders = work.pipeline("orders", [fetch, step(parse, retry=[], per_key=Limits(by="n", rate="9/day")), store])


async def enqueue() -> None:
    handle = await send.enqueue("a@example.com", subject="hi")
    assert_type(handle, Handle[str])
    assert await handle.result(timeout=60) == "a@example.com: hi"
    assert (await work.status(handle.id) or _missing()).status == "complete"
    assert await (await count.enqueue(4)).result(timeout=60) == 5

    options = send.options(delay=60, key="welcome-7", unique_for=3600, priority=3, tags=["mail"])
    later = await options.enqueue("a@example.com")
    assert await options.enqueue("b@example.com") == later
    assert await later.cancel()
    assert ((await later.status()) or _missing()).status == "cancelled"
    assert not await later.retry()
    assert await send.failed() == []

    dated = await asyncio.to_thread(send.options(at=instant).enqueue_sync, "a@example.com")
    assert ((await dated.status()) or _missing()).status == "queued"
    id = await work.enqueue(send, "b@example.com")
    assert_type(id, str)
    assert await work.handle(id).result(timeout=60) == "b@example.com: "
    text: str = await send.handle(id).result(timeout=60)
    assert text == "b@example.com: "


async def use_batches() -> None:
    async with work.batch("import 7", on_end=report) as batch:
        handles = await batch.add(send, rows)
    assert_type(handles, list[Handle[str]])
    progress = await batch.wait(timeout=60)
    assert (progress.total, progress.succeeded, progress.failed) == (3, 3, 0)
    last = await send.options(after=[*handles, batch]).enqueue("g@example.com")
    assert await last.result(timeout=60) == "g@example.com: "


async def use_pipelines() -> None:
    global is_broken
    await orders.put({"n": 1})
    await _until(lambda: orders.dead())
    (dead,) = await orders.dead()
    assert (dead.stage, dead.item) == ("parse", {"n": 1, "fetched": 1})
    is_broken = False
    assert await orders.retry(dead.id)
    await _until(lambda: asyncio.sleep(0, stored))
    assert stored == [{"n": 1, "fetched": 1, "parsed": 1}]


async def use_schedules() -> None:
    await work.schedules.create("resumo-42", cron="0 9 * * *", task=send, args={"to": "x"}, timezone="Europe/Lisbon")
    await work.schedules.create("resumo-43", every=30, task=send, args={"to": "x"})
    await work.schedules.create("resumo-44", at=instant, task=send, args={"to": "x"})
    await work.schedules.backfill("resumo-42", datetime.now(UTC) - timedelta(days=2), datetime.now(UTC))
    assert [each.name for each in await work.schedules.all()] == ["resumo-42", "resumo-43", "resumo-44"]


async def enqueue_inside(session_or_connection: Any) -> Handle[str]:
    return await enqueue_in(session_or_connection, send, "c@example.com")


def enqueue_inside_sync(session_or_connection: Any) -> Handle[str]:
    return enqueue_in_sync(session_or_connection, send.options(tags=["mail"]), "c@example.com")


async def main() -> None:
    async with work.running("worker", "scheduler"):
        await enqueue()
        await use_batches()
        await use_pipelines()
        await use_schedules()
        await _until(lambda: asyncio.sleep(0, reports))
        assert reports == ["import 7"]


async def _until(find: Any) -> None:
    async with asyncio.timeout(60):
        while not await find():
            await asyncio.sleep(0)


def _missing() -> TaskStatus:
    raise AssertionError("the task is not stored")
