"""``/incidents`` and ``batuta incidents``, and the delivery of alerts over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.julia import julia_of
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.config import EngineSettings, load_settings
from batuta.engine.batuta import Batuta
from batuta.health.alert_hub import SENDING
from batuta.health.alerts import AUTOMATIC, NewIncident
from batuta.health.finding import Check, Finding, Report, Severity
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import InvalidSetting
from batuta.kernel.events import AlertFailed
from batuta.processes.address import listen
from batuta.testing import EventRecorder
from batuta.web import create_api
from batuta.web.api import serve
from simulador.main import create_app as create_simulador
from tests.command import Command


class Outside:
    """The simulated external services, served on loopback."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"

    async def received(self, stand_in: str) -> list[dict[str, Any]]:
        async with httpx2.AsyncClient() as client:
            found: list[dict[str, Any]] = (await client.get(f"{self.address}/recebidos")).json()[stand_in]
            return found


@pytest.fixture
async def outside() -> AsyncIterator[Outside]:
    listening, stop = listen("127.0.0.1", 0), asyncio.Event()
    serving = asyncio.create_task(serve(create_simulador(SystemClock()), listening, stop, timedelta(seconds=1)))
    yield Outside(listening.getsockname()[1])
    stop.set()
    await serving


@pytest.fixture
async def work(julia_url: str, outside: Outside) -> AsyncIterator[Batuta]:
    env = {
        "DATABASE_URL": julia_url,
        "SLACK_WEBHOOK_URL": f"{outside.address}/slack/alertas",
        "ALERT_WEBHOOK_URL": f"{outside.address}/slack/outro?text=1",
        "BATUTA_LANG": "en",
    }
    made = build(load_settings(Settings, env)).work
    async with made:
        yield made


@pytest.fixture
async def client(work: Batuta) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as made:
        yield made


def add_failing_check(work: Batuta) -> None:
    found = Finding(
        severity=Severity.CRITICAL, source="illness", cause="illness.sudden", says="part_down", facts={"part": "chips"}
    )

    async def ask() -> Report:
        return Report(findings=(found,), lost=20)

    work.health.add(Check(name="illness", section="chips", ask=ask))


async def test_alert_reaches_slack_as_text_with_the_next_step(work: Batuta, outside: Outside) -> None:
    add_failing_check(work)
    hub = work.observability.hub()
    hub._quiet_until = 0.0
    await hub.tick()
    slack = [each for each in await outside.received("slack") if each["webhook"] == "alertas"]
    assert [each["payload"]["text"] for each in slack] == [
        ":red_circle: *julia*: chips does not answer\n→ start chips, or fix its address;"
        " `batuta doctor` shows the address"
    ]


async def test_failed_alert_is_reported_without_its_address(work: Batuta) -> None:
    """The event for a failed alert names the sink and the kind of error, but not the sink's address. Here the simulated
    Slack rejects the body, because the body is meant for a generic webhook.
    """
    events = EventRecorder()
    work.events.subscribe(events)
    add_failing_check(work)
    hub = work.observability.hub()
    hub._quiet_until = 0.0
    await hub.tick()
    failed = [event for event in events.all if isinstance(event, AlertFailed)]
    assert [(event.sink, event.tries, event.why) for event in failed] == [("webhook", 1, "DeliveryRefused")]


async def test_sink_that_never_answers_is_abandoned_at_its_deadline(tmp_path: Path) -> None:
    listening = listen("127.0.0.1", 0)  # accepts the connection and never answers
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/hook"
    work = build(
        load_settings(Settings, {"DATABASE_URL": f"sqlite:///{tmp_path}/j.db", "ALERT_WEBHOOK_URL": address})
    ).work
    async with work:
        add_failing_check(work)
        hub = work.observability.hub()
        hub._quiet_until = 0.0
        started = SystemClock().monotonic()
        await hub.tick()
        assert SystemClock().monotonic() - started < SENDING.total_seconds() + 30
        assert len(await work.observability.alerts.pending(limit=10, now=None)) == 0  # the retry is due later
    listening.close()


async def test_incidents_are_listed_with_their_figures(work: Batuta, client: httpx2.AsyncClient) -> None:
    add_failing_check(work)
    hub = work.observability.hub()
    hub._quiet_until = 0.0
    await hub.tick()
    (incident,) = (await client.get("/incidents")).json()["incidents"]
    assert (incident["to_status"], incident["trigger_source"], incident["resolved_at"]) == (
        "critical",
        "automatic",
        None,
    )
    assert incident["details"]["causes"][0] == "illness.sudden"
    figures = (await client.get("/incidents/stats?days=7")).json()
    assert set(figures) == {
        "period_days", "total", "open", "by_severity", "mttr_seconds", "uptime_percent", "timestamp"
    }  # fmt: skip
    assert (figures["total"], figures["open"], figures["by_severity"]) == (1, 1, {"critical": 1})
    assert figures["uptime_percent"] > 99


async def test_manual_incident_names_its_author(client: httpx2.AsyncClient) -> None:
    body = {"from_status": "healthy", "to_status": "critical", "details": {"motivo": "queda de energia"}}
    opened = await client.post("/incidents", json=body)
    assert opened.status_code == 201
    assert opened.json()["details"] == {"motivo": "queda de energia", "by": "local"}
    assert (await client.post("/incidents", json=body)).status_code == 200  # the incident is already open
    closed = await client.post("/incidents", json={"from_status": "critical", "to_status": "healthy"})
    assert closed.json()["id"] == opened.json()["id"]
    assert closed.json()["resolved_at"] is not None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"from_status": "healthy", "to_status": "on fire"},
        {"from_status": "healthy", "to_status": "critical", "to_score": 101},
        {"from_status": "healthy", "to_status": "critical", "trigger_source": "Not A Word"},
        {"from_status": "healthy", "to_status": "critical", "surprise": 1},
        {"from_status": "healthy", "to_status": "critical", "details": {"x": "y" * 9_000}},
    ],
)
async def test_invalid_incident_is_refused(client: httpx2.AsyncClient, body: dict[str, Any]) -> None:
    answer = await client.post("/incidents", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


async def test_incident_with_strange_details_can_be_written_and_read(database_url: str) -> None:
    strange = [
        *(rb'{"x": "\ud800"}', rb'{"\ud800": 1}', rb'{"x": "a\u0000b"}', b'{"x": NaN}', b'{"x": 1e999}'),
        *(b'{"x": ' + b"[" * depth + b"]" * depth + b"}" for depth in (100, 300, 900)),
    ]
    work = Batuta(database_url)
    api = create_api(work, EngineSettings(database_url=database_url))
    transport = httpx2.ASGITransport(app=api, client=("127.0.0.1", 5000), raise_app_exceptions=False)
    async with work, httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for details in strange:
            body = b'{"from_status": "healthy", "to_status": "attention", "details": ' + details + b"}"
            written = await client.post("/incidents", content=body, headers={"Content-Type": "application/json"})
            assert written.status_code == 201, (details[:30], written.text)
        listed = await client.get("/incidents")
        assert listed.status_code == 200, listed.text
        assert len(listed.json()["incidents"]) == len(strange)


async def test_unexpected_field_is_named_without_personal_data(
    client: httpx2.AsyncClient,
) -> None:
    body = {"from_status": "healthy", "to_status": "critical", "11987654321": 1, "x" * 5_000: 1}
    answer = await client.post("/incidents", json=body)
    assert answer.status_code == 422
    assert "11987654321" not in answer.text
    assert max(len(each["where"]) for each in answer.json()["errors"]) <= 200


def test_command_lists_incidents(folder: Path, batuta: Command) -> None:
    code, out, _ = batuta("--lang", "en", "incidents")
    assert (code, out.strip()) == (0, "no incident in the last 30 days")
    code, out, _ = batuta("incidents", "--days", "7", "--json")
    assert json.loads(out) == {
        "period_days": 7, "total": 0, "open": 0, "by_severity": {}, "mttr_seconds": None, "uptime_percent": 100.0,
        "incidents": [],
    }  # fmt: skip


def test_command_names_the_source_of_an_incident_in_the_language_of_the_operator(folder: Path, batuta: Command) -> None:
    async def write() -> None:
        async with Batuta("sqlite:///work.db") as work:
            new = NewIncident(from_status="healthy", to_status="critical", trigger_source=AUTOMATIC, details={})
            await work.observability.incidents.write(new, now=work.clock.now())

    asyncio.run(write())
    for language, word in (("pt-BR", "automática"), ("en", "automatic")):
        code, out, _ = batuta("--lang", language, "incidents")
        assert code == 0
        assert word in out.split()


@pytest.mark.parametrize("hours", ["8", "20-8", "8-25", "a-b", "8-8"])
def test_invalid_alert_hours_are_refused(hours: str) -> None:
    with pytest.raises(InvalidSetting):
        load_settings(Settings, {"BATUTA_ALERT_HOURS": hours})


async def test_wrong_method_gets_the_list_of_allowed_ones(client: httpx2.AsyncClient) -> None:
    answer = await client.delete("/incidents")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST"
