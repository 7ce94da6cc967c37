"""Reports as operators use them: over HTTP, in the terminal, and in Slack."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from app.composition.julia import julia_of
from app.contexts.relatorios.periodos import TipoDeRelatorio, parte_do_dia
from app.integrations.reports.webhooks import Poster, delivery_of
from batuta.kernel.clock import SystemClock
from tests.command import Command
from tests.julia.web.test_api import TOKEN, Julia, is_problem, open_julia
from tests.julia.web.test_incidents import Outside, outside
from tests.servers import free_port

__all__ = ["outside"]
UNKNOWN_ID = "00000000-0000-7000-8000-999999999999"
RELATORIOS = "/api/v1/relatorios"
JULIA = ("--app", "app.main:work", "--lang", "en")


@pytest.fixture
async def julia(database_url: str, outside: Outside) -> AsyncIterator[Julia]:
    opened = await open_julia(
        database_url,
        SLACK_WEBHOOK_URL=f"{outside.address}/slack/relatorios",
        ALERT_WEBHOOK_URL=f"{outside.address}/slack/json?text=1",
        BATUTA_LANG="en",
    )
    yield opened
    await opened.work.close()


def yesterday(julia: Julia) -> str:
    return (julia.work.clock.now().astimezone(julia.work.zone).date() - timedelta(days=1)).isoformat()


async def test_a_report_reaches_slack_once_and_is_shown_over_http(julia: Julia, outside: Outside) -> None:
    path = f"/jobs/report-periodo?tipo=fim_dia&data={yesterday(julia)}"
    made = await julia.ask("POST", path)
    assert (made.status_code, made.json()["status"]) == (200, "partial")  # the simulated Slack refuses plain JSON
    assert (await julia.ask("POST", path)).json()["id"] == made.json()["id"]
    (sent,) = [each["payload"]["text"] for each in await outside.received("slack")]
    assert sent.startswith("End-of-day report")
    assert "17:00 to 20:00" in sent
    assert "• messages sent: 0" in sent
    assert "Whole day" in sent
    (listed,) = (await julia.ask("GET", f"{RELATORIOS}?tipo=fim_dia")).json()["relatorios"]
    shown = (await julia.ask("GET", f"{RELATORIOS}/{listed['id']}")).json()
    assert shown == listed
    assert shown["envios"]["slack"] == {"estado": "enviado", "erro": None}
    assert shown["envios"]["webhook"] == {"estado": "recusado", "erro": "HTTP 400"}
    assert shown["inicio"].endswith("T17:00:00-03:00")


async def test_an_unknown_or_missing_tipo_is_a_400_that_names_the_types(julia: Julia) -> None:
    for path in ("/jobs/report-periodo", "/jobs/report-periodo?tipo=xyz", "/jobs/report-semanal?data=xyz"):
        answer = await julia.ask("POST", path)
        assert answer.status_code == 400, path
        assert answer.json()["status"] == "error"
        assert "expected" in answer.json()["error"]


async def test_an_unknown_report_is_a_problem_with_the_next_step(julia: Julia) -> None:
    assert is_problem(await julia.ask("GET", f"{RELATORIOS}/{UNKNOWN_ID}"), 404, "report_unknown")
    assert is_problem(await julia.ask("POST", f"{RELATORIOS}/{UNKNOWN_ID}/reenviar"), 404, "report_unknown")
    assert (await julia.ask("GET", f"{RELATORIOS}?tipo=xyz")).status_code == 422


async def test_a_person_sends_a_report_again(julia: Julia, outside: Outside) -> None:
    made = await julia.ask("POST", f"/jobs/report-semanal?data={date(2026, 3, 11).isoformat()}")
    await julia.ask("POST", f"{RELATORIOS}/{made.json()['id']}/reenviar")
    texts = [each["payload"]["text"] for each in await outside.received("slack")]
    assert [each.partition("\n")[0] for each in texts] == ["Weekly report, 2026-03-09 to 2026-03-15"] * 2


async def test_routes_need_a_token_from_another_machine(julia: Julia) -> None:
    async with julia.client("192.0.2.1") as client:
        assert (await client.get(RELATORIOS)).status_code == 401
        assert (await client.get(RELATORIOS, headers={"Authorization": f"Bearer {TOKEN}"})).status_code == 200


async def test_page_shows_the_reports(julia: Julia) -> None:
    await julia.ask("POST", f"/jobs/report-periodo?tipo=manha&data={yesterday(julia)}")
    page = (await julia.ask("GET", "/painel", headers={"Accept-Language": "pt-BR"})).text
    assert "Relatórios" in page
    assert "Médicos que responderam" in page


async def test_a_request_that_was_never_sent_may_be_repeated_and_a_lost_answer_may_not() -> None:
    poster = Poster(f"http://127.0.0.1:{free_port()}/hook", SystemClock())
    assert type(await poster.post({"text": "-"})).__name__ == "Recusado"
    assert "hook" not in repr(poster)
    kinds = {status: type(delivery_of(status)).__name__ for status in (200, 204, 302, 404, 429, 500, 502, 503)}
    assert kinds == {
        200: "Entregue", 204: "Entregue", 302: "Recusado", 404: "Recusado", 429: "Recusado", 500: "Incerto", 502: "Incerto",
        503: "Recusado",
    }  # fmt: skip


def test_commands_list_and_show_a_report(batuta: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    assert batuta(*JULIA, "migrate")[0] == 0
    assert "no report yet" in batuta(*JULIA, "relatorios", "listar")[1]
    asyncio.run(_make(folder))
    code, said, _ = batuta(*JULIA, "relatorios", "listar", "--json")
    (listed,) = json.loads(said)["relatorios"]
    assert (code, listed["tipo"]) == (0, "manha")
    code, said, _ = batuta(*JULIA, "relatorios", "ver", listed["id"][:23])
    assert code == 0
    assert "messages sent: 0" in said
    assert "not sent" in said
    code, _, wrong = batuta(*JULIA, "relatorios", "ver", UNKNOWN_ID)
    assert code != 0
    assert "batuta relatorios listar" in wrong


async def _make(folder: Path) -> None:
    opened = await open_julia(f"sqlite:///{folder}/julia.db")
    day = opened.work.clock.now().astimezone(opened.work.zone).date() - timedelta(days=1)
    reports = julia_of(opened.work).reports.relatorios
    await reports.fazer(parte_do_dia(TipoDeRelatorio.MANHA, day, opened.work.zone), por="teste")
    await opened.work.close()
