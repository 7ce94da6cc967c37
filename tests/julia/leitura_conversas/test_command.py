"""``batuta conversas ler``: one text, or a file with one text per line."""

import json
from pathlib import Path

import pytest

from tests.command import Command

LER = ("--app", "app.main:work", "conversas", "ler")


@pytest.fixture(autouse=True)
def database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")


def test_one_text_is_one_object(batuta: Command) -> None:
    code, out, _ = batuta(*LER, "sai fora", "--json")
    read = json.loads(out)
    assert (code, read["classe"], read["opt_out"]) == (0, "opt_out", "certo")


def test_each_line_of_a_file_is_one_object(folder: Path, batuta: Command) -> None:
    (folder / "textos.txt").write_text("PARAR\nvou parar às 19h\n\nchega\n", encoding="utf-8")
    code, out, _ = batuta(*LER, "--arquivo", "textos.txt", "--json")
    assert (code, [json.loads(line)["opt_out"] for line in out.splitlines()]) == (
        0,
        ["certo", "nao", "nao", "provavel"],
    )


def test_without_a_text_the_command_names_what_it_needs(batuta: Command) -> None:
    code, _, err = batuta(*LER)
    assert (code, "--arquivo" in err) == (2, True)


def test_output_for_people_is_one_line(batuta: Command) -> None:
    code, out, _ = batuta(*LER, "qual o valor?")
    assert (code, out.startswith("pergunta  descadastro: nao")) == (0, True)
