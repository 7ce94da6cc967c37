"""Tasks that the library ARQ runs on Redis: no task is lost during an outage of Redis, and a worker that was started
with the command ``arq`` reads the appointments of an imported spreadsheet.
"""

import asyncio
import gc
import json
import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.constants import default_queue_name, in_progress_key_prefix, job_key_prefix

from app.composition.arq import worker_settings
from app.composition.julia import julia_of
from app.contexts.agendamentos.service import QUEUE, TASK
from app.integrations.redis.arq import add_arq
from app.main import build
from app.settings import Settings
from batuta import Batuta, Failed
from batuta.health import checks
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import ConfigError
from batuta.kernel.events import CallRejected
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.storage.json import Json
from batuta.queue.item import Lease
from batuta.queue.outcome import Done, Outcome, Snooze, after_seconds
from batuta.queue.outcome import settle as settlement
from batuta.stores.arq import ARQ_RUNNER, calls
from batuta.stores.arq import relay as relaying
from batuta.stores.arq.relay import ArqRelay
from batuta.stores.arq.runner import ArqRunner, RunnerContext
from batuta.supervise.loop import Idle
from batuta.tasks.task import Task, TaskContext
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle
from tests import ROOT
from tests.conftest import lack
from tests.engine.tasks.test_tasks import arq_working, ended
from tests.julia.agendamentos.sheets import HEADER, patient, xlsx
from tests.julia.tables import rows
from tests.servers import free_port, redis_server

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


@asynccontextmanager
async def redis_at(url: str) -> AsyncIterator[ArqRedis]:
    redis = await create_pool(RedisSettings.from_dsn(url))
    try:
        yield redis
    finally:
        await redis.aclose(close_connection_pool=True)


async def queued(redis: ArqRedis, unlike: set[bytes]) -> set[bytes]:
    """Wait until the set of ids in ARQ's queue is neither empty nor equal to ``unlike``. Return the set."""
    while True:
        found = set(await redis.zrange(default_queue_name, 0, -1))
        if found and found != unlike:
            return found
        await asyncio.sleep(0)


async def test_call_lost_by_redis_is_sent_again_and_costs_no_attempt(
    tmp_path: Path, redis_url: str, events: EventRecorder
) -> None:
    work = Batuta(f"sqlite:///{tmp_path}/work.db", timezone="UTC")
    work.events.subscribe(events)
    add_arq(work, Settings.model_validate({"redis_url": redis_url}))

    @work.task()
    async def dobro(ctx: TaskContext, n: int) -> int:
        return 2 * n

    async with work, redis_at(redis_url) as redis:
        await redis.flushdb()
        stop = asyncio.Event()
        running = asyncio.create_task(work.supervisor().run(stop, timedelta(seconds=5)))
        id = await work.enqueue(dobro, 21)
        async with asyncio.timeout(120):
            first = await queued(redis, set())
            await redis.flushdb()
            assert await queued(redis, first) != first
            async with arq_working(work):
                status = await ended(work, events, id)
        stop.set()
        await running
    assert (status.status, status.result, status.attempts) == ("complete", 42, 1)


async def all_wanted(ids: Collection[str]) -> Collection[str]:
    return ids


def a_lease() -> Lease:
    return Lease("018f0000-0000-7000-8000-000000000001", 1, 1, {"args": [[], {}], "name": "nada"})


async def test_wait_for_a_runner_has_no_limit_and_an_overdue_call_is_withdrawn(
    redis_url: str,
) -> None:
    clock = FakeClock(START)
    relay = ArqRelay(lambda: ArqRedis.from_url(redis_url), clock, all_wanted)
    task = Task[..., Any](name="nada", function=lambda: None, timeout=timedelta(seconds=20))
    id = f"{a_lease().id}:1"

    async def an_hour_passes() -> None:
        for _ in range(60):
            clock.step(timedelta(minutes=1))
            await relay.tick()

    async with redis_at(redis_url) as redis:
        await redis.flushdb()
        waiting = asyncio.create_task(relay.run(task, a_lease()))
        await queued(redis, set())
        await an_hour_passes()
        assert not waiting.done()
        await redis.set(in_progress_key_prefix + id, b"1")
        await relay.tick()
        await an_hour_passes()
        assert await waiting == Failed("Job timeout exceeded")
        assert await redis.zcard(default_queue_name) == 0
        assert not await redis.exists(job_key_prefix + id)
    await relay.close()


async def sent(relay: ArqRelay, running: "asyncio.Task[Outcome]") -> None:
    """Wait until the relay to ARQ is awaiting the outcome of the call that it sent, or has already received the
    outcome.
    """
    async with asyncio.timeout(60):
        while not (relay._waiting or running.done()):
            await asyncio.sleep(0)


async def test_short_redis_outage_sends_no_call_twice(redis_url: str) -> None:
    clock, away = FakeClock(START), asyncio.Event()
    task = Task[..., Any](name="nada", function=lambda: None, timeout=timedelta(seconds=20))

    def make_client() -> ArqRedis:
        redis: ArqRedis = ArqRedis.from_url(redis_url)
        execute: Callable[..., Awaitable[Any]] = redis.execute_command

        async def unless_away(*command: Any, **named: Any) -> Any:
            if away.is_set():
                raise ConnectionResetError
            return await execute(*command, **named)

        vars(redis)["execute_command"] = unless_away
        return redis

    relay = ArqRelay(make_client, clock, all_wanted)
    async with redis_at(redis_url) as redis:
        await redis.flushdb()
        waiting = asyncio.create_task(relay.run(task, a_lease()))
        await queued(redis, set())
        await sent(relay, waiting)
        away.set()
        assert await relay.tick() == Idle(clock.now() + timedelta(seconds=2))
        await settle()
        assert not waiting.done()
        away.clear()
        await calls.answer(redis, f"{a_lease().id}:1", {"done": 42}, None)
        clock.step(timedelta(seconds=5))
        await relay.tick()
        assert await waiting == Done(result=42)
    await relay.close()


@pytest.mark.parametrize("arrived", [True, False], ids=["it arrived", "it did not"])
async def test_call_with_an_unknown_arrival_is_searched_before_it_is_sent_again(redis_url: str, arrived: bool) -> None:
    clock = FakeClock(START)
    task = Task[..., Any](name="nada", function=lambda: None, timeout=timedelta(seconds=20))

    def cut_off() -> ArqRedis:
        redis: ArqRedis = ArqRedis.from_url(redis_url)
        enqueue = redis.enqueue_job

        async def without_an_answer(*call: Any, **named: Any) -> None:
            if arrived:
                await enqueue(*call, **named)
            raise ConnectionResetError

        vars(redis)["enqueue_job"] = without_an_answer
        return redis

    relay = ArqRelay(cut_off, clock, all_wanted)
    async with redis_at(redis_url) as redis:
        await redis.flushdb()
        waiting = asyncio.create_task(relay.run(task, a_lease()))
        await sent(relay, waiting)
        clock.step(timedelta(seconds=5))
        await relay.tick()
        await settle()
        assert waiting.done() is not arrived
        if arrived:
            await calls.answer(redis, f"{a_lease().id}:1", {"done": 42}, None)
            clock.step(timedelta(seconds=5))
            await relay.tick()
        assert await waiting == (Done(result=42) if arrived else Snooze(timedelta(0), "Redis lost the call"))
    await relay.close()


class SilentProxy:
    """Proxy in front of Redis that accepts every connection. After the first transaction it passes on no more traffic.

    Connections that were open during this silence remain dead afterwards, without raising an error.
    """

    def __init__(self, port: int, *, arrives: bool) -> None:
        self.port = port
        self.arrives = arrives  # whether the transaction reaches Redis before its answer is swallowed
        self.is_silent: bool | None = None
        self._dead: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        redis, to_redis = await asyncio.open_connection("127.0.0.1", self.port)
        back = asyncio.create_task(self._back(redis, writer))
        try:
            await self._forward(reader, writer, to_redis)
        finally:
            to_redis.close()
            await back

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to_redis: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(65536):
            is_first = self.is_silent is None and b"EXEC" in data
            self.is_silent = True if is_first else self.is_silent
            if self.is_silent:
                self._dead.add(writer)
            if writer not in self._dead or (is_first and self.arrives):
                to_redis.write(data)

    async def _back(self, redis: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await redis.read(65536):
            if writer not in self._dead:
                writer.write(data)


@pytest.mark.parametrize("arrives", [True, False], ids=["it arrived", "it did not"])
async def test_silent_network_blocks_no_caller_and_sent_calls_are_searched_afterwards(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    monkeypatch.setattr(calls, "ANSWERS_WITHIN", timedelta(seconds=1))
    clock, task = FakeClock(START), Task[..., Any](name="nada", function=lambda: None, timeout=timedelta(seconds=20))
    hole = SilentProxy(RedisSettings.from_dsn(redis_url).port, arrives=arrives)
    async with listening(hole.serve) as near, redis_at(redis_url) as redis:
        await redis.flushdb()
        relay = ArqRelay(lambda: ArqRedis(port=near.port), clock, all_wanted)
        waiting = asyncio.create_task(relay.run(task, a_lease()))
        await sent(relay, waiting)
        async with asyncio.timeout(60):
            assert await relay.tick() == Idle(clock.now() + timedelta(seconds=2))
        assert (hole.is_silent, waiting.done(), await redis.zcard(default_queue_name)) == (True, False, arrives)
        hole.is_silent = False
        async with asyncio.timeout(60):
            while await relay.tick() != Idle(clock.now() + relaying.LOOK):
                pass
            await settle()
            assert waiting.done() is not arrives
            if arrives:
                await calls.answer(redis, f"{a_lease().id}:1", {"done": 42}, None)
            while not waiting.done():
                clock.step(timedelta(seconds=5))
                await relay.tick()
                await settle()
        assert await waiting == (Done(result=42) if arrives else Snooze(timedelta(0), "Redis lost the call"))
        await relay.close()


async def test_redis_that_accepts_but_never_answers_gets_no_call_and_costs_no_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "ANSWERS_WITHIN", timedelta(milliseconds=100))
    monkeypatch.setattr(relaying, "AWAY_FOR", timedelta(milliseconds=10))
    task = Task[..., Any](name="nada", function=lambda: None, timeout=timedelta(seconds=20))
    async with listening(silence) as there:
        relay = ArqRelay(lambda: ArqRedis(port=there.port), SystemClock(), all_wanted)
        async with asyncio.timeout(60):
            outcomes = await asyncio.gather(*(relay.run(task, a_lease()) for _ in range(50)))
        assert {each.reason for each in outcomes if isinstance(each, Snooze)} == {"Redis does not answer: TimeoutError"}
        assert len(outcomes) == 50
        await relay.close()


async def test_cancelled_call_ends_at_once_and_leaves_no_connection_open(redis_url: str) -> None:
    """A connection that garbage collection finds open causes a warning, which fails the test."""
    task = Task[..., Any](name="nada", function=lambda: None, timeout=timedelta(seconds=20))
    async with redis_at(redis_url) as redis:
        for turns in range(40):
            await redis.flushdb()
            relay = ArqRelay(lambda: ArqRedis.from_url(redis_url), FakeClock(START), all_wanted)
            running = asyncio.create_task(relay.run(task, a_lease()))
            for _ in range(turns):
                await asyncio.sleep(0)
            running.cancel()
            async with asyncio.timeout(60):
                await asyncio.gather(running, return_exceptions=True)
            assert running.cancelled()
            await relay.close()
            del relay, running
            gc.collect()


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[RedisSettings]:
    """Serve on a free port. Afterwards close the connections, because asyncio's server leaves them open."""
    serving: set[asyncio.Task[None]] = set()

    async def track(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(cast("asyncio.Task[None]", asyncio.current_task()))
        try:
            await serve(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async with await asyncio.start_server(track, "127.0.0.1", 0) as server:
        yield RedisSettings(port=server.sockets[0].getsockname()[1], conn_retries=0)
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def test_missing_arq_worker_is_critical_and_a_live_one_is_known_by_its_beat(
    database_url: str, redis_url: str
) -> None:
    values = {"database_url": database_url, "tasks_backend": "arq", "redis_url": redis_url}
    settings, clock = Settings.model_validate(values), FakeClock(START)
    async with build(settings, clock=clock).work as work:
        importacao = julia_of(work).appointments.importacao
        await importacao.importar(xlsx([HEADER, patient(1)]), "a.xlsx", by="alguém")
        await work.beats.beat("relay", "worker", {"worker:agendamentos": {"alive": True}}, now=clock.now())
        assert (
            len(
                (
                    await work.queues[QUEUE].settle_and_claim(
                        [], LeaseHolder(owner="relay", lease=timedelta(hours=1)), 1
                    )
                ).leases
            )
            == 1
        )
        clock.step(timedelta(seconds=61))
        await work.beats.beat("relay", "worker", {"worker:agendamentos": {"alive": True}}, now=clock.now())

        page = await julia_of(work).appointments.health.documento()
        assert (page["status"], page["alerts"], page["metrics"]["has_worker"]) == ("critical", ["no_worker"], False)
        assert "queue.deserted.agendamentos" in await causes(work)

        await work.beats.beat("runner", "arq", {ARQ_RUNNER: {"alive": True}}, now=clock.now())
        page = await julia_of(work).appointments.health.documento()
        assert (page["status"], page["alerts"], page["metrics"]["has_worker"]) == ("healthy", [], True)
        assert "queue.deserted.agendamentos" not in await causes(work)


async def causes(work: Batuta) -> set[str]:
    check = checks.queues(work.observability.queues, work.beats, work.now)
    return {finding.cause for finding in (await check.ask()).findings}


class ManualWorker:
    """Handles one task step by step, as a worker does: it claims the task, lets the relay send it, and settles its
    outcome.
    """

    def __init__(self, work: Batuta) -> None:
        self.work, self.lease_holder = work, LeaseHolder(owner="relay", lease=timedelta(hours=1))
        self.relay: ArqRelay = work.task_registry.elsewhere.__self__  # type: ignore[union-attr]

    async def once(self, meanwhile: Callable[[], Awaitable[Any]]) -> None:
        queue, clock = self.work.queues[QUEUE], self.work.clock
        result = await queue.settle_and_claim([], self.lease_holder, 1)
        (lease,) = result.leases
        running = asyncio.create_task(self.relay.run(self.work.task_registry.get(TASK), lease))
        while not running.done():
            await meanwhile()
            await asyncio.sleep(0)
        ending = settlement(lease.attempt, await running, after_seconds([]), lambda: 0.5)
        await queue.settle_and_claim([(lease, ending)], self.lease_holder, 0)
        await self.work.beats.beat("relay", "worker", {"worker:agendamentos": {"alive": True}}, now=clock.now())


async def test_redis_outage_is_critical_within_two_minutes_and_recovers(database_url: str) -> None:
    port, clock = free_port(), FakeClock(START)
    values = {"database_url": database_url, "tasks_backend": "arq", "redis_url": f"redis://127.0.0.1:{port}"}
    settings = Settings.model_validate(values)
    async with build(settings, clock=clock).work as work:
        made = julia_of(work).appointments
        agendamentos, importacao = made.agendamentos, made.importacao
        with redis_server(port) as there:
            if there is None:
                lack("Redis", "install redis-server")
            await work.beats.beat("runner", "arq", {ARQ_RUNNER: {"alive": True}}, now=clock.now())
            await importacao.importar(xlsx([HEADER, patient(1)]), "a.xlsx", by="alguém")
        # Redis has stopped, so the ARQ runner ends too
        await work.beats.beat("runner", "arq", {}, status="offline", now=clock.now())
        assert await causes(work) == set()
        manual = ManualWorker(work)
        while clock.now() < START + timedelta(seconds=100):
            await manual.once(lambda: clock.advance(0.5))
        assert await causes(work) == {"queue.deserted.agendamentos"}
        page = await julia_of(work).appointments.health.documento()
        assert (page["status"], page["alerts"]) == ("critical", ["no_worker"])
        waiting = await rows(work.database, "SELECT attempts, crashes, error FROM tasks")
        assert waiting == [{"attempts": 0, "crashes": 0, "error": "Redis does not answer: ConnectionError"}]
        with redis_server(port):
            await work.beats.beat("another", "arq", {ARQ_RUNNER: {"alive": True}}, now=clock.now())
            assert await causes(work) == set()
            async with arq_working(work), asyncio.timeout(60):
                await manual.once(manual.relay.tick)
        assert (await agendamentos.contagem())["completed"] == 1
        assert (await julia_of(work).appointments.health.documento())["status"] == "healthy"


async def test_hanging_redis_fails_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis server that hangs neither refuses connections nor answers, so the client needs a timeout."""
    monkeypatch.setattr(calls, "ANSWERS_WITHIN", timedelta(milliseconds=50))
    async with listening(silence) as there:
        redis = ArqRedis(host="127.0.0.1", port=there.port)
        with pytest.raises(TimeoutError):
            await ArqRunner(redis).tick()
        await redis.aclose(close_connection_pool=True)


async def test_up_starts_a_worker_that_runs_the_tasks_of_an_import(tmp_path: Path, redis_url: str) -> None:
    url = f"sqlite:///{tmp_path}/julia.db"
    settings = Settings.model_validate({"database_url": url, "tasks_backend": "arq", "redis_url": redis_url})
    async with redis_at(redis_url) as redis:
        await redis.flushdb()
    async with build(settings).work as work:
        made = julia_of(work).appointments
        agendamentos, importacao = made.agendamentos, made.importacao
        done = await importacao.importar(xlsx([HEADER, patient(1)]), "a.xlsx", by="alguém")
        (role,) = [each for each in build(settings).work.extension.roles if each.name == "arq"]
        assert role.in_up
        assert role.run is not None
        stop = asyncio.Event()
        running = asyncio.ensure_future(role.run(stop))
        async with asyncio.timeout(120):
            while (await agendamentos.contagem())["completed"] < 1:
                assert not running.done()
                await work.clock.sleep(0.05)
            while not (await work.batches.handle(str(done["id"])).progress()).has_ended:
                await work.clock.sleep(0.05)
            while ARQ_RUNNER not in (await work.beats.read_signs(within=timedelta(hours=1))).living_loops:
                await work.clock.sleep(0.05)
            stop.set()
            await running
        assert ARQ_RUNNER not in (await work.beats.read_signs(within=timedelta(hours=1))).living_loops
    own = Settings.model_validate({"database_url": url})
    assert "arq" not in [each.name for each in build(own).work.extension.roles]


class Planted:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.file,))


CALL: dict[str, object] = {"t": 1, "f": "normalize_appointment", "a": ["x"], "k": {}, "et": 1}
ODD: list[tuple[str, object]] = [("t", "x"), ("t", True), ("f", []), ("f", 7), ("a", {}), ("k", []), ("et", "x")]
ODD_CALLS = [{**CALL, key: odd} for key, odd in ODD]


async def test_pickles_in_redis_are_rejected_and_reported_and_run_nothing(
    tmp_path: Path, redis_url: str, events: EventRecorder
) -> None:
    file = tmp_path / "executed"
    values = {"database_url": f"sqlite:///{tmp_path}/julia.db", "tasks_backend": "arq", "redis_url": redis_url}
    julia = build(Settings.model_validate(values))
    julia.work.events.subscribe(events)
    async with redis_at(redis_url) as redis, julia.work:
        await redis.flushdb()
        await redis.set(job_key_prefix + "planted", pickle.dumps(Planted(file)))
        await redis.zadd(default_queue_name, {"planted": 1})
        for number, odd in enumerate(ODD_CALLS):  # the wrong type of a field must not end the worker
            await redis.set(f"{job_key_prefix}odd{number}", json.dumps(odd))
            await redis.zadd(default_queue_name, {f"odd{number}": 1})
        await julia.appointments.importacao.importar(xlsx([HEADER, patient(1)]), "a.xlsx", by="alguém")
        (role,) = [each for each in julia.work.extension.roles if each.name == "arq"]
        assert role.run is not None
        stop = asyncio.Event()
        running = asyncio.ensure_future(role.run(stop))
        async with asyncio.timeout(120):
            while (
                len(events.of(CallRejected)) < 1 + len(ODD_CALLS)
                or (await julia.appointments.agendamentos.contagem())["completed"] < 1
            ):
                assert not running.done()
                await julia.work.clock.sleep(0.05)
            stop.set()
            await running
        assert not file.exists()
        assert {is_json(await redis.get(key)) for key in await redis.keys("arq:result:*")} == {True}


def is_json(data: bytes) -> bool:
    return isinstance(json.loads(data), dict)


@pytest.mark.parametrize("app_env", ["production", None])
def test_production_requires_a_password_of_redis(app_env: str | None) -> None:
    closed = {"app_env": app_env, "api_token": "x" * 40, "secret_key": "k" * 40, "tasks_backend": "arq"}
    with pytest.raises(ConfigError, match="REDIS_PASSWORD"):
        Settings.model_validate({**closed, "redis_url": "redis://127.0.0.1:6379"})
    Settings.model_validate({**closed, "redis_url": "redis://127.0.0.1:6379", "redis_password": "p" * 32})
    Settings.model_validate({**closed, "redis_url": "redis://:secret@127.0.0.1:6379"})


def test_worker_without_its_redis_reports_one_sentence(tmp_path: Path) -> None:
    env = {**os.environ, "DATABASE_URL": f"sqlite:///{tmp_path}/a.db", "TASKS_BACKEND": "arq"}
    command = [sys.executable, "-m", "arq", "app.workers.config.WorkerSettings"]
    for redis_url, sentence in (
        ("redis://127.0.0.1:1", "julia: Redis at 127.0.0.1:1 does not answer (ConnectionRefusedError): start it, or"),
        (None, "julia: REDIS_URL is not set, and TASKS_BACKEND=arq needs it: set it"),
    ):
        address = {"REDIS_URL": redis_url} if redis_url else {}
        ran = subprocess.run(
            command,
            cwd=tmp_path,
            env={**env, **address, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (ran.returncode, ran.stderr.startswith(sentence), ran.stderr.count("\n")) == (1, True, 1), ran.stderr


async def test_relay_finds_an_outcome_without_a_notification(
    tmp_path: Path, redis_url: str, events: EventRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent, spoken = calls.answer, []

    async def without_a_word(redis: ArqRedis, id: str, value: Json, reply_list: str | None) -> None:
        spoken.append(reply_list)
        await silent(redis, id, value, None)

    monkeypatch.setattr(calls, "answer", without_a_word)
    work = Batuta(f"sqlite:///{tmp_path}/work.db", timezone="UTC")
    work.events.subscribe(events)
    add_arq(work, Settings.model_validate({"redis_url": redis_url}))

    @work.task()
    async def dobro(ctx: TaskContext, n: int) -> int:
        return 2 * n

    async with work, redis_at(redis_url) as redis:
        await redis.flushdb()
        stop = asyncio.Event()
        running = asyncio.create_task(work.supervisor().run(stop, timedelta(seconds=5)))
        id = await work.enqueue(dobro, 21)
        async with asyncio.timeout(120), arq_working(work):
            status = await ended(work, events, id)
        stop.set()
        await running
    assert (status.status, status.result, status.attempts) == ("complete", 42, 1)
    assert spoken[0] is not None


async def test_arq_does_not_see_the_calls_that_its_worker_runs(redis_url: str) -> None:
    async with redis_at(redis_url) as redis:
        await redis.flushdb()
        await redis.zadd(default_queue_name, {"minha": 1, "outra": 2})
        here = RunnerContext(no_report, all_wanted, SystemClock(), Batuta("sqlite:///unused.db").events, {"minha"})
        here.hide_running(redis)
        asked: dict[str, Any] = {"min": float("-inf"), "max": 10, "start": 0, "num": 10}
        assert await redis.zrangebyscore(default_queue_name, **asked) == [b"outra"]
        here.under_way.clear()
        assert await redis.zrangebyscore(default_queue_name, **asked) == [b"minha", b"outra"]


async def no_report(lease: Lease, progress: Json) -> None:
    """Accept progress reports and ignore them."""


async def test_original_arq_command_runs_the_tasks_of_an_import(tmp_path: Path, redis_url: str) -> None:
    url = f"sqlite:///{tmp_path}/julia.db"
    settings = Settings.model_validate({"database_url": url, "tasks_backend": "arq", "redis_url": redis_url})
    async with redis_at(redis_url) as redis:
        await redis.flushdb()
    async with build(settings).work as work:
        made = julia_of(work).appointments
        agendamentos, importacao = made.agendamentos, made.importacao
        done = await importacao.importar(xlsx([HEADER, *(patient(n) for n in range(60))]), "a.xlsx", by="alguém")
        assert done["jobs_enqueued"] == 60
        env = {**os.environ, "DATABASE_URL": url, "TASKS_BACKEND": "arq", "REDIS_URL": redis_url, "ARQ_MAX_JOBS": "20"}
        command = [sys.executable, "-m", "arq", "app.workers.config.WorkerSettings"]
        with (tmp_path / "log").open("wb") as log:
            worker = subprocess.Popen(
                command, cwd=tmp_path, env={**env, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}, stdout=log, stderr=log
            )
        try:
            async with asyncio.timeout(300):
                while (await agendamentos.contagem())["completed"] < 60:
                    assert worker.poll() is None, (tmp_path / "log").read_text()[-2000:]
                    await work.clock.sleep(0.1)
                # ARQ's command alone also recovers readings without a task and interrupted imports.
                expected = {ARQ_RUNNER, *(loop.name for loop, _ in made.recovery)}
                while expected - {*(await work.beats.read_signs(within=timedelta(hours=1))).living_loops}:
                    await work.clock.sleep(0.1)
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(120)
    log_lines = (tmp_path / "log").read_text()
    assert "Starting normalization for appointment" in log_lines
    assert "52998224725" not in log_lines
    assert "Pessoa Fictícia" not in log_lines


async def test_documented_redis_commands_show_waiting_and_running_calls(tmp_path: Path, redis_url: str) -> None:
    """Run the Redis commands from docs/agendamentos.md, because they name keys that belong to ARQ and may change with
    its version.
    """
    found = re.findall(r"`redis-cli ([A-Z]+) \"?([^`\"]+)\"?`", (ROOT / "docs" / "agendamentos.md").read_text())
    assert [command for command, _ in found] == ["ZCARD", "KEYS", "KEYS"]
    work = Batuta(f"sqlite:///{tmp_path}/work.db", timezone="UTC")
    add_arq(work, Settings.model_validate({"redis_url": redis_url}))
    began, released, events = asyncio.Event(), asyncio.Event(), EventRecorder()
    work.events.subscribe(events)

    @work.task()
    async def espera(ctx: TaskContext) -> None:
        began.set()
        await released.wait()

    async with work, redis_at(redis_url) as redis:
        await redis.flushdb()

        async def figures() -> list[int]:
            client = cast("Any", redis)  # the method has no types
            answers = [await client.execute_command(command, key) for command, key in found]
            return [answer if isinstance(answer, int) else len(answer) for answer in answers]

        stop = asyncio.Event()
        running = asyncio.create_task(work.supervisor().run(stop, timedelta(seconds=5)))
        id = await work.enqueue(espera)
        async with asyncio.timeout(120):
            await queued(redis, set())
            assert await figures() == [1, 0, 0]
            async with arq_working(work):
                await began.wait()
                assert (await figures())[1] == 1
                released.set()
                await ended(work, events, id)
                while (await figures())[0]:
                    await asyncio.sleep(0)
        stop.set()
        await running


def test_worker_takes_its_limits_from_the_environment(tmp_path: Path) -> None:
    values = {"database_url": f"sqlite:///{tmp_path}/a.db", "redis_url": "redis://:segredo@127.0.0.1:6379"}
    limits = {"arq_max_jobs": 7, "arq_job_timeout": 30, "arq_keep_result": 60, "arq_max_tries": 2}
    made = worker_settings(build(Settings.model_validate({**values, **limits, "tasks_backend": "arq"})))
    assert (made.max_jobs, made.job_timeout, made.keep_result, made.max_tries) == (7, 40, 60, 2)  # type: ignore[attr-defined]
    assert [each.name for each in made.functions] == ["normalize_appointment"]  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="TASKS_BACKEND=arq"):
        worker_settings(build(Settings.model_validate(values)))


def test_doctor_names_the_next_step_when_redis_is_unavailable(tmp_path: Path) -> None:
    own_env = {"DATABASE_URL": f"sqlite:///{tmp_path}/a.db", "TASKS_BACKEND": "arq", "REDIS_URL": "redis://127.0.0.1:1"}
    ran = subprocess.run(
        [sys.executable, "-m", "batuta", "--app", "app.main:work", "--lang", "en", "doctor"],
        cwd=tmp_path,
        env={**os.environ, **own_env, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "127.0.0.1:1: ConnectionRefusedError: start Redis, or correct REDIS_URL and REDIS_PASSWORD" in " ".join(
        ran.stdout.split()
    )
