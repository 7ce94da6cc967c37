"""The programs that the documents show are the programs that run."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from batuta.supervise.loop import Idle

ROOT = Path(__file__).parents[2]


def test_the_readme_shows_the_example_as_it_is() -> None:
    shown = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert shown is not None
    assert shown[1] == (ROOT / "examples" / "pulse.py").read_text()


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
