"""``/health/circuits`` and ``/health/rate-limit``, and the corresponding commands."""

import asyncio
import importlib
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.envio import limits
from app.composition.julia import julia_of
from app.contexts.mensagens.limites import POR_TIPO, TipoDeMensagem
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.config import load_settings
from batuta.engine.batuta import Batuta
from batuta.guard.base import Admit, Effect, EffectReport, Hold
from batuta.guard.rate import Reserved
from batuta.testing import FakeClock
from tests.command import Command, one_sentence

CIRCUIT_FIELDS = {
    "nome", "estado", "falhas_consecutivas", "ultima_falha", "ultimo_sucesso", "tentativas_half_open", "tempo_reset_atual",
    "ultimo_erro_tipo",
}  # fmt: skip
BROKE = EffectReport(Effect.BROKE, "HTTP 503")
PROGRAM = """
from datetime import timedelta
from batuta import Batuta
from batuta.guard.rate import Limit, gap

work = Batuta("sqlite:///work.db")
work.circuit("gateway", failures=2, reset=30)
work.limit(Limit(name="sends/hour", key="sends", most=20, per=timedelta(hours=1)))
work.limit(gap("phone/gap", "phone", timedelta(seconds=45), each=True))
"""


class Julia:
    def __init__(self, work: Batuta, settings: Settings) -> None:
        self.work = work
        self.settings = settings
        self.client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000)),
            base_url="http://127.0.0.1:8000",
        )

    async def get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.client.get(path)).json()
        return found

    async def fail(self, circuit: str, times: int) -> None:
        breaker = self.work.circuits.breaker(circuit)
        for _ in range(times):
            verdict = await breaker.admit(self.work.clock.now())
            assert isinstance(verdict, Admit)
            await verdict.ticket.report(BROKE)

    async def send(self, tipo: TipoDeMensagem, medico: str) -> Reserved | Hold:
        reserved = await self.work.rates.reserve(limits(self.settings).de(tipo, medico=medico, telefone=medico))
        if isinstance(reserved, Reserved):
            await self.work.rates.confirm(reserved.id)
        return reserved


@pytest.fixture
async def julia(database_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Julia]:
    settings = load_settings(
        Settings, {"DATABASE_URL": database_url, "RATE_LIMIT_PER_HOUR": "4", "RATE_LIMIT_PER_DAY": "9"}
    )

    work = build(settings, clock).work
    async with work:
        yield Julia(work, settings)


async def test_every_circuit_is_listed_including_ones_that_never_failed(julia: Julia) -> None:
    await julia.fail("evolution", 5)
    await julia.fail("chip:7", 1)
    found = (await julia.get("/health/circuits"))["circuits"]
    assert set(found) == {"chip:7", "claude", "evolution"}
    assert set(found["evolution"]) >= CIRCUIT_FIELDS
    assert found["claude"]["estado"] == "closed"
    assert found["claude"]["tempo_reset_atual"] == 60
    opened = found["evolution"]
    assert (opened["estado"], opened["falhas_consecutivas"], opened["ultimo_erro_tipo"]) == ("open", 5, "HTTP 503")
    assert (opened["tempo_reset_atual"], opened["tentativas_half_open"]) == (300, 0)
    assert opened["ultima_falha"].endswith("-03:00")


async def test_history_is_filtered_by_circuit_and_by_time(julia: Julia, clock: FakeClock) -> None:
    await julia.fail("evolution", 5)
    clock.step(timedelta(hours=2))
    await julia.fail("claude", 3)
    everything = await julia.get("/health/circuits/history")
    assert set(everything) == {
        "circuit_filter", "period_hours", "total_transitions", "by_circuit", "transitions", "timestamp"
    }  # fmt: skip
    assert (everything["circuit_filter"], everything["period_hours"], everything["total_transitions"]) == (None, 24, 2)
    assert [each["circuit"] for each in everything["transitions"]] == ["claude", "evolution"]
    (opened,) = everything["by_circuit"]["evolution"]
    assert set(opened) == {"from", "to", "reason", "reason_code", "reason_facts", "falhas", "at"}
    assert (opened["from"], opened["to"], opened["falhas"]) == ("closed", "open", 5)
    assert (await julia.get("/health/circuits/history?horas=1"))["total_transitions"] == 1
    only = await julia.get("/health/circuits/history?circuit_name=evolution")
    assert (only["circuit_filter"], list(only["by_circuit"])) == ("evolution", ["evolution"])
    for wrong in ("0", "-1", "x", "99999999"):
        assert (await julia.client.get(f"/health/circuits/history?horas={wrong}")).status_code == 422


async def test_rate_limit_page_shows_usage_and_opening_hours(julia: Julia, clock: FakeClock) -> None:
    for n in range(3):
        assert isinstance(await julia.send(TipoDeMensagem.CAMPANHA, f"m{n}"), Reserved)
    found = await julia.get("/health/rate-limit")
    assert found["rate_limit"] == {
        "msgs_hora": 3,
        "limite_hora": 4,
        "msgs_dia": 3,
        "limite_dia": 9,
        "horario_permitido": True,
        "hora_atual": "09:00",
        "dia_semana": "segunda-feira",
    }
    clock.step(timedelta(hours=10, minutes=59))
    assert (await julia.get("/health/rate-limit"))["rate_limit"]["horario_permitido"] is True
    clock.step(timedelta(minutes=1))
    at_eight = (await julia.get("/health/rate-limit"))["rate_limit"]
    assert (at_eight["hora_atual"], at_eight["horario_permitido"]) == ("20:00", False)
    assert (at_eight["msgs_hora"], at_eight["msgs_dia"]) == (0, 3)


async def test_own_initiative_has_every_limit_and_an_answer_only_those_of_its_kind(
    julia: Julia,
) -> None:
    assert isinstance(await julia.send(TipoDeMensagem.CAMPANHA, "ana"), Reserved)
    too_soon = await julia.send(TipoDeMensagem.FOLLOWUP, "ana")
    assert isinstance(too_soon, Hold)
    assert too_soon.reason == "rate limit telefone/intervalo: 1 in 45 s"
    for n in range(3):
        assert isinstance(await julia.send(TipoDeMensagem.FOLLOWUP, f"m{n}"), Reserved)
    full = await julia.send(TipoDeMensagem.PROSPECCAO, "rui")
    assert isinstance(full, Hold)
    assert full.reason == "rate limit envios/hora: 4 in 1 h"
    for _ in range(POR_TIPO[TipoDeMensagem.RESPOSTA]):
        assert isinstance(await julia.send(TipoDeMensagem.RESPOSTA, "ana"), Reserved)
    assert isinstance(await julia.send(TipoDeMensagem.RESPOSTA, "ana"), Hold)


async def test_history_job_deletes_old_transitions(julia: Julia, clock: FakeClock) -> None:
    await julia.fail("evolution", 5)
    clock.step(timedelta(days=31))
    await julia.fail("claude", 3)
    answer = await julia.client.post("/jobs/limpar-historico")
    expected = {"status": "ok", "linhas": {"circuit_transitions": 1}, "items_processed": 1}
    assert answer.json() == expected
    left = await julia.work.circuits.history(None, clock.now() - timedelta(days=365))
    assert [each.circuit for each in left] == ["claude"]


@pytest.fixture
def program(folder: Path) -> Path:
    (folder / "program.py").write_text(PROGRAM)
    return folder


def break_it() -> None:
    work = importlib.import_module("program").work

    async def failing() -> None:
        async with work:
            for _ in range(2):
                verdict = await work.circuits.breaker("gateway").admit(work.clock.now())
                await verdict.ticket.report(BROKE)
            reserved = await work.rates.reserve([work.limits["sends/hour"]])
            await work.rates.confirm(reserved.id)

    asyncio.run(failing())


def test_circuits_are_listed_and_closed_by_hand(program: Path, batuta: Command) -> None:
    assert json.loads(batuta("circuits", "--json")[1])["circuits"][0]["state"] == "closed"
    break_it()
    code, said, _ = batuta("circuits", "--json")
    (found,) = json.loads(said)["circuits"]
    assert (code, found["circuit"], found["state"], found["failures"], found["last_error"]) == (
        0, "gateway", "open", 2, "HTTP 503"
    )  # fmt: skip
    assert "gateway" in batuta("circuits")[1]
    code, said, _ = batuta("circuits", "reset", "gateway")
    assert (code, "gateway" in said) == (0, True)
    assert json.loads(batuta("circuits", "--json")[1])["circuits"][0]["state"] == "closed"
    code, _, wrong = batuta("circuits", "reset", "gatewya")
    assert code == 2
    assert one_sentence(wrong)
    assert "gateway" in wrong


def test_limits_are_listed_with_their_usage(program: Path, batuta: Command) -> None:
    break_it()
    assert json.loads(batuta("limits", "--json")[1])["limits"] == [
        {"limit": "sends/hour", "most": 20, "seconds": 3600, "each": False, "used": 1},
        {"limit": "phone/gap", "most": 1, "seconds": 45, "each": True, "used": None},
    ]
    assert "sends/hour" in batuta("limits")[1]


def test_program_without_guards_says_how_to_add_them(folder: Path, batuta: Command) -> None:
    assert "work.circuit" in batuta("circuits")[1]
    assert "work.limit" in batuta("limits")[1]
