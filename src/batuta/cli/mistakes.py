"""What was typed wrong, in the operator's language, with the word to type instead or the help that says it."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import typer
from pydantic import ValidationError

from batuta.config import reason_of
from batuta.kernel.errors import BatutaError, UnknownApp
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
    options = [] if mistake.ctx is None else [each for param in mistake.ctx.command.params for each in param.opts]
    near = nearest(mistake.option_name, options)
    key = "cli.mistake.no_option" if near is None else "cli.mistake.no_option_near"
    return texts(key, name=mistake.option_name, nearest=near)


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
