"""The command tree and its help. Every error becomes one sentence in the operator's language and an exit code.

The parser's own messages exist only in English, so they are not shown. Instead, the sentence is built from the
exception's class, the parameter that the exception names, and the words that the operator typed.
"""

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer._click import exceptions
from typer._click.exceptions import NoArgsIsHelpError

from batuta import __version__
from batuta.cli.command_line import import_command
from batuta.cli.context import DONE, FAILED, INTERRUPTED, REFUSED, CliContext, as_typed, make_cli_context
from batuta.kernel.errors import BatutaError, ConfigError, FileReadOnly, MigrationChanged, SchemaOutOfDate, UnknownApp
from batuta.kernel.suggestions import nearest
from batuta.texts import Texts

if TYPE_CHECKING:
    from batuta.engine.extension import Command

# Date that shows the expected format in messages. Each part has two digits.
_EXAMPLE = datetime(2026, 11, 23, 14, 30)  # noqa: DTZ001 - typed dates have no zone
WIDEST = 100

# The engine's commands, in the order in which the help lists them. A module is imported when its command is called. The
# entry "" in a group is the command that runs if the operator types only the group's name.
COMMANDS: "Mapping[str, Command]" = {
    "migrate": "batuta.cli.commands.database:migrate",
    "backup": "batuta.cli.commands.database:backup",
    "restore": "batuta.cli.commands.database:restore",
    "sql": "batuta.cli.commands.database:sql",
    "doctor": "batuta.cli.commands.doctor:doctor",
    "health": "batuta.cli.commands.health:health",
    "incidents": "batuta.cli.commands.health:incidents",
    "keys": {"list": "batuta.cli.commands.keys:show", "rotate": "batuta.cli.commands.keys:rotate"},
    "token": {
        "create": "batuta.cli.commands.tokens:create",
        "list": "batuta.cli.commands.tokens:show",
        "rotate": "batuta.cli.commands.tokens:rotate",
        "revoke": "batuta.cli.commands.tokens:revoke",
    },
    "jobs": "batuta.cli.commands.jobs:jobs",
    "run": "batuta.cli.commands.jobs:run",
    "executions": "batuta.cli.commands.jobs:executions",
    "pause": "batuta.cli.commands.controls:pause",
    "resume": "batuta.cli.commands.controls:resume",
    "switch": {
        "list": "batuta.cli.commands.controls:show",
        "on": "batuta.cli.commands.controls:on",
        "off": "batuta.cli.commands.controls:off",
    },
    "circuits": {
        "": "batuta.cli.commands.controls:circuits",
        "reset": "batuta.cli.commands.controls:reset",
        "open": "batuta.cli.commands.controls:open_circuit",
        "probe": "batuta.cli.commands.controls:probe_circuit",
    },
    "limits": "batuta.cli.commands.controls:limits",
    "schedule": {
        "": "batuta.cli.commands.timetable:show",
        "use": "batuta.cli.commands.timetable:use",
        "compare": "batuta.cli.commands.timetable:compare_profiles",
    },
    "schedules": {
        "list": "batuta.cli.commands.schedules:show",
        "create": "batuta.cli.commands.schedules:create",
        "edit": "batuta.cli.commands.schedules:edit",
        "pause": "batuta.cli.commands.schedules:pause",
        "resume": "batuta.cli.commands.schedules:resume",
        "delete": "batuta.cli.commands.schedules:delete",
        "backfill": "batuta.cli.commands.schedules:backfill",
    },
    "batches": {
        "list": "batuta.cli.commands.batches:list_batches",
        "show": "batuta.cli.commands.batches:show",
        "cancel": "batuta.cli.commands.batches:cancel",
        "close": "batuta.cli.commands.batches:close",
    },
    "windows": {
        "list": "batuta.cli.commands.timetable:list_windows",
        "set": "batuta.cli.commands.timetable:set_window",
    },
    "queue": {
        "list": "batuta.cli.commands.queues:list_queues",
        "show": "batuta.cli.commands.queues:show",
        "cancel": "batuta.cli.commands.queues:cancel",
        "retry": "batuta.cli.commands.queues:retry",
        "discard": "batuta.cli.commands.queues:discard",
        "edit": "batuta.cli.commands.queues:edit",
        "rehome": "batuta.cli.commands.queues:rehome",
        "unstick": "batuta.cli.commands.queues:unstick",
    },
    "bulk": {
        "list": "batuta.cli.commands.bulk:list_operations",
        "retry": "batuta.cli.commands.bulk:retry",
        "discard": "batuta.cli.commands.bulk:discard",
        "cancel": "batuta.cli.commands.bulk:cancel",
        "stop": "batuta.cli.commands.bulk:stop",
    },
    "logs": "batuta.cli.commands.logs:logs",
    "workers": {
        "": "batuta.cli.commands.workers:workers",
        "drain": "batuta.cli.commands.workers:drain",
        "restart": "batuta.cli.commands.workers:restart",
        "stack": "batuta.cli.commands.workers:stack",
    },
    "up": "batuta.cli.up:up",
}
ROLES = ("api", "scheduler", "worker")


def translate(command: Any, texts: Texts, path: str = "") -> Any:
    """Set the help texts and choices of every command in the tree to one language.

    A parameter uses the text ``cli.option.<command>_<parameter>``. Without that text an option uses
    ``cli.option.<option>``, which all commands share; an argument has no shared text, because its meaning differs
    between commands. ``cli.choices.<group>_<command>_<parameter>`` names a group of texts with a translated word for
    each value of the parameter. The operator may type that word instead of the value.
    """
    for param in command.params:
        shared = texts.get(f"cli.option.{param.name}", "") if param.param_type_name == "option" else ""
        param.help = texts.get(f"cli.option.{command.name}_{param.name}", shared or param.help or "")
        words = texts.group(group) if (group := texts.get(f"cli.choices.{path}{param.name}", "")) else {}
        param.words = {value: as_typed(word) for value, word in words.items()}
        if words:
            param.process_value = partial(_process_word, param.process_value, param.words)
    command.format_help = partial(_write_help, command, texts)
    for name, below in getattr(command, "commands", {}).items():
        translate(below, texts, f"{path}{name}_")
    return command


def _process_word(process: Callable[[Any, Any], Any], words: Mapping[str, str], context: Any, given: Any) -> Any:
    """Replace any translated words that the operator typed with the parameter values they stand for, then process the
    parameter as usual.
    """
    values = {word: value for value, word in reversed([*words.items()])}

    def value_of(word: Any) -> Any:
        return values.get(as_typed(word), word) if isinstance(word, str) else word

    return process(context, [value_of(each) for each in given] if isinstance(given, list | tuple) else value_of(given))


def _choices(param: Any) -> list[str]:
    """Return the words that an operator may type for a parameter."""
    values = [str(getattr(each, "value", each)) for each in param.type_descriptor.choices]
    return [param.words.get(value, value) for value in values]


def _write_help(command: Any, texts: Texts, context: Any, formatter: Any) -> None:
    params = [each for each in command.get_params(context) if not each.hidden]
    arguments = [each for each in params if each.param_type_name == "argument"]
    options = [each for each in params if each.param_type_name == "option"]
    below = [(name, each) for name, each in getattr(command, "commands", {}).items() if not each.hidden]
    usage = [texts("cli.usage_options"), *(_argument(texts, each) for each in arguments)]
    usage += [texts("cli.usage_command")] if below else []
    formatter.width = max(formatter.width, WIDEST)
    formatter.write_usage(context.command_path, " ".join(usage), prefix=f"{texts('cli.usage_word')}: ")
    command.format_help_text(context, formatter)
    sections = (
        (
            "cli.arguments_word",
            [
                (_argument(texts, each), _parameter_help(texts, each))
                for each in arguments
                if _parameter_help(texts, each)
            ],
        ),
        ("cli.options_word", [(_option(texts, each), _parameter_help(texts, each)) for each in options]),
        ("cli.commands_word", [(name, each.help or "") for name, each in below]),
    )
    for title, rows in sections:
        if rows:
            with formatter.section(texts(title)):
                formatter.write_dl(rows)


def _argument(texts: Texts, param: Any) -> str:
    name = _argument_name(texts, param) + ("..." if param.nargs != 1 else "")
    return name if param.required else f"[{name}]"


def _argument_name(texts: Texts, param: Any) -> str:
    return texts.get(f"cli.argument.{param.name}", str(param.name).upper())


def _option(texts: Texts, param: Any) -> str:
    names = " / ".join(", ".join(sorted(each, key=len)) for each in (param.opts, param.secondary_opts) if each)
    return names if param.is_flag else f"{names} {_form(texts, param)}"


def _form(texts: Texts, param: Any) -> str:
    if param.metavar is not None:
        return str(param.metavar)
    described = param.type_descriptor
    if described.choices is not None:
        return "|".join(_choices(param))
    if described.is_datetime:
        return texts(f"cli.form_{_kind_of_instant(described.parameter_info.formats)}")
    if described.is_path:
        return texts("cli.form_path")
    return texts("cli.form_number" if described.annotation in (int, float) else "cli.form_text")


def _kind_of_instant(formats: Sequence[str]) -> str:
    has_day, has_time = "%d" in formats[0], any("%H" in each for each in formats)
    return "moment" if has_day and has_time else "day" if has_day else "time"


def _parameter_help(texts: Texts, param: Any) -> str:
    if param.name == "help":
        return texts("cli.help_option")
    extra = []
    if param.required and param.param_type_name == "option":
        extra.append(texts("cli.required"))
    if param.default not in (None, "", "-") and not isinstance(param.default, bool) and not callable(param.default):
        extra.append(texts("cli.default", value=_default_word(param)))
    if param.min is not None and param.max is not None:
        extra.append(texts("cli.between", least=param.min, most=param.max))
    elif param.min is not None:
        extra.append(texts("cli.at_least", least=param.min))
    return "  ".join(each for each in (param.help or "", f"[{'; '.join(extra)}]" if extra else "") if each)


def _default_word(param: Any) -> object:
    value = getattr(param.default, "value", param.default)
    return param.words.get(value, value)


def usage_sentence(
    texts: Texts, command: Any, argv: Sequence[str], mistake: typer.TyperException, unloaded: BatutaError | None = None
) -> str:
    """Describe a usage error and what to type instead. ``unloaded`` is the error that prevented the application from
    loading, or None. If it is set, the application's own commands are unknown.
    """
    context = getattr(mistake, "ctx", None)
    path, called, rest = _split(command, argv)
    path = path if context is None else context.command_path
    unknown = _unknown_command(mistake, context, rest)
    if unknown is None or context is None:
        return texts("cli.usage", problem=_problem(texts, mistake, called, rest), help=f"{path} --help")
    near = nearest(unknown, context.command.list_commands(context))
    if near is None and unloaded is not None and context.parent is None:
        if isinstance(unloaded, UnknownApp) and not unloaded.facts["app"]:
            return texts("cli.unknown_word_here", word=unknown, folder=str(Path.cwd()))
        return texts("cli.unknown_word_unloaded", word=unknown, why=texts.error(unloaded))
    return texts("cli.unknown_word", word=unknown, instead=f"{path} {near or '--help'}")


def _unknown_command(mistake: typer.TyperException, context: Any, rest: Sequence[str]) -> str | None:
    """Return the typed word that is not a command in the group, or None if the usage error is of another kind."""
    if type(mistake) is not exceptions.UsageError or context is None or not hasattr(context.command, "commands"):
        return None
    left = context.command.make_parser(context).parse_args(args=list(rest))[1]
    return left[0] if left else None


def _problem(texts: Texts, mistake: typer.TyperException, called: Any, rest: Sequence[str]) -> str:
    match mistake:
        case exceptions.MissingParameter():
            return _missing(texts, mistake)
        case exceptions.BadParameter():
            return _describe_bad_value(texts, mistake, rest)
        case exceptions.NoSuchOption():
            return _no_option(texts, mistake)
        case exceptions.BadOptionUsage(option_name=name):
            options = [each for each in called.params if each.param_type_name == "option"]
            is_flag = any(name in (*each.opts, *each.secondary_opts) and each.is_flag for each in options)
            return texts(f"cli.mistake.{'takes_no_value' if is_flag else 'wants_value'}", name=name)
        case exceptions.UsageError(ctx=context) if hasattr(getattr(context, "command", None), "commands"):
            return texts("cli.mistake.no_command")
        case exceptions.UsageError(ctx=context) if context is not None:
            return texts("cli.mistake.extra", words=" ".join(_extra(context, rest)))
        case _:
            return " ".join(mistake.format_message().split()).rstrip(".")


def _extra(context: Any, rest: Sequence[str]) -> Sequence[str]:
    """Return the typed words that no argument of the command accepts."""
    again = context.command.make_context(
        context.info_name, list(rest), parent=context.parent, resilient_parsing=True, allow_extra_args=True
    )
    return list(again.args)


def _missing(texts: Texts, mistake: Any) -> str:
    kind = "missing_option" if mistake.param.param_type_name == "option" else "missing_argument"
    return texts(f"cli.mistake.{kind}", name=_parameter_name(texts, mistake.param))


def _parameter_name(texts: Texts, param: Any) -> str:
    return str(param.opts[0]) if param.param_type_name == "option" else _argument_name(texts, param)


def _no_option(texts: Texts, mistake: Any) -> str:
    if mistake.ctx is not None and mistake.option_name in _options_of(mistake.ctx.find_root()):
        return texts("cli.mistake.option_first", name=mistake.option_name)
    options = [] if mistake.ctx is None else _options_of(mistake.ctx)
    near = nearest(mistake.option_name, options)
    from batuta.config import EngineSettings, names

    setting = mistake.option_name.removeprefix("--").replace("-", "_").upper()
    if setting in names(EngineSettings):
        return texts("cli.mistake.no_option_setting", name=mistake.option_name, setting=setting)
    key = "cli.mistake.no_option" if near is None else "cli.mistake.no_option_near"
    return texts(key, name=mistake.option_name, nearest=near)


def _options_of(context: Any) -> list[str]:
    return [each for param in context.command.params for each in param.opts]


def _describe_bad_value(texts: Texts, mistake: Any, rest: Sequence[str]) -> str:
    """Return a sentence that says why a parameter's value was refused. ``mistake`` is the exception that a command or
    the parser raised. A command's exception contains the expected format, or the key of a text that describes this
    format. The parser's exception has a validation error as its cause.
    """
    if mistake.param is None:
        return texts("cli.mistake.form", name=mistake.param_hint, form=texts.get(mistake.message, mistake.message))
    from pydantic import ValidationError

    from batuta.config import reason_of

    cause, described = mistake.__cause__, mistake.param.type_descriptor
    name = _parameter_name(texts, mistake.param)
    if described.is_path and not isinstance(cause, ValidationError):
        value = _parse_value(mistake, rest)
        return texts(f"cli.mistake.{_wrong_with_file(value, described.parameter_info)}", name=name, value=value)
    if not isinstance(cause, ValidationError):
        return texts("cli.mistake.form", name=name, form=mistake.message.rstrip("."))
    found = cause.errors()[0]
    value = found["input"]
    if described.choices is not None:
        choices = ", ".join(_choices(mistake.param))
        return texts("cli.mistake.choice", name=name, value=_join_values(value), choices=choices)
    if described.parameter_info.formats:
        examples = {"day": texts.day(_EXAMPLE), "moment": texts.minute(_EXAMPLE), "time": f"{_EXAMPLE:%H:%M}"}
        form = examples[_kind_of_instant(described.parameter_info.formats)]
        return texts("cli.mistake.form", name=name, form=form)
    return texts("cli.mistake.value", name=name, value=value, why=texts.reason(reason_of(found)))


def _parse_value(mistake: Any, rest: Sequence[str]) -> str:
    parsed, *_ = mistake.ctx.command.make_parser(mistake.ctx).parse_args(args=list(rest))
    value = parsed.get(mistake.param.name)
    return str(value[-1] if isinstance(value, list | tuple) and value else value)


def _wrong_with_file(value: str, wanted: Any) -> str:
    file = Path(value)
    if not file.exists():
        return "no_file"
    if file.is_dir() and not wanted.dir_okay:
        return "is_folder"
    if file.is_file() and not wanted.file_okay:
        return "is_file"
    return "unwritable" if os.access(file, os.R_OK) else "unreadable"


def _join_values(value: object) -> object:
    """Join all values of a repeated option for an error message, because the parser does not report which value is
    wrong.
    """
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _split(command: Any, argv: Sequence[str]) -> tuple[str, Any, list[str]]:
    """Find the command in the words that the operator typed. Return the full name of the command, the command itself,
    and the remaining words.
    """
    names, rest = ["batuta"], list(argv)
    for place, word in enumerate(argv):
        if (below := getattr(command, "commands", {}).get(word)) is not None:
            command = below
            names.append(word)
            rest = list(argv[place + 1 :])
    return " ".join(names), command, rest


def main(argv: list[str] | None = None) -> int:
    """Run the ``batuta`` command and return its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    ctx = make_cli_context(argv)
    if (garbled := next((word for word in argv if not _is_text(word)), None)) is not None:
        ctx.say_wrong(ctx.texts()("cli.garbled", word=garbled.encode(errors="replace").decode()))
        return REFUSED
    command = translate(typer.main.get_command(tree_for(ctx, argv)), ctx.texts())
    try:
        code = command.main(argv, prog_name="batuta", standalone_mode=False, obj=ctx)
    except typer.TyperException as mistake:
        if isinstance(mistake, NoArgsIsHelpError):  # the exception's message is the help text
            ctx.say(mistake.format_message())
        else:
            ctx.say_wrong(usage_sentence(ctx.texts(), command, argv, mistake, ctx.unloaded))
        return REFUSED
    except (BatutaError, KeyboardInterrupt, typer.Abort) as error:
        return report(ctx, error)
    return code if isinstance(code, int) else DONE


def report(ctx: CliContext, error: BatutaError | KeyboardInterrupt | typer.Abort) -> int:
    """Tell the operator why a command ended, and return the exit code."""
    if not isinstance(error, BatutaError):
        return INTERRUPTED
    ctx.complain(error)
    return REFUSED if isinstance(error, ConfigError | SchemaOutOfDate | FileReadOnly | MigrationChanged) else FAILED


def tree(ctx: CliContext) -> typer.Typer:
    return _tree(ctx, {name: _load(ctx, name) for name in _names(ctx)})


def tree_for(ctx: CliContext, argv: Sequence[str]) -> typer.Typer:
    """Return a tree that contains only the command that the operator typed. If the operator typed no known command,
    return a tree for displaying help. That tree contains the names of all commands but imports none of them, because
    the imports would take longer than most commands run.
    """
    named, names = _find_command(argv), _names(ctx)
    if named is None or named not in names:
        return _tree(ctx, dict.fromkeys(names, _do_nothing))
    return _tree(ctx, {named: _load(ctx, named)})


def _tree(ctx: CliContext, commands: Mapping[str, Any]) -> typer.Typer:
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
    for name, command in commands.items():
        _add_command(cli, texts, name, command)
    return cli


def _do_nothing() -> None:
    """Placeholder that stands for a command in the help, so that building the help does not import the command."""


def _names(ctx: CliContext) -> Collection[str]:
    own = ctx.command_line()
    return dict.fromkeys([*COMMANDS, *ROLES, *own.roles, *own.commands])


def _load(ctx: CliContext, name: str) -> Any:
    """Import a command. If a role and a command group have the same name, that name without a subcommand runs the
    role.
    """
    own = ctx.command_line()
    command = import_command({**COMMANDS, **own.commands}.get(name, {}))
    if (name not in ROLES and name not in own.roles) or not isinstance(command, Mapping):
        return command
    from batuta.cli.roles import role_command

    return {"": role_command(name), **command} if command else role_command(name)


def _find_command(argv: Sequence[str]) -> str | None:
    """Return the first word that the operator typed, ignoring ``--app`` and ``--lang`` and their values. Return None if
    there is no such word.
    """
    words = iter(argv)
    for word in words:
        if word in ("--app", "--lang"):
            next(words, None)
        elif word != "--" and not word.startswith(("--app=", "--lang=")):
            return word
    return None


def _add_command(cli: typer.Typer, texts: Texts, name: str, command: Any) -> None:
    help = texts(f"cli.{name}.help")
    if not isinstance(command, Mapping):
        cli.command(name, help=help)(command)
        return
    group = typer.Typer(help=help, no_args_is_help="" not in command, invoke_without_command="" in command)
    for word, each in command.items():
        if word:
            group.command(word, help=texts(f"cli.{name}.{word}_help"))(each)
        else:
            group.callback()(each)
    cli.add_typer(group, name=name)


def _is_text(word: str) -> bool:
    """Return whether the word is valid UTF-8. Python passes other bytes as surrogates, which no database accepts."""
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
    """Declare the global options for the help and the parser, and refuse an unknown language. The options take effect
    earlier: ``make_cli_context`` reads their values before the command tree is built.
    """
    if lang not in (None, "pt-BR", "en"):
        raise typer.BadParameter("cli.form_language", param_hint="--lang")
