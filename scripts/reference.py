"""Writes docs/reference.md (settings, commands, HTTP, Python, errors, events), docs/jobs-schedule.md and
docs/queue-sql.md.

``python -m scripts.reference [--check]``
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.cli.context import CliContext
from batuta.cli.program import tree
from batuta.config import load_settings
from batuta.kernel import errors
from batuta.web.routes.openapi import operations
from scripts import public_api, queue_sql, timetable

FILE = Path(__file__).parents[1] / "docs" / "reference.md"
HEAD = """# Reference

Written from the code by `python3 dev.py check --fix`; a test keeps it true. Do not edit it by hand.
"""


def main(arguments: list[str]) -> int:
    documents = {FILE: document(), timetable.FILE: timetable.document(), queue_sql.FILE: queue_sql.document()}
    if "--check" in arguments:
        stale = [
            file for file, text in documents.items() if not file.exists() or file.read_text(encoding="utf-8") != text
        ]
        print(*(f"{file} is not what the code says: run `python3 dev.py check --fix`" for file in stale), sep="\n")
        return 1 if stale else 0
    for file, text in documents.items():
        file.write_text(text, encoding="utf-8")
    return 0


def document() -> str:
    parts = [HEAD, *_settings(), *_commands(), *_exit_codes(), *_http(), *public_api.sections(), *_errors(), *_events()]
    return "\n".join(parts) + "\n"


def _settings() -> Iterator[str]:
    yield "## Settings\n"
    yield "Environment variables, or lines of a `.env` file in the working folder (the environment wins). `NAME_FILE` may stand for"
    yield "any `NAME`: a file that holds the value. An empty value is an unset one. An unknown `BATUTA_*` name is an error.\n"
    yield "| name | default | what |\n|---|---|---|"
    for name, field in Settings.model_fields.items():
        default = field.default.get_secret_value() if hasattr(field.default, "get_secret_value") else field.default
        shown = "—" if default in (None, ()) else f"`{default}`"
        yield f"| `{name.upper()}` | {shown} | {field.description} |"


def _commands() -> Iterator[str]:
    yield "\n## Commands\n"
    yield "`batuta [--app module:object] [--lang pt-BR|en] WORD`; every word that answers and ends takes `--json`.\n"
    yield "| command | does |\n|---|---|"
    ctx = CliContext("en", "app.main:work", {}, Console(), Console(stderr=True))
    for name, help_text in _words(typer.main.get_command(tree(ctx)), "batuta"):
        yield f"| `{name}` | {help_text} |"


def _words(command: Any, name: str) -> Iterator[tuple[str, str]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield name, command.help or ""
        return
    for child, each in sorted(children.items()):
        yield from _words(each, f"{name} {child}")


def _exit_codes() -> Iterator[str]:
    yield "\n## Exit codes\n"
    yield "| code | means |\n|---|---|"
    yield "| 0 | done |\n| 1 | it ran, and found or met a problem |"
    yield "| 2 | it did not run: the command line, the configuration or the schema is wrong; starting it again changes nothing |"
    yield "| 130 | interrupted with Ctrl-C |\n| 128 + n | left at once, at the second signal n |"


def _http() -> Iterator[str]:
    yield "\n## HTTP\n"
    yield "GET needs the scope `read`, everything else `operate`; `/health` and `/health/ready` are open. Errors are"
    yield "`application/problem+json`. The same for machines at `/openapi.json`, for people at `/docs`.\n"
    yield "| operation | does |\n|---|---|"
    for operation in operations(create_app(build(load_settings(Settings, {}))).openapi()):
        yield f"| `{operation['method']} {operation['path']}` | {' '.join(operation['summary'].split())} |"


def _errors() -> Iterator[str]:
    yield "\n## Errors\n"
    yield "| class | sentence |\n|---|---|"
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.BatutaError) and kind is not errors.BatutaError:
            yield f"| `{kind.__name__}` | {kind.sentence} |"


def _events() -> Iterator[str]:
    yield "\n## Facts\n"
    yield "One frozen dataclass each in `batuta.events`; subscribe with `work.events.subscribe(function)`.\n"
    yield "| fact | carries |\n|---|---|"
    for kind in public_api.list_events():
        yield f"| `{kind.__name__}` | {', '.join(f'`{name}`' for name in kind.__dataclass_fields__)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
