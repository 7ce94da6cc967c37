"""``batuta keys``: operators count the values stored under each encryption key, and rotate the keys."""

import json
from pathlib import Path

import pytest

from tests.command import Command, _forget, one_sentence

PROGRAM = """
from batuta import Batuta

work = Batuta("sqlite:///work.db", timezone="UTC")

@work.task()
async def send(to: str) -> None: ...
"""


def test_operator_rotates_keys(batuta: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "program.py").write_text(PROGRAM)

    def use(*keys: str) -> None:
        monkeypatch.setenv("BATUTA_KEYS", ",".join(key * 32 for key in keys))
        _forget()

    batuta("migrate")
    code, _, err = batuta("keys", "rotate")
    assert (code, one_sentence(err), "BATUTA_KEYS" in err) == (2, True, True)
    use("a")
    batuta("schedules", "create", "um", "--task", "send", "--arg", "to=x", "--every", "30")
    use("b")
    code, out, _ = batuta("keys", "list")
    assert (code, "falta em BATUTA_KEYS" in out) == (1, True)
    code, out, _ = batuta("keys", "rotate")
    assert (code, "falta em BATUTA_KEYS: 1" in out) == (1, True)
    use("b", "a")
    code, out, _ = batuta("keys", "rotate", "--json")
    assert (code, json.loads(out)) == (0, {"rotated": 1, "unknown_key": 0})
    use("b")
    code, out, _ = batuta("keys", "list", "--json")
    shown = json.loads(out)
    assert code == 0
    assert {key for each in shown["columns"] for key in each["by_key"]} == {*shown["keys"]}
