"""Each kind of success or failure of a delivery has its own message. The endpoint is a real server on loopback."""

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import pytest

from batuta.dispatch.job import Run
from batuta.kernel.clock import Clock, SystemClock
from batuta.runlog.execution import Ending, Execution, Status, Trigger
from batuta.targets.http import LARGEST_ANSWER, HttpCaller, HttpTarget, retry_at
from batuta.testing import FastClock
from tests.servers import free_port

BUSY = "overlap: the endpoint is busy with an earlier call"
Handler: TypeAlias = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(handler: Handler, port: int = 0) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler((await reader.readuntil(b"\r\n\r\n")).decode(), writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", port)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/jobs/teste"
        listening.close()


def says(status: int, body: object, kind: str = "application/json") -> Handler:
    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = (
            f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + text)

    return handler


def a_run(clock: Clock, *, timeout: float = 5, grace: float = 0.0, **params: str) -> Run:
    now = clock.now()
    execution = Execution(
        id="e-1", job="teste", category="c", scheduled_for=now, trigger=Trigger.SCHEDULE, attempt=1, started_at=now,
        params=params,
    )  # fmt: skip
    limit = timedelta(seconds=timeout)
    return Run(
        execution=execution, deadline=now + limit, timeout=limit, grace=timedelta(seconds=grace), why_not=nothing_holds
    )


async def nothing_holds() -> None:
    return None


async def delivered(url: str, *, token: str | None = None, timeout: float = 5, grace: float = 0) -> Ending:
    clock = SystemClock()
    caller = HttpCaller(clock)
    try:
        return await HttpTarget(url, caller, token).deliver(a_run(clock, timeout=timeout, grace=grace))
    finally:
        await caller.close()


@pytest.mark.parametrize(
    ("status", "body", "ending"),
    [
        (200, {"status": "ok", "items_processed": 7}, (Status.SUCCESS, 200, None, None, 7)),
        (200, {"status": "partial", "items_processed": 3, "reason": "two"}, (Status.SUCCESS, 200, None, "partial: two", 3)),
        (200, {"status": "skipped", "reason": "not implemented yet"}, (Status.SKIPPED, 200, None, "not implemented yet", None)),
        (200, {"status": "error", "error": "no chip"}, (Status.ERROR, 200, "the endpoint reported an error: no chip", None, None)),
        (200, {"status": "whatever"}, (Status.ERROR, 200, "the endpoint reported an error", None, None)),
        (200, b"", (Status.SUCCESS, 200, None, None, None)),
        (204, b"\n", (Status.SUCCESS, 204, None, None, None)),
        (200, {"processados": 9}, (Status.SUCCESS, 200, None, None, None)),  # only the agreed field counts
        (409, {"type": "/problemas/already_running"}, (Status.SKIPPED, 409, None, BUSY, None)),
        (429, {"detail": "slow down"}, (Status.ERROR, 429, "429 Too Many Requests: slow down", None, None)),
        (500, {"status": "error", "error": "boom"}, (Status.ERROR, 500, "HTTP 500: boom", None, None)),
        (503, b"", (Status.ERROR, 503, "HTTP 503", None, None)),
        (504, {"status": "error"}, (Status.TIMEOUT, 504, "it did not answer before its deadline", None, None)),
        (302, b"", (Status.ERROR, 302, "HTTP 302", None, None)),
        (422, {"detail": [{"input": "5511987654321"}]}, (Status.ERROR, 422, "HTTP 422", None, None)),
        (500, b"<html>oops</html>", (Status.ERROR, 500, "HTTP 500", None, None)),
        (404, {"title": "Unknown job"}, (Status.ERROR, 404, "HTTP 404: Unknown job", None, None)),
    ],
)  # fmt: skip
async def test_every_answer_maps_to_one_ending(status: int, body: object, ending: tuple[object, ...]) -> None:
    async with server(says(status, body)) as url:
        found = await delivered(url)
    assert (found.status, found.response_code, found.error, found.reason, found.items) == ending


async def test_request_carries_key_deadline_and_token() -> None:
    seen: list[str] = []

    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        seen.append(request.lower())
        await says(200, {"status": "ok"})(request, writer)

    async with server(handler) as url:
        await delivered(url, token="segredo")
    assert "idempotency-key: e-1\r\n" in seen[0]
    assert "x-batuta-deadline: 20" in seen[0]
    assert re.search(r"x-batuta-timeout: \d+\.\d{3}\r\n", seen[0])
    assert "authorization: bearer segredo\r\n" in seen[0]


@pytest.mark.parametrize(
    "body",
    [
        b"hello",
        b"<html>Internal error</html>",
        b'[{"status":"error"}]',
        b'"error"',
        b"null",
        b"0",
        b'{"status":"ok"',
        b'{"status":"error","error":"\xff"}',
        b'{"status":"error","items_processed":' + b"9" * 5000 + b"}",
        b'{"status":"ok","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=range(10),
)
async def test_answer_that_is_not_a_json_object_is_never_a_success(body: bytes) -> None:
    async with server(says(200, body)) as url:
        ending = await delivered(url)
    assert (ending.status, ending.response_code) == (Status.ERROR, 200)
    assert ending.error == "HTTP 200, and the answer is not a JSON object"


async def test_parameters_join_those_of_the_address() -> None:
    seen: list[str] = []

    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        seen.append(request.partition(" HTTP")[0])
        await says(200, {"status": "ok"})(request, writer)

    async with server(handler) as url:
        clock = SystemClock()
        caller = HttpCaller(clock)
        for address in (url, f"{url}?tipo=manha"):
            await HttpTarget(address, caller).deliver(a_run(clock, dia="1 2"))
        await caller.close()
    assert seen == ["POST /jobs/teste?dia=1+2", "POST /jobs/teste?tipo=manha&dia=1+2"]


async def test_refused_connection_is_retried_within_the_grace_period() -> None:
    port = free_port()
    waiting = asyncio.create_task(delivered(f"http://127.0.0.1:{port}/jobs/teste", grace=10))
    await asyncio.sleep(0)
    async with server(says(200, {"status": "ok"}), port):
        assert (await waiting).status is Status.SUCCESS


async def test_refused_connection_after_the_grace_period_is_an_error() -> None:
    port = free_port()
    ending = await delivered(f"http://127.0.0.1:{port}/jobs/teste", grace=0.3)
    assert ending.status is Status.ERROR
    assert (ending.error or "").startswith(f"connection refused by 127.0.0.1:{port}, ")


async def test_endpoint_that_never_answers_is_a_timeout() -> None:
    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with server(handler) as url:
        ending = await delivered(url, timeout=0.2)
    assert (ending.status, ending.error) == (Status.TIMEOUT, "it did not answer before its deadline")


async def test_target_polls_a_run_that_is_still_in_progress_at_the_endpoint() -> None:
    answers = iter([says(409, {"type": "/problemas/still_running"}), says(200, {"status": "ok", "items_processed": 1})])

    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        await next(answers)(request, writer)

    async with server(handler) as url:
        assert (await delivered(url)).items == 1


async def test_broken_connection_is_not_retried() -> None:
    calls: list[str] = []

    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        calls.append(request)
        writer.write(b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf")

    async with server(handler) as url:
        ending = await delivered(url, grace=5)
    assert len(calls) == 1
    assert (ending.error or "").startswith("the connection was lost before the answer arrived")


async def test_endless_answer_is_cut() -> None:
    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\n\r\n")
        for _ in range(LARGEST_ANSWER // 1024 + 2000):
            writer.write(b"x" * 1024)
            await writer.drain()

    async with server(handler) as url:
        assert (await delivered(url)).error == "the answer is longer than 1 MB"


async def test_target_retries_no_sooner_than_retry_after() -> None:
    answers, called = iter([(429, 30), (503, 60), (200, 0)]), []
    clock = FastClock.start(SystemClock().now(), rate=200)

    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        status, seconds = next(answers)
        called.append(clock.monotonic())
        writer.write(f"HTTP/1.1 {status} X\r\nRetry-After: {seconds}\r\nContent-Length: 0\r\n\r\n".encode())

    caller = HttpCaller(clock, lambda: 0.0)
    async with server(handler) as url:
        ending = await HttpTarget(url, caller).deliver(a_run(clock, grace=3600, timeout=3600))
    await caller.close()
    assert ending.status is Status.SUCCESS
    first, second = (later - sooner for sooner, later in itertools.pairwise(called))
    assert first >= 30
    assert second >= 60


async def test_retry_after_beyond_the_grace_period_is_reported() -> None:
    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 429 X\r\nRetry-After: 600\r\nContent-Length: 0\r\n\r\n")

    began = SystemClock().now()
    async with server(handler) as url:
        ending = await delivered(url, grace=5)
    assert ending.error == "429 Too Many Requests"
    assert ending.retry_at is not None
    assert timedelta(seconds=599) < ending.retry_at - began < timedelta(seconds=610)


def test_retry_after_is_parsed() -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    assert retry_at("30", now) == now + timedelta(seconds=30)
    assert retry_at("Mon, 05 Jan 2026 12:01:00 GMT", now) == now + timedelta(minutes=1)
    assert retry_at("Mon, 05 Jan 2026 11:00:00 GMT", now) == now
    assert retry_at("9" * 40, now) == now + timedelta(days=1)
    assert [retry_at(header, now) for header in ("", "soon", "-5", "1.5")] == [None] * 4
