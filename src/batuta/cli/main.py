"""The command tree. Every error becomes one sentence in the operator's language and an exit code."""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from batuta import __version__
from batuta.cli import controls, database, doctor, guards, health, jobs, queues, roles, timetable, tokens, up, workers
from batuta.cli.context import DONE, FAILED, INTERRUPTED, REFUSED, CliContext, make_cli_context
from batuta.config import reason_of
from batuta.kernel.errors import BatutaError, ConfigError, FileReadOnly, MigrationChanged, SchemaOutOfDate, UnknownApp
from batuta.kernel.nearest import nearest
from batuta.texts import Texts

# Only to show a form: any instant with two digits everywhere does.
_EXAMPLE = datetime(2026, 11, 23, 14, 30)  # noqa: DTZ001 - what people type has no zone
_EXTRA = "Got unexpected extra argument(s) ("
_OF_FILES = {
    " does not exist.": "no_file",
    " is a directory.": "is_folder",
    " is a file.": "is_file",
    " is not readable.": "unreadable",
    " is not writable.": "unwritable",
}
_NO_COMMAND = "No such command '"


def usage_sentence(
    texts: Texts,
    command: Any,
    argv: Sequence[str],
    mistake: typer.TyperException,
    unloaded: BatutaError | None = None,
) -> str:
    """What was wrong and what to type instead. ``unloaded``: why the application's own commands are not there."""
    context = getattr(mistake, "ctx", None)
    path = _path(command, argv) if context is None else context.command_path
    unknown = mistake.message.partition(_NO_COMMAND)[2].partition("'")[0]
    if unknown and context is not None:
        near = nearest(unknown, context.command.list_commands(context))
        if near is None and unloaded is not None and context.parent is None:
            if isinstance(unloaded, UnknownApp) and not unloaded.facts["app"]:
                return texts("cli.unknown_word_here", word=unknown, folder=str(Path.cwd()))
            return texts("cli.unknown_word_unloaded", word=unknown, why=texts.error(unloaded))
        return texts("cli.unknown_word", word=unknown, instead=f"{path} {near or '--help'}")
    return texts("cli.usage", problem=_problem(texts, mistake), help=f"{path} --help")


def _problem(texts: Texts, mistake: typer.TyperException) -> str:
    match type(mistake).__name__:
        case "MissingParameter":
            return _missing(texts, mistake)
        case "BadParameter":
            return _bad(texts, mistake)
        case "NoSuchOption":
            return _no_option(texts, mistake)
        case "BadOptionUsage":
            kind = "wants_value" if "requires" in mistake.message else "takes_no_value"
            return texts(f"cli.mistake.{kind}", name=getattr(mistake, "option_name", "-"))
    if mistake.message.startswith(_EXTRA):
        return texts("cli.mistake.extra", words=mistake.message.removeprefix(_EXTRA).removesuffix(")"))
    if mistake.message == "Missing command.":
        return texts("cli.mistake.no_command")
    return " ".join(mistake.format_message().split()).rstrip(".")


def _missing(texts: Texts, mistake: Any) -> str:
    kind = "missing_option" if mistake.param.param_type_name == "option" else "missing_argument"
    return texts(f"cli.mistake.{kind}", name=mistake.param.get_error_hint())


def _no_option(texts: Texts, mistake: Any) -> str:
    if mistake.ctx is not None and mistake.option_name in _options_of(mistake.ctx.find_root()):
        return texts("cli.mistake.option_first", name=mistake.option_name)
    options = [] if mistake.ctx is None else _options_of(mistake.ctx)
    near = nearest(mistake.option_name, options)
    key = "cli.mistake.no_option" if near is None else "cli.mistake.no_option_near"
    return texts(key, name=mistake.option_name, nearest=near)


def _options_of(context: Any) -> list[str]:
    return [each for param in context.command.params for each in param.opts]


def _bad(texts: Texts, mistake: Any) -> str:
    """A command of ours that refuses a value says the form it takes; the rest the parser found."""
    if mistake.param is None:
        return texts("cli.mistake.form", name=mistake.param_hint, form=mistake.message)
    cause, name = mistake.__cause__, mistake.param.get_error_hint()
    for ending, kind in _OF_FILES.items():
        if mistake.message.endswith(ending):
            return texts(f"cli.mistake.{kind}", name=name, value=mistake.message.removesuffix(ending).split(" ", 1)[-1])
    if not isinstance(cause, ValidationError):
        return texts("cli.mistake.form", name=name, form=mistake.message.rstrip("."))
    found = cause.errors()[0]
    value, described = found["input"], mistake.param.type_descriptor
    if described.choices is not None:
        choices = ", ".join(str(getattr(each, "value", each)) for each in described.choices)
        return texts("cli.mistake.choice", name=name, value=_one(value), choices=choices)
    if described.parameter_info.formats:
        form = _EXAMPLE.strftime(described.parameter_info.formats[0])
        return texts("cli.mistake.form", name=name, form=form)
    return texts("cli.mistake.value", name=name, value=value, why=texts.reason(reason_of(found)))


def _one(value: object) -> object:
    """Of a list of values the parser does not say which was wrong."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _path(command: Any, argv: Sequence[str]) -> str:
    """As far as the words name commands: where a refusal came from that its parser did not see."""
    words = ["batuta"]
    for word in argv:
        if (below := getattr(command, "commands", {}).get(word)) is not None:
            command = below
            words.append(word)
    return " ".join(words)


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    ctx = make_cli_context(argv)
    if (garbled := next((word for word in argv if not _is_text(word)), None)) is not None:
        ctx.say_wrong(ctx.texts()("cli.garbled", word=garbled.encode(errors="replace").decode()))
        return REFUSED
    command = in_words(typer.main.get_command(tree(ctx)), ctx.texts())
    try:
        code = command.main(argv, prog_name="batuta", standalone_mode=False, obj=ctx)
    except typer.TyperException as mistake:
        if type(mistake).__name__ == "NoArgsIsHelpError":  # its message is the help
            ctx.say(mistake.format_message())
        else:
            ctx.say_wrong(usage_sentence(ctx.texts(), command, argv, mistake, ctx.unloaded))
        return REFUSED
    except (ConfigError, SchemaOutOfDate, FileReadOnly, MigrationChanged) as error:
        ctx.complain(error)
        return REFUSED
    except BatutaError as error:
        ctx.complain(error)
        return FAILED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return code if isinstance(code, int) else DONE


def in_words(command: Any, texts: Texts) -> Any:
    """What each option is for, in the reader's language, where the texts say so (``cli.option``)."""
    for option in command.params:
        if said := texts.known(f"cli.option.{option.name}", ""):
            option.help = said
    for below in getattr(command, "commands", {}).values():
        in_words(below, texts)
    return command


def tree(ctx: CliContext) -> typer.Typer:
    texts = ctx.texts()
    cli = typer.Typer(
        name="batuta",
        help=texts("cli.help"),
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    cli.callback()(_options)
    database.add_to(cli, texts)
    doctor.add_to(cli, texts)
    health.add_to(cli, texts)
    tokens.add_to(cli, texts)
    jobs.add_to(cli, texts)
    controls.add_to(cli, texts)
    timetable.add_to(cli, texts)
    queues.add_to(cli, texts)
    guards.add_to(cli, texts)
    workers.add_to(cli, texts)
    up.add_to(cli, texts)
    roles.add_to(cli, texts)
    roles.add_roles_of_app(cli, ctx)
    return cli


def _is_text(word: str) -> bool:
    """Bytes that are not UTF-8 reach us as halves of characters, which no database takes."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


def _options(
    app: Annotated[
        str | None, typer.Option("--app", help="module:object; default: [tool.batuta] app in pyproject.toml")
    ] = None,
    lang: Annotated[str | None, typer.Option("--lang", help="pt-BR | en")] = None,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    """Read before the tree was made (``ctx.make_desk``); here so that they are documented and accepted."""
    if lang not in (None, "pt-BR", "en"):
        raise typer.BadParameter("pt-BR | en", param_hint="--lang")
