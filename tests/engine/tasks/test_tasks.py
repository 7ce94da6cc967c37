"""Tasks end to end: they are enqueued, run by a real worker under a supervisor, settled and queried."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from arq.connections import RedisSettings, create_pool
from arq.worker import Worker

from app.integrations.redis.arq import add_arq
from app.settings import Settings
from batuta import Batuta, Cancelled, Failed, Snooze
from batuta.config import EngineSettings
from batuta.kernel.errors import InvalidJob, InvalidName, InvalidTask, PayloadTooLarge, TransactionMisuse, UnknownWord
from batuta.kernel.events import ItemCrashed, ItemsRescued, ItemsSettled, TaskThreadsStuck
from batuta.kernel.leases import LeaseHolder
from batuta.pipelines import step
from batuta.queue.outcome import DEFAULT_RETRY, settle
from batuta.queue.worker.rescuer import recover_items
from batuta.stores.arq.calls import encode_call
from batuta.stores.arq.runner import RunnerContext, functions
from batuta.stores.sql.queue.tasks import SqlTasks
from batuta.tasks.registry import TaskStatus
from batuta.tasks.service import ThreadWatch
from batuta.tasks.task import MAX_STUCK_THREADS, TaskContext
from batuta.testing import EventRecorder, FakeClock
from tests.leaks import collect_leaks


@pytest.fixture(params=["sql", "arq"])
async def work(request: pytest.FixtureRequest, database_url: str, events: EventRecorder) -> AsyncIterator[Batuta]:
    """The engine. Each test runs once with the engine's own queue and once with ARQ, and expects the same results."""
    made = Batuta(database_url, timezone="UTC")
    made.events.subscribe(events)
    if request.param == "arq":
        redis_url = request.getfixturevalue("redis_url")
        pool = await create_pool(RedisSettings.from_dsn(redis_url))
        await pool.flushdb()
        await pool.aclose(close_connection_pool=True)
        add_arq(made, Settings.model_validate({"redis_url": redis_url}))
    async with made:
        yield made


@asynccontextmanager
async def working(work: Batuta) -> AsyncIterator[None]:
    stop = asyncio.Event()
    running = asyncio.create_task(work.supervisor().run(stop, timedelta(seconds=5)))
    try:
        async with arq_working(work):
            yield
    finally:
        stop.set()
        await running


@asynccontextmanager
async def arq_working(work: Batuta) -> AsyncIterator[None]:
    """If ARQ runs the tasks, run a plain ARQ worker next to Batuta's worker."""
    runner = work.task_registry.elsewhere
    if runner is None:
        yield
        return
    pool = runner.__self__._make_client()  # type: ignore[attr-defined]
    store = SqlTasks(work.database, work.ids, work.clock, work.wakeups.wake)
    here = RunnerContext(store.report_of_call, store.find_wanted, work.clock, work.events)
    worker = Worker(
        functions(work.task_registry, here),
        job_serializer=encode_call,
        job_deserializer=here.decode_call,
        redis_pool=pool,
        poll_delay=0.01,
        max_jobs=50,
        handle_signals=False,
        allow_abort_jobs=True,
        log_results=False,
    )
    running = asyncio.create_task(worker.async_run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, *worker.tasks.values(), return_exceptions=True)
        await pool.aclose(close_connection_pool=True)
        del running
        collect_leaks()  # a cancelled ARQ worker loses a connection that it was opening


async def ended(
    work: Batuta,
    events: EventRecorder,
    id: str,
    has_ended: Callable[[TaskStatus], bool] = lambda status: status.status in ("complete", "failed", "cancelled"),
) -> Any:
    """Wait for events until the task has ended, and return its status."""
    while True:
        before = len(events.of(ItemsSettled))
        status = await work.status(id)
        if status is None or has_ended(status):
            return status
        await events.wait_for(ItemsSettled, lambda event, before=before: len(events.of(ItemsSettled)) > before)  # type: ignore[misc]


async def test_task_runs_and_returns_its_result(work: Batuta, events: EventRecorder) -> None:
    @work.task()
    async def soma(ctx: TaskContext, a: int, b: int = 0) -> dict[str, int]:
        return {"soma": a + b, "attempt": ctx.attempt}

    id = await work.enqueue(soma, 2, b=3)
    waiting = await work.status(id)
    assert waiting is not None
    assert (waiting.status, waiting.start_time, waiting.result) == ("queued", None, None)
    async with working(work):
        status = await ended(work, events, id)
    assert (status.status, status.result, status.error) == ("complete", {"soma": 5, "attempt": 1}, None)
    assert status.enqueue_time <= status.start_time <= status.finish_time


async def test_concurrent_callers_share_statements_and_get_their_own_ids(database_url: str) -> None:
    async with Batuta(database_url) as work:

        @work.task()
        async def greet(name: str) -> None: ...

        statements: list[str] = []
        work.database.observe(lambda kind, seconds, error: statements.append(kind))
        ids = await asyncio.gather(*(work.enqueue("greet", f"é {n}", priority=n % 3) for n in range(50)))
        assert len(statements) <= 3
        rows = {row["id"]: row for row in await work.queues["default"].list_items("ready", 100)}
        assert [(rows[id]["args"][0], rows[id]["priority"]) for id in ids] == [([f"é {n}"], n % 3) for n in range(50)]


async def test_workers_of_many_queues_share_a_rescuer_and_a_poll(database_url: str) -> None:
    async def greet(name: str) -> None: ...

    async with Batuta(database_url, migrate=False) as work:
        for n in range(10):
            work.task(name=f"greet{n}", queue=f"queue{n}")(greet)
        loops = [loop.name for loop, _ in work._loops_of("worker")]
        await work.enqueue("greet3", "Ann")
        statements: list[str] = []
        work.liveness.observe(lambda kind, seconds, error: statements.append(kind))
        due = await asyncio.gather(*(work.queues[f"queue{n}"].next_at() for n in range(10)))
    assert len([name for name in loops if name.startswith("rescuer:")]) == 1
    assert [at is not None for at in due] == [n == 3 for n in range(10)]
    assert len(statements) == 1


async def test_enqueue_inside_a_transaction_that_it_does_not_join_is_refused(database_url: str) -> None:
    async with Batuta(database_url) as work:

        @work.task()
        async def greet(name: str) -> None: ...

        async with work.database.transaction():
            with pytest.raises(TransactionMisuse):
                await work.enqueue("greet", "Ana")


async def test_deep_and_odd_arguments_arrive_unchanged(database_url: str) -> None:
    """An enqueue stores arguments as one JSON value, which must preserve deep nesting, large numbers and special
    characters.
    """
    calls: list[list[Any]] = [
        [[1, -0.5, 1e-9, 12345678901234567890, None, True, "", 'é \\u0000 " \n', {"a": [{}]}]],
        [[]],
        [{}],
        ["x"],
    ]
    async with Batuta(database_url) as work:

        @work.task()
        async def keep(value: Any) -> None: ...

        ids = await work.enqueue_many("keep", calls)
        ids.append(await work.enqueue("keep", *calls[0]))
        rows = {row["id"]: row["args"] for row in await work.queues["default"].list_items("ready", 100)}
        assert [rows[id][:2] for id in ids] == [[call, {}] for call in [*calls, calls[0]]]


async def test_plain_function_runs_in_a_thread(work: Batuta, events: EventRecorder) -> None:
    @work.task()
    def dobro(ctx: TaskContext, n: int) -> int:
        return 2 * n

    async with working(work):
        id = await work.enqueue(dobro, 21)
        assert (await ended(work, events, id)).result == 42


async def test_failing_task_is_retried_as_configured_and_then_failed(work: Batuta, events: EventRecorder) -> None:
    @work.task(retry=[0.01, 0.01])
    async def quebra(ctx: TaskContext) -> None:
        raise ValueError("segredo do cliente")

    async with working(work):
        id = await work.enqueue(quebra)
        status = await ended(work, events, id)
    assert (status.status, status.attempts) == ("failed", 3)
    assert status.error == "ValueError in the handler; the log has the traceback"
    assert len(events.of(ItemCrashed)) == 3


async def test_task_may_return_a_permanent_failure_or_a_snooze(work: Batuta, events: EventRecorder) -> None:
    @work.task(retry=[0.01])
    async def nunca(ctx: TaskContext) -> Failed:
        return Failed("wrong document", permanent=True)

    calls: list[int] = []

    @work.task(retry=[])
    async def depois(ctx: TaskContext) -> Snooze | str:
        calls.append(ctx.attempt)
        return Snooze(datetime.now(UTC), "not yet") if len(calls) < 3 else "enfim"

    async with working(work):
        first, second = await work.enqueue(nunca), await work.enqueue(depois)
        assert (await ended(work, events, first)).error == "wrong document"
        assert (await ended(work, events, second)).result == "enfim"
    assert calls == [1, 1, 1]  # a snooze costs no attempt


async def test_task_that_exceeds_its_time_limit_fails_without_a_retry(work: Batuta, events: EventRecorder) -> None:
    @work.task(retry=[0.01, 0.01], timeout=0.05)
    async def lenta(ctx: TaskContext) -> None:
        await asyncio.Event().wait()

    async with working(work):
        id = await work.enqueue(lenta)
        status = await ended(work, events, id)
    assert (status.status, status.error, status.attempts) == ("failed", "Job timeout exceeded", 1)


async def test_task_with_retry_timeout_is_retried_after_a_timeout(work: Batuta, events: EventRecorder) -> None:
    runs: list[int] = []

    @work.task(timeout=0.05, retry=[0.01, 0.01], retry_timeout=True)
    async def lenta(ctx: TaskContext) -> None:
        runs.append(ctx.attempt)
        await asyncio.Event().wait()

    async with working(work):
        status = await ended(work, events, await work.enqueue(lenta))
    assert (status.status, status.error, runs) == ("failed", "Job timeout exceeded", [1, 2, 3])


async def test_key_is_unique_among_live_tasks(work: Batuta, events: EventRecorder) -> None:
    @work.task()
    async def uma(ctx: TaskContext) -> None: ...

    first = await work.enqueue(uma, key="k")
    assert await work.enqueue(uma, key="k") == first
    async with working(work):
        await ended(work, events, first)
        second = await work.enqueue(uma, key="k")
        assert second != first
        await ended(work, events, second)


async def test_enqueue_commits_with_its_transaction_or_not_at_all(work: Batuta) -> None:
    @work.task()
    async def nada(ctx: TaskContext) -> None: ...

    ids: list[str] = []
    with pytest.raises(RuntimeError):
        async with work.database.transaction() as transaction:
            ids.append(await work.enqueue(nada, within=transaction))
            raise RuntimeError("no")
    assert await work.status(ids[0]) is None


async def test_many_tasks_are_enqueued_at_once_and_all_run(work: Batuta, events: EventRecorder) -> None:
    done: list[int] = []

    @work.task(keep_result=60)
    async def conta(ctx: TaskContext, n: int) -> None:
        done.append(n)

    ids = await work.enqueue_many(conta, [(n,) for n in range(120)])
    assert len(set(ids)) == 120
    async with working(work):
        for id in ids:
            await ended(work, events, id)
    assert sorted(done) == list(range(120))


async def test_cancelled_task_never_runs(work: Batuta) -> None:
    @work.task()
    async def nada(ctx: TaskContext) -> None: ...

    id = await work.enqueue(nada, delay=60)
    assert await work.tasks.cancel(id)
    status = await work.status(id)
    assert status is not None
    assert (status.status, status.error) == ("cancelled", "cancelled")


async def test_results_are_pruned_after_their_retention(work: Batuta, events: EventRecorder) -> None:
    @work.task(keep_result=0)
    async def breve(ctx: TaskContext) -> int:
        return 1

    async with working(work):
        id = await work.enqueue(breve)
        assert await ended(work, events, id) is None


async def test_progress_is_shown_while_the_task_runs(work: Batuta, events: EventRecorder) -> None:
    halfway, go_on = asyncio.Event(), asyncio.Event()

    @work.task()
    async def longa(ctx: TaskContext) -> None:
        await ctx.report({"feito": 50})
        halfway.set()
        await go_on.wait()

    async with working(work):
        id = await work.enqueue(longa)
        await halfway.wait()
        status = await work.status(id)
        assert status is not None
        assert (status.status, status.progress) == ("in_progress", {"feito": 50})
        go_on.set()
        await ended(work, events, id)


async def test_progress_that_cannot_be_stored_fails_the_task(work: Batuta, events: EventRecorder) -> None:
    @work.task(retry=[])
    async def mede(ctx: TaskContext) -> None:
        await ctx.report({"feitas": {1, 2}})  # type: ignore[dict-item]

    async with working(work):
        status = await ended(work, events, await work.enqueue(mede))
    assert (status.status, status.progress) == ("failed", None)
    assert "UnstorableValue" in status.error


async def test_invalid_declaration_is_refused_with_the_next_step(work: Batuta) -> None:
    @work.task()
    async def normaliza(ctx: TaskContext) -> None: ...

    with pytest.raises(UnknownWord, match="did you mean normaliza"):
        await work.enqueue("normalisa")
    with pytest.raises(TypeError):
        await work.enqueue(normaliza, object())  # type: ignore[arg-type]
    with pytest.raises(InvalidName, match="another task"):
        work.task(name="normaliza")(normaliza)
    assert await work.status("not-an-id") is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("a\x00b", "NUL"),
        ({"a": ["\x00"]}, "NUL"),
        ("half \ud800", "surrogate"),
        (float("nan"), "JSON compliant"),
        (float("inf"), "JSON compliant"),
        (object(), "JSON has no object"),
        ({1, 2}, "JSON has no set"),
        ([datetime(2026, 3, 2, tzinfo=UTC)], "JSON has no datetime"),
        ({"1": 1, 1: 2}, "a key of type int becomes text"),
        ({"a": {None: 1}}, "a key of type NoneType becomes text"),
        ({True: 1}, "a key of type bool becomes text"),
        (-0.0, "returns -0.0 as 0.0"),
        ([1e308], "as an integer"),
        ({"n": -1e16}, "as an integer"),
    ],
    ids=[
        "nul", "nul inside", "surrogate", "nan", "inf", "object", "set", "instant", "equal keys", "none key", "bool key",
        "minus zero", "large float", "large negative",
    ],
)  # fmt: skip
async def test_unstorable_argument_is_refused_at_enqueue(work: Batuta, given: Any, why: str) -> None:
    @work.task()
    async def nada(ctx: TaskContext, given: Any) -> None: ...

    with pytest.raises((TypeError, ValueError), match=why):
        await work.enqueue(nada, given)
    with pytest.raises((TypeError, ValueError), match=why):
        await work.enqueue_many(nada, [(1,), (given,)])
    assert (await work.queues["default"].counts()) == {}


async def test_unstorable_key_or_priority_is_refused_at_enqueue(work: Batuta) -> None:
    @work.task()
    async def nada(ctx: TaskContext) -> None: ...

    with pytest.raises(ValueError, match="key"):
        await work.enqueue(nada, key="a\x00b")
    with pytest.raises(ValueError, match="priority"):
        await work.enqueue(nada, priority=2**31)
    for delay in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="delay"):
            await work.enqueue(nada, delay=delay)


async def test_argument_reads_back_as_stored(work: Batuta, events: EventRecorder) -> None:
    @work.task()
    async def eco(ctx: TaskContext, given: Any) -> Any:
        return given

    given: Any = {
        "large": 2**70, "small": -(2**63), "float": 0.1, "whole": 2.0, "tiny": 5e-324, "text": "\\u0000 ção 🩺 \u2028\t",
        "deep": [[[[[None, True, False, []]]]]], "": {}, "-0.0 e+": "1e+16", "largest": 9999999999999998.0, "below": -1e-300,
    }  # fmt: skip
    async with working(work):
        id = await work.enqueue(eco, given)
        result = (await ended(work, events, id)).result
    assert {name: repr(value) for name, value in result.items()} == {name: repr(value) for name, value in given.items()}


async def test_tuple_in_a_result_returns_as_a_list(work: Batuta, events: EventRecorder) -> None:
    @work.task()
    async def eco() -> Any:
        return {"made": (1, ("a",))}

    async with working(work):
        id = await work.enqueue(eco)
        result = (await ended(work, events, id)).result
    assert result == {"made": [1, ["a"]]}


async def test_oversized_arguments_are_refused_with_size_limit_and_next_step(work: Batuta) -> None:
    @work.task()
    async def nada(ctx: TaskContext, *given: Any) -> None: ...

    limit = 1024 * 1024
    fits = "x" * (limit - len('[["",0],{}]'))
    await work.enqueue(nada, fits, 0)
    for call in ((f"{fits}x", 0), ([0] * (limit // 2), 0), ("é" * (limit // 2), 0), ({"a": ["x" * 20_000_000]},)):
        with pytest.raises(PayloadTooLarge, match="bytes of JSON, and the limit is 1048576: store the data") as refused:
            await work.enqueue(nada, *call)
        assert int(str(refused.value.facts["size"])) > limit
        with pytest.raises(PayloadTooLarge, match="BATUTA_MAX_PAYLOAD_BYTES"):
            await work.enqueue_many(nada, [(1,), call])
    # The limit applies to one task, not to a batch.
    await work.enqueue_many(nada, [(fits, 0), (fits, 0)])
    assert (await work.queues["default"].counts()) == {"queued": 3}


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ("x" * (1024 * 1024), "the task result cannot be stored: 1048578 bytes of JSON, and the limit is 1048576"),
        ({1, 2}, "the task result cannot be stored: JSON has no set"),
        ({"a": {1: 2}}, "the task result cannot be stored: a key of type int becomes text"),
    ],
    ids=["too large", "set", "key"],
)
async def test_unstorable_result_fails_the_task_once_with_the_reason(
    work: Batuta, events: EventRecorder, result: Any, why: str
) -> None:
    runs: list[int] = []

    @work.task(retry=[0.01, 0.01])
    async def grande(ctx: TaskContext) -> Any:
        runs.append(ctx.attempt)
        return result

    async with working(work):
        status = await ended(work, events, await work.enqueue(grande))
    assert (status.status, status.attempts, runs) == ("failed", 1, [1])
    assert status.error.startswith(why)


async def test_size_limit_is_a_setting(database_url: str) -> None:
    settings = EngineSettings.model_validate({"batuta_max_payload_bytes": 1024})
    async with Batuta(database_url, timezone="UTC", settings=settings) as work:

        @work.task()
        async def nada(ctx: TaskContext, given: str) -> None: ...

        await work.enqueue(nada, "x" * 1000)
        with pytest.raises(PayloadTooLarge, match="limit is 1024"):
            await work.enqueue(nada, "x" * 1024)


async def test_plain_functions_do_not_wait_for_threads_of_a_shared_pool(work: Batuta, events: EventRecorder) -> None:
    """Plain functions do not wait for a shared thread pool. Here more of them run at the same time than a default pool
    has threads.
    """
    together = threading.Barrier(20)

    @work.task(retry=[])
    def encontro(ctx: TaskContext) -> int:
        return together.wait(60)

    ids = await work.enqueue_many(encontro, [() for _ in range(20)])
    async with working(work):
        assert sorted([(await ended(work, events, id)).result for id in ids]) == list(range(20))


async def test_plain_function_that_never_returns_leaves_a_bounded_number_of_threads(
    work: Batuta, events: EventRecorder
) -> None:
    release = threading.Event()

    @work.task(retry=[], timeout=0.05)
    def presa(ctx: TaskContext) -> None:
        release.wait()

    at_a_time = 4
    work.worker_policy = replace(work.worker_policy, limit=at_a_time)
    ids = await work.enqueue_many(presa, [() for _ in range(20)])
    try:
        async with working(work), asyncio.timeout(60):
            for id in ids:
                await ended(work, events, id, lambda status: status.error is not None)
            stuck = sum(thread.name == "task presa" for thread in threading.enumerate())
            assert MAX_STUCK_THREADS <= stuck < MAX_STUCK_THREADS + at_a_time
            statuses = [await work.status(id) for id in ids]
            put_off = [each for each in statuses if each is not None and each.status == "queued"]
            assert len(put_off) == len(ids) - stuck
            assert {each.attempts for each in put_off} == {0}
            assert all("of task presa are still running in their threads" in str(each.error) for each in put_off)
            watch = ThreadWatch(work.task_registry, work.events)
            await watch.tick()
            await watch.tick()
            assert events.of(TaskThreadsStuck)[-1] == TaskThreadsStuck("presa", stuck)
            assert watch.stuck_threads == stuck
    finally:
        release.set()


@pytest.mark.parametrize(("arguments", "named"), [((), {}), ((1, 2), {}), ((), {"outro": 1}), ((1,), {"numero": 1})])
async def test_call_with_wrong_arguments_is_refused_at_enqueue(
    work: Batuta, arguments: tuple[int, ...], named: dict[str, Any]
) -> None:
    @work.task()
    async def simples(context: TaskContext, numero: int) -> None: ...

    with pytest.raises(TypeError, match="task simples cannot be called with these arguments"):
        await work.enqueue(simples, *arguments, **named)


async def test_enqueue_many_checks_its_argument_lists_and_keys(work: Batuta) -> None:
    @work.task()
    async def simples(context: TaskContext, numero: int) -> None: ...

    with pytest.raises(TypeError, match="a list of its arguments"):
        await work.enqueue_many(simples, ["ab"])
    with pytest.raises(TypeError, match="cannot be called with these arguments"):
        await work.enqueue_many(simples, [[1], [1, 2]])
    with pytest.raises(ValueError, match="2 tasks and 1 keys"):
        await work.enqueue_many(simples, [[1], [2]], keys=["a"])
    assert await work.queues["default"].counts() == {}


async def test_decorator_without_parentheses_is_refused_with_the_correction(work: Batuta) -> None:
    async def esquecida(context: TaskContext) -> None: ...

    with pytest.raises(InvalidTask, match=r"write @work.task\(\) above it"):
        work.task(esquecida)  # type: ignore[arg-type]
    with pytest.raises(InvalidJob, match="its schedule is missing"):
        work.job(esquecida)  # type: ignore[arg-type]


async def test_two_tasks_may_have_the_same_key(work: Batuta) -> None:
    """A key is unique only among the calls of one task. For example, an order's id can be the key of a call that
    charges the order and of another call that announces the order.
    """

    @work.task()
    async def cobrar(ctx: TaskContext) -> None: ...

    @work.task()
    async def avisar(ctx: TaskContext) -> None: ...

    announced = await work.enqueue(avisar, key="pedido-7")
    charged = await work.enqueue(cobrar, key="pedido-7")
    assert announced != charged
    assert [await work.enqueue(avisar, key="pedido-7"), await work.enqueue(cobrar, key="pedido-7")] == [
        announced,
        charged,
    ]
    assert await work.enqueue_many(cobrar, [(), ()], keys=["pedido-7", "pedido-8"]) != [charged, charged]
    status = await work.status(charged)
    assert status is not None
    assert status.name == "cobrar"
    assert (await work.queues["default"].depth()).due == 3


async def test_program_finds_and_retries_failed_calls(database_url: str, clock: FakeClock) -> None:
    work, is_broken = Batuta(database_url, clock=clock, timezone="UTC"), True

    @work.task(retry=[])
    async def send(to: str) -> str | Failed:
        return Failed("no such address") if is_broken else to

    @work.task(retry=[])
    async def other() -> Failed:
        return Failed("always")

    async with work:
        await other.enqueue()
        handle = await send.options(key="once").enqueue("a@example.com")
        assert not await handle.retry()  # the task waits, so there is nothing to retry
        await work.work_once("default", 10)
        assert await send.failed() == [handle]
        is_broken = False
        assert await handle.retry()
        assert not await handle.retry()
        await work.work_once("default", 10)
        assert await handle.result() == "a@example.com"
        assert await send.failed() == []
        assert not await work.handle("no id").retry()


async def test_empty_queue_is_read_without_a_claim(
    database_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an empty queue, ``work_once`` only reads: it registers no worker and writes nothing."""
    work = Batuta(database_url, clock=clock)

    @work.task()
    async def greet() -> None: ...

    def refuse(owner: str) -> None:
        raise AssertionError(f"{owner} claims")

    async with work:
        monkeypatch.setattr(work.presence, "present", refuse)
        assert await work.work_once("default", 10) == 0
        await greet.enqueue()
        with pytest.raises(AssertionError, match="claims"):
            await work.work_once("default", 10)


async def test_running_task_keeps_the_reason_of_its_cancellation(database_url: str, clock: FakeClock) -> None:
    work = Batuta(database_url, clock=clock, timezone="UTC")

    @work.task()
    async def send(to: str) -> None: ...

    async with work:
        handle, queue = await send.enqueue("a@example.com"), work.queues["default"]
        holder = LeaseHolder(owner="p1", lease=timedelta(seconds=30))
        (lease,) = (await queue.settle_and_claim([], holder, 1)).leases
        assert await handle.cancel("no longer needed")
        await queue.settle_and_claim([(lease, settle(1, Cancelled(), DEFAULT_RETRY))], holder, 0)
        status = await handle.status()
        assert status is not None
        assert (status.status, status.error) == ("cancelled", "no longer needed")


async def test_rescue_names_the_queue_and_the_tasks(database_url: str, clock: FakeClock, events: EventRecorder) -> None:
    work = Batuta(database_url, clock=clock, timezone="UTC")

    @work.task(queue="mail")
    async def send(to: str) -> None: ...

    @work.task(queue="mail")
    async def sign() -> None: ...

    orders = work.pipeline("orders", [step(lambda item: item, name="fetch"), step(lambda item: item, name="store")])
    holder = LeaseHolder(owner="p1", lease=timedelta(seconds=30))
    async with work:
        await send.enqueue("a@example.com")
        await sign.enqueue()
        await orders.put({"n": 1})
        for queue in (work.queues["mail"], work.queues["orders.fetch"]):
            await queue.settle_and_claim([], holder, 10)
            await recover_items(queue, events, lambda: None, ["p1"])
    assert [(each.queue, each.rescued, each.tasks) for each in events.of(ItemsRescued)] == [
        ("mail", 2, ("send", "sign")),
        ("orders.fetch", 1, ()),
    ]
