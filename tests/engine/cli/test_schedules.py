"""The commands and API routes for schedules, as operators and API clients use them."""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from batuta import Batuta
from batuta.web import create_api
from tests.command import Command, one_sentence

PROGRAM = """
from batuta import Batuta

work = Batuta("sqlite:///work.db", timezone="UTC")

@work.task()
async def send(to: str, times: int = 1) -> None: ...
"""


@pytest.fixture(autouse=True)
def program(folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM)


def test_operator_creates_edits_pauses_and_deletes_a_schedule(batuta: Command) -> None:
    batuta("migrate")
    code, out, _ = batuta("schedules", "create", "resumo-42", "--task", "send", "--arg", "to=x", "--every", "30")
    assert (code, out.startswith("programação resumo-42 criada; próximo disparo: ")) == (0, True)
    code, out, _ = batuta(
        "schedules", "edit", "resumo-42", "--arg", "to=y", "--arg", "times=3", "--cron", "0 9 * * *", "--json"
    )
    shown = json.loads(out)
    assert (shown["schedule"], shown["args"], shown["state"]) == ("0 9 * * *", ["times", "to"], "active")
    assert batuta("schedules", "pause", "resumo-42")[1] == "programação resumo-42 pausada\n"
    assert "pausada" in batuta("schedules", "list")[1]
    assert batuta("schedules", "resume", "resumo-42")[0] == 0
    code, out, _ = batuta(
        "schedules", "backfill", "resumo-42", "--since", "2020-01-01 00:00", "--until", "2020-01-03 00:00"
    )
    assert out == "programação resumo-42: 2 disparos enfileirados\n"
    assert batuta("schedules", "delete", "resumo-42")[0] == 0
    assert json.loads(batuta("schedules", "list", "--json")[1]) == {"schedules": []}


def test_executions_of_a_schedule_are_listed_by_its_name(batuta: Command) -> None:
    batuta("migrate")
    batuta("schedules", "create", "resumo-42", "--task", "send", "--arg", "to=x", "--every", "3600")
    batuta("schedules", "backfill", "resumo-42", "--since", "2020-01-01 00:00", "--until", "2020-01-01 01:30")
    code, out, _ = batuta("executions", "resumo-42", "--json")
    assert code == 0
    assert {each["job"] for each in json.loads(out)["executions"]} == {"resumo-42"}
    assert batuta("executions", "resumo-43")[0] == 2
    batuta("schedules", "delete", "resumo-42")
    assert batuta("executions", "resumo-42", "--json")[1] == out


def test_mistakes_are_one_sentence_with_the_next_step(batuta: Command) -> None:
    batuta("migrate")
    code, _, err = batuta("schedules", "create", "um", "--task", "sent", "--arg", "to=x", "--every", "30")
    assert code != 0
    assert one_sentence(err)
    assert "send" in err
    for mistake in (
        ("create", "um", "--task", "send", "--arg", "to=x"),
        ("create", "um", "--task", "send", "--arg", "too=x", "--every", "30"),
        ("pause", "nada"),
    ):
        code, _, err = batuta("schedules", *mistake)
        assert code != 0
        assert one_sentence(err)


def test_api_client_manages_schedules(work_url: str) -> None:
    work = Batuta(work_url, timezone="UTC")

    @work.task()
    async def send(to: str) -> None: ...

    api = create_api(work, work.settings)
    with TestClient(api, base_url="http://127.0.0.1", client=("127.0.0.1", 50000)) as client:
        body = {"name": "one", "task": "send", "args": {"to": "x"}, "every": 30}
        created = client.post("/schedules", json=body)
        assert (created.status_code, created.json()["schedule"]) == (201, "@every 30s")
        assert client.post("/schedules", json=body).status_code == 409
        assert client.post("/schedules", json={**body, "name": "two", "args": {"too": "x"}}).status_code == 409
        assert client.post("/schedules", json={**body, "name": "two", "cron": "* * * * *"}).status_code == 409
        assert client.patch("/schedules/one", json={"cron": "0 9 * * *"}).json()["schedule"] == "0 9 * * *"
        assert client.post("/schedules/one/pause").json()["state"] == "paused"
        assert client.post("/schedules/one/resume").json()["state"] == "active"
        span = {"since": "2020-01-01T00:00:00Z", "until": "2020-01-02T12:00:00Z"}
        assert client.post("/schedules/one/backfill", json=span).json()["fires"] == 2
        assert client.post("/schedules/none/pause").status_code == 404
        near = client.post("/schedules?lang=en", json={**body, "name": "two", "task": "sned"}).json()["detail"]
        assert near.startswith("The request was refused. Correct the request and send it again. ")
        assert near.endswith("Cause: there is no task 'sned': did you mean send?")
        assert client.delete("/schedules/one").status_code == 200
        assert client.get("/schedules").json() == {"schedules": []}
