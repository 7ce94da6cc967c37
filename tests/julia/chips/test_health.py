"""``/health/chips`` and ``batuta chips``, the effect of chips on the health score and on alerts, and the chips'
jobs.
"""

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
from batuta.config import load_settings
from batuta.engine.batuta import Batuta
from batuta.testing import FakeClock
from tests.command import Command
from tests.julia.filled import fill_office
from tests.julia.tables import add_chip, add_doctor, rows, write

JOBS = (
    "sincronizar-chips", "verificar-whatsapp", "atualizar-trust-scores", "snapshot-chips-diario", "resetar-contadores-chips",
    "validar-telefones",
)  # fmt: skip
ALLOWED = "UPDATE chips SET trust_score = 90, trust_level = 'verde', pode_responder = TRUE, telefone = '5511900000077'"


class Julia:
    def __init__(self, work: Batuta, settings: Settings, clock: FakeClock) -> None:
        self.work, self.clock = work, clock
        self.client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000)),
            base_url="http://127.0.0.1:8000",
        )

    async def get(self, path: str) -> Any:
        return (await self.client.get(path, headers={"Accept-Language": "en"})).json()

    async def alerts(self) -> dict[str, str]:
        await self.clock.advance(timedelta(seconds=15))
        return {
            each["cause"]: each["message"]
            for each in (await self.get("/health/alerts"))["alerts"]
            if each["source"] == "chips"
        }


@pytest.fixture
async def julia(database_url: str, clock: FakeClock) -> AsyncIterator[Julia]:
    settings = load_settings(Settings, {"DATABASE_URL": database_url})
    work = build(settings, clock).work
    async with work:
        await work.reports.expect(now=clock.now())
        yield Julia(work, settings, clock)


async def test_unconfigured_chips_are_healthy(julia: Julia) -> None:
    assert (await julia.get("/health/chips"))["status"] == "not_configured"
    assert await julia.alerts() == {}
    assert (await julia.get("/health/score"))["breakdown"]["chips"] == {"score": 20, "max": 20}


async def test_active_chip_is_shown_without_its_number_and_cached_for_half_a_minute(julia: Julia) -> None:
    await add_chip(julia.work.database)
    await add_chip(julia.work.database, "escuta", tipo="listener")
    await write(julia.work.database, f"{ALLOWED} WHERE tipo = 'julia'")
    found = await julia.get("/health/chips")
    assert (found["status"], found["summary"]["total"], found["summary"]["disponiveis"]) == ("healthy", 1, 1)
    assert found["chips"][0]["telefone"] == "0077"
    assert "5511900000077" not in json.dumps(found)
    assert found["timestamp"].endswith("-03:00")
    await write(julia.work.database, "UPDATE chips SET evolution_connected = FALSE")
    await julia.clock.advance(timedelta(seconds=29))
    assert (await julia.get("/health/chips")) == found
    await julia.clock.advance(timedelta(seconds=1))
    after = await julia.client.get("/health/chips?strict=1")
    assert (after.status_code, after.json()["status"]) == (503, "critical")


async def test_chip_with_an_open_circuit_is_unavailable(julia: Julia) -> None:
    await add_chip(julia.work.database)
    await write(julia.work.database, ALLOWED)
    await julia.work.circuits.breaker("chip:julia-sim").trip("refused")
    found = await julia.get("/health/chips")
    assert (found["summary"]["circuit_aberto"], found["chips"][0]["circuit_state"]) == (1, "open")
    assert (found["chips"][0]["is_available"], found["status"]) == (False, "critical")


async def test_no_active_or_no_connected_chip_is_critical_with_a_next_step(julia: Julia) -> None:
    await add_chip(julia.work.database, status="warming")
    found = "no chip is active (inactive: 1; banned: 0): nothing can be sent"
    assert await julia.alerts() == {"chips.none_active": found}
    await write(
        julia.work.database, "UPDATE chips SET status = 'active', evolution_connected = FALSE, trust_score = 90"
    )
    assert await julia.alerts() == {
        "chips.none_connected": "no active chip is connected (active chips: 1): nothing can be sent"
    }
    score = await julia.get("/health/score")
    assert (score["breakdown"]["chips"]["score"], score["level"]) == (0, "critical")


async def test_health_reports_that_the_last_chip_is_banned(julia: Julia) -> None:
    await add_chip(julia.work.database, status="banned")
    found = "no chip is active (inactive: 0; banned: 1): nothing can be sent"
    assert await julia.alerts() == {"chips.none_active": found}


async def test_banned_chip_is_reported_while_others_send(julia: Julia) -> None:
    await add_chip(julia.work.database)
    await add_chip(julia.work.database, "julia-dois", status="banned")
    await write(julia.work.database, f"{ALLOWED} WHERE status = 'active'")
    assert await julia.alerts() == {
        "chips.banned": "WhatsApp has banned 1 chip: julia-dois; other chips are sending the messages of this chip"
    }
    found = (await julia.get("/health/chips"))["summary"]
    assert (found["disponiveis"], found["total"], found["banidos"]) == (1, 1, 1)
    score = await julia.get("/health/score")
    assert (score["breakdown"]["chips"]["score"], score["level"]) == (10, "attention")


async def test_messages_that_no_chip_can_send_are_reported_with_the_cause_and_the_return(julia: Julia) -> None:
    database, now = julia.work.database, julia.clock.now()
    doctor = await add_doctor(database, now=now)
    for instance in ("julia-um", "julia-dois", "julia-tres"):
        await add_chip(database, instance)
    await write(database, f"{ALLOWED.partition(', telefone')[0]}")
    rest = "UPDATE chips SET cooldown_until = :until WHERE instance_name = :name"
    await write(database, rest, until=now + timedelta(minutes=30), name="julia-um")
    await write(database, rest, until=now + timedelta(hours=2), name="julia-dois")
    await write(database, "UPDATE chips SET evolution_connected = FALSE WHERE instance_name = 'julia-tres'")
    assert await julia.alerts() == {}
    for due in (now, now + timedelta(seconds=50), now + timedelta(days=1)):  # the last one is not due yet
        await write(
            database,
            "INSERT INTO fila_mensagens (id, cliente_id, telefone_destino, conteudo, agendar_para, created_at)"
            " VALUES (:id, :doctor, 'x', 'x', :due, :now)",
            id=julia.work.ids.new(), doctor=doctor, due=due, now=now,
        )  # fmt: skip
    until = (now + timedelta(minutes=30)).astimezone(julia.work.zone)
    why = f"disconnected: 1; resting: 2, the first until {until:%Y-%m-%d %H:%M}"
    assert await julia.alerts() == {"chips.none_available": f"no chip can send: 2 messages are waiting ({why})"}
    score = await julia.get("/health/score")
    assert (score["breakdown"]["chips"]["score"], score["level"]) == (0, "attention")
    await write(database, "UPDATE chips SET cooldown_until = NULL WHERE instance_name = 'julia-um'")
    assert await julia.alerts() == {}


@pytest.mark.parametrize("endpoint", JOBS)
async def test_each_job_succeeds_or_gives_its_reason(julia: Julia, endpoint: str) -> None:
    await add_chip(julia.work.database)
    answer = await julia.client.post(f"/jobs/{endpoint}")
    assert answer.status_code == 200
    said = answer.json()
    assert said["status"] in ("ok", "skipped")
    assert said.get("reason") != "not implemented yet"
    assert (said["status"] == "ok") is (
        endpoint not in ("sincronizar-chips", "verificar-whatsapp", "validar-telefones")
    )


def test_chips_are_listed_as_text_and_as_json(folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import app.main

    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    monkeypatch.setenv("BATUTA_LANG", "en")
    app.main._julia.cache_clear()
    try:
        julia = ("--app", "app.main:work")
        assert "no chip is known yet" in batuta(*julia, "chips")[1]
        asyncio.run(fill_office("sqlite:///julia.db"))
        code, said, _ = batuta(*julia, "chips", "--json")
        sender, listener = json.loads(said)["chips"]
        assert (code, sender["instance"], sender["status"], sender["trust"]) == (0, "julia-sim", "active", 90)
        assert (sender["pode"], sender["telefone"]) == (["prospectar", "followup", "responder"], "0000")
        assert (listener["tipo"], listener["pode"]) == ("listener", [])
        assert "julia-sim" in batuta(*julia, "chips")[1]
        assert batuta(*julia, "chip", "julia-sim")[0] == 2
        assert batuta(*julia, "chip", "julia-sim", "--status", "paused")[0] == 2
        code, said, _ = batuta(*julia, "chip", "julia-sim", "--status", "paused", "--motivo", "teste")
        assert (code, said.startswith("julia-sim: paused, sender, operation")) == (0, True)
        since = ("chip", "julia-sim", "--em-uso-desde", "01/02/2026", "--motivo", "teste")
        assert batuta(*julia, *since)[0] == 0
        code, _, wrong = batuta(*julia, *since[:3], "01/02/2999", *since[4:])
        assert (code, "in the future" in wrong) == (1, True)
        code, _, wrong = batuta(*julia, "chip", "outra", "--status", "paused", "--motivo", "teste")
        assert (code, "batuta chips" in wrong) == (1, True)
    finally:
        app.main._julia.cache_clear()


async def test_message_of_the_page_is_in_the_language_of_the_caller(julia: Julia) -> None:
    await add_chip(julia.work.database)
    said = [
        (await julia.client.get("/health/chips", headers={"Accept-Language": language})).json()["message"]
        for language in ("en", "pt-BR")
    ]
    assert said == ["no chip is available (total: 1)", "nenhum chip está disponível (total: 1)"]


async def test_chip_is_put_into_service_over_http(julia: Julia) -> None:
    """Trust depends on age: a number that has been in use for months has enough trust to contact new doctors."""
    await add_chip(julia.work.database, status="warming")
    since = f"{julia.work.clock.now() - timedelta(days=60):%Y-%m-%d}"
    decision = {"status": "active", "tipo": "julia", "fase": "operacao", "em_uso_desde": since, "motivo": "teste"}
    answer = await julia.client.post("/api/v1/chips/julia-sim", json=decision)
    assert (answer.status_code, answer.json()["status"]) == (200, "active"), answer.text
    assert (await julia.client.post("/jobs/atualizar-trust-scores")).json()["status"] == "ok"
    (chip,) = (await julia.client.get("/api/v1/chips")).json()["chips"]
    assert (chip["trust"], chip["pode"]) == (70, ["prospectar", "followup", "responder"])
    event = "SELECT event_props FROM business_events WHERE event_type = 'chip_alterado'"
    (noted,) = await rows(julia.work.database, event)
    assert (noted["event_props"]["motivo"], noted["event_props"]["em_uso_desde"]) == ("teste", since)
    assert (await julia.client.post("/api/v1/chips/outra", json=decision)).status_code == 404
    future = {"em_uso_desde": "2999-01-01", "motivo": "teste"}
    assert (await julia.client.post("/api/v1/chips/julia-sim", json=future)).status_code == 409
