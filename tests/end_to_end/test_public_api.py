"""The task half of the public API as a new user writes it, on both databases."""

import asyncio
from datetime import timedelta

import pytest

from batuta import BatchProgress, Batuta, TaskContext, enqueue_in
from batuta.kernel.errors import TaskCancelled


async def test_program_of_the_public_api_runs(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    work = Batuta()

    @work.task(retry=[10, 60])
    async def send(to: str, *, subject: str = "") -> str:
        return f"{to}: {subject}"

    @work.task()
    def count(context: TaskContext, n: int) -> int:
        return n + context.attempt

    reports: asyncio.Queue[tuple[str, int]] = asyncio.Queue()

    @work.task()
    async def report(progress: BatchProgress) -> None:
        reports.put_nowait((progress.name, progress.total))

    async with work, work.running("worker"):
        handle = await send.enqueue("a@example.com", subject="hi")
        assert await handle.result(timeout=60) == "a@example.com: hi"
        assert await (await count.enqueue(4)).result(timeout=60) == 5

        options = send.options(delay=3600, key="welcome-7", priority=3, tags=["mail"])
        later = await options.enqueue("a@example.com")
        assert await options.enqueue("a@example.com") == later
        assert await later.cancel("not needed")
        status = await later.status()
        assert status is not None
        assert status.status == "cancelled"
        with pytest.raises(TaskCancelled):
            await later.result(timeout=60)

        instant = work.clock.now() + timedelta(hours=1)
        dated = await asyncio.to_thread(send.options(at=instant).enqueue_sync, "a@example.com")
        waiting = await work.status(dated.id)
        assert waiting is not None
        assert waiting.status == "queued"

        rows = [{"to": "d@example.com", "subject": "hi"}, ("e@example.com",), "f@example.com"]
        async with work.batch("import 7", on_end=report) as batch:
            await batch.add(send, rows)
        assert (await batch.wait(timeout=60)).succeeded == 3
        last = await send.options(after=[handle, batch]).enqueue("g@example.com")
        assert await last.result(timeout=60) == "g@example.com: "
        async with asyncio.timeout(60):
            assert await reports.get() == ("import 7", 3)

        id = await work.enqueue(send, "b@example.com")
        assert await work.handle(id).result(timeout=60) == "b@example.com: "
        if work.connections.way == "direct":
            import asyncpg

            connection = await asyncpg.connect(database_url)
            async with connection.transaction():
                inside = await enqueue_in(connection, send, "c@example.com")
            await connection.close()
            assert await inside.result(timeout=60) == "c@example.com: "
