"""Untrusted text on a terminal: no character moves the cursor, changes the terminal or reverses the order of a line."""

import io
import json

import pytest
from rich.table import Table

from batuta.cli.context import make_cli_context
from batuta.cli.terminal import SafeConsole

HOSTILE = "a\x1b[31mb\u009b31mc\u202ed\u2066e\rf\u200fg"


def test_printed_text_and_cells_have_no_control_characters() -> None:
    console = SafeConsole(file=(out := io.StringIO()), width=120, markup=False, emoji=False, highlight=False)
    console.print(HOSTILE, soft_wrap=True)
    table = Table("x")
    table.add_row(HOSTILE)
    console.print(table)
    assert not set(out.getvalue()) & set("\x1b\u009b\u202e\u2066\u200f\r")
    assert out.getvalue().startswith("a\ufffd[31mb")
    assert isinstance(make_cli_context([]).out, SafeConsole)


def test_json_escapes_control_characters_and_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    make_cli_context(["--lang", "en"]).print_json({"texto": HOSTILE})
    said = capsys.readouterr().out
    assert not set(said) & set("\x1b\u009b\u202e\u2066\u200f\r")
    assert json.loads(said) == {"texto": HOSTILE}
