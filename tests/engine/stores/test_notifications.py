"""Processes on the same database notify each other about new work."""

import asyncio
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from batuta.kernel.clock import SystemClock
from batuta.kernel.ids import Ids
from batuta.queue.item import NewItem
from batuta.stores import connect
from batuta.stores.connections import Wakeups
from batuta.stores.sql.database import AsJson, ChangeListener, Database
from batuta.stores.sql.queries import query_of
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sqlite.driver import PollingListener
from batuta.supervise.loop import Wakeup
from batuta.tasks.registry import TASKS
from tests.stored import opened

LIMIT = 60.0
ITEM = NewItem(values={"name": "a", "args": AsJson([[], {}])})
# A process that listens until it is killed.
LISTENER = """
import asyncio, sys
from batuta.kernel.clock import SystemClock
from batuta.stores import connect

async def main():
    database = connect(sys.argv[1], SystemClock())
    await database.open()
    await database.listen(lambda queue: None)
    print("listening", flush=True)
    await asyncio.sleep(300)

asyncio.run(main())
"""


class Heard(asyncio.Queue[str | None]):
    async def next(self) -> str | None:
        return await asyncio.wait_for(self.get(), LIMIT)


@asynccontextmanager
async def listening(url: str) -> AsyncIterator[tuple[Heard, ChangeListener]]:
    """Listen on separate connections, as another process does."""
    heard = Heard()
    async with opened(connect(url, SystemClock())) as elsewhere:
        listener = await elsewhere.listen(heard.put_nowait)
        try:
            yield heard, listener
        finally:
            await listener.close()


def queue_on(database: Database, name: str) -> SqlQueue:
    clock = SystemClock()
    return SqlQueue(database, TASKS, Ids(clock), clock, queue=name)


async def test_other_processes_hear_the_queue_of_a_new_item(database: Database, database_url: str) -> None:
    async with listening(database_url) as (heard, _):
        await queue_on(database, "mail").put([ITEM])
        assert await heard.next() == "mail"


async def test_new_item_is_heard_after_its_transaction_has_committed(database: Database, database_url: str) -> None:
    async with listening(database_url) as (heard, _):
        with pytest.raises(RuntimeError, match="changed my mind"):
            async with database.transaction() as transaction:
                await queue_on(database, "never").put([ITEM], within=transaction)
                raise RuntimeError("changed my mind")
        async with database.transaction() as transaction:
            await queue_on(database, "mail").put([ITEM, ITEM], within=transaction)
            assert heard.empty()
        assert await heard.next() == "mail"


async def test_wakeup_reaches_workers_here_and_elsewhere(work_url: str) -> None:
    here = Wakeup()
    async with opened(connect(work_url, SystemClock())) as database, listening(work_url) as (heard, _):
        wakeups = Wakeups(database, SystemClock())
        wakeups.add("mail", here)
        wakeups.wake("mail")
        assert here.is_set()
        assert await heard.next() == "mail"


async def test_files_of_a_killed_listener_are_removed(work_url: str) -> None:
    folder = wake_folder(work_url)
    listener = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LISTENER, work_url, stdout=asyncio.subprocess.PIPE
    )
    assert listener.stdout is not None
    await asyncio.wait_for(listener.stdout.readline(), LIMIT)
    async with opened(connect(work_url, SystemClock())) as database:
        database.notify("mail")
        listener.send_signal(signal.SIGKILL)
        await listener.wait()
        assert len(list(folder.iterdir())) == 1
        async with listening(work_url) as (heard, _):
            database.notify("mail")
            assert await heard.next() == "mail"
            assert len(list(folder.iterdir())) == 1
    assert not folder.exists()  # the last listener has removed it


async def test_only_users_of_the_database_can_send(work_url: str) -> None:
    file = Path(work_url.removeprefix("sqlite:///"))
    file.chmod(0o660)
    async with listening(work_url):
        (fifo,) = wake_folder(work_url).iterdir()
        assert stat.filemode(fifo.stat().st_mode) == "prw-rw----"
        assert stat.filemode(fifo.parent.stat().st_mode) == "drwxrwx---"


async def test_listener_that_does_not_read_blocks_no_sender(work_url: str) -> None:
    async with opened(connect(work_url, SystemClock())) as database, listening(work_url) as (heard, _):
        for _ in range(20_000):  # more than a FIFO holds, and the listener has no pause in which it could read
            database.notify("mail")
        assert await heard.next() == "mail"


async def test_foreign_files_in_the_folder_are_left_alone(work_url: str) -> None:
    async with opened(connect(work_url, SystemClock())) as database, listening(work_url) as (heard, _):
        foreign = wake_folder(work_url) / "notes"
        foreign.write_text("mine")
        database.notify("mail")
        assert await heard.next() == "mail"
        assert foreign.read_text() == "mine"


async def test_listener_polls_where_the_folder_cannot_be_made(work_url: str) -> None:
    wake_folder(work_url).write_text("in the way")
    async with opened(connect(work_url, SystemClock())) as database, listening(work_url) as (heard, listener):
        assert isinstance(listener, PollingListener)
        await database.run(query_of("put", "CREATE TABLE notes (id INTEGER)", writes=True))
        database.notify("mail")
        await listener.probe()
        assert await heard.next() is None


async def test_no_descriptor_of_an_ended_listener_stays_open(work_url: str) -> None:
    async with opened(connect(work_url, SystemClock())) as database:
        async with listening(work_url) as (heard, _):
            database.notify("mail")
            await heard.next()
        database.notify("mail")
        assert not [each for each in Path("/proc/self/fd").iterdir() if "-wake/" in target_of(each)]


def target_of(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""  # the file was closed after the folder was read


def wake_folder(url: str) -> Path:
    file = Path(url.removeprefix("sqlite:///")).resolve()
    return file.with_name(f"{file.name}-wake")
