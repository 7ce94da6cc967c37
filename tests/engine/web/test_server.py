"""The api role denies access by default. When it stops, it finishes the requests in progress and releases its port."""

import asyncio
import gc
import json
import logging
import secrets
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import httpx2
import pytest
import uvicorn
from fastapi import APIRouter
from starlette.types import Receive, Scope, Send

from batuta import Batuta
from batuta.access import Scope as Permission
from batuta.access import mint
from batuta.cli.roles import open_for_process
from batuta.config import EngineSettings, load_settings
from batuta.processes.address import listen
from batuta.queue.outcome import Done, Outcome
from batuta.receive.endpoints import JobCall
from batuta.testing import FakeClock
from batuta.web import connections, create_api
from batuta.web.api import serve
from batuta.web.auth import AuthoriseFirst
from batuta.web.connections import Http
from batuta.web.headers import SECURITY_HEADERS
from batuta.web.middleware import RequestAccounting


class Serving:
    def __init__(self, work: Batuta, grace: float, **settings: str) -> None:
        self.started, self.gate, self.stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
        work.endpoints.add("espera", self._wait, manual=True)
        listening = listen("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.api = create_api(work, load_settings(EngineSettings, settings))
        self.task = asyncio.create_task(serve(self.api, listening, self.stop, timedelta(seconds=grace)))

    async def send(self, request: bytes) -> bytes:
        """Send bytes on a new connection, and return the server's answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.url.rpartition(":")[2]))
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer

    async def _wait(self, call: JobCall) -> Outcome:
        self.started.set()
        await self.gate.wait()
        return Done(items=1)


@pytest.fixture
async def work(work_url: str) -> AsyncIterator[Batuta]:
    made = Batuta(work_url)
    async with made:
        yield made


async def test_stop_lets_the_open_request_finish_and_accepts_no_new_one(work: Batuta) -> None:
    serving = Serving(work, grace=10)
    async with httpx2.AsyncClient(base_url=serving.url) as client:
        running = asyncio.create_task(client.post("/jobs/espera"))
        await serving.started.wait()
        serving.stop.set()
        await asyncio.wait([serving.task], timeout=0.3)
        assert not serving.task.done()
        with pytest.raises(httpx2.ConnectError):
            async with httpx2.AsyncClient() as stranger:
                await stranger.get(f"{serving.url}/health")
        serving.gate.set()
        assert (await running).json() == {"status": "ok", "items_processed": 1}
    await serving.task


async def test_reply_to_a_person_is_in_their_language_and_to_a_program_in_english(work: Batuta) -> None:
    serving = Serving(work, grace=1)
    late = {"X-Batuta-Deadline": "2020-01-01T00:00:00Z"}
    async with httpx2.AsyncClient(base_url=serving.url, headers=late) as client:
        read = (await client.post("/jobs/espera?lang=pt-BR")).json()
        parsed = (await client.post("/jobs/espera?lang=pt-BR", headers={"Idempotency-Key": "k"})).json()
    serving.stop.set()
    await serving.task
    assert read["error"] == "o prazo já tinha passado quando a chamada chegou"
    assert parsed["error"] == "the deadline had passed before the call arrived"
    assert read["error_code"] == parsed["error_code"] == "deadline_passed"


async def test_request_that_does_not_finish_is_cut_off_and_its_work_released(work: Batuta) -> None:
    serving = Serving(work, grace=1)
    async with httpx2.AsyncClient(base_url=serving.url) as client:
        running = asyncio.create_task(client.post("/jobs/espera", headers={"Idempotency-Key": "k"}))
        await serving.started.wait()
        serving.stop.set()
        await serving.task
        await asyncio.gather(running, return_exceptions=True)
    found = work.endpoints.find("espera")
    assert found is not None
    serving.gate.set()
    await work.receiver.receive(
        found, {}, key="k", deadline=None
    )  # the answer is not Busy, because the next call need not wait for the lease


async def test_a_uvicorn_of_the_operator_accepts_the_protocol_with_the_header_deadline(work: Batuta) -> None:
    api = create_api(work, load_settings(EngineSettings, {"API_TOKEN": "t" * 40}))
    config = uvicorn.Config(api, http="batuta.web.connections:Http", log_config=None)
    config.load()
    assert config.http_protocol_class is Http


async def test_request_that_hides_another_one_is_refused_and_its_connection_closed(work: Batuta) -> None:
    serving = Serving(work, grace=1)
    hidden = b"GET /jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    lengths = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    answers = await serving.send(b"POST /incidents HTTP/1.1\r\nHost: 127.0.0.1\r\n" + lengths + hidden)
    serving.stop.set()
    await serving.task
    assert answers.startswith(b"HTTP/1.1 400")
    assert b"/problemas/ambiguous_length" in answers
    assert answers.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    ("request_of_a_stranger", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"POST /jobs/x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", 400),
        (b"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
        (b"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close, upgrade\r\nUpgrade: websocket\r\n\r\n", 404),
    ],
    ids=["garbage", "two hosts", "two lengths", "unknown path", "upgrade"],
)
async def test_malformed_request_is_counted_without_a_log_line_and_gets_the_security_headers(
    work: Batuta, caplog: pytest.LogCaptureFixture, request_of_a_stranger: bytes, status: int
) -> None:
    serving = Serving(work, grace=1)
    answer = await serving.send(request_of_a_stranger)
    (counted,) = serving.api.state.batuta.clients._minutes.values()
    serving.stop.set()
    await serving.task
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert head.startswith(f"http/1.1 {status}".encode())
    for name in SECURITY_HEADERS:
        assert name.lower().encode() in head, name
    assert not [each for each in caplog.records if each.name.startswith("uvicorn") and each.levelno >= logging.INFO]
    assert counted.counts == {status: 1}
    assert counted.cost == 0


CLOSED = {"APP_ENV": "production", "API_TOKEN": "t" * 32, "SECRET_KEY": "k" * 32, "BATUTA_REFUSALS_PER_MINUTE": "1"}


@dataclass
class Limited:
    """A production server, and one client that has exceeded the limit on refused requests."""

    serving: Serving
    reached: list[str]  # paths of the requests that the application got

    async def send(self, head: str, rest: bytes = b"") -> tuple[int, bytes, bytes]:
        """Send a request, and return the status, the headers and the body of the response."""
        answer = await self.serving.send(head.encode() + rest)
        said, _, body = answer.partition(b"\r\n\r\n")
        return int(said.split()[1]), said.lower(), body


@pytest.fixture
async def limited(work: Batuta, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Limited]:
    monkeypatch.setattr(connections, "LIMITED_FOR", 0.0)
    reached, answer = [], RequestAccounting.__call__

    async def record(self: RequestAccounting, scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["path"])
        await answer(self, scope, receive, send)

    monkeypatch.setattr(RequestAccounting, "__call__", record)
    serving = Serving(work, 1, **CLOSED)
    clients = serving.api.state.batuta.clients
    clients._clock = FakeClock(work.clock.now())  # the minute does not end
    clients.refuse("127.0.0.1", 401, cost=1)
    yield Limited(serving, reached)
    serving.stop.set()
    await serving.task


@pytest.mark.parametrize(
    "request_of_a_guesser",
    [
        "GET /jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guess\r\n\r\n",
        "GET /jobs HTTP/1.1\nHost: x\nauthorization:bearer guess\n\n",
        "GET /jobs HTTP/1.1\r\nHost: x\r\nCookie: __Host-batuta_session=guess\r\n\r\n",
        "GET /painel HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /jobs/x?lang=en HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nAuthorization: Bearer guess\r\n\r\nhalf",
        "\r\nGET /jobs HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["token", "newlines", "cookie", "no credential", "body", "two requests"],
)
async def test_client_above_its_limit_is_refused_before_its_request_is_parsed(
    limited: Limited, request_of_a_guesser: str
) -> None:
    status, head, body = await limited.send(request_of_a_guesser)
    assert status == 429
    assert limited.reached == []
    for name in (*SECURITY_HEADERS, "Retry-After", "X-Request-Id", "Connection: close"):
        assert name.lower().encode() in head, name
    problem = json.loads(body)
    assert problem["type"] == "/problemas/too_many_refusals"
    assert problem["request_id"].encode() in head
    counts = limited.serving.api.state.batuta.clients._minutes.values()
    assert [each.counts for each in counts] == [{401: 1, 429: 1}]


async def test_head_that_arrives_in_pieces_is_refused_before_it_is_parsed(
    limited: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = connections._LimitedProtocol.data_received

    def receive_bytes(self: connections._LimitedProtocol, data: bytes) -> None:
        for each in data:
            receive(self, bytes([each]))

    monkeypatch.setattr(connections._LimitedProtocol, "data_received", receive_bytes)
    status, _, _ = await limited.send("GET /jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guess\r\n\r\n")
    assert status == 429
    assert limited.reached == []


async def test_head_without_an_end_is_refused_above_the_limit_too(limited: Limited) -> None:
    assert (await limited.send("GET /jobs HTTP/1.1\r\nX: " + "a" * 70_000))[0] == 400


async def test_refusal_of_a_browser_is_plain_text_and_of_a_head_request_has_no_body(limited: Limited) -> None:
    _, head, body = await limited.send(
        "GET /painel HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nAccept-Language: en\r\n\r\n"
    )
    assert b"content-type: text/plain; charset=utf-8" in head
    assert body.startswith(b"Too many refusals\n\n")
    assert (await limited.send("HEAD /jobs HTTP/1.1\r\nHost: x\r\n\r\n"))[2] == b""


async def test_open_routes_and_accepted_credentials_stay_available_above_the_limit(limited: Limited) -> None:
    end = "Host: x\r\nConnection: close\r\n"
    for path in ("/health", "/health/ready", "/painel/entrar", "/painel/static/panel.css"):
        assert (await limited.send(f"GET {path} HTTP/1.1\r\n{end}\r\n"))[0] == 200, path
    known = f"{end}Authorization: Bearer {'t' * 32}\r\n"
    assert (await limited.send(f"GET /jobs HTTP/1.1\r\n{known}\r\n"))[0] == 200


async def test_credential_that_became_invalid_counts_as_a_guess(limited: Limited) -> None:
    revoked = f"bat_{'0' * 12}_{'0' * 48}"
    limited.serving.api.state.batuta.clients.accept(revoked)
    request = f"GET /jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {revoked}\r\n\r\n"
    assert [(await limited.send(request))[0] for _ in range(3)] == [401, 429, 429]
    assert limited.reached == ["/jobs"]


async def test_valid_credential_that_this_process_has_not_seen_is_accepted_above_the_limit(
    work: Batuta, limited: Limited
) -> None:
    """A restarted process has not seen any credentials yet. If an attacker behind the same proxy exceeds the limit,
    valid clients must still get in.
    """
    state, now = limited.serving.api.state.batuta, work.clock.now()
    valid, revoked = [mint("x", [Permission.READ], by="x", now=now, chance=secrets.token_hex) for _ in range(2)]
    for each, _ in (valid, revoked):
        await work.tokens.keep(each)
    await work.tokens.revoke(revoked[0].id, by="x", now=now)
    note = state.sessions.begin(valid[0].id, now=now, chance=secrets.token_hex(16))
    signed_out = state.sessions.begin(valid[0].id, now=now, chance="0" * 32)
    await work.tokens.end_session("0" * 32, until=now + timedelta(hours=12))
    assert state.clients.wakeup.is_set()  # the first client above the limit wakes the loop
    await state.clients.tick()
    for line, statuses in {
        f"Authorization: Bearer {'t' * 32}": [200, 200],
        f"Authorization: Bearer {valid[1]}": [200, 200],
        f"Authorization: Bearer bat_{valid[0].id}_{'0' * 48}": [429, 429],
        f"Authorization: Bearer {revoked[1]}": [429, 429],
        f"Cookie: __Host-batuta_session={note}": [200, 200],
        f"Cookie: __Host-batuta_session={note[:-1]}{'0' if note[-1] != '0' else '1'}": [429, 429],
        f"Cookie: __Host-batuta_session={signed_out}": [401, 429],
    }.items():
        request = f"GET /jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{line}\r\n\r\n"
        assert [(await limited.send(request))[0] for _ in range(2)] == statuses, line


@pytest.mark.parametrize("role", ["api", "scheduler", "worker"])
async def test_process_of_a_role_runs_every_loop_that_was_added_to_the_role(work: Batuta, role: str) -> None:
    """A process of a role runs every loop that was added to the role. For example, the API adds two loops to the role
    api: one stores the counts of refused requests, the other sends changes to open pages.
    """
    create_api(work, load_settings(EngineSettings, {"API_TOKEN": "t" * 40}))
    added = {loop.name for its_role, loop, _ in work._loops if its_role == role}
    assert added >= ({"refusals", "live-pages"} if role == "api" else set())
    assert added <= {loop.name for loop, _ in work._loops_of(role)}


async def test_each_connection_of_a_burst_makes_room(work: Batuta) -> None:
    serving = Serving(work, grace=1, BATUTA_MAX_CONNECTIONS="10")
    address = ("127.0.0.1", int(serving.url.rpartition(":")[2]))
    burst = [socket.create_connection(address) for _ in range(40)]  # the server accepts all of them in one step
    assert b"200 OK" in await serving.send(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert sum(map(is_closed, burst)) >= 30
    for each in burst:
        each.close()
    serving.stop.set()
    await serving.task


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


async def test_closed_connection_is_freed_without_the_garbage_collector(work: Batuta) -> None:
    serving = Serving(work, grace=1)
    gc.collect()
    gc.disable()
    try:
        assert b"200 OK" in await serving.send(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await asyncio.sleep(0)  # the server sees the end of the connection
        assert not any(isinstance(each, connections._LimitedProtocol) for each in gc.get_objects())
    finally:
        gc.enable()
    serving.stop.set()
    await serving.task


async def test_collections_of_a_role_skip_the_objects_of_its_start(work_url: str) -> None:
    started = [object()]
    async with open_for_process(Batuta(work_url)):
        assert not any(each is started for each in gc.get_objects())  # the collector visits only these objects


async def test_loops_of_an_api_that_is_built_twice_run_once(work: Batuta) -> None:
    """uvicorn loads ``module:app`` twice. A module that builds the API whenever ``app`` is accessed therefore builds
    two APIs, but their loops run only once.
    """
    for _ in range(2):
        create_api(work, load_settings(EngineSettings, {"API_TOKEN": "t" * 40}))
    names = [loop.name for loop, _ in work._loops_of("api")]
    assert len(names) == len(set(names))
    assert work.supervisor("api") is not None


async def test_no_redirect_names_the_host_of_the_client(work: Batuta) -> None:
    api = create_api(work, load_settings(EngineSettings, {"API_TOKEN": "t" * 40}))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=api), base_url="http://evil.example") as client:
        for path in ("/", "/health/", "/jobs/", "/painel/", "/painel", "//evil.example/", "/painel/tarefas/"):
            answer = await client.get(path, headers={"Accept": "text/html", "X-Forwarded-Host": "evil.example"})
            assert "evil" not in answer.headers.get("location", ""), path


async def test_plain_route_of_an_application_needs_a_token_too(work_url: str) -> None:
    plain, reached = APIRouter(), []

    @plain.post("/own")
    async def own() -> None:
        reached.append("own")

    work = Batuta(work_url)
    api = create_api(work, load_settings(EngineSettings, {"API_TOKEN": "t" * 40}), routers=[plain])
    async with work:
        transport = httpx2.ASGITransport(app=api, client=("203.0.113.9", 5000))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answers = [
                await client.post("/own"),
                await client.post("/own", headers={"Authorization": "Bearer " + "t" * 40}),
            ]
    assert [answer.status_code for answer in answers] == [401, 200]
    assert reached == ["own"]


async def test_route_is_analysed_at_its_first_request(work: Batuta) -> None:
    routes = APIRouter(route_class=AuthoriseFirst)

    @routes.get("/double")
    async def double(number: int) -> int:
        return 2 * number

    api = create_api(work, load_settings(EngineSettings, {"APP_ENV": "development"}), routers=[routes])
    (route,) = routes.routes
    assert "dependant" not in vars(route)
    transport = httpx2.ASGITransport(app=api, client=("127.0.0.1", 5000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        assert (await client.get("/double?number=4")).json() == 8
        assert (await client.get("/double?number=four")).status_code == 422
    assert "dependant" in vars(route)
    assert not hasattr(route, "unknown")
