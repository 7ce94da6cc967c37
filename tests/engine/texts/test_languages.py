"""All texts, help pages and lists are in the operator's language: Portuguese or English."""

import asyncio
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import typer

from app.composition.development.demo import planilha_de_demonstracao
from batuta.cli.context import make_cli_context
from batuta.cli.program import main, tree
from batuta.texts import HERE, LANGUAGES, Language, read_table
from tests import ROOT
from tests.command import Command
from tests.julia.filled import fill_office

JULIA = ("--app", "app.main:work")
FOLDERS = (HERE, ROOT / "app" / "texts")
# Words that occur only in sentences of the other language. Names (commands, options, fields, states) are not sentences.
FOREIGN: dict[Language, re.Pattern[str]] = {
    "pt-BR": re.compile(r"\b(the|and|of|is|are|was|were|that|which|with|without|this|these|nobody|cannot|whether)\b"),
    "en": re.compile(r"\b(de|da|que|não|uma|são|está|para|pelo|pela|ou|mais|foi|como|quando|há)\b"),
}
NAMES = re.compile(r"`[^`]*`|\{[^}]*\}|--[\w-]+|/[\w/{}?=-]+|'[^']*'|\b[\w.]+_[\w.]+\b|\"[^\"]*\"")
ISO_DAY, BRAZILIAN_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b"), re.compile(r"\b\d\d/\d\d/\d{4}\b")


def foreign_words(language: Language, text: str) -> set[str]:
    return set(FOREIGN[language].findall(NAMES.sub(" ", text).lower()))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_no_text_contains_words_of_the_other_language(folder: Path, language: Language) -> None:
    mixed = {
        key: words for key, text in read_table(folder, language).items() if (words := foreign_words(language, text))
    }
    assert mixed == {}


def commands(language: Language) -> Iterator[tuple[str, ...]]:
    context = make_cli_context(["--lang", language])
    context.work()

    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name, each in getattr(command, "commands", {}).items():
            yield from below(each, (*path, name))

    yield from below(typer.main.get_command(tree(context)), ())


@pytest.mark.parametrize("language", LANGUAGES)
def test_help_of_every_command_is_in_the_language_of_the_operator(
    language: Language, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    start = {"pt-BR": "Uso: batuta", "en": "Usage: batuta"}[language]
    shown = 0
    for path in commands(language):
        assert main(["--lang", language, *path, "--help"]) == 0, path
        out = capsys.readouterr().out
        shown += 1
        assert out.startswith(start), path
        assert foreign_words(language, out) == set(), path
    assert shown > 60


LISTS = (
    "chips", "circuits", "limits", "jobs", "executions", "workers --all", "queue list", "switch list", "windows list",
    "schedule", "health", "incidents", "duvidas", "campanhas listar", "campanhas ver 2", "agendamentos listar",
    "agendamentos importacoes", "agendamentos contar", "agendamentos saude", "grupos status", "grupos revisao", "grupos vagas",
    "grupos mensagens", "grupos fechamentos", "grupos bloqueados", "token list",
)  # fmt: skip
# Stored names of states that are not words of the operator's language.
STORED = {
    "pt-BR": re.compile(r"\b(active|listener|pending|completed|skipped|success|closed|online|queued|complete|ready)\b"),
    "en": re.compile(r"\b(rascunho|agendada|concluida|aberta|enviada|verde)\b"),
}


def test_every_list_shows_states_and_dates_in_the_language_of_the_operator(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    sheet = folder / "agenda.csv"
    sheet.write_bytes(planilha_de_demonstracao(date(2026, 12, 28), linhas=3))
    assert batuta(*JULIA, "migrate")[0] == 0
    asyncio.run(fill_office("sqlite:///julia.db", doctors=2))
    assert batuta(*JULIA, "agendamentos", "importar", str(sheet))[0] == 0
    wrong_day = {"pt-BR": ISO_DAY, "en": BRAZILIAN_DAY}
    for language in LANGUAGES:
        for command in LISTS:
            code, out, err = batuta(*JULIA, "--lang", language, *command.split())
            assert (code in (0, 1), err) == (True, ""), command
            assert (wrong_day[language].findall(out), STORED[language].findall(out)) == ([], []), (command, out)
    _, out, _ = batuta(*JULIA, "--lang", "pt-BR", "agendamentos", "listar")
    assert ("29/12/2026" in out, "a ler" in out) == (True, True)
