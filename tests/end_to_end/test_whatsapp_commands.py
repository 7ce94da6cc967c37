"""The commands ``batuta doctor`` and ``batuta configurar-webhook``, tested with a simulated gateway."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

from app.composition.development.demo import LISTENER, SENDER
from batuta.kernel.clock import SystemClock
from batuta.processes.address import listen
from batuta.web.api import serve
from simulador.evolution.gateway import KEY
from simulador.main import create_app
from tests.command import Command

JULIA = ("--app", "app.main:work")
HOOK = "http://julia.exemplo.test/webhook/evolution"


@pytest.fixture
def gateway(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A simulated gateway in its own thread, and Julia configured to use it."""
    listening = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    stopping: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    ready = threading.Event()

    async def run() -> None:
        stop = asyncio.Event()
        stopping.append((asyncio.get_running_loop(), stop))
        ready.set()
        await serve(create_app(SystemClock(), instances=[LISTENER]), listening, stop, timedelta(seconds=1))

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait()
    for name, value in {
        "DATABASE_URL": "sqlite:///julia.db", "EVOLUTION_API_URL": f"{url}/evolution", "EVOLUTION_API_KEY": KEY,
        "WEBHOOK_SECRET": "segredo-de-teste", "WEBHOOK_URL": HOOK, "BATUTA_LANG": "en",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    yield url
    loop, stop = stopping[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join()


def run_doctor(batuta: Command) -> dict[str, str | None]:
    _, said, _ = batuta(*JULIA, "doctor", "--json")
    return {each["what"]: each["next_step"] for each in json.loads(said)["findings"]}


def forget_julia() -> None:
    import app.main

    app.main._julia.cache_clear()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    forget_julia()
    yield
    forget_julia()


def test_doctor_reports_missing_webhooks_and_the_command_configures_them(gateway: str, batuta: Command) -> None:
    found = run_doctor(batuta)
    assert "the WhatsApp gateway accepts our key and has 2 instances" in found
    assert found[f"the webhook of {SENDER} is not configured"] is not None
    code, said, _ = batuta(*JULIA, "configurar-webhook", SENDER)
    assert (code, said.strip()) == (0, f"{SENDER} is now sending its events to {HOOK}")
    found = run_doctor(batuta)
    assert found[f"the webhook of {SENDER} is configured"] is None
    assert f"instance {SENDER} is connected" in found
    step = found[f"the webhook of {LISTENER} is not configured"]
    assert step is not None
    assert step.startswith(f"run `batuta configurar-webhook {LISTENER}`")


def test_doctor_beside_a_running_system_checks_the_gateway_that_it_uses(
    gateway: str, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`batuta doctor` in a terminal without settings for the simulated gateway finds these settings through the running
    system.
    """
    for name in ("EVOLUTION_API_URL", "EVOLUTION_API_KEY", "WEBHOOK_SECRET"):
        monkeypatch.delenv(name)
    for name in ("SIMULADOR_PORT", "TELEGRAM_SIMULADOR_PORT"):
        monkeypatch.setenv(name, gateway.rpartition(":")[2])
    batuta(*JULIA, "migrate")
    assert "evolution: not configured" in run_doctor(batuta)
    forget_julia()
    with running_api(int(os.environ["PORT"])):
        found = run_doctor(batuta)
    assert "evolution answers" in found
    assert "the WhatsApp gateway accepts our key and has 2 instances" in found
    assert any("`batuta up`" in what for what in found)
    assert not any("webhook secret" in what.lower() for what in found)


@contextmanager
def running_api(port: int) -> Iterator[None]:
    """Serve a stand-in for the API process that only reports that it is healthy."""

    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status": "healthy"}')

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Healthy)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_doctor_reports_a_closed_line_and_a_webhook_to_another_address(gateway: str, batuta: Command) -> None:
    with httpx2.Client(base_url=gateway, trust_env=False) as http:
        http.post(f"/controle/evolution/instancias/{SENDER}", json={"state": "close", "code": 403})
        elsewhere = {"enabled": True, "url": "http://outro.exemplo.test/x?token=segredo"}
        some = {"enabled": True, "url": HOOK, "events": ["MESSAGES_UPSERT"]}
        for instance, webhook in ((SENDER, elsewhere), (LISTENER, some)):
            http.post(f"/evolution/webhook/set/{instance}", headers={"apikey": KEY}, json={"webhook": webhook})
    found = run_doctor(batuta)
    assert f"instance {SENDER} is disconnected (last code: 403)" in found
    assert f"the webhook of {SENDER} points to another address: http://outro.exemplo.test/x" in found
    assert any(what.startswith(f"the webhook of {LISTENER} does not send CONNECTION_UPDATE") for what in found)
    with httpx2.Client(base_url=gateway, trust_env=False) as http:
        split = {"enabled": True, "url": HOOK, "byEvents": True}
        http.post(f"/evolution/webhook/set/{SENDER}", headers={"apikey": KEY}, json={"webhook": split})
    assert (
        f"instance {SENDER} sends each kind of event to a separate address, so Julia receives none of the events"
        in run_doctor(batuta)
    )
    assert "token=segredo" not in str(found)


def test_doctor_reports_a_wrong_key_and_an_unreachable_gateway(
    gateway: str, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOLUTION_API_KEY", "outra-chave")
    problem = "the WhatsApp gateway cannot be used: HTTP 401: the gateway refuses the key; check EVOLUTION_API_KEY"
    assert problem in run_doctor(batuta)
    code, said, _ = batuta(*JULIA, "configurar-webhook", SENDER)
    assert code == 1
    assert "HTTP 401" in said
    assert "outra-chave" not in said


def test_set_webhook_without_a_gateway_names_the_missing_setting(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    code, _, wrong = batuta(*JULIA, "configurar-webhook", SENDER)
    assert code == 2
    assert "EVOLUTION_API_URL" in wrong


def test_inbox_is_a_queue_like_any_other_on_the_command_line(gateway: str, batuta: Command) -> None:
    batuta(*JULIA, "migrate")
    listed = json.loads(batuta(*JULIA, "queue", "list", "--json")[1])["queues"]
    assert "webhook_inbox" in [each["queue"] for each in listed]
    assert json.loads(batuta(*JULIA, "queue", "show", "webhook_inbox", "--json")[1])["items"] == []
