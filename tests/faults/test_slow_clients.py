"""Half-open connections and wrong tokens do not affect a normal client. The tests use real sockets and the real
server.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

import httpx2
import pytest

from batuta import Batuta
from batuta.config import EngineSettings, load_settings
from batuta.processes.address import listen
from batuta.web import connections, create_api
from batuta.web.api import serve
from tests.faults.waiting import slowness

TOKEN = "t" * 32
BEARER = {"Authorization": f"Bearer {TOKEN}"}
HALF_OPEN = 100
WRONG = 1_000
SLOWEST = 1.0  # seconds for an answer on a calm machine


@dataclass
class Target:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
async def target(work_url: str) -> AsyncIterator[Target]:
    work = Batuta(work_url)
    env = {
        "APP_ENV": "production",
        "API_TOKEN": TOKEN,
        "SECRET_KEY": "k" * 32,
        "BATUTA_MAX_CONNECTIONS": str(HALF_OPEN // 2),
    }
    listening, stop = listen("127.0.0.1", 0), asyncio.Event()
    async with work:
        api = create_api(work, load_settings(EngineSettings, env))
        serving = asyncio.create_task(serve(api, listening, stop, timedelta(seconds=5)))
        yield Target(listening.getsockname()[1])
        stop.set()
        await serving


async def slowest(target: Target, count: int) -> float:
    """Make ``count`` requests as a normal client, each on a new connection. Return the duration of the slowest."""
    longest = 0.0
    for _ in range(count):
        began = time.monotonic()
        async with httpx2.AsyncClient() as client:
            answer = await client.get(f"{target.url}/jobs", headers=BEARER)
        assert answer.status_code == 200
        longest = max(longest, time.monotonic() - began)
    return longest


async def test_half_open_connections_are_closed_and_a_normal_client_notices_nothing(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADERS_WITHIN", 2.0)
    quiet = await slowest(target, 5)
    half = [await asyncio.open_connection("127.0.0.1", target.port) for _ in range(HALF_OPEN)]
    for _, writer in half:
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\nX-a: ")
    under_attack = await slowest(target, 20)
    # A byte from time to time does not extend the deadline.
    ends = asyncio.gather(*(reader.read() for reader, _ in half), return_exceptions=True)
    began = time.monotonic()
    while not ends.done() and time.monotonic() - began < 20:
        for _, writer in half:
            if not writer.is_closing():
                writer.write(b"a")
        await asyncio.sleep(0.2)
    for _, writer in half:
        writer.close()
    assert ends.done()
    print(f"{HALF_OPEN} half-open: slowest answer {under_attack:.3f} s, quiet {quiet:.3f} s")
    assert under_attack < SLOWEST * slowness()


async def test_body_that_a_client_sends_after_its_refusal_does_not_keep_the_connection(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADERS_WITHIN", 2.0)
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    writer.write(b"POST /jobs/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
    assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 401")
    end, began = asyncio.create_task(reader.read()), time.monotonic()
    while not end.done() and time.monotonic() - began < 20:
        writer.write(b"a")
        await asyncio.sleep(0.2)
    writer.close()
    assert end.done()


async def test_client_that_reads_no_answer_is_closed(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READS_WITHIN", 1.0)
    whole = await read_late(target, 1)  # one answer fits into the buffers of the machine
    assert await read_late(target, 400) < 400 * whole


async def read_late(target: Target, answers: int) -> int:
    """Request a file many times without reading the responses, and return the number of bytes that the client can then
    still read.
    """
    loop, received = asyncio.get_running_loop(), 0
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", target.port))
        await loop.sock_sendall(client, b"GET /painel/static/panel.css HTTP/1.1\r\nHost: x\r\n\r\n" * answers)
        await asyncio.sleep(3 * slowness())
        with suppress(ConnectionResetError):
            while some := await asyncio.wait_for(loop.sock_recv(client, 65536), 20):
                received += len(some)
    return received


async def test_client_that_reads_nothing_of_the_last_answer_is_closed(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server closes the connection of a client that does not read the last response, even if the response is small.
    By default, a transport reports an unread response only if more than 64 KiB of it remain in the server.
    """
    monkeypatch.setattr(connections, "READS_WITHIN", 1.0)
    protocol, lost = connections._LimitedProtocol, asyncio.Event()
    begin, end = protocol.connection_made, protocol.connection_lost

    def send_little(self: connections._LimitedProtocol, transport: asyncio.Transport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        begin(self, transport)

    def note_end(self: connections._LimitedProtocol, error: Exception | None) -> None:
        end(self, error)
        lost.set()

    monkeypatch.setattr(protocol, "connection_made", send_little)
    monkeypatch.setattr(protocol, "connection_lost", note_end)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", target.port))
        request = b"GET /painel/static/panel.css HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        await loop.sock_sendall(client, request)
        with suppress(TimeoutError):
            await asyncio.wait_for(lost.wait(), 20 * slowness())
    assert lost.is_set()


async def test_connections_that_wait_for_their_client_make_room_for_others(target: Target) -> None:
    await slowest(target, 1)  # so that the server knows the token
    held = []
    for _ in range(HALF_OPEN):
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        writer.write(b"POST /painel/entrar HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\na")
        held.append((reader, writer))
    await asyncio.sleep(1.5)  # each of them waits longer than a new connection needs
    answers = await asyncio.gather(*(slowest(target, 1) for _ in range(10)))
    for _, writer in held:
        writer.close()
    assert max(answers) < SLOWEST * slowness()


async def test_answer_on_an_open_connection_does_not_wait_for_an_acknowledgement(target: Target) -> None:
    """A response on an open connection is sent immediately. With Nagle's algorithm it would be delayed by 40 ms,
    because its headers and its body are two packets.
    """
    async with httpx2.AsyncClient(headers=BEARER) as client:
        quick = []
        for _ in range(20):
            began = time.monotonic()
            await client.get(f"{target.url}/health")
            quick.append(time.monotonic() - began)
    assert min(quick[1:]) < 0.02


async def test_client_above_its_limit_waits_on_its_connection(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LIMITED_FOR", 0.5)
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    wrong = b"GET /jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n\r\n"
    writer.write(wrong * 130)  # the limit is 60 in a minute, and a minute may end in between
    arrived: list[float] = []
    statuses: list[int] = []
    while statuses.count(429) < 4:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        statuses.append(int(head.split()[1]))
        arrived += [time.monotonic()] if statuses[-1] == 429 else []
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
    writer.close()
    assert statuses.count(401) >= 60
    assert all(later - earlier >= 0.4 for earlier, later in pairwise(arrived))


async def test_wrong_tokens_are_limited_and_a_normal_client_notices_nothing(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LIMITED_FOR", 0.0)
    quiet = await slowest(target, 5)
    asked, answers = iter(range(WRONG)), {401: 0, 429: 0}

    async def guess() -> None:
        async with httpx2.AsyncClient() as client:
            for number in asked:
                wrong = {"Authorization": f"Bearer bat_{'0' * 12}_{number:048x}"}
                answers[(await client.get(f"{target.url}/jobs", headers=wrong)).status_code] += 1

    began = time.monotonic()
    guessing = [asyncio.create_task(guess()) for _ in range(4)]
    under_attack = await slowest(target, 20)
    await asyncio.gather(*guessing)
    took = time.monotonic() - began
    minutes = int(took // 60) + 2
    print(f"{WRONG} wrong tokens in {took:.0f} s: {answers}; slowest answer {under_attack:.3f} s, quiet {quiet:.3f} s")
    assert answers[401] <= 60 * minutes + 4 * minutes
    assert sum(answers.values()) == WRONG
    assert under_attack < SLOWEST * slowness()
