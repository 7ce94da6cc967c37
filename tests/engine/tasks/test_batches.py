"""The tasks of a batch are counted, awaited and cancelled together, and the batch's final task runs once. A task can
also wait for other tasks.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from copy import copy
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from batuta import Batch, BatchProgress, Batuta, Failed, TaskContext, enqueue_in
from batuta.health.batches import batches_check
from batuta.kernel.errors import BatchEnded, ForeignConnection, TaskUnknown, UnknownWord
from batuta.kernel.events import ItemCrashed
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.reasons import code_of
from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import Settlement
from batuta.queues import MemberCounts
from batuta.sql import Database, Reading, Transaction
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.queue.batches import KEEP_BATCHES
from batuta.supervise.loop import Idle
from batuta.tasks.ends import WHILE_UNNEEDED
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.kit import Kit

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
HOLDER = LeaseHolder(owner="p1", lease=MINUTE)
DONE = Settlement(state=ItemState.DONE)
STORED = query_of(
    "stored",
    "SELECT (SELECT count(*) FROM tasks) AS tasks, (SELECT count(*) FROM task_waits) AS waits,"
    " (SELECT count(*) FROM batches) AS batches",
    writes=False,
)


LETTERS = query_of("letters", "SELECT batch, state FROM letters", writes=False)
CANCEL_LETTERS = query_of(
    "cancel_letters", "UPDATE letters SET state = 'cancelled' WHERE batch = :id AND state = 'waiting'", writes=True
)


class Program:
    """An application whose tasks record their calls."""

    def __init__(self, url: str, clock: FakeClock) -> None:
        self.work = work = Batuta(url, timezone="UTC", clock=clock)
        self.kit = Kit(work, clock)
        self.sent: list[Any] = []
        self.reports: list[BatchProgress] = []

        @work.task(retry=[])
        async def send(to: str, *, subject: str = "") -> str | Failed:
            self.sent.append(to + subject)
            return Failed("no such address") if to == "wrong" else to

        @work.task(retry=[])
        async def report(progress: BatchProgress) -> None:
            self.reports.append(progress)

        @work.task(retry=[])
        async def split(context: TaskContext, count: int) -> None:
            assert context.batch is not None
            await context.batch.add(send, [f"part {n}" for n in range(count)])

        self.send, self.report, self.split = send, report, split

    async def claim(self) -> list[Lease]:
        return list((await self.work.queues["default"].settle_and_claim([], HOLDER, 100)).leases)

    async def settle(self, *leases: Lease) -> int:
        """Settle leases as done, and return how many were lost."""
        result = await self.work.queues["default"].settle_and_claim([(each, DONE) for each in leases], HOLDER, 0)
        return len(result.lost)

    async def stored(self) -> tuple[int, int, int]:
        row = await self.work.database.one(STORED)
        assert row is not None
        return row["tasks"], row["waits"], row["batches"]


@pytest.fixture
async def program(database_url: str, clock: FakeClock) -> AsyncIterator[Program]:
    made = Program(database_url, clock)
    async with made.work:
        yield made


async def test_a_batch_ends_after_its_close_with_its_last_task(program: Program) -> None:
    async with program.work.batch("import 7", on_end=program.report) as batch:
        await batch.add(program.send, ["a", ("b",), ["c"], {"to": "d", "subject": "!"}, "wrong"])
        await batch.enqueue(program.send, "e", subject="?")
        await program.kit.drain()
        assert (await batch.progress()).state == "open"  # all its tasks have ended, but more may follow
        await batch.add(program.send.options(delay=60), ["later"])
    progress = await batch.progress()
    assert (progress.state, progress.total, progress.waiting, progress.succeeded, progress.failed) == (
        "running",
        7,
        1,
        5,
        1,
    )
    await program.kit.travel(60)
    await program.kit.drain()
    ended = await batch.wait(timeout=60)
    assert (ended.state, ended.total, ended.done, ended.succeeded, ended.failed) == ("ended", 7, 7, 6, 1)
    assert sorted(program.sent) == ["a", "b", "c", "d!", "e?", "later", "wrong"]
    assert program.reports == [ended]
    assert [each.id for each in await program.work.batches.newest()] == [batch.id]
    assert await (await program.work.batches.get(batch.id)).progress() == ended
    assert (await program.stored())[1] == 0


async def test_an_empty_batch_ends_and_a_task_without_parameters_gets_nothing(program: Program) -> None:
    ends: list[None] = []

    @program.work.task()
    def note_end() -> None:
        ends.append(None)

    async with program.work.batch("nothing", on_end=note_end) as batch:
        assert await batch.add(program.send, []) == []
    await program.kit.drain()
    assert (await batch.progress()).state == "ended"
    assert len(ends) == 1
    with pytest.raises(BatchEnded, match="create another batch"):
        await batch.add(program.send, ["late"])
    assert not await batch.cancel()
    with pytest.raises(UnknownWord):
        await program.work.batches.get("no-id")


async def test_a_task_adds_tasks_to_its_batch(program: Program) -> None:
    async with program.work.batch("tree", on_end=program.report) as batch:
        await batch.add(program.split, [2, 3])
    await program.kit.drain()
    assert len(program.sent) == 5
    assert [(each.total, each.succeeded) for each in program.reports] == [(7, 7)]


async def test_a_cancelled_batch_cancels_its_tasks_and_accepts_no_others(program: Program) -> None:
    async with program.work.batch("campaign", on_end=program.report) as batch:
        (handle,) = await batch.add(program.send, ["first"])
        (running,) = await program.claim()
        await batch.add(program.send, ["second", "third"])
    assert await batch.cancel("wrong list", by="ana")
    assert not await batch.cancel("again")
    progress = await batch.progress()
    assert (progress.state, progress.running, progress.cancelled, progress.reason) == (
        "cancelling",
        1,
        2,
        "wrong list",
    )
    with pytest.raises(BatchEnded):
        await batch.add(program.send, ["fourth"])
    assert (await program.work.queues["default"].renew([running], HOLDER)).cancelled == {handle.id}
    await program.settle(running)
    await program.kit.drain()
    assert [(each.state, each.succeeded, each.cancelled) for each in program.reports] == [("cancelled", 1, 2)]


async def test_an_error_in_the_block_cancels_the_batch(program: Program) -> None:
    with pytest.raises(ZeroDivisionError):
        async with program.work.batch("half", on_end=program.report) as batch:
            await batch.add(program.send, ["a"])
            raise ZeroDivisionError
    await program.kit.drain()
    assert program.sent == []
    assert [code_of(each.reason) for each in await program.work.batches.newest()] == ["batch_filling_failed"]
    assert [each.state for each in program.reports] == ["cancelled"]


async def test_a_lost_lease_does_not_end_a_batch(program: Program, clock: FakeClock) -> None:
    async with program.work.batch("one", on_end=program.report) as batch:
        await batch.add(program.send, ["a"])
    (lost,) = await program.claim()
    clock.step(2 * MINUTE)
    await program.work.queues["default"].rescue(10)
    assert await program.settle(lost) == 1
    await program.work.task_ends.tick()
    assert (await batch.progress()).state == "running"
    await program.kit.drain()
    assert len(program.reports) == 1


async def test_idle_process_looks_for_ends_rarely_until_another_process_opens_a_batch(
    program: Program, database_url: str, clock: FakeClock
) -> None:
    work, other = program.work, Program(database_url, clock)
    await work.wakeups.tick()
    await work.task_ends.tick()
    assert await work.task_ends.tick() == Idle(clock.now() + WHILE_UNNEEDED)
    work.task_ends.wakeup.clear()
    async with other.work, other.work.batch("one") as batch:
        await asyncio.wait_for(work.task_ends.wakeup.wait(), 60)
        await clock.advance(1)
        assert await work.task_ends.tick() == Idle()
        await batch.add(other.send, ["a"])
    await work.wakeups.drain(MINUTE)


async def test_process_without_notifications_looks_for_ends_at_every_tick(program: Program) -> None:
    await program.work.task_ends.tick()
    assert not program.work.wakeups.is_listening
    assert await program.work.task_ends.tick() == Idle()


async def write(database: Database, sql: str, **values: str) -> None:
    await database.run(in_dialect(query_of("write", sql, writes=True), database.dialect), **values)


class Letters:
    """An application's own table, whose rows are members of batches."""

    name = "letters"

    def __init__(self, program: Program) -> None:
        self.database = program.work.database
        self.ends: list[BatchProgress] = []
        program.work.batches.add_members(self)

    async def write(self, batch: Batch, *states: str) -> None:
        for state in states:
            await write(self.database, "INSERT INTO letters VALUES (:batch, :state)", batch=batch.id, state=state)

    async def send(self, batch: Batch, state: str) -> None:
        await write(
            self.database,
            "UPDATE letters SET state = :state WHERE batch = :id AND state = 'waiting'",
            state=state,
            id=batch.id,
        )

    async def find_unfinished(self, reading: Reading, ids: Sequence[str]) -> Collection[str]:
        return {row["batch"] for row in await reading.all(LETTERS) if row["state"] in ("waiting", "running")}

    async def count(self, reading: Reading, ids: Sequence[str]) -> Mapping[str, MemberCounts]:
        rows = [(row["batch"], row["state"]) for row in await reading.all(LETTERS)]
        return {id: MemberCounts(**Counter(state for batch, state in rows if batch == id)) for id in ids}

    async def cancel(self, transaction: Transaction, id: str, reason: str) -> None:
        await transaction.run(in_dialect(CANCEL_LETTERS, self.database.dialect), id=id)

    async def end(self, transaction: Transaction, progress: BatchProgress) -> None:
        self.ends.append(progress)


@pytest.fixture
async def letters(program: Program) -> Letters:
    await write(program.work.database, "CREATE TABLE letters (batch TEXT, state TEXT)")
    return Letters(program)


async def test_a_batch_counts_and_awaits_records_of_the_program(program: Program, letters: Letters) -> None:
    batch = await program.work.batches.create("campaign", on_end=program.report, members=letters)
    await batch.add(program.send, ["a"])
    await letters.write(batch, "succeeded", "failed", "waiting", "waiting")
    await batch.close()
    await program.kit.drain()
    progress = await batch.progress()
    assert (progress.state, progress.total, progress.waiting, progress.succeeded, progress.failed) == (
        "running",
        5,
        2,
        2,
        1,
    )
    assert await program.work.batches.newest() == [progress]
    assert program.reports == []
    await letters.send(batch, "succeeded")
    await program.kit.drain()
    ended = await batch.progress()
    assert (ended.state, ended.total, ended.succeeded, ended.failed) == ("ended", 5, 4, 1)
    assert program.reports == letters.ends == [ended]
    await write(program.work.database, "DELETE FROM letters")
    assert await batch.progress() == ended  # the counts are stored


async def test_a_cancelled_batch_cancels_the_records_of_the_program(program: Program, letters: Letters) -> None:
    batch = await program.work.batches.create("campaign", on_end=program.report, members=letters)
    await letters.write(batch, "succeeded", "waiting", "running")
    assert await batch.cancel("wrong list")
    progress = await batch.progress()
    assert (progress.state, progress.running, progress.cancelled) == ("cancelling", 1, 1)
    await program.kit.drain()
    assert program.reports == []
    await write(program.work.database, "UPDATE letters SET state = 'succeeded' WHERE state = 'running'")
    await program.kit.drain()
    assert [(each.state, each.succeeded, each.cancelled) for each in program.reports] == [("cancelled", 2, 1)]


async def test_a_cancellation_after_the_end_changes_no_record(program: Program, letters: Letters) -> None:
    batch = await program.work.batches.create("campaign", members=letters)
    await letters.write(batch, "succeeded")
    await batch.close()
    await program.kit.drain()
    await letters.write(batch, "waiting")  # an operator retries it
    assert not await batch.cancel()
    async with program.work.database.transaction() as transaction:
        assert not await batch.cancel(within=transaction)
    assert sorted(row["state"] for row in await program.work.database.all(LETTERS)) == ["succeeded", "waiting"]


async def test_a_cancellation_within_a_transaction_is_undone_with_it(program: Program, letters: Letters) -> None:
    batch = await program.work.batches.create("campaign", members=letters)
    await letters.write(batch, "waiting")
    with pytest.raises(ZeroDivisionError):
        async with program.work.database.transaction() as transaction:
            assert await batch.cancel(within=transaction)
            raise ZeroDivisionError
    progress = await batch.progress()
    assert (progress.state, progress.waiting) == ("open", 1)


async def test_a_program_without_the_records_does_not_end_their_batch(
    program: Program, letters: Letters, database_url: str, clock: FakeClock
) -> None:
    batch = await program.work.batches.create("campaign", on_end=program.report, members=letters)
    await letters.write(batch, "waiting")
    await batch.close()
    other = Program(database_url, clock)
    async with other.work:
        await other.kit.drain()
        assert (await other.work.batches.handle(batch.id).progress()).state == "running"


async def test_members_are_registered_under_one_name(program: Program, letters: Letters) -> None:
    with pytest.raises(ValueError, match="another name"):
        Letters(program)
    unregistered = copy(letters)
    with pytest.raises(ValueError, match="add_members"):
        await program.work.batches.create("campaign", members=unregistered)


async def test_an_open_batch_with_records_of_the_program_is_not_abandoned(
    program: Program, letters: Letters, clock: FakeClock
) -> None:
    await program.work.batches.create("campaign", members=letters)
    clock.step(2 * HOUR)
    assert await program.work.batch_store.find_abandoned(HOUR) == []


async def test_an_abandoned_batch_is_found_and_can_be_closed(program: Program, clock: FakeClock) -> None:
    batch = await program.work.batches.create("died", on_end=program.report)
    await batch.add(program.send, ["a"])
    clock.step(2 * HOUR)
    assert await program.work.batch_store.find_abandoned(HOUR) == []  # a task still waits
    await program.kit.drain()
    assert [row["id"] for row in await program.work.batch_store.find_abandoned(HOUR)] == [batch.id]
    report = await batches_check(program.work.batch_store.find_abandoned, clock.now).ask()
    assert [(each.says, each.facts["name"]) for each in report.findings] == [("batch_open", "died")]
    assert await batch.close(by="ana")
    assert not await batch.close()
    await program.kit.drain()
    assert len(program.reports) == 1


async def test_tasks_of_a_batch_are_kept_until_it_has_ended(program: Program, clock: FakeClock) -> None:
    batch = await program.work.batches.create("kept")
    await batch.add(program.send, ["a"])
    await program.kit.drain()

    async def prune() -> tuple[int, int, int]:
        await program.work._task_store.prune(100)
        await program.work.batch_store.prune(100)
        return await program.stored()

    clock.step(2 * HOUR)
    assert await prune() == (1, 0, 1)
    assert (await batch.progress()).total == 1
    await batch.close()
    await program.kit.drain()
    assert await prune() == (0, 0, 1)
    assert (await batch.progress()).total == 1
    clock.step(KEEP_BATCHES + HOUR)
    assert await prune() == (0, 0, 0)


async def test_a_task_starts_after_the_tasks_and_batches_that_it_waits_for(program: Program, clock: FakeClock) -> None:
    batch = await program.work.batches.create("before")
    await batch.add(program.send, ["1"])
    first = await program.send.enqueue("2")
    waiting = await program.send.options(after=[first, batch]).enqueue("3")
    last = await program.send.options(after=[waiting], delay=60).enqueue("4")
    rows = [dict(await program.work.queues["default"].item(each.id) or {}) for each in (first, waiting, last)]
    why = await program.work.explain_waits(program.work.queues["default"], rows)
    assert {id: code_of(each) for id, each in why.items()} == {
        waiting.id: "waits_for_several",
        last.id: "waits_for_task",
    }
    await program.kit.drain()
    assert sorted(program.sent) == ["1", "2"]
    await batch.close()
    await program.kit.drain()
    assert program.sent[2:] == ["3"]
    await program.kit.travel(60)
    await program.kit.drain()
    assert program.sent[-1] == "4"
    # runs at once, because the first task has already ended
    at_once = await program.send.options(after=[first]).enqueue("5")
    await program.kit.drain()
    assert await at_once.result(timeout=60) == "5"


async def test_a_failed_task_cancels_the_tasks_that_wait_for_it(program: Program) -> None:
    wrong = await program.send.enqueue("wrong")
    second = await program.send.options(after=[wrong]).enqueue("second")
    third = await program.send.options(after=[second]).enqueue("third")
    anyway = await program.send.options(after=[wrong, third], after_failure="run").enqueue("anyway")
    await program.kit.drain()
    assert sorted(program.sent) == ["anyway", "wrong"]
    states = [await each.status() for each in (second, third, anyway)]
    assert [(each.status, code_of(each.error)) for each in states if each] == [
        ("cancelled", "awaited_failed"),
        ("cancelled", "awaited_cancelled"),
        ("complete", None),
    ]
    assert (await program.stored())[1] == 0


async def test_options_of_a_waiting_task_are_checked(program: Program, clock: FakeClock) -> None:
    first = await program.send.enqueue("1")
    with pytest.raises(TaskUnknown):
        await program.send.options(after=[program.work.handle("01970000-0000-7000-8000-000000000000")]).enqueue("2")
    with pytest.raises(TypeError, match="list of handles"):
        program.send.options(after=[first.id])  # type: ignore[list-item]
    with pytest.raises(UnknownWord, match="run"):
        program.send.options(after=[first], after_failure="runs")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="omit unique_for"):
        program.send.options(after=[first], key="k", on_conflict="replace")
    with pytest.raises(ValueError, match="omit key"):
        await (await program.work.batches.create("keys")).add(program.send.options(key="k"), ["a"])
    with pytest.raises(TypeError, match="annotation"):
        await program.work.batches.create("end", on_end=program.send)  # type: ignore[arg-type]
    # A further call with the same key does not start the task early.
    held = await program.send.options(after=[first], key="k").enqueue("held")
    assert await program.send.options(key="k", on_conflict="reschedule").enqueue("new") == held
    assert [lease.id for lease in await program.claim()] == [first.id]


async def test_an_awaited_task_is_kept_until_the_wait_is_over(program: Program, clock: FakeClock) -> None:
    first = await program.send.enqueue("1")
    await program.send.options(after=[first]).enqueue("2")
    await program.settle(*await program.claim())
    clock.step(2 * HOUR)
    await program.work._task_store.prune(100)
    await program.kit.drain()
    assert program.sent == ["2"]


async def test_an_input_is_kept_until_the_task_that_reads_it_has_ended(program: Program, clock: FakeClock) -> None:
    @program.work.task(retry=[7200])
    async def read(ids: list[str]) -> list[str]:
        found = [await program.send.handle(id).result() for id in ids]
        if len(closed) > 0:
            closed.pop()
            raise OSError("the partner is closed")
        return found

    async def prune() -> int:
        await program.work._task_store.prune(100)
        await program.work.batch_store.prune(100)
        return (await program.stored())[0]

    closed = [True]
    first = await program.send.enqueue("1")
    async with program.work.batch("inputs") as batch:
        others = await batch.add(program.send, ["2", "3"])
    ids = [each.id for each in (first, *others)]
    reads = await read.options(after=[first, batch], delay=7200).enqueue(ids)
    await program.kit.drain()
    for _ in range(2):  # the delay, and then the wait for the retry: both are longer than the retention
        clock.step(3 * HOUR)
        assert await prune() == 4
        await program.kit.drain()
    assert await reads.result(timeout=60) == ["1", "2", "3"]
    await prune()
    assert await prune() == 1
    assert await first.status() is None
    clock.step(3 * HOUR)
    assert await prune() == 0


async def test_an_input_of_a_task_that_ended_is_not_found_after_its_retention(
    program: Program, clock: FakeClock
) -> None:
    first = await program.send.enqueue("1")
    second = await program.send.options(after=[first], delay=7200).enqueue("2")
    await program.kit.drain()
    clock.step(HOUR + MINUTE)
    assert await first.result(timeout=60) == "1"
    await second.cancel()
    with pytest.raises(TaskUnknown):
        await first.result(timeout=60)


async def test_a_chain_is_stored_in_one_transaction(program: Program) -> None:
    async def chain(*, fails: bool) -> list[str]:
        async with program.work.database.transaction() as transaction:
            first = await enqueue_in(transaction, program.send, "1")
            second = await enqueue_in(transaction, program.send.options(after=[first]), "2")
            bound = program.send.options(after=[second])
            third = await program.work.enqueue(bound, "3", within=transaction)
            if fails:
                raise OSError
            return [first.id, second.id, third]

    with pytest.raises(OSError):
        await chain(fails=True)
    assert await program.stored() == (0, 0, 0)
    *_, last = await chain(fails=False)
    await program.kit.drain()
    assert program.sent == ["1", "2", "3"]
    assert await program.work.handle(last).result(timeout=60) == "3"
    with pytest.raises(ForeignConnection):
        await enqueue_in(program.work.database, program.send, "4")
    with pytest.raises(TypeError, match=r"in task\.options"):
        await program.work.enqueue(program.send.options(delay=3), "4", delay=5)
    with pytest.raises(TypeError, match=r"task\.options\(…\)\.enqueue_many"):
        await program.work.enqueue_many(program.send.options(delay=3), [["4"]])  # type: ignore[arg-type]


async def test_the_end_runs_once_whatever_the_order_of_events(database_url: str, clock: FakeClock) -> None:
    """A batch's final task runs once, even though two processes work, die, lose leases, retry, add tasks, cancel and
    look for ended batches in random order.
    """
    first, second = Program(database_url, clock), Program(database_url, clock)
    async with first.work, second.work:
        for seed in range(8):
            await _play(Random(seed), first, second, clock)


async def _play(random: Random, first: Program, second: Program, clock: FakeClock) -> None:
    batch = await first.work.batches.create("play", on_end=first.report)
    of_other = second.work.batches.handle(batch.id)
    added = len(await batch.add(first.send, [str(n) for n in range(random.randrange(3))]))
    held: list[Lease] = []
    for _ in range(25):
        program = random.choice((first, second))
        before = await batch.progress()
        match random.randrange(9):
            case 0:
                held += [each for each in await program.claim() if each.row["name"] == "send"]
            case 1 if held:  # two processes settle at the same moment, and one of them settles once more
                some, held = held[:2], held[2:]
                await asyncio.gather(first.settle(some[0]), second.settle(*some))
            case 2 if held:  # the process that holds the lease dies
                clock.step(2 * MINUTE)
                await program.work.queues["default"].rescue(10)
            case 3 if not before.has_ended and before.state != "cancelling":
                added += len(await of_other.add(program.send, ["more"]))
            case 4:
                await of_other.close()
            case 5 if random.random() < 0.2:
                await batch.cancel()
            case _:
                await asyncio.gather(first.work.task_ends.tick(), second.work.task_ends.tick())
        progress = await batch.progress()
        assert progress.total == added  # the counts of the end are complete
        assert progress.has_ended or await _reports_of(first, batch.id) == "held"
    await batch.close()
    for _ in range(3):  # leases of dead processes expire
        clock.step(2 * MINUTE)
        await first.work.queues["default"].rescue(100)
        await asyncio.gather(first.kit.drain(), second.kit.drain())
    assert (await batch.progress()).has_ended
    of_batch = [each for each in (*first.reports, *second.reports) if each.id == batch.id]
    assert of_batch == [await batch.progress()]


REPORT = query_of(
    "report",
    "SELECT task.fence AS claims FROM batches JOIN tasks AS task ON task.id = batches.on_end WHERE batches.id = :id",
    writes=False,
)


async def _reports_of(program: Program, batch: str) -> str:
    row = await program.work.database.one(in_dialect(REPORT, program.work.database.dialect), id=batch)
    assert row is not None
    return "held" if row["claims"] == 0 else "claimed"


async def test_task_that_adds_to_a_cancelled_batch_fails_with_the_sentence_and_no_traceback(
    database_url: str, clock: FakeClock
) -> None:
    work, events = Batuta(database_url, timezone="UTC", clock=clock), EventRecorder()
    work.events.subscribe(events)

    @work.task()
    async def fetch(context: TaskContext) -> None:
        assert context.batch is not None
        await (await work.batches.get(context.batch.id)).cancel("wrong list")
        await context.batch.add(fetch, [()])

    async with work:
        async with work.batch("import 7") as batch:
            handle = await batch.enqueue(fetch)
        await work.work_once("default", 10)
        status = await handle.status()
    assert status is not None
    assert status.status in ("failed", "cancelled")
    assert "accepts no further tasks" in str(status.error)
    assert events.of(ItemCrashed) == []
