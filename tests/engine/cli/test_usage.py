"""Help and usage errors for every Julia command, in both languages."""

from pathlib import Path
from typing import Any

import pytest
import typer

from batuta.cli.context import make_cli_context
from batuta.cli.program import main, translate, tree
from batuta.texts import LANGUAGES, Language

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_option_is_explained_in_the_language_of_the_operator(language: Language) -> None:
    ctx = make_cli_context(["--lang", language])
    ctx.work()
    texts, without = ctx.texts(), []

    def look(command: Any, path: str) -> None:
        for option in command.params:
            names = (f"cli.option.{command.name}_{option.name}", f"cli.option.{option.name}")
            if option.param_type_name == "option" and not any(texts.get(name, "") for name in names):
                without.append(f"{path} {option.opts[0]}")
        for name, below in getattr(command, "commands", {}).items():
            look(below, f"{path} {name}")

    look(typer.main.get_command(tree(ctx)), "batuta")
    assert without == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_argument_never_shows_the_shared_text_of_an_option(language: Language) -> None:
    ctx = make_cli_context(["--lang", language])
    ctx.work()
    texts, shared = ctx.texts(), []

    def look(command: Any, path: str) -> None:
        for param in command.params:
            text = texts.get(f"cli.option.{param.name}", "")
            if param.param_type_name == "argument" and text and param.help == text:
                shared.append(f"{path} {param.name}")
        for name, below in getattr(command, "commands", {}).items():
            look(below, f"{path} {name}")

    look(translate(typer.main.get_command(tree(ctx)), texts), "batuta")
    assert shared == []


@pytest.mark.parametrize("command", ["run", "executions", "windows set", "circuits reset", "queue show", "sql"])
def test_arguments_have_portuguese_names(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lang", "pt-BR", *command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    for name in ("NAME", "OPENS", "QUEUE", "QUERY", "[padrão: -]", "[padrão: ]"):
        assert name not in out
    assert "-h, --help" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("jobz", "não existe o comando 'jobz': tente `batuta jobs`"),
        ("queue shw", "não existe o comando 'shw': tente `batuta queue show`"),
        ("jobs x y", "há argumentos a mais: x y"),
        ("jobs --json=3", "a opção --json não recebe valor"),
        ("jobs --profile", "a opção --profile precisa de um valor"),
        ("run", "falta o argumento NOME"),
        ("workers drain", "falta o argumento PROCESSO"),
        ("executions --limit 0", "--limit não aceita '0': o mínimo é 1"),
        ("agendamentos importar /nowhere", "ARQUIVO: /nowhere não existe"),
        ("agendamentos importar /tmp", "ARQUIVO: /tmp é uma pasta; informe um arquivo"),
    ],
)
def test_usage_error_has_no_text_of_the_parser(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lang", "pt-BR", *words.split()]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", "jobs", "queue", "agendamentos listar", "campanhas criar"])
def test_portuguese_help_has_no_english_text_of_the_parser(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lang", "pt-BR", *command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Uso: batuta")
    for word in ("Usage", "Options", "required", "default:", "Show this", " range>", "%Y"):
        assert word not in out


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("executions", "em-execucao|com-sucesso|erro|tempo-esgotado|pulada|abandonada|perdida"),
        ("token create", "ler|operar|enviar|tokens|dados-pessoais"),
        ("token create", "leitura|operador|admin"),
        ("chip", "em-aquecimento|pronto|ativo|pausado|cancelado"),
    ],
)
def test_choices_are_listed_in_portuguese(command: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lang", "pt-BR", *command.split(), "--help"]) == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_group_of_choices_has_a_word_for_each_value(language: Language) -> None:
    ctx = make_cli_context(["--lang", language])
    ctx.work()
    texts, without, used = ctx.texts(), list[str](), set[str]()

    def look(command: Any, path: str) -> None:
        for param in command.params:
            if param.words:
                used.add(f"{path}{param.name}")
                values = [str(getattr(each, "value", each)) for each in param.type_descriptor.choices or ()]
                without.extend(f"{path}{param.name}: {value}" for value in values if value not in param.words)
        for name, below in getattr(command, "commands", {}).items():
            look(below, f"{path}{name}_")

    look(translate(typer.main.get_command(tree(ctx)), texts), "")
    assert without == []
    assert used == set(texts.group("cli.choices"))


@pytest.mark.parametrize(
    "words", [["-h", "jobs"], ["--help", "jobs"], ["-h"], ["--app", "app.main:work", "-h", "jobs"]]
)
def test_help_before_a_command_lists_every_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lang", "en", *words]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in ("migrate", "jobs", "queue", "up", "telegram"))


@pytest.mark.parametrize("words", [["jbos"], ["--app", "app.main:work", "jbos"], ["--lang=en", "jbos"]])
def test_misspelt_command_names_the_nearest_of_all(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lang", "en", *words]) == 2
    assert "batuta jobs" in capsys.readouterr().err
