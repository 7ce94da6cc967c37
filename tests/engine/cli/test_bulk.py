"""The ``batuta bulk`` commands: operators change every item that matches a filter, as they can on a queue's page."""

import asyncio
import importlib
import json
import sqlite3
from pathlib import Path

import pytest

from batuta.queue.inspection import BulkOperator, signature_of
from batuta.supervise.loop import Idle
from tests.command import Command
from tests.engine.cli.test_queue import PROGRAM, two_dead


@pytest.fixture(autouse=True)
def program(folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM)


def perform() -> None:
    """Perform the stored bulk operations, as a worker does."""
    work = importlib.import_module("program").work

    async def tick() -> None:
        async with work:
            operator = BulkOperator(lambda: work.bulk)
            while not isinstance(await operator.tick(), Idle):
                pass

    asyncio.run(tick())


def test_an_operator_retries_every_item_with_one_cause(batuta: Command) -> None:
    two_dead()
    group = signature_of("normaliza", "wrong document")
    code, out, _ = batuta("bulk", "retry", "default", "--error", group, "--name", "normaliza", "--json")
    document = json.loads(out)
    assert (code, document["expected"], document["change"]) == (0, 2, "retry")
    (listed,) = json.loads(batuta("bulk", "list", "default", "--json")[1])["operations"]
    assert (listed["id"], listed["status"], listed["changed"]) == (document["id"], "running", 0)
    perform()
    (listed,) = json.loads(batuta("bulk", "list", "default", "--json")[1])["operations"]
    assert (listed["status"], listed["changed"]) == ("done", 2)
    assert "aguardando 2" in batuta("queue", "list")[1]
    with sqlite3.connect("work.db") as database:
        ((action, subject),) = database.execute("SELECT action, subject FROM audit_log WHERE action LIKE 'bulk.%'")
    assert (action, subject) == ("bulk.retry", f"default:{document['id']}")


def test_an_operation_is_stopped_by_its_first_characters(batuta: Command) -> None:
    two_dead()
    id = json.loads(batuta("bulk", "discard", "default", "--json")[1])["id"]
    assert batuta("bulk", "stop", id[:18])[0] == 0
    assert batuta("bulk", "stop", id)[0] == 1
    perform()
    assert "mortos 2" in batuta("queue", "list")[1]


def test_a_filter_that_matches_nothing_starts_no_operation(batuta: Command) -> None:
    two_dead()
    code, out, _ = batuta("bulk", "cancel", "default")
    assert (code, "default" in out) == (1, True)
    assert batuta("bulk", "retry", "default", "--older-than", "1h")[0] == 1
    assert json.loads(batuta("bulk", "list", "default", "--json")[1])["operations"] == []
    code, _, err = batuta("bulk", "retry", "default", "--older-than", "soon")
    assert (code, "--older-than" in err) == (2, True), err
    assert batuta("bulk", "retry", "nada")[0] == 2
