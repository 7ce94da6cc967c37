"""The programs shown in the documents are identical to the files that tests run."""

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


def test_readme_shows_the_example_as_it_is() -> None:
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert shown == [(ROOT / "examples" / "shop.py").read_text()]


async def test_shop_sends_receipts_of_known_orders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("examples.shop", None)
    shop = importlib.import_module("examples.shop")
    await shop.main()
    assert capsys.readouterr().out.startswith("accepted ")
    async with shop.work as work:
        ids = [await work.enqueue(shop.send_receipt, order) for order in (7, 0)]
        assert await work.work_once("default", 10) == 3
        statuses = [await work.status(id) for id in ids]

    assert [(each.status, each.result or each.error) for each in statuses if each] == [
        ("complete", "receipt of order 7 sent"),
        ("failed", "unknown order"),
    ]


async def test_pulse_runs_until_a_switch_holds_it(
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
    assert said[1] == "held: switch pulse.pause is on, set by me: almoço"


async def test_reports_run_and_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("examples.reports", None)
    work = importlib.import_module("examples.reports").work
    async with work:
        for name, params in (("summarise", {}), ("summarise", {"empty": "1"}), ("clean_up", {})):
            await work.scheduler().run_by_hand(work.registry.find(name, await work.controls.read()), params)
        rows = await work.reports.recent(before=work.clock.now() + DAY, limit=10)
    assert [(row.job, row.status, row.items) for row in reversed(rows)] == [
        ("summarise", "success", 3),
        ("summarise", "skipped", None),
        ("clean_up", "success", 12),
    ]
    assert capsys.readouterr().out.startswith("summary ")


async def test_courier_delivers_until_its_circuit_opens_and_then_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("examples.courier", None)
    courier = importlib.import_module("examples.courier")
    async with courier.work:
        assert await courier.deliver("letter") == "delivered letter"
        for _ in range(3):
            assert await courier.deliver("letter", door="shut") == Failed("no answer")
        held = await courier.deliver("letter")
        assert isinstance(held, Snooze)
        assert held.reason == "circuit open: gateway, 3 failures in a row; the last: no answer"
        assert await courier.work.rates.count_used([courier.hourly]) == {"letters/hour": 4}


async def test_addresses_are_accepted_once_and_processed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("examples.addresses", None)
    addresses = importlib.import_module("examples.addresses")
    await addresses.main()
    assert capsys.readouterr().out.split() == ["accepted", "3", "queued", "queued", "queued"]
    work = addresses.work
    async with work:
        ids = [row["id"] for row in await work.queues["default"].list_items("ready", 10)]
        assert await work.work_once("default", 10) == 3
        statuses = [await work.status(id) for id in ids]
    assert sorted((each.status, each.result or each.error) for each in statuses if each) == [
        ("complete", "Av. Brasil"),
        ("complete", "Rua Das Flores"),
        ("failed", "nothing to normalise"),
    ]
