"""Correct programs: `mypy --strict` accepts every line and infers the types that ``assert_type`` names."""

from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from datetime import time, timedelta
from typing import assert_type

from batuta import (
    Again,
    Batch,
    BatchProgress,
    Batuta,
    Done,
    Failed,
    Handle,
    Idle,
    Limits,
    NoRetry,
    Outcome,
    Partial,
    Resource,
    Run,
    Skipped,
    Snooze,
    Task,
    TaskContext,
    TaskStatus,
    enqueue_in,
    enqueue_in_sync,
    never,
)
from batuta.django import serve_django
from batuta.guards import AllOf, Hold, HoursGuard, Limit, RateGuard, SwitchGuard, SwitchRule
from batuta.jobs import CatchUp, JobCall, Overlap, Window
from batuta.kernel import Json
from batuta.loops import Pace
from batuta.middleware import Attempt, NewCalls, Proceed
from batuta.otel import instrument
from batuta.pipelines import Next, Pipeline, Stage, StageOutcome, step
from batuta.queues import ItemHandler, Lease, NewItem, QueueTable, after_seconds
from batuta.sql import Transaction

work = Batuta("sqlite:///typing.db", timezone="UTC", concurrency=4)
work.circuit("gateway", failures=3, reset=60)
hourly = work.limit(Limit(name="letters/hour", key="letters", most=20, per=timedelta(hours=1)))


@work.job("*/5 * * * *", category="report", timeout=60, catch_up="latest", overlap=Overlap.SKIP, circuit="gateway")
async def report(run: Run) -> Done | Partial | Skipped:
    return Done(items=len(run.params))


@work.job("0 3 * * *", max_age=timedelta(hours=2), sla=600, critical=True, holds=(SwitchRule(key="pause"),))
def clean() -> int:
    return 12


work.http_job(
    "ping", None, "http://127.0.0.1:8000/", every=30, jitter=5, timezone="UTC", expect="json", overlap="queue_one"
)
work.http_job("call", "0 9 * * 1", "http://127.0.0.1:8000/jobs/call", token="secret", catch_up=CatchUp.SKIP)


@work.task(retry=[10, 60], timeout=30, keep_result=3600, queue="mail", retry_timeout=True)
async def send(context: TaskContext, to: str, *, subject: str = "") -> str | Failed | Snooze:
    await context.report({"to": to})
    return Failed("no address", permanent=True) if not to else subject


@work.task(retry=after_seconds([1, 2]))
def resize(context: TaskContext, width: int) -> int:
    return width


@work.task()
async def greet(to: str, *, subject: str = "") -> str:
    return subject


@work.task()
def double(n: int) -> int:
    return 2 * n


at_noon: Task[[int], int] = double


@work.task(concurrency=5, rate="100/minute", per_key=Limits(by="to", concurrency=1, rate="3/hour"))
async def limited(context: TaskContext, to: str) -> None: ...


@work.task()
async def sum_up(progress: BatchProgress) -> None: ...


@work.task()
def finish(context: TaskContext) -> None: ...


limited.options(key="welcome-7", unique_for=3600, on_conflict="reschedule", delay=30)


@work.loop(every=2, stuck_after=60, longest_call=10, max_failures=3, max_restarts=3)
async def beat() -> Idle | None:
    return Idle(work.clock.now())


@work.loop(every=5)
def blocking_beat() -> Idle | None:
    return None


@work.loop(every=5)
class BlockingPoll:
    def tick(self) -> Pace:
        return Again()


@work.provide
async def addresses() -> AsyncIterator[dict[str, str]]:
    yield {}


@work.provide
def prices() -> Iterator[list[int]]:
    yield [1]


managed = work.provide(lambda: nullcontext(7))
assert_type(addresses, Resource[dict[str, str]])
assert_type(prices.value, list[int])
assert_type(managed.value, int)


@work.around_execution
async def measure(attempt: Attempt, proceed: Proceed) -> object:
    return Skipped("closed") if attempt.kind == "job" else await proceed()


@work.around_enqueue
def tag(new: NewCalls) -> Iterator[NewCalls]:
    yield new.with_tags("tenant")


@work.task(retry={OSError: [10, 60], ValueError: never, LookupError: after_seconds([1])})
async def picky(to: str) -> None:
    raise NoRetry("no such address")


@work.task(process=True, memory="512MB", timeout=60)
def heavy(n: int) -> int:
    return n


def parse(item: str) -> str:
    return item


letters = work.pipeline(
    "letters",
    [
        parse,
        step(parse, name="again", retry={ValueError: never}),
        step(parse, name="limited", concurrency=2, rate="9/minute", per_key=Limits(by="to", concurrency=1)),
    ],
)


@work.loop(every=1, finishes_tick=True)
class Poll:
    async def tick(self) -> Pace:
        return Again()

    async def drain(self, grace: timedelta) -> None: ...


async def endpoint(call: JobCall) -> Outcome:
    return Done({"key": call.key})


work.endpoints.add("endpoint", endpoint, timeout=timedelta(seconds=5), manual=True)

ORDERS = QueueTable(name="orders", ready=("new",))
LINES = QueueTable(name="lines", ready=("fetch", "store"))


async def handle(lease: Lease) -> Outcome:
    return Done(result={"id": lease.id})


async def fetch(lease: Lease) -> StageOutcome:
    return Next() if lease.attempt == 1 else Skipped("nothing to fetch")


orders = work.add_queue(ORDERS, lambda lease: ItemHandler(handle=handle), concurrency=2)
work.add_pipeline(
    Pipeline(table=LINES, stages=(Stage(name="fetch", handle=fetch), Stage(name="store", handle=fetch)), dropped="gone")
)
guards = AllOf(
    HoursGuard(name="hours", window=Window(opens=time(8), lasts=timedelta(hours=12)), zone=work.zone),
    work.circuits.breaker("gateway"),
    RateGuard(rates=work.rates, limits=(hourly,)),
    SwitchGuard(switches=work.switches, key="pause"),
    clock=work.clock,
)


async def enqueue(transaction: Transaction) -> None:
    id = await work.enqueue(
        send, "a@example.com", subject="hi", key="welcome", delay=60, priority=3, within=transaction
    )
    assert_type(id, str)
    assert_type(await work.enqueue_many(resize, [[1], [2]], keys=["a", None]), list[str])
    assert_type(await work.status(id), TaskStatus | None)
    handle = await greet.enqueue("a@example.com", subject="hi")
    assert_type(handle, Handle[str])
    assert_type(await greet.options(delay=60, key="welcome-7", priority=3).enqueue("a@example.com"), Handle[str])
    assert_type(await double.options(at=work.clock.now()).enqueue_many([[1], {"n": 2}]), list[Handle[int]])
    assert_type(await at_noon.enqueue(1), Handle[int])
    await send.enqueue("a@example.com", subject="without the context")
    await resize.enqueue(width=3)
    assert_type(handle.id, str)
    assert_type(await handle.status(), TaskStatus | None)
    assert_type(await handle.cancel("no longer needed"), bool)
    assert_type(await handle.result(timeout=5), str)
    assert_type(await handle.retry(), bool)
    assert_type(await greet.failed(), list[Handle[str]])
    assert_type([(each.stage, each.item) for each in await letters.dead(limit=5)], list[tuple[str, Json]])
    assert_type(await letters.retry("1"), bool)
    assert_type(await enqueue_in(object(), greet, "a@example.com", subject="hi"), Handle[str])
    assert_type(await enqueue_in(object(), greet.options(delay=60), "a@example.com"), Handle[str])
    assert_type(enqueue_in_sync(object(), double, 3), Handle[int])
    assert_type(greet.options(at=work.clock.now()).enqueue_sync("a@example.com"), Handle[str])
    assert_type(greet.enqueue_many_sync([["a@example.com"]]), list[Handle[str]])
    assert_type(handle.result_sync(timeout=5), str)
    assert_type(send.enqueue_sync("a@example.com").result_sync(), str)
    assert_type(handle.status_sync(), TaskStatus | None)
    assert_type(handle.cancel_sync("not needed"), bool)
    assert_type(await (await send.enqueue("a@example.com")).result(), str)  # without the outcomes
    assert_type(await (await double.options(tags=["mail"]).enqueue(1)).result(), int)
    async with work.batch("import 7", on_end=sum_up) as batch:
        assert_type(batch, Batch)
        assert_type(await batch.add(double, [1, (2,), {"n": 3}]), list[Handle[int]])
        assert_type(await batch.add(letters, [{"n": 1}]), list[str])
        assert_type(await letters.put({"n": 1}, batch=batch), str)
        assert_type(await batch.enqueue(greet, "a@example.com", subject="hi"), Handle[str])
        last = await batch.enqueue(double.options(delay=60), 4)
    work.batch("import 8", on_end=finish)
    work.batch("import 9", on_end=sum_up.options(priority=3))
    assert_type(await batch.wait(timeout=5), BatchProgress)
    assert_type(await (await work.batches.get(batch.id)).cancel("not needed"), bool)
    await double.options(after=[last, batch], after_failure="run").enqueue(5)
    await orders.put([NewItem(values={"n": 1}, key="one")])
    if isinstance(verdict := await guards.admit(work.clock.now()), Hold):
        assert_type(verdict.reason, str)


instrument(work)
serve_django(work, queues=["default", "mail"], retry=[10, 60], timeout=30)


# A decorated function stays callable.
async def call(context: TaskContext, run: Run) -> None:
    assert_type(await report(run), Done | Partial | Skipped)
    assert_type(clean(), int)
    assert_type(await beat(), Idle | None)
    assert_type(await Poll().tick(), Pace)
    assert_type(await send(context, "a@example.com", subject="hi"), str | Failed | Snooze)
    assert_type(resize(context, 3), int)
    assert_type(await greet("a@example.com"), str)
    assert_type(double(3), int)
