"""Write docs/reference.md (settings, commands, HTTP, errors, events), docs/python.md, docs/jobs-schedule.md and
docs/queue-sql.md.

``python -m scripts.reference [--check]``
"""

import ast
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer
from fastapi import FastAPI
from pydantic.fields import FieldInfo

from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.cli.context import CliContext, load_app
from batuta.cli.program import tree
from batuta.config import EngineSettings, load_settings
from batuta.kernel import errors
from batuta.web import create_api
from batuta.web.routes.openapi import operations
from scripts import public_api, queue_sql, timetable

FILE = Path(__file__).parents[1] / "docs" / "reference.md"
HEAD = """# Reference

`python3 dev.py check --fix` writes this page from the code, and a test compares them. Do not edit it by hand.

[Settings](#settings) · [Commands](#commands) · [Exit codes](#exit-codes) · [HTTP](#http) · [Errors](#errors) ·
[Events](#events) · [Python API](python.md)
"""
# A program that uses only the engine. Everything that it lacks belongs to Julia.
ENGINE_ONLY = "examples.shop:work"


def main(arguments: list[str]) -> int:
    os.environ["APP_ENV"] = "development"  # so that the roles of development are documented too
    documents = {FILE: document()} | {each.FILE: each.document() for each in (public_api, timetable, queue_sql)}
    if "--check" in arguments:
        stale = [
            file for file, text in documents.items() if not file.exists() or file.read_text(encoding="utf-8") != text
        ]
        print(*(f"{file} is out of date: run `python3 dev.py check --fix`" for file in stale), sep="\n")
        return 1 if stale else 0
    for file, text in documents.items():
        file.write_text(text, encoding="utf-8")
    return 0


def document() -> str:
    parts = [HEAD, *_settings(), *_commands(), *_exit_codes(), *_http(), *_errors(), *_events()]
    return "\n".join(parts) + "\n"


def _settings() -> Iterator[str]:
    yield "## Settings\n"
    yield "A setting is an environment variable or a line of `.env` in the working folder; the first has precedence. An argument of"
    yield "`Batuta(…)`, such as the address of the database or the time zone, has precedence over both. `NAME_FILE`"
    yield "names a file that contains the value of `NAME`. An empty value means unset. An unknown `BATUTA_*` name is an error.\n"
    engine = EngineSettings.model_fields
    yield from _settings_of("Engine", engine, _meanings(EngineSettings))
    yield from _settings_of(
        "Julia",
        {
            name: field
            for name, field in Settings.model_fields.items()
            if name not in engine or field.default != engine[name].default
        },
        _meanings(Settings),
    )


def _settings_of(title: str, settings: Mapping[str, FieldInfo], meanings: Mapping[str, str]) -> Iterator[str]:
    yield f"### {title}: settings\n"
    yield "| name | default | meaning |\n|---|---|---|"
    for name, field in settings.items():
        default = field.default.get_secret_value() if hasattr(field.default, "get_secret_value") else field.default
        shown = "—" if field.default_factory is not None or default in (None, (), "") else f"`{default}`"
        yield f"| `{name.upper()}` | {shown} | {meanings[name]} |"
    yield ""


def _meanings(kind: type) -> dict[str, str]:
    """Return, by setting, the docstrings that follow the settings in the source of a class and its base classes."""
    found: dict[str, str] = {}
    for each in reversed([each for each in kind.__mro__ if issubclass(each, EngineSettings)]):
        (declared,) = ast.parse(inspect.getsource(each)).body
        assert isinstance(declared, ast.ClassDef)
        for field, text in pairwise(declared.body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                    found[name] = " ".join(meaning.split())
    return found


def _commands() -> Iterator[str]:
    yield "## Commands\n"
    yield "`batuta [--app module:object] [--lang pt-BR|en] COMMAND`. Every command that ends by itself takes `--json`.\n"
    engine, julia = dict(_commands_of(ENGINE_ONLY)), dict(_commands_of("app.main:work"))
    for title, commands in (("Engine", engine), ("Julia", {name: julia[name] for name in julia if name not in engine})):
        yield f"### {title}: commands\n"
        yield "| command | does |\n|---|---|"
        yield from (f"| `{name}` | {help_text} |" for name, help_text in commands.items())
        yield ""


def _commands_of(app: str) -> Iterator[tuple[str, str]]:
    context = CliContext("en", app, {})
    return _words(typer.main.get_command(tree(context)), "batuta")


def _words(command: Any, name: str) -> Iterator[tuple[str, str]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield name, command.help or ""
        return
    for child, each in sorted(children.items()):
        yield from _words(each, f"{name} {child}")


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "| code | meaning |\n|---|---|"
    yield "| 0 | success |\n| 1 | the command ran and found a problem |"
    yield "| 2 | the command did not run: arguments, configuration or schema are wrong; a restart does not help |"
    yield "| 75 | the process drained and requests a restart |"
    yield "| 130 | interrupted with Ctrl-C |\n| 128 + n | ended immediately by a second signal n |"


def _http() -> Iterator[str]:
    yield "\n## HTTP\n"
    yield "Each route needs the scope in its row; a route without one is open, or checks a secret of its own. Without the scope"
    yield "`pii`, names, contacts, addresses and texts are masked. Errors are `application/problem+json`. The OpenAPI document"
    yield "is at `/openapi.json`, a page for people at `/docs`.\n"
    engine = _operations(create_api(load_app(ENGINE_ONLY), load_settings(EngineSettings, {})))
    julia = _operations(create_app(build(load_settings(Settings, {}))))
    for title, found in (("Engine", engine), ("Julia", {name: julia[name] for name in julia if name not in engine})):
        yield f"### {title}: routes\n"
        yield "| operation | scope | does |\n|---|---|---|"
        yield from (f"| `{name}` | {scope} | {summary} |" for name, (scope, summary) in found.items())
        yield ""


def _operations(api: FastAPI) -> dict[str, tuple[str, str]]:
    """Return the scope and the description of each HTTP operation."""
    return {
        f"{operation['method']} {operation['path']}": (operation["scope"], " ".join(operation["summary"].split()))
        for operation in operations(api.openapi())
    }


def _errors() -> Iterator[str]:
    yield "\n## Errors\n"
    yield "| class | sentence |\n|---|---|"
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.BatutaError) and kind is not errors.BatutaError:
            yield f"| `{kind.__name__}` | {kind.sentence} |"


def _events() -> Iterator[str]:
    yield "\n## Events\n"
    yield "Each event is a frozen dataclass in `batuta.events`. Subscribe with `work.events.subscribe(function)`.\n"
    yield "| event | fields |\n|---|---|"
    for kind in public_api.list_events():
        yield f"| `{kind.__name__}` | {', '.join(f'`{name}`' for name in kind.__dataclass_fields__)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
