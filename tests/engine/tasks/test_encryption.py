"""Encryption of stored calls: the stored values reveal nothing, every key in the key ring can decrypt its values, and
keys are rotated in steps.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from batuta import BatchProgress, Batuta, Limits, TaskContext
from batuta.config import EngineSettings, load_settings
from batuta.errors import KeyMissing
from batuta.kernel.errors import DamagedValue, InvalidSetting
from batuta.kernel.storage.encryption import DATA, Encryption, KeyRing
from batuta.runlog.lines import LogLine
from batuta.sql import Database, query_of
from batuta.tasks.registry import TASKS
from batuta.testing import FakeClock
from batuta.testing.kit import Kit
from batuta.texts import Texts
from batuta.web.panel.pages.queues import decrypt_payload
from batuta.web.panel.words import Words

OLD, NEW = "o" * 32, "n" * 32
CANARY = "canary-5511900000001"
ROWS = query_of("rows", "SELECT args, result, progress FROM tasks ORDER BY id", writes=False)
IDS = query_of("ids", "SELECT id FROM tasks", writes=False)
LINES = query_of("lines", "SELECT line FROM log_lines", writes=False)
SCHEDULES = query_of("schedules", "SELECT args FROM schedules", writes=False)
FAR = timedelta(minutes=2)

Open = Callable[..., AbstractAsyncContextManager[Batuta]]


@pytest.fixture
def open_work(database_url: str, clock: FakeClock) -> Open:
    """Open an application with the given encryption keys, as a separate process would. Its task ``send`` records the
    arguments that it receives.
    """

    @asynccontextmanager
    async def opened(*keys: str, **limits: Any) -> AsyncIterator[Batuta]:
        settings = load_settings(EngineSettings, {"BATUTA_KEYS": ",".join(keys)})
        work = Batuta(database_url, timezone="UTC", clock=clock, settings=settings)

        @work.task(retry=[], **limits)
        async def send(ctx: TaskContext, to: str, *, text: str = "") -> dict[str, str]:
            await ctx.report({"to": to})
            return {"to": to}

        async with work:
            yield work

    return opened


async def stored(database: Database) -> str:
    """Return all values that are stored for the calls, joined into one string."""
    return str([dict(row) for row in [*await database.all(ROWS), *await database.all(SCHEDULES)]])


async def test_a_stored_call_is_unreadable_and_runs_as_any_other(open_work: Open, database: Database) -> None:
    async with open_work(NEW) as work:
        handles = [
            await work.handle(await work.enqueue("send", CANARY, text=CANARY)).status(),
            await work.handle(await work.enqueue("send", CANARY, key="once", delay=0.001)).status(),
        ]
        await work.schedules.create("daily", task="send", cron="0 9 * * *", args={"to": CANARY}, by="ana")
        assert (await work.schedules.get("daily")).args == {"to": CANARY}
        work.clock.step(FAR)  # type: ignore[attr-defined]
        assert await work.work_once("default", 10) == 2
        for status in handles:
            assert status is not None
            ended = await work.status(status.job_id)
            assert ended is not None
            assert (ended.result, ended.progress) == ({"to": CANARY}, {"to": CANARY})
    text = await stored(database)
    assert CANARY not in text
    assert text.count("sealed:v1.") == 7


async def test_the_dashboard_shows_the_arguments_or_the_missing_key(open_work: Open) -> None:
    words = Words(Texts("en", ()), ZoneInfo("UTC"), FakeClock().now())
    async with open_work(NEW) as work:
        row = dict(await work.queues["default"].item(await work.enqueue("send", CANARY)) or {})
        shown = decrypt_payload(row, TASKS, work.encryption, words)
        assert shown["args"][:2] == [[CANARY], {}]
        assert "BATUTA_KEYS" in decrypt_payload(row, TASKS, Encryption([OLD]), words)["error"]


async def test_kept_log_lines_are_encrypted(open_work: Open, database: Database, clock: FakeClock) -> None:
    async with open_work(NEW) as work:
        line = LogLine(
            id=work.ids.new(),
            item_id=work.ids.new(),
            attempt=1,
            at=clock.now(),
            level="INFO",
            logger="app",
            line=CANARY,
        )
        await work.log_lines.add([line])
        assert [each.line for each in await work.log_lines.of_item(line.item_id)] == [CANARY]
    assert CANARY not in str([row["line"] for row in await database.all(LINES)])
    async with open_work() as work:
        assert "BATUTA_KEYS" in (await work.log_lines.of_item(line.item_id))[0].line


async def test_without_keys_a_call_is_stored_as_it_is(open_work: Open, database: Database) -> None:
    async with open_work() as work:
        handle = work.handle(await work.enqueue("send", "sealed:v1.00000000.AAAA"))
        await work.work_once("default", 10)
        assert await handle.result() == {"to": "sealed:v1.00000000.AAAA"}
    (row,) = await database.all(ROWS)
    assert row["args"][:2] == [["sealed:v1.00000000.AAAA"], {}]


async def test_a_call_whose_key_is_missing_waits_and_loses_no_attempt(
    open_work: Open, database: Database, clock: FakeClock
) -> None:
    async with open_work(OLD) as work:
        id = await work.enqueue("send", CANARY)
        await work.schedules.create(
            "soon", task="send", cron="* * * * *", args={"to": CANARY}, catch_up="all", overlap="allow", by="ana"
        )
    for keys in ((NEW,), ()):
        async with open_work(*keys) as work:
            clock.step(FAR)
            await work.work_once("default", 10)
            status = await work.status(id)
            assert status is not None
            assert (status.status, status.attempts) == ("queued", 0)
            assert "BATUTA_KEYS" in str(status.error)
            await work._schedules.fire(10)
            assert len(await database.all(ROWS)) == 1
            with pytest.raises(KeyMissing, match="batuta keys list"):
                await work.schedules.get("soon")
    async with open_work(NEW, OLD) as work:
        clock.step(FAR)
        assert await work._schedules.fire(10) == 1
        await work.work_once("default", 100)
        assert await work.handle(id).result() == {"to": CANARY}
        # the schedule now decides about the fires that passed while its key was missing
        assert len(await database.all(ROWS)) > 1


async def test_rotation_leaves_only_the_first_key_and_continues_after_an_interruption(
    open_work: Open, database: Database
) -> None:
    async with open_work() as work:
        await work.enqueue("send", CANARY)
    async with open_work(OLD) as work:
        await work.tasks.enqueue_many("send", [[f"{CANARY}-{n}"] for n in range(450)])
        await work.schedules.create("daily", task="send", cron="0 9 * * *", args={"to": CANARY}, by="ana")
    async with open_work(NEW, OLD) as work:
        columns = work.encrypted_columns
        args, *_ = columns.columns
        async for changed in columns.rotate(args):
            # a step changes a limited number of rows, and this rotation is interrupted after the first step
            assert changed == 200
            break
        steps = [changed for column in columns.columns async for changed in columns.rotate(column)]
        assert sum(steps) == 252
        assert max(steps) <= 200
        use = await columns.count(args)
        assert (use.plain, dict(use.by_key)) == (0, {work.encryption.names[0]: 451})
        assert sum([changed async for changed in columns.rotate(args)]) == 0
    assert CANARY not in await stored(database)
    async with open_work(NEW) as work:
        assert await work.work_once("default", 500) == 451
        assert (await work.schedules.get("daily")).args == {"to": CANARY}


async def test_rotation_leaves_values_of_an_unknown_key_as_they_are(open_work: Open, database: Database) -> None:
    async with open_work(OLD) as work:
        id = await work.enqueue("send", CANARY)
    async with open_work(NEW) as work:
        args, *_ = work.encrypted_columns.columns
        assert sum([changed async for changed in work.encrypted_columns.rotate(args)]) == 0
        assert [*(await work.encrypted_columns.count(args)).by_key] == [*Encryption([OLD]).names]
    async with open_work(OLD) as work:
        await work.work_once("default", 10)
        assert await work.handle(id).result() == {"to": CANARY}


async def test_keys_limits_and_replacements_work_on_encrypted_calls(open_work: Open, clock: FakeClock) -> None:
    async with open_work(OLD) as work:  # before the task had limits
        await work.tasks.enqueue_many("send", [["a"], ["a"], ["b"]])
    async with open_work(NEW, OLD, per_key=Limits(by="to", concurrency=1)) as work:
        send = work.task_registry.get("send")
        first = await send.options(key="k", delay=60, on_conflict="replace").enqueue("old")
        assert await send.options(key="k", delay=60, on_conflict="replace").enqueue("c") == first
        await work.work_once("default", 1)
        assert await work.work_once("default", 10) + await work.work_once("default", 10) >= 2
        clock.step(FAR)
        await work.work_once("default", 10)
        assert await first.result() == {"to": "c"}


def test_a_value_of_another_column_or_a_changed_value_is_refused() -> None:
    ring = KeyRing([NEW], DATA)
    sealed = ring.encrypt("x", "tasks.args")
    with pytest.raises(DamagedValue):
        ring.decrypt(sealed, "tasks.result")
    with pytest.raises(DamagedValue):
        ring.decrypt(f"{sealed[:-8]}AAAAAAA=", "tasks.args")


def test_a_short_key_is_refused_with_its_setting() -> None:
    with pytest.raises(InvalidSetting, match="BATUTA_KEYS"):
        load_settings(EngineSettings, {"BATUTA_KEYS": f"{NEW},short"})


async def test_the_last_task_of_a_batch_gets_the_counts_encrypted(open_work: Open, clock: FakeClock) -> None:
    async with open_work(NEW) as work:

        @work.task()
        async def report(progress: BatchProgress) -> str:
            return f"{progress.name}: {progress.succeeded}"

        async with work.batch(CANARY, on_end=report) as batch:
            (last,) = await batch.add(work.task_registry.get("send"), [CANARY])
        await Kit(work, clock).drain()
        assert (await batch.progress()).succeeded == 1
        rows = await work.database.all(ROWS)
        assert CANARY not in str([dict(row) for row in rows])
        (ended,) = [
            await work.status(str(row["id"])) for row in await work.database.all(IDS) if str(row["id"]) != last.id
        ]
        assert ended is not None
        assert ended.result == f"{CANARY}: 1"
