"""Calls that must be rejected. Each line that ends in ``# E: code`` must cause an error of that kind, and no other line
may cause one.
"""

from datetime import timedelta

from batuta import Admit  # E: attr-defined
from batuta import Batuta, Done, Failed, Limits, NoRetry, Run, TaskContext, enqueue_in, enqueue_in_sync
from batuta.django import serve_django
from batuta.guards import Limit
from batuta.jobs import JobCall
from batuta.middleware import Attempt, NewCalls, Proceed
from batuta.otel import instrument
from batuta.pipelines import step
from batuta.queues import Lease, NewItem, QueueTable, Writes
from batuta.queues import Worker  # E: attr-defined

work = Batuta("sqlite:///typing.db", timezone="UTC")
Batuta("sqlite:///typing.db", time_zone="UTC")  # E: call-arg
Batuta(7)  # E: arg-type


@work.job("*/5 * * * *", timout=60)  # E: call-arg
async def misspelt() -> None: ...


@work.job("*/5 * * * *", catch_up="newest")  # E: arg-type
async def catches() -> None: ...


@work.job("*/5 * * * *", sla="ten minutes")  # E: arg-type
async def sla() -> None: ...


@work.job(300)  # E: arg-type
async def number() -> None: ...


@work.job("*/5 * * * *")  # E: type-var
async def two_arguments(run: Run, more: str) -> None: ...


work.http_job("call", "0 9 * * 1", "http://127.0.0.1/", tokens="secret")  # E: call-arg
work.http_job("call", "0 9 * * 1")  # E: call-arg
work.http_job("call", "0 9 * * 1", "http://127.0.0.1/", expect="text")  # E: arg-type
work.http_job("call", "0 9 * * 1", "http://127.0.0.1/", overlap="queue")  # E: arg-type


@work.task(retries=[1, 2])  # E: call-arg
async def retries(context: TaskContext) -> None: ...


@work.task(retry="often")  # E: arg-type
async def often(context: TaskContext) -> None: ...


@work.task(retry={"OSError": [10]})  # E: dict-item
async def by_name(context: TaskContext) -> None: ...


@work.task(retry={OSError: 10})  # E: dict-item
async def one_number(context: TaskContext) -> None: ...


@work.provide  # E: arg-type
async def returned() -> int:
    return 1


@work.around_execution  # E: type-var
def blocking(attempt: Attempt, proceed: Proceed) -> object: ...


@work.around_enqueue  # E: type-var
async def asynchronous(new: NewCalls) -> NewCalls:
    return new


@work.task(process=True, memory=512)  # E: arg-type
def heavy(n: int) -> int:
    return n


NoRetry()  # E: call-arg
step(heavy, rate=100)  # E: arg-type
step(heavy, per_key="to")  # E: arg-type
step(heavy, limit=2)  # E: call-arg


@work.task(rate=100)  # E: arg-type
async def rate(context: TaskContext) -> None: ...


@work.task(per_key="to")  # E: arg-type
async def per_key(context: TaskContext, to: str) -> None: ...


Limits(by="to", concurrency="one")  # E: arg-type
Limits(by="to", per=1)  # E: call-arg


@work.task()
async def once(to: str) -> None: ...


once.options(key="a", on_conflict="update")  # E: arg-type
once.options(key="a", unique_for="1h")  # E: arg-type


@work.task  # E: arg-type
async def bare(context: TaskContext) -> None: ...


@work.task()
async def send(context: TaskContext, to: str) -> str:
    return to


@work.task()
def double(n: int) -> int:
    return 2 * n


@work.loop(every="2s")  # E: arg-type
async def text() -> None: ...


@work.loop(every=2, max_failure=3)  # E: call-arg
async def limit() -> None: ...


@work.loop(every=2)  # E: type-var
async def takes(argument: str) -> None: ...


@work.loop(every=2)  # E: type-var
def words() -> str:
    return ""


@work.loop(every=2)
class NoTick:  # E: type-var
    pass


async def answers(call: JobCall) -> str:
    return call.key


async def program(lease: Lease) -> None:
    await send(None, "a")  # E: arg-type
    await work.enqueue(send, "a", priority="high")  # E: arg-type
    await work.enqueue(send, object())  # E: arg-type
    await work.enqueue(send, "a", within="now")  # E: arg-type
    await work.enqueue_many(send, [["a"]], key=["a"])  # E: call-arg
    await work.enqueue_many(send, "a", keys=[1])  # E: list-item
    length: int = await send(TaskContext, "a")  # E: arg-type, assignment
    await send.enqueue(7)  # E: arg-type
    await send.enqueue()  # E: call-arg
    await send.enqueue("a", subject="hi")  # E: call-arg
    await send.enqueue(TaskContext, "a")  # E: call-arg, arg-type
    await send.options(delay="soon").enqueue("a")  # E: arg-type
    await (await send.enqueue("a")).retry(3)  # E: call-arg
    await send.failed(limit="all")  # E: arg-type
    await send.options(retries=3).enqueue("a")  # E: call-arg
    await send.options(key="k").enqueue(7)  # E: arg-type
    await double.enqueue("3")  # E: arg-type
    double("3")  # E: arg-type
    number: int = await send.enqueue("a")  # E: assignment
    await enqueue_in(object(), send, 7)  # E: arg-type
    enqueue_in_sync(object(), double)  # E: call-arg
    send.enqueue_sync(to=7)  # E: arg-type
    waited: int = send.enqueue_sync("a").result_sync(timeout=5)  # E: assignment
    send.enqueue_sync("a").result_sync(timeout="5")  # E: arg-type
    other: int = await (await send.enqueue("a")).result(timeout=5)  # E: assignment
    await (await send.enqueue("a")).result(timeout="5")  # E: arg-type
    (await work.status("1")).status  # E: union-attr
    work.batch("import 7", on_end=double)  # E: arg-type
    work.batch("import 7", on_end="double")  # E: arg-type
    async with work.batch("import 7") as batch:
        await batch.add("double", [1])  # E: call-overload
        await batch.add(double, 1)  # E: call-overload
        await batch.enqueue(double, "1")  # E: arg-type
    await send.options(after=["1"]).enqueue("a")  # E: list-item
    await send.options(after=[batch], after_failure="ignore").enqueue("a")  # E: arg-type


work.endpoints.add("answers", answers)  # E: arg-type
work.circuit("gateway", reset=timedelta(seconds=5))  # E: arg-type
Limit(name="letters", key="letters", most=20)  # E: call-arg
NewItem(value={"n": 1})  # E: call-arg
QueueTable(name="orders", ready="new")  # E: arg-type
Failed(permanent=True)  # E: call-arg
Done(items="three")  # E: arg-type
instrument("work")  # E: arg-type
instrument(work, provider=None)  # E: call-arg
serve_django(work, retries=[10])  # E: call-arg
serve_django(work, queues=7)  # E: arg-type
Writes((("INSERT INTO orders VALUES (:id)", {"id": 1}),))  # E: arg-type
