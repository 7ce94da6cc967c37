"""The commands and API routes for batches, as operators and API clients use them."""

import asyncio
import json
from pathlib import Path

from fastapi.testclient import TestClient

from batuta import Batuta
from batuta.web import create_api
from tests.command import Command, one_sentence

PROGRAM = """
from batuta import Batuta

work = Batuta("sqlite:///work.db", timezone="UTC")

@work.task()
async def send(to: str) -> None: ...
"""


def declare(url: str) -> Batuta:
    work = Batuta(url, timezone="UTC")

    @work.task(name="send")
    async def send(to: str) -> None: ...

    return work


async def fill(work: Batuta) -> tuple[str, str]:
    """Create an open batch with two tasks, and a task that is waiting for the batch. Return the ids of the batch and of
    the waiting task.
    """
    async with work:
        batch = await work.batches.create("importação 7")
        send = work.task_registry.get("send")
        await batch.add(send, ["a", "b"])
        return batch.id, (await send.options(after=[batch], tags=["last"]).enqueue("c")).id


def test_operator_lists_shows_closes_and_cancels_batches(folder: Path, batuta: Command) -> None:
    (folder / "program.py").write_text(PROGRAM)
    id, waiting = asyncio.run(fill(declare(f"sqlite:///{folder}/work.db")))
    code, out, _ = batuta("batches", "list")
    assert (code, id in out, "aberto" in out, "0/2" in out) == (0, True, True, True)
    assert "aguardando 2" in batuta("batches", "show", id[:13])[1]
    items = json.loads(batuta("queue", "show", "default", "--state", "ready", "--json")[1])["items"]
    assert {each["id"]: each.get("waits_for_code") for each in items}[waiting] == "waits_for_batch"
    assert {each["id"]: each["available_at"] for each in items}[waiting] is None
    assert batuta("batches", "close", id)[1].startswith(f"lote {id} fechado")
    assert batuta("batches", "close", id)[0] == 1
    assert batuta("batches", "cancel", id, "--reason", "lista errada")[1].startswith(f"lote {id} cancelado")
    assert "lista errada" in batuta("batches", "show", id)[1]
    code, _, err = batuta("batches", "show", "0000-no")
    assert code != 0
    assert one_sentence(err)


def test_api_client_manages_batches(work_url: str) -> None:
    id, waiting = asyncio.run(fill(declare(work_url)))
    work = declare(work_url)
    with TestClient(
        create_api(work, work.settings), base_url="http://127.0.0.1", client=("127.0.0.1", 50000)
    ) as client:
        assert [each["id"] for each in client.get("/batches").json()["batches"]] == [id]
        assert client.get(f"/tasks/{waiting}").json()["waits_for_code"] == "waits_for_batch"
        listed = client.get("/tasks", params={"tag": "last"}).json()["tasks"]
        assert {each["id"]: each["available_at"] for each in listed}[waiting] is None
        assert client.post(f"/batches/{id}/close").json()["state"] == "running"
        assert client.post(f"/batches/{id}/close").status_code == 409
        cancelled = client.post(f"/batches/{id}/cancel").json()
        assert (cancelled["cancelled"], cancelled["reason_code"]) == (2, "cancelled_by")
        assert client.post(f"/batches/{id}/cancel").status_code == 409
        assert client.get(f"/batches/{id}").json()["total"] == 2
        assert client.get("/batches/none").status_code == 404
