"""Directives as operators use them: over HTTP and in the terminal."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.command import Command
from tests.julia.web.test_api import TOKEN, Julia, is_problem, open_julia

DIRETRIZES = "/api/v1/diretrizes"
JULIA = ("--app", "app.main:work", "--lang", "en")
BRIEFING = "## Foco\n- Pediatria\n## Tom\n- cordial\n"


@pytest.fixture
async def julia(database_url: str, tmp_path: Path) -> AsyncIterator[Julia]:
    (tmp_path / "2026-03-09.md").write_text(BRIEFING, encoding="utf-8")
    opened = await open_julia(database_url, BRIEFING_DIR=str(tmp_path), BATUTA_LANG="en")
    yield opened
    await opened.work.close()


async def test_job_applies_the_briefing_and_the_routes_show_it(julia: Julia, tmp_path: Path) -> None:
    made = (await julia.ask("POST", "/jobs/sincronizar-briefing")).json()
    assert (made["status"], made["changed"], made["vagas_urgentes"]["total"]) == ("ok", True, 0)
    listed = (await julia.ask("GET", DIRETRIZES)).json()["diretrizes"]
    assert [(each["tipo"], each["versao"], each["ate"]) for each in listed] == [
        ("foco_semana", 1, None), ("tom_semana", 1, None),
    ]  # fmt: skip
    assert listed[0]["conteudo"] == {"itens": ["Pediatria"]}
    assert listed[0]["desde"].endswith("-03:00")
    (tmp_path / "2026-03-16.md").write_text("## Foco\n- Clínica médica\n", encoding="utf-8")
    await julia.ask("POST", "/jobs/sincronizar-briefing")
    versions = (await julia.ask("GET", f"{DIRETRIZES}/foco_semana")).json()["versoes"]
    assert [(each["versao"], each["ate"] is None) for each in versions] == [(2, True), (1, False)]
    ended = (await julia.ask("GET", f"{DIRETRIZES}/tom_semana")).json()["versoes"]
    assert [each["ate"] is None for each in ended] == [False]


async def test_an_invalid_briefing_is_partial_with_the_next_step(julia: Julia, tmp_path: Path) -> None:
    (tmp_path / "2026-03-10.md").write_text("nada", encoding="utf-8")
    made = (await julia.ask("POST", "/jobs/sincronizar-briefing")).json()
    assert made["status"] == "partial"
    assert (await julia.ask("GET", DIRETRIZES)).json() == {"diretrizes": []}


async def test_an_unknown_directive_is_a_problem(julia: Julia) -> None:
    assert is_problem(await julia.ask("GET", f"{DIRETRIZES}/foco_semana"), 404, "directive_unknown")
    assert (await julia.ask("GET", f"{DIRETRIZES}/FOCO")).status_code == 422


async def test_routes_need_a_token_from_another_machine(julia: Julia) -> None:
    async with julia.client("192.0.2.1") as client:
        assert (await client.get(DIRETRIZES)).status_code == 401
        assert (await client.get(DIRETRIZES, headers={"Authorization": f"Bearer {TOKEN}"})).status_code == 200


async def test_templates_job_applies_each_template(julia: Julia, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "oferta.md").write_text("## Objetivo\n- oferecer\n", encoding="utf-8")
    made = (await julia.ask("POST", "/jobs/sync-templates")).json()
    assert (made["status"], made["changed"]) == ("ok", True)
    (version,) = (await julia.ask("GET", f"{DIRETRIZES}/template_oferta")).json()["versoes"]
    assert version["conteudo"] == {"objetivo": ["oferecer"]}


def test_commands_list_and_show_directives(batuta: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    (folder / "briefings").mkdir()
    (folder / "briefings" / "a.md").write_text(BRIEFING, encoding="utf-8")
    monkeypatch.setenv("BRIEFING_DIR", "briefings")
    assert batuta(*JULIA, "migrate")[0] == 0
    code, said, _ = batuta(*JULIA, "diretrizes", "listar")
    assert code == 0
    assert "foco_semana" not in said
    code, _, wrong = batuta(*JULIA, "diretrizes", "ver", "foco_semana")
    assert code != 0
    assert "batuta diretrizes listar" in wrong
    asyncio.run(_apply(folder))
    code, said, _ = batuta(*JULIA, "diretrizes", "listar", "--json")
    assert [each["tipo"] for each in json.loads(said)["diretrizes"]] == ["foco_semana", "tom_semana"]
    code, said, _ = batuta(*JULIA, "diretrizes", "ver", "foco_semana")
    assert code == 0
    assert "Pediatria" in said


async def _apply(folder: Path) -> None:
    opened = await open_julia(f"sqlite:///{folder}/julia.db", BRIEFING_DIR=str(folder / "briefings"))
    await opened.ask("POST", "/jobs/sincronizar-briefing")
    await opened.work.close()
