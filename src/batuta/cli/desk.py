"""What every command works with: the language, the application behind ``--app``, and the one way to print."""

import importlib
import json
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from batuta.config import EngineSettings, environment, load
from batuta.engine import Batuta
from batuta.kernel.errors import BatutaError, UnknownApp
from batuta.texts import Language, Texts

ENV_FILE = Path(".env")

# Exit codes, the same for every command; docs/reference.md has them too.
DONE = 0
FAILED = 1  # it ran and found or met a problem
REFUSED = 2  # it did not run: the command line or the configuration is wrong

WIDE = 240

JsonFlag = Annotated[bool, typer.Option("--json", help="For machines: one JSON document.")]


@dataclass(slots=True)
class Desk:
    language: Language
    app_name: str | None
    env: Mapping[str, str]
    out: Console
    err: Console
    _work: Batuta | None = None

    def work(self) -> Batuta:
        if self._work is None:
            self._work = load_app(self.app_name or default_app(Path.cwd()))
        return self._work

    def settings(self) -> EngineSettings:
        return self.work().settings or load(EngineSettings, self.env, ENV_FILE)

    def texts(self) -> Texts:
        folders = self._work.extension.texts if self._work else ()
        return Texts(self.language, folders)

    def show(self, document: Mapping[str, Any], as_json: bool, readable: Callable[[], None]) -> None:
        """The same content either way: JSON for machines, words for people."""
        if as_json:
            self.print_json(document)
        else:
            readable()

    def print_json(self, document: object) -> None:
        self.out.print_json(json.dumps(document, ensure_ascii=False, default=str))

    def say(self, text: str) -> None:
        """As it is: the terminal breaks lines, not we, and nothing in it is markup."""
        self.out.print(text, markup=False, highlight=False, soft_wrap=True)

    def say_wrong(self, sentence: str) -> None:
        self.err.print(f"batuta: {sentence}", style="red", markup=False, highlight=False, soft_wrap=True)

    def complain(self, error: BatutaError) -> None:
        self.say_wrong(self.texts().error(error))


def desk_of(context: typer.Context) -> Desk:
    desk: Desk = context.obj
    return desk


def load_app(name: str) -> Batuta:
    """The Batuta at ``module:object``. Importing it may read the configuration, and may refuse it."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise UnknownApp(app=name, why="a colon between the module and the object is missing")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as missing:
        raise UnknownApp(app=name, why=f"no module is called {missing.name}") from None
    except AttributeError:
        raise UnknownApp(app=name, why=f"{module_name} has no {attribute}") from None
    if not isinstance(found, Batuta):
        raise UnknownApp(app=name, why=f"{attribute} is a {type(found).__name__}")
    return found


def default_app(start: Path) -> str:
    """What ``[tool.batuta] app`` says in the nearest pyproject.toml."""
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file() and (app := _app_in(file)):
            return app
    raise UnknownApp(app="", why="no pyproject.toml here has [tool.batuta] app")


def _app_in(file: Path) -> str | None:
    try:
        tools = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise UnknownApp(app="", why=f"{file} is not TOML") from None
    app = tools.get("batuta", {}).get("app")
    return None if app is None else str(app)


def make_desk(argv: list[str]) -> Desk:
    env = environment()
    wanted = option(argv, "--lang") or env.get("BATUTA_LANG", "")
    language: Language = "en" if wanted == "en" else "pt-BR"
    # What goes into a file or a pipe is not cut to the width of a terminal that is not there.
    width = None if sys.stdout.isatty() else WIDE
    return Desk(language, option(argv, "--app"), env, Console(width=width), Console(stderr=True))


def option(argv: list[str], name: str) -> str | None:
    """The value of a global option, looked for before the command tree exists: the application adds to that tree."""
    for place, word in enumerate(argv):
        if word == name and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None
