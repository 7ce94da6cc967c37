"""The programs that the documents show are the programs that run."""

import importlib
import re
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from batuta import Failed, Snooze
from batuta.supervise.loop import Idle
from tests import ROOT

DAY = timedelta(days=1)


def test_the_readme_shows_the_example_as_it_is() -> None:
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert shown == [(ROOT / "examples" / "agenda.py").read_text()]


async def test_the_pulse_beats_until_somebody_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("examples.pulse", None)
    pulse = importlib.import_module("examples.pulse")
    async with pulse.work:
        assert await pulse.pulse() is None
    await pulse.hold("almoço")
    async with pulse.work:
        assert isinstance(await pulse.pulse(), Idle)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("beat at")
    assert said[1] == "held: switch pulse.pause is on, turned by me: almoço"


async def test_the_agenda_runs_its_jobs_and_keeps_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("examples.agenda", None)
    work = importlib.import_module("examples.agenda").work
    async with work:
        for name, params in (("resumo", {}), ("resumo", {"vazio": "1"}), ("arrumar", {})):
            await work.scheduler().run_by_hand(work.registry.find(name, await work.controls.read()), params)
        rows = await work.reports.recent(before=work.clock.now() + DAY, limit=10)
    assert [(row.job, row.status, row.items) for row in reversed(rows)] == [
        ("resumo", "success", 3),
        ("resumo", "skipped", None),
        ("arrumar", "success", 12),
    ]
    assert capsys.readouterr().out.startswith("resumo ")


async def test_the_courier_delivers_until_nobody_opens_and_waits_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("examples.courier", None)
    courier = importlib.import_module("examples.courier")
    async with courier.work:
        assert await courier.deliver(None, "carta") == "delivered carta"
        for _ in range(3):
            assert await courier.deliver(None, "carta", door="shut") == Failed("nobody opened")
        held = await courier.deliver(None, "carta")
        assert isinstance(held, Snooze)
        assert held.reason == "circuit open: gateway, 3 failures in a row, the last nobody opened"
        assert await courier.work.rates.used([courier.hourly]) == {"letters/hour": 4}


async def test_the_tasks_are_accepted_once_and_run_for_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("examples.tarefas", None)
    tarefas = importlib.import_module("examples.tarefas")
    await tarefas.main()
    assert capsys.readouterr().out.split() == ["accepted", "3", "queued", "queued", "queued"]
    work = tarefas.work
    async with work:
        ids = [row["id"] for row in await work.queues["default"].listed("ready", 10)]
        assert await work.work_once("default", 10) == 3
        statuses = [await work.status(id) for id in ids]
    assert sorted((each.status, each.result or each.error) for each in statuses if each) == [
        ("complete", "Av. Brasil"),
        ("complete", "Rua Das Flores"),
        ("failed", "nothing to normalise"),
    ]
