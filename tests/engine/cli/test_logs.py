"""``batuta logs`` shows the stored log lines of a task, which is identified by the first characters of its id."""

import asyncio
import importlib
import json
from pathlib import Path

from batuta import Batuta
from batuta.runlog.lines import CUT, LogLine
from tests.command import Command

PROGRAM = """
from batuta import Batuta

work = Batuta("sqlite:///work.db", timezone="UTC")

@work.task()
def send() -> None: ...
"""
ENGLISH = ("--app", "program:work", "--lang", "en")


def test_logs_prints_the_lines_and_follows_until_the_end(batuta: Command, folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM)
    work: Batuta = importlib.import_module("program").work

    async def write() -> str:
        async with work:
            handle = await work.task_registry.get("send").enqueue()
            await work.work_once("default", 1)
            now = work.clock.now()
            lines = [
                LogLine(
                    id=work.ids.new(), item_id=handle.id, attempt=2, at=now, level=level, logger="shop", line="sent"
                )
                for level in ("info", CUT)
            ]
            await work.log_lines.add(lines)
            return handle.id

    id = asyncio.run(write())
    code, out, _ = batuta(*ENGLISH, "logs", id[:13])
    assert code == 0
    first, last = out.strip().splitlines()
    assert first.endswith("#2 info    shop: sent")
    assert last.endswith("#2 further lines of this attempt were not stored")
    code, followed, _ = batuta(*ENGLISH, "logs", id, "--follow")
    assert (code, followed) == (0, out)
    _, document, _ = batuta(*ENGLISH, "logs", id, "--json")
    assert [line["line"] for line in json.loads(document)["lines"]] == ["sent", "sent"]
    _, out, _ = batuta(*ENGLISH, "logs", "0196b0a8-0000")
    assert "no log lines are stored for 0196b0a8-0000" in out
