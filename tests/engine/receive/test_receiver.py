"""The receiver of calls to job endpoints. These tests store the calls in memory; the SQL store must fulfil the same
contract.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from batuta.kernel.errors import DeadlineExceeded, InvalidName
from batuta.kernel.events import JobAnswered, JobCrashed
from batuta.kernel.ids import Ids
from batuta.kernel.storage.json import Json, dumps
from batuta.queue.outcome import Done, Failed, Outcome, Partial, Skipped, TimedOut
from batuta.receive.endpoints import Endpoint, JobCall, JobEndpoints, reply_body, reply_status
from batuta.receive.receiver import Answered, Busy, CallOpened, CallOpening, JobReceiver, KeyReused, NewCall, Reply
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle


class MemoryCalls:
    def __init__(self) -> None:
        self._running: dict[str, NewCall] = {}
        self.renewed = 0
        self._answers: dict[str, tuple[str, Answered]] = {}

    async def open(self, call: NewCall) -> CallOpening:
        if call.key in self._answers:
            fingerprint, answered = self._answers[call.key]
            return answered if fingerprint == call.fingerprint else KeyReused()
        if any(running.subject == call.subject for running in self._running.values()):
            return Busy()
        self._running[call.key] = call
        return CallOpened(datetime(2026, 1, 5, 12, tzinfo=UTC))

    async def close(self, key: str, response_code: int, response: Mapping[str, Json], *, opened_at: datetime) -> None:
        self._answers[key] = (self._running.pop(key).fingerprint, Answered(response_code, response))

    async def renew(self, key: str, *, opened_at: datetime, lease: timedelta) -> None:
        self.renewed += 1

    async def forget(self, key: str, *, opened_at: datetime) -> None:
        self._running.pop(key, None)

    async def prune(self, *, keep: timedelta, limit: int) -> int:
        return 0


@pytest.fixture
def reception(clock: FakeClock, ids: Ids, events: EventRecorder) -> JobReceiver:
    return JobReceiver(MemoryCalls(), clock, ids, events)


def endpoint(handler: object, *, apart_by: tuple[str, ...] = (), timeout: float = 300) -> Endpoint:
    endpoints = JobEndpoints()
    endpoints.add("processar-grupos", handler, apart_by=apart_by, timeout=timedelta(seconds=timeout))  # type: ignore[arg-type]
    found = endpoints.find("processar-grupos")
    assert found is not None
    return found


def answering(answer: Outcome) -> Endpoint:
    async def handler(call: JobCall) -> Outcome:
        return answer

    return endpoint(handler)


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (Done(items=3, result={"enviadas": 2}), 200, {"status": "ok", "items_processed": 3, "enviadas": 2}),
        (Partial("1 of 3", 2), 200, {"status": "partial", "items_processed": 2, "reason": "1 of 3"}),
        (Skipped("pilot"), 200, {"status": "skipped", "items_processed": 0, "reason": "pilot"}),
        (Failed("broken"), 500, {"status": "error", "items_processed": None, "error": "broken"}),
        (
            Failed("limite: from 1 on", permanent=True),
            400,
            {"status": "error", "items_processed": None, "error": "limite: from 1 on"},
        ),
        (TimedOut("late"), 504, {"status": "error", "items_processed": None, "error": "late"}),
    ],
)
async def test_reply_status_and_body_follow_the_outcome(
    reception: JobReceiver, answer: Outcome, status: int, said: dict[str, Json], events: EventRecorder
) -> None:
    assert (reply_status(answer), reply_body(answer)) == (status, said)
    assert await reception.receive(answering(answer), {}, key=None, deadline=None) == Reply(status, said)
    assert len(events.of(JobAnswered)) == 1


def test_result_fields_never_overwrite_status_and_count() -> None:
    assert reply_body(Done(items=1, result={"status": "error", "items_processed": 99}))["status"] == "ok"
    assert reply_body(Done(items=1, result={"items_processed": 99}))["items_processed"] == 1


async def test_handler_that_crashes_fails_its_job_without_personal_data(
    reception: JobReceiver, events: EventRecorder
) -> None:
    async def crashes(call: JobCall) -> Outcome:
        raise ValueError("5511900000001 disse: olá")

    reply = await reception.receive(endpoint(crashes), {}, key=None, deadline=None)
    assert isinstance(reply, Reply)
    assert reply.status == 500
    assert reply.body["error"] == "ValueError in the handler; the log has the traceback"
    assert isinstance(events.of(JobCrashed)[0].error, ValueError)


async def test_same_key_runs_once_and_is_answered_twice(reception: JobReceiver) -> None:
    runs = 0

    async def counting(call: JobCall) -> Outcome:
        nonlocal runs
        runs += 1
        return Done(items=runs)

    job = endpoint(counting)
    first = await reception.receive(job, {}, key="k", deadline=None)
    second = await reception.receive(job, {}, key="k", deadline=None)
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert (runs, first.body, second.replayed) == (1, second.body, True)
    assert await reception.receive(job, {"tipo": "manha"}, key="k", deadline=None) == KeyReused()


async def test_same_work_does_not_run_concurrently_and_different_work_may(reception: JobReceiver) -> None:
    gate = asyncio.Event()

    async def waits(call: JobCall) -> Outcome:
        await gate.wait()
        return Done()

    job = endpoint(waits, apart_by=("tipo",))
    first = asyncio.create_task(reception.receive(job, {"tipo": "manha"}, key=None, deadline=None))
    await settle()
    assert await reception.receive(job, {"tipo": "manha", "x": "1"}, key=None, deadline=None) == Busy()
    other = asyncio.create_task(reception.receive(job, {"tipo": "tarde"}, key=None, deadline=None))
    gate.set()
    assert [type(await task) for task in (first, other)] == [Reply, Reply]


async def test_work_is_cancelled_at_its_deadline_and_the_job_times_out(
    reception: JobReceiver, clock: FakeClock
) -> None:
    stopped = asyncio.Event()

    async def never(call: JobCall) -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Done()

    deadline = clock.now() + timedelta(seconds=5)
    running = asyncio.create_task(reception.receive(endpoint(never), {}, key=None, deadline=deadline))
    await clock.advance(5)
    reply = await running
    assert isinstance(reply, Reply)
    assert reply.status == 504
    assert stopped.is_set()


async def test_call_without_a_deadline_has_the_timeout_of_its_endpoint(
    reception: JobReceiver, clock: FakeClock
) -> None:
    async def never(call: JobCall) -> Outcome:
        await asyncio.Event().wait()
        return Done()

    running = asyncio.create_task(reception.receive(endpoint(never, timeout=60), {}, key=None, deadline=None))
    await clock.advance(59)
    assert not running.done()
    await clock.advance(2)
    assert isinstance(await running, Reply)


async def test_call_that_arrives_after_its_deadline_does_not_run(reception: JobReceiver, clock: FakeClock) -> None:
    async def must_not_run(call: JobCall) -> Outcome:
        raise AssertionError

    late = clock.now() - timedelta(seconds=1)
    reply = await reception.receive(endpoint(must_not_run), {}, key=None, deadline=late)
    assert isinstance(reply, Reply)
    assert reply.status == 504


async def test_interrupted_call_releases_its_work(reception: JobReceiver) -> None:
    async def waits(call: JobCall) -> Outcome:
        await asyncio.Event().wait()
        return Done()

    cut_off = asyncio.create_task(reception.receive(endpoint(waits), {}, key="k", deadline=None))
    await settle()
    cut_off.cancel()
    await asyncio.gather(cut_off, return_exceptions=True)
    assert await reception.receive(answering(Done(items=1)), {}, key="k", deadline=None) == Reply(
        200, reply_body(Done(items=1))
    )


@pytest.mark.parametrize("name", ["", "Processar", "a_b", "a b", "-a", "a--b", "a/b"])
def test_name_that_does_not_fit_an_address_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        JobEndpoints().add(name, None)  # type: ignore[arg-type]


def test_duplicate_handler_name_and_zero_timeout_are_refused() -> None:
    endpoints = JobEndpoints()
    endpoints.add("heartbeat", None)  # type: ignore[arg-type]
    with pytest.raises(InvalidName, match="another handler"):
        endpoints.add("heartbeat", None)  # type: ignore[arg-type]
    with pytest.raises(InvalidName, match="must be positive"):
        endpoints.add("other", None, timeout=timedelta(0))  # type: ignore[arg-type]
    assert endpoints.nearest("hartbeat") == "heartbeat"


@pytest.mark.parametrize("nonsense", [None, "ok", 3, {"status": "ok"}])
async def test_invalid_outcome_is_a_failure_and_releases_the_work(reception: JobReceiver, nonsense: object) -> None:
    async def answers_nonsense(call: JobCall) -> object:
        return nonsense

    for _ in range(2):
        reply = await reception.receive(endpoint(answers_nonsense), {}, key=None, deadline=None)
        assert isinstance(reply, Reply)
        assert reply.status == 500


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (float("nan"), None),
        ("a\0b\ud800", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"),
        (object(), "<object>"),
        (2**80, None),
    ],
)
async def test_unstorable_values_are_replaced_in_the_answer(reception: JobReceiver, given: object, sent: Json) -> None:
    reply = await reception.receive(answering(Done(items=2**80, result={"x": given})), {}, key=None, deadline=None)  # type: ignore[dict-item]
    assert reply == Reply(200, {"status": "ok", "items_processed": None, "x": sent})
    odd = await reception.receive(answering(Done(items=1, result=[1])), {}, key=None, deadline=None)
    assert odd == Reply(200, {"status": "ok", "items_processed": 1, "details": "[1]"})


async def test_endless_details_are_cut(reception: JobReceiver) -> None:
    deep: list[Json] = []
    for _ in range(100_000):
        deep = [deep]
    for details in ({"x": deep}, {"x": "y" * 2_000_000}):
        reply = await reception.receive(answering(Done(items=1, result=details)), {}, key=None, deadline=None)
        assert isinstance(reply, Reply)
        assert (reply.status, len(dumps(reply.body)) < 1000) == (200, True)


@pytest.mark.parametrize("answer", [Failed, Skipped, Partial])
async def test_answer_contains_no_personal_data(reception: JobReceiver, answer: type[Failed]) -> None:
    said = answer("CPF 529.982.247-25, fone 11 98765-4321, ana@example.com")
    reply = await reception.receive(answering(said), {}, key=None, deadline=None)
    assert isinstance(reply, Reply)
    assert "CPF [cpf], fone [telefone], [email]" in (reply.body.get("error"), reply.body.get("reason"))


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_handler_that_raises_system_exit_is_a_failed_job(
    reception: JobReceiver, kind: type[BaseException], events: EventRecorder
) -> None:
    async def leaves(call: JobCall) -> Outcome:
        raise kind

    reply = await reception.receive(endpoint(leaves), {}, key="k", deadline=None)
    assert isinstance(reply, Reply)
    assert (reply.status, reply.body["error"]) == (500, f"{kind.__name__} in the handler; the log has the traceback")
    assert len(events.of(JobCrashed)) == 1
    again = await reception.receive(endpoint(leaves), {}, key="k", deadline=None)
    assert isinstance(again, Reply)
    assert again.replayed


async def test_deadline_error_inside_the_handler_is_reported_by_its_class_alone(reception: JobReceiver) -> None:
    async def sends(call: JobCall) -> Outcome:
        raise DeadlineExceeded(what="envio a 5511987654321 Maria", deadline="12:00")

    reply = await reception.receive(endpoint(sends), {}, key=None, deadline=None)
    assert isinstance(reply, Reply)
    assert (reply.status, reply.body["error"]) == (500, "DeadlineExceeded in the handler; the log has the traceback")
