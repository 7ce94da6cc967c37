"""The parts that all commands share: the language, the application that ``--app`` names, and the output."""

import asyncio
import getpass
import importlib
import json
import logging
import os
import sys
import tomllib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from batuta.config import EngineSettings, environment, system_language
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import BatutaError, UnknownApp
from batuta.kernel.reasons import Reason
from batuta.kernel.storable import CONTROLS, PRINTABLE
from batuta.texts import LANGUAGES, Language, Texts, fold

# Exit codes of every command; docs/reference.md lists them too.
DONE = 0
FAILED = 1  # the command ran and found a problem
REFUSED = 2  # the command did not run: the command line or the configuration is wrong
INTERRUPTED = 130

WIDE = 240

T = TypeVar("T")
_NOWHERE = logging.NullHandler()

JsonFlag = Annotated[bool, typer.Option("--json", help="For machines: one JSON document.")]


class SafeConsole(Console):
    """A console that replaces characters with an effect on the terminal. Stored texts come from strangers."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(text.translate(PRINTABLE), **options)


@dataclass(slots=True)
class CliContext:
    """The state that one call of the command shares: application, language and output. ``lang`` is the value of
    ``--lang``, or None if it was not given.
    """

    lang: Language | None
    app_name: str | None
    env: Mapping[str, str]
    out: Console
    err: Console
    _work: Batuta | None = None
    unloaded: BatutaError | None = None
    """The error that prevented loading the application; None if it was loaded."""

    def work(self) -> Batuta:
        if self._work is None:
            self._work = load_app(self.app_name or default_app(Path.cwd()))
        return self._work

    def load(self) -> None:
        """Load the application for its commands and its language. An error stays in ``unloaded`` until a command needs
        the application.
        """
        try:
            self.work()
        except BatutaError as error:
            self.unloaded = error

    @property
    def language(self) -> Language:
        if self.lang is not None:
            return self.lang
        return language_here(self.env) if self._work is None else self._work.settings.batuta_lang

    def settings(self) -> EngineSettings:
        return self.work().settings

    def texts(self) -> Texts:
        folders = self._work.extension.texts if self._work else ()
        return Texts(self.language, folders)

    def show(self, document: Mapping[str, Any], as_json: bool, readable: Callable[[], None]) -> None:
        """Print ``document`` as JSON, or call ``readable`` to print the same content for people."""
        if as_json:
            self.print_json(document)
        else:
            readable()

    def print_json(self, document: object) -> None:
        text = json.dumps(self.texts().render(document), ensure_ascii=False, default=str, indent=2)
        # Escaped instead of replaced, so that programs get the stored text.
        self.out.out(text.translate({code: f"\\u{code:04x}" for code in CONTROLS if code >= 0x7F}))

    def say(self, text: str) -> None:
        """Print text without wrapping, so that the terminal breaks lines."""
        self.out.print(text, soft_wrap=True)

    def say_wrong(self, sentence: str) -> None:
        self.err.print(f"batuta: {sentence}", style="red", soft_wrap=True)

    def complain(self, error: BatutaError) -> None:
        self.say_wrong(self.texts().error(error))

    def ask(self, act: Callable[[Batuta], Awaitable[T]]) -> T:
        """Open the application, run ``act``, close the application and return the result."""
        return wait_for(self._ask(act))

    async def _ask(self, act: Callable[[Batuta], Awaitable[T]]) -> T:
        async with self.work() as work:
            return await act(work)

    def table(self, headings: str, columns: Iterable[str]) -> Table:
        """Return a table without lines. The text key of a heading is ``headings`` followed by the column's name."""
        texts = self.texts()
        return Table(*(texts(f"{headings}{column}") for column in columns), box=None, pad_edge=False)

    def iso(self, instant: datetime | None) -> str | None:
        """Format an instant for JSON: to the second, in the application's zone."""
        return None if instant is None else instant.astimezone(self.work().zone).isoformat(timespec="seconds")

    def local(self, instant: datetime) -> str:
        """Format an instant in the application's zone and the operator's language."""
        return self.texts().minute(instant.astimezone(self.work().zone))

    def moment(self, written: str | None) -> str:
        """Parse an ISO text and format its instant as ``local`` does. Return an empty text for None."""
        return self.local(datetime.fromisoformat(written)) if written else ""


def cli_context(context: typer.Context) -> CliContext:
    """Return the CliContext of a command, which typer stores in its own context."""
    ctx: CliContext = context.obj
    return ctx


def wait_for(running: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result. If it fails, the caller reports the error once, so log lines of
    asyncio and asyncpg about that error are dropped.
    """
    for name in ("asyncio", "asyncpg"):
        logging.getLogger(name).addHandler(_NOWHERE)
    return asyncio.run(_interruptible(running))


async def _interruptible(running: Coroutine[Any, Any, T]) -> T:
    try:
        return await running
    except BatutaError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # stopped with Ctrl-C: not a failure
            raise asyncio.CancelledError from None
        raise


def as_typed(word: str) -> str:
    """Return a word of the operator's language as it is typed on the command line: in lower case, without accents, with
    hyphens instead of spaces.
    """
    return fold(word).replace(" ", "-").replace("_", "-")


def current_user() -> str:
    """Return the name of the user who runs the command, or ``uid:N`` in a container where the user has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid:{os.getuid()}"


def load_app(name: str) -> Batuta:
    """Import the Batuta object at ``module:object``. The import may read the configuration, so configuration errors are
    raised here.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise UnknownApp(app=name, why=Reason("app_colon", "a colon between the module and the object is missing"))
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as missing:
        raise UnknownApp(
            app=name, why=Reason("app_module", "no module is called {module}", module=missing.name)
        ) from None
    except AttributeError:
        raise UnknownApp(
            app=name, why=Reason("app_object", "{module} has no {object}", module=module_name, object=attribute)
        ) from None
    if not isinstance(found, Batuta):
        raise UnknownApp(
            app=name, why=Reason("app_type", "{object} is a {type}", object=attribute, type=type(found).__name__)
        )
    return found


def default_app(start: Path) -> str:
    """Return the value of ``[tool.batuta] app`` in the nearest pyproject.toml."""
    if (app := _project_option(start, "app")) is None:
        raise UnknownApp(app="", why=Reason("app_none", "no pyproject.toml here has [tool.batuta] app"))
    return app


def language_here(env: Mapping[str, str]) -> Language:
    """Return the language to use before an application is loaded: BATUTA_LANG, ``[tool.batuta] language``, or the system's."""
    try:
        own = env.get("BATUTA_LANG") or _project_option(Path.cwd(), "language")
    except UnknownApp:
        own = None
    return find_language(own) or system_language(env)


def find_language(word: str | None) -> Language | None:
    return next((each for each in LANGUAGES if each == word), None)


def _project_option(start: Path, name: str) -> str | None:
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file() and (found := _options_in(file).get(name)):
            return str(found)
    return None


def _options_in(file: Path) -> Mapping[str, Any]:
    try:
        options: Mapping[str, Any] = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("batuta", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise UnknownApp(app="", why=Reason("app_toml", "{file} is not TOML", file=file)) from None
    return options


def make_cli_context(argv: list[str]) -> CliContext:
    env = environment()
    lang = find_language(option(argv, "--lang"))
    # A file or a pipe has no terminal width: do not cut lines.
    width = None if sys.stdout.isatty() else WIDE
    return CliContext(lang, option(argv, "--app"), env, _console(width=width), _console(stderr=True))


def _console(*, width: int | None = None, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged: brackets and colons are not markup."""
    return SafeConsole(width=width, stderr=stderr, markup=False, emoji=False, highlight=False)


def option(argv: list[str], name: str) -> str | None:
    """Read a global option directly from ``argv``. The command tree is built later, after the application has added its
    commands.
    """
    for place, word in enumerate(argv):
        if word == name and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None
