"""The commands of ``batuta`` for queues and their items, as operators use them."""

import asyncio
import importlib
import json
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from batuta.kernel.leases import LeaseHolder
from tests.command import Command, one_sentence

PROGRAM = """
from batuta import Batuta, Failed

work = Batuta("sqlite:///work.db")

@work.task(retry=[])
async def normaliza(telefone):
    return Failed("wrong document", permanent=True)
"""


@pytest.fixture(autouse=True)
def program(folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM)


def two_dead() -> list[str]:
    """Enqueue two items, and run a worker until both have failed permanently. Return their ids."""
    work = importlib.import_module("program").work

    async def fail() -> list[str]:
        async with work:
            ids: list[str] = await work.enqueue_many("normaliza", [("+55 11 00000-0000",)] * 2)
            stop = asyncio.Event()
            running = asyncio.create_task(work.supervisor().run(stop, timedelta(seconds=5)))
            for id in ids:
                while (await work.status(id)).status not in ("failed", "complete"):
                    await asyncio.sleep(0)
            stop.set()
            await running
            return ids

    return asyncio.run(fail())


def test_dead_items_are_listed_without_arguments_retried_and_discarded(batuta: Command) -> None:
    first, second = two_dead()
    listed: dict[str, Any] = json.loads(batuta("queue", "list", "--json")[1])
    assert listed == {"queues": [{"queue": "default", "states": {"failed": 2}, "next_at": None}], "unserved": []}
    shown = batuta("queue", "show", "default", "--json")[1]
    items = {item["id"]: item for item in json.loads(shown)["items"]}
    assert set(items) == {first, second}
    assert (items[first]["name"], items[first]["error"]) == ("normaliza", "wrong document")
    assert "00000-0000" not in shown
    assert batuta("queue", "retry", "default", first)[0] == 0
    assert "aguardando 1" in batuta("queue", "list")[1]
    assert batuta("queue", "discard", "default", first)[0] == 1  # the item is live again
    assert batuta("queue", "discard", "default", second)[0] == 0
    assert json.loads(batuta("queue", "show", "default", "--json")[1])["items"] == []


@pytest.mark.parametrize("state", ["mortos", "Mortos", "dead", "failed"])
def test_state_of_items_may_be_typed_in_the_language_of_the_operator(batuta: Command, state: str) -> None:
    ids = two_dead()
    shown = json.loads(batuta("queue", "show", "default", "--state", state, "--json")[1])
    assert {item["id"] for item in shown["items"]} == set(ids)
    code, out, _ = batuta("queue", "show", "default", "--state", "em execução")
    assert (code, out.strip()) == (
        0,
        "default: nenhum item na situação em execução; "
        "escolha outra situação com --state: aguardando, concluidos, mortos, cancelados",
    )


def test_unstick_without_stuck_items_reports_zero(batuta: Command) -> None:
    code, out, _ = batuta("queue", "unstick", "default", "--json")
    assert (code, json.loads(out)) == (0, {"queue": "default", "rescued": 0, "dead": 0})


def claimed_by_two_workers() -> None:
    """Claim one item with a worker that stops renewing its lease, and another with a worker that continues to renew its
    lease.
    """
    work = importlib.import_module("program").work

    async def claim() -> None:
        async with work:
            await work.enqueue_many("normaliza", [("+55 11 00000-0000",)] * 2)
            queue = work.queues["default"]
            await queue.settle_and_claim([], LeaseHolder(owner="dead", lease=timedelta(microseconds=1)), 1)
            await queue.settle_and_claim([], LeaseHolder(owner="living", lease=timedelta(hours=1)), 1)

    asyncio.run(claim())
    work.queue_lease = timedelta(seconds=0.5)


def test_unstick_releases_items_of_a_dead_worker_after_two_looks(batuta: Command, folder: Path) -> None:
    claimed_by_two_workers()
    code, out, said = batuta("queue", "unstick", "default", "--json")
    assert (code, json.loads(out)) == (0, {"queue": "default", "rescued": 1, "dead": 0})
    assert "0,2 s" in said
    with sqlite3.connect(folder / "work.db") as database:
        states = database.execute("SELECT status, owner FROM tasks ORDER BY status").fetchall()
    assert states == [("in_progress", "living"), ("queued", None)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("queue", "show", "defalt"), "não existe fila 'defalt': você quis dizer default?"),
        (("queue", "show", "default", "--state", "morto"), "não existe situação 'morto': você quis dizer mortos?"),
        (("queue",), ""),
    ],
)
def test_invalid_arguments_are_refused(batuta: Command, words: tuple[str, ...], said: str) -> None:
    code, _, err = batuta(*words)
    assert code == 2
    assert said in err
    assert not err or one_sentence(err)


def test_unknown_id_is_reported_as_not_dead(batuta: Command) -> None:
    code, out, _ = batuta("queue", "retry", "default", "x")
    assert code == 1
    assert "não está morto ou não existe" in out


def test_items_are_also_listed_by_the_state_names_of_the_table(batuta: Command) -> None:
    first, second = two_dead()
    shown = json.loads(batuta("queue", "show", "default", "--state", "failed", "--json")[1])
    assert {item["id"] for item in shown["items"]} == {first, second}


def test_queue_is_paused_and_resumed_by_its_name(batuta: Command) -> None:
    assert batuta("pause", "default", "--reason", "almoço")[0] == 0
    switches = json.loads(batuta("switch", "list", "--json")[1])["switches"]
    assert [(each["key"], each["on"]) for each in switches] == [("pause.queue.default", True)]
    assert batuta("resume", "default")[0] == 0


def test_misspelt_word_never_suggests_pausing_everything(batuta: Command) -> None:
    code, _, error = batuta("pause", "al")
    assert code == 2
    assert "all" not in error.partition(":")[2]


def three_in_a_queue_of_the_last_version() -> None:
    work = importlib.import_module("program").work

    async def enqueue() -> None:
        async with work:
            await work.enqueue_many("normaliza", [("+55 11 00000-0000",)] * 3)
            await work.database.script("UPDATE tasks SET queue = 'antiga'")

    asyncio.run(enqueue())


def test_items_of_an_unserved_queue_are_listed_shown_and_moved(batuta: Command) -> None:
    three_in_a_queue_of_the_last_version()
    (stranded,) = json.loads(batuta("queue", "list", "--json")[1])["unserved"]
    assert (stranded["queue"], stranded["name"], stranded["count"]) == ("antiga", "normaliza", 3)
    assert "3 itens estão em espera, mas nenhum worker atende" in batuta("queue", "list")[1]
    shown = json.loads(batuta("queue", "show", "antiga", "--json")[1])
    assert [item["name"] for item in shown["items"]] == ["normaliza"] * 3
    code, out, _ = batuta("queue", "rehome", "antiga", "--to", "default", "--json")
    assert (code, json.loads(out)) == (0, {"queue": "antiga", "to": "default", "moved": 3})
    listed = json.loads(batuta("queue", "list", "--json")[1])
    assert listed["unserved"] == []
    assert listed["queues"][0]["states"] == {"queued": 3}
    assert audited() == ["queue.rehome tasks:antiga"]


def test_items_of_an_unserved_queue_are_cancelled_on_request(batuta: Command) -> None:
    three_in_a_queue_of_the_last_version()
    code, out, _ = batuta("queue", "discard", "antiga", "--waiting", "--json")
    assert (code, json.loads(out)) == (0, {"queue": "antiga", "cancelled": 3})
    assert json.loads(batuta("queue", "list", "--json")[1])["unserved"] == []
    assert audited() == ["queue.discard_waiting tasks:antiga"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("rehome", "default", "--to", "default"),
            "há um worker que atende a fila default: só é possível mover ou cancelar itens",
        ),
        (("discard", "default", "--waiting"), "há um worker que atende a fila default"),
        (("rehome", "antig", "--to", "default"), "não existe fila 'antig': você quis dizer antiga?"),
        (("rehome", "antiga", "--to", "defalt"), "não existe fila 'defalt': você quis dizer default?"),
        (("discard", "antiga"), "falta informar o que descartar: informe o id de um item morto, ou --waiting"),
    ],
)
def test_only_unserved_items_are_moved_and_only_to_a_known_queue(
    batuta: Command, words: tuple[str, ...], said: str
) -> None:
    three_in_a_queue_of_the_last_version()
    code, _, err = batuta("queue", *words)
    assert (code, said in err, one_sentence(err)) == (2, True, True), err
    assert audited() == []


def audited() -> list[str]:
    with sqlite3.connect("work.db") as database:
        return [f"{action} {subject}" for action, subject in database.execute("SELECT action, subject FROM audit_log")]


def test_queue_without_dead_items_names_the_other_states(batuta: Command) -> None:
    batuta("migrate")
    out = batuta("--lang", "en", "queue", "show", "default")[1]
    assert (
        out.strip()
        == "default: no item is in state dead; choose another state with --state: ready, running, done, cancelled"
    )
    waiting = batuta("--lang", "en", "queue", "show", "default", "--state", "ready")[1]
    assert (
        waiting.strip()
        == "default: no item is in state ready; choose another state with --state: running, done, dead, cancelled"
    )


def test_waiting_task_is_found_by_tag_or_key_and_cancelled(batuta: Command) -> None:
    work = importlib.import_module("program").work

    async def enqueue() -> str:
        async with work:
            task = work.task_registry.get("normaliza")
            handle = await task.options(delay=3600, tags=["mail"], key="k-1").enqueue("+55 11 00000-0000")
            return str(handle.id)

    id = asyncio.run(enqueue())
    for option in (("--tag", "mail"), ("--key", "k-1")):
        shown = json.loads(batuta("queue", "show", "default", *option, "--json")[1])
        assert [item["id"] for item in shown["items"]] == [id]
    assert "nenhuma tarefa tem" in batuta("queue", "show", "default", "--tag", "other")[1]
    assert batuta("queue", "cancel", "default", id, "--reason", "not needed")[0] == 0
    code, out, _ = batuta("queue", "cancel", "default", id)
    assert (code, "já terminou" in out) == (1, True)
    assert "cancelados" in batuta("queue", "show", "default", "--tag", "mail")[1]


def test_list_says_that_a_report_waits_for_its_batch(batuta: Command) -> None:
    work = importlib.import_module("program").work

    async def wait_for_a_batch() -> None:
        async with work:
            await work.batches.create("import 7", on_end=work.task_registry.get("normaliza"))

    asyncio.run(wait_for_a_batch())
    shown = batuta("queue", "list")[1]
    assert "espera o fim de um lote ou de uma tarefa" in " ".join(shown.split())
    assert "9000-01-01" not in shown
    assert "01/01/9000" not in shown


def test_several_items_are_retried_by_one_command(batuta: Command) -> None:
    first, second = two_dead()
    unknown = "01890000-0000-7000-8000-000000000001"
    code, out, _ = batuta("queue", "retry", "default", first, unknown, second, "--json")
    assert code == 1  # one of them does not exist
    assert json.loads(out)["items"] == [
        {"id": first, "retried": True},
        {"id": unknown, "retried": False},
        {"id": second, "retried": True},
    ]
    assert batuta("queue", "cancel", "default", first, second)[0] == 0
    assert "cancelados 2" in batuta("queue", "list")[1]
    assert "cancelado por" in batuta("queue", "show", "default", "--state", "cancelados")[1]


def test_an_argument_of_a_dead_item_is_edited_and_the_item_enqueued_again(batuta: Command) -> None:
    first, _ = two_dead()
    code, _, err = batuta("queue", "edit", "default", first, "--arg", "nome=x")
    assert (code, "nome" in err) == (2, True), err
    code, out, _ = batuta("queue", "edit", "default", first, "--arg", "telefone=+55 11 00000-0001", "--json")
    assert code == 0
    made = json.loads(out)["new"]
    with sqlite3.connect("work.db") as database:
        ((args,),) = database.execute("SELECT args FROM tasks WHERE id = ?", [made])
        ((subject, after),) = database.execute("SELECT subject, after FROM audit_log WHERE action = 'item.edit'")
    assert "00000-0001" in args
    assert (subject, "00000-0001" in after) == (first, False)
