"""In a ten-line program the engine shows none of Julia's vocabulary, and uses the system's language and time zone."""

import json
import re
from pathlib import Path

import httpx2
import pytest

from batuta import Batuta
from batuta.cli.context import load_app
from batuta.config import EngineSettings, load_settings
from batuta.health.finding import BELOW_HEALTHY, QUEUES, Check, Report
from batuta.runlog.execution import Status
from batuta.web import create_api
from tests.command import Command

TEN_LINES = """
from batuta import Batuta

work = Batuta("sqlite:///work.db")

@work.job("*/5 * * * *", category="report")
async def summary(): ...

@work.task()
async def send(text): ...
"""
ANOTHER_APPLICATION = re.compile(
    r"chip|cr[ií]tico|(?<!/painel/)\bfilas?\b|julia|m[eé]dic|doctors|supabase|telegram|evolution|executando|hora.atual|sao_paulo",
    re.IGNORECASE,
)
SECTIONS = {"connectivity": 20, "queues": 30, "circuits": 15, "jobs_and_workers": 35}


@pytest.fixture
def program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert len(TEN_LINES.strip().splitlines()) == 9
    (folder / "program.py").write_text(TEN_LINES)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    monkeypatch.setenv("TZ", "Europe/Lisbon")
    return folder


def assert_neutral(text: str) -> None:
    assert text
    assert ANOTHER_APPLICATION.findall(text) == []


@pytest.mark.usefixtures("program")
def test_score_has_the_sections_of_the_engine(batuta: Command) -> None:
    code, out, _ = batuta("health", "--json")
    found = json.loads(out)
    assert (code, found["score"], found["max_score"]) == (0, 100 - BELOW_HEALTHY, 100)
    lost = {"jobs_and_workers": BELOW_HEALTHY}  # no process has run on this database
    assert found["breakdown"] == {
        name: {"score": most - lost.get(name, 0), "max": most} for name, most in SECTIONS.items()
    }
    assert sum(SECTIONS.values()) == found["max_score"]


@pytest.mark.usefixtures("program")
async def test_score_is_the_sum_of_its_sections() -> None:
    async def ask() -> Report:
        return Report(lost=10)

    async with load_app("program:work") as work:
        work.health.add(Check(name="own", section=QUEUES, ask=ask))
        found = (await _ask(work, "/health/score")).json()
    assert found["breakdown"]["queues"] == {"score": 20, "max": 30}
    assert found["score"] == 90 - BELOW_HEALTHY == sum(each["score"] for each in found["breakdown"].values())


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    "words",
    [("jobs",), ("jobs", "--json"), ("health",), ("health", "--json"), ("doctor",), ("queue", "list"), ("switch",),
     ("run", "summary", "--json"), ("executions", "--json"), ("next",), ("workers",), ("--help",)],
)  # fmt: skip
def test_commands_contain_nothing_of_another_application(batuta: Command, words: tuple[str, ...]) -> None:
    assert batuta("migrate")[0] == 0
    _, out, err = batuta(*words)
    assert_neutral(out + err)


@pytest.mark.usefixtures("program")
def test_zone_is_that_of_the_system(batuta: Command) -> None:
    assert load_app("program:work").zone.key == "Europe/Lisbon"
    assert "(Europe/Lisbon)" in batuta("doctor")[1]


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("path", ["/", "/metrics", "/health", "/health/score", "/health/jobs", "/health/alerts"])
async def test_pages_and_documents_contain_nothing_of_another_application(path: str) -> None:
    async with load_app("program:work") as work:
        await _run_once(work)
        answer = await _ask(work, path)
    assert answer.status_code == 200
    assert_neutral(str(answer.url) + answer.text)


@pytest.mark.usefixtures("program")
async def test_every_link_of_the_page_leads_to_a_page() -> None:
    async with load_app("program:work") as work:
        await _run_once(work)
        page = await _ask(work, "/")
        links = {link.partition("#")[0] for link in re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text)}
        assert len(links) > 3
        for link in sorted(links):
            answer = await _ask(work, link)
            assert answer.status_code in (200, 405), link
            assert_neutral(link)


async def _run_once(work: Batuta) -> None:
    (job,) = work.registry
    execution = await work.scheduler().run_by_hand(job)
    recorded = await work.reports.execution(execution.id)
    assert recorded is not None
    assert recorded.status == Status.SUCCESS


async def _ask(work: Batuta, path: str) -> httpx2.Response:
    transport = httpx2.ASGITransport(
        app=create_api(work, load_settings(EngineSettings, {})), client=("127.0.0.1", 5000)
    )
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:8000", follow_redirects=True, headers={"accept": "text/html"}
    ) as client:
        return await client.get(path)
