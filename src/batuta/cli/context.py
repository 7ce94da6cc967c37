"""Code that all commands share: choosing the language, loading the application that ``--app`` names, and printing
results.
"""

import gc
import importlib
import json
import os
import sys
import tomllib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from batuta.cli.command_line import CommandLine
from batuta.environment import ENV_FILE, environment, in_file, system_language
from batuta.kernel.errors import BatutaError, UnknownApp
from batuta.kernel.reasons import Reason
from batuta.kernel.values import dataclass
from batuta.texts import LANGUAGES, Language, Texts, fold

# Each command imports the modules it uses, because imports take most of the time of a short command.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from batuta.config import EngineSettings
    from batuta.engine.batuta import Batuta

# Exit codes of every command; docs/reference.md lists them too.
DONE = 0
FAILED = 1  # the command ran, but found a problem or failed
REFUSED = 2  # the command did not run: the command line or the configuration is wrong
INTERRUPTED = 130

T = TypeVar("T")

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]


@dataclass(slots=True)
class CliContext:
    """The state of one ``batuta`` invocation: application, language and output. ``lang`` is the value of ``--lang``, or
    None if the operator did not pass that option.
    """

    lang: Language | None
    app_name: str | None
    env: Mapping[str, str]
    _out: "Console | None" = field(default=None, init=False)
    _err: "Console | None" = field(default=None, init=False)
    _work: "Batuta | None" = field(default=None, init=False)
    _catalogue: "Batuta | None" = field(default=None, init=False)
    _command_line: CommandLine | None = field(default=None, init=False)
    _texts: Texts | None = field(default=None, init=False)
    unloaded: BatutaError | None = field(default=None, init=False)
    """The error that prevented the application from loading; None if the application was loaded."""

    @property
    def out(self) -> "Console":
        if self._out is None:
            from batuta.cli.terminal import open_console

            self._out = open_console()
        return self._out

    @property
    def err(self) -> "Console":
        if self._err is None:
            from batuta.cli.terminal import open_console

            self._err = open_console(stderr=True)
        return self._err

    def work(self) -> "Batuta":
        """Return the application that ``--app`` names, with all its services. The first call imports it."""
        if self.unloaded is not None:
            raise self.unloaded  # a second import would repeat the declarations and hide this error
        if self._work is None:
            self._work = load_app(self._app())
            resume_collection()
        return self._work

    def catalogue(self) -> "Batuta":
        """Return the catalogue: an application object with all jobs, but possibly without services. It loads faster
        than the complete application.
        """
        if self._catalogue is None:
            build = self.command_line().catalogue
            self._catalogue = self.work() if build is None else build()
            resume_collection()
        return self._catalogue

    def command_line(self) -> CommandLine:
        """Return the commands, roles and texts that the application adds. If the application cannot be loaded, return
        an empty object and keep the error in ``unloaded``. The error is raised when a command needs the application.
        """
        if self._command_line is None:
            try:
                self._command_line = self._find_command_line()
            except BatutaError as error:
                self.unloaded, self._command_line = error, CommandLine()
        return self._command_line

    def _find_command_line(self) -> CommandLine:
        module, _ = import_app(self._app())
        if isinstance(found := getattr(module, "command_line", None), CommandLine):
            return found
        extension = self.work().extension
        roles = [role.name for role in extension.roles]
        return CommandLine(commands=extension.commands, roles=roles, texts=extension.texts)

    def _app(self) -> str:
        return self.app_name or default_app(Path.cwd())

    @property
    def language(self) -> Language:
        if self.lang is not None:
            return self.lang
        if (work := self._work or self._catalogue) is not None:
            return work.settings.batuta_lang
        return language_here(self.env, None if self._command_line is None else self._command_line.language)

    def settings(self) -> "EngineSettings":
        return self._pick_work().settings

    def _pick_work(self) -> "Batuta":
        """Return an application object to read settings from: the complete application or the catalogue if either is
        already loaded. Otherwise load the complete application.
        """
        return self._work or self._catalogue or self.work()

    def texts(self) -> Texts:
        if self._work is not None:
            folders = self._work.extension.texts
        else:
            folders = () if self._command_line is None else self._command_line.texts
        wanted = (self.language, tuple(folders))
        if self._texts is None or self._texts.source != wanted:
            self._texts = Texts(*wanted)
        return self._texts

    def show(self, document: Mapping[str, Any], as_json: bool, readable: Callable[[], None]) -> None:
        """Print ``document`` as JSON if ``as_json`` is true; otherwise call ``readable``, which prints the same content
        in readable form.
        """
        if as_json:
            self.print_json(document)
        else:
            readable()

    def print_json(self, document: object) -> None:
        from batuta.kernel.storage.storable import CONTROLS

        text = json.dumps(self.texts().render(document), ensure_ascii=False, default=str, indent=2)
        # Control characters are escaped instead of replaced, so that programs get the stored text.
        self.out.out(text.translate({code: f"\\u{code:04x}" for code in CONTROLS if code >= 0x7F}))

    def say(self, text: str) -> None:
        """Print text without wrapping it; the terminal breaks long lines."""
        self.out.print(text, soft_wrap=True)

    def say_wrong(self, sentence: str) -> None:
        self.err.print(f"batuta: {sentence}", style="red", soft_wrap=True)

    def complain(self, error: BatutaError) -> None:
        self.say_wrong(self.texts().error(error))

    def ask(self, act: "Callable[[Batuta], Awaitable[T]]") -> T:
        """Open the application, run ``act``, close the application, and return the result of ``act``."""
        return wait_for(self._ask(act))

    async def _ask(self, act: "Callable[[Batuta], Awaitable[T]]") -> T:
        async with self.work() as work:
            return await act(work)

    def table(self, headings: str, columns: Iterable[str]) -> "Table":
        """Return a table without borders. The heading of each column is the translated text whose key is ``headings``
        followed by the column name.
        """
        from rich.table import Table

        texts = self.texts()
        return Table(*(texts(f"{headings}{column}") for column in columns), box=None, pad_edge=False)

    def print_table(self, table: "Table", none: str) -> None:
        """Print the table. If it has no rows, print the text with the key ``none`` instead."""
        if table.row_count:
            self.out.print(table)
        else:
            self.say(self.texts()(none))

    def iso(self, instant: datetime | None) -> str | None:
        """Format an instant for JSON, to the second, in the application's time zone."""
        return None if instant is None else instant.astimezone(self._pick_work().zone).isoformat(timespec="seconds")

    def local(self, instant: datetime) -> str:
        """Format an instant in the application's time zone and the operator's language."""
        return self.texts().minute(instant.astimezone(self._pick_work().zone))

    def moment(self, written: str | None) -> str:
        """Parse an ISO timestamp, and format it in the application's time zone and the operator's language. Return an
        empty string for None.
        """
        return self.local(datetime.fromisoformat(written)) if written else ""


def cli_context(context: typer.Context) -> CliContext:
    """Return the CliContext stored in the command's typer context."""
    ctx: CliContext = context.obj
    return ctx


def resume_collection() -> None:
    """Re-enable garbage collection, which ``batuta.__main__`` disabled while the application was loading."""
    if not gc.isenabled():
        gc.freeze()  # later collections skip the objects that exist now
        gc.enable()


def wait_for(running: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion and return its result. If it fails, the caller reports the error, so log lines from
    asyncio and asyncpg about the same error are dropped.
    """
    import asyncio
    import logging

    for name in ("asyncio", "asyncpg"):
        if not (logger := logging.getLogger(name)).handlers:
            logger.addHandler(logging.NullHandler())
    resume_collection()
    return asyncio.run(_interruptible(running))


async def _interruptible(running: Coroutine[Any, Any, T]) -> T:
    try:
        return await running
    except BatutaError:
        import asyncio

        task = asyncio.current_task()
        # the operator stopped the command with Ctrl-C, which is not a failure
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        raise


def as_typed(word: str) -> str:
    """Return a word in the form in which operators type it on the command line: in lower case, without accents, with
    hyphens instead of spaces.
    """
    return fold(word).replace(" ", "-").replace("_", "-")


def current_user() -> str:
    """Return the name of the user who runs the command, or ``uid:N`` in a container where the user has no name."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid:{os.getuid()}"


def load_app(name: str) -> "Batuta":
    """Import the Batuta object at ``module:object``. The import may read the configuration, and may therefore raise
    configuration errors.
    """
    from batuta.engine.batuta import Batuta

    module, attribute = import_app(name)
    try:
        found = getattr(module, attribute)
    except AttributeError:
        raise UnknownApp(
            app=name, why=Reason("app_object", "{module} has no {object}", module=module.__name__, object=attribute)
        ) from None
    if not isinstance(found, Batuta):
        raise UnknownApp(
            app=name, why=Reason("app_type", "{object} is a {type}", object=attribute, type=type(found).__name__)
        )
    return found


def import_app(name: str) -> tuple[ModuleType, str]:
    """Import the module named in ``module:object``. Return the module and the name of the object."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise UnknownApp(app=name, why=Reason("app_colon", "a colon between the module and the object is missing"))
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name), attribute
    except ModuleNotFoundError as missing:
        raise UnknownApp(
            app=name, why=Reason("app_module", "no module is called {module}", module=missing.name)
        ) from None


def default_app(start: Path) -> str:
    """Return the setting ``[tool.batuta] app`` from the pyproject.toml in the folder ``start`` or, if that file does
    not set it, in the nearest folder above.
    """
    if (app := _project_option(start, "app")) is None:
        raise UnknownApp(
            app="", why=Reason("app_none", "no pyproject.toml in this folder or above sets [tool.batuta] app")
        )
    return app


def language_here(env: Mapping[str, str], of_the_app: Language | None = None) -> Language:
    """Return the language to use before an application is loaded: BATUTA_LANG, else the application's language, else
    ``[tool.batuta] language``, else the system's language.
    """
    try:
        own = env.get("BATUTA_LANG") or in_file(ENV_FILE).get("BATUTA_LANG")
        own = own or of_the_app or _project_option(Path.cwd(), "language")
    except BatutaError:  # the command that loads the application reports the invalid file
        own = of_the_app
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
    return CliContext(find_language(option(argv, "--lang")), option(argv, "--app"), environment())


def option(argv: list[str], name: str) -> str | None:
    """Read a global option directly from ``argv``, because the command tree is built later, after the application has
    added its commands.
    """
    for place, word in enumerate(argv):
        if word == name and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None
