"""Puts the command tree together, and turns every way of going wrong into one sentence and an exit code."""

import sys
from typing import Annotated, Any

import typer

from batuta import __version__
from batuta.cli import (
    backup,
    controls,
    doctor,
    guards,
    health,
    incidents,
    jobs,
    queues,
    roles,
    schema,
    timetable,
    tokens,
    up,
    workers,
)
from batuta.cli.desk import DONE, FAILED, INTERRUPTED, REFUSED, Desk, make_desk
from batuta.cli.mistakes import usage_sentence
from batuta.kernel.errors import BatutaError, ConfigError, FileReadOnly, MigrationChanged, SchemaOutOfDate
from batuta.texts import Texts


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    desk = make_desk(argv)
    if (garbled := next((word for word in argv if not _is_text(word)), None)) is not None:
        desk.say_wrong(desk.texts()("cli.garbled", word=garbled.encode(errors="replace").decode()))
        return REFUSED
    command = in_words(typer.main.get_command(tree(desk)), desk.texts())
    try:
        code = command.main(argv, prog_name="batuta", standalone_mode=False, obj=desk)
    except typer.TyperException as mistake:
        if type(mistake).__name__ == "NoArgsIsHelpError":  # its message is the help
            desk.say(mistake.format_message())
        else:
            desk.say_wrong(usage_sentence(desk.texts(), command, argv, mistake, desk.unloaded))
        return REFUSED
    except (ConfigError, SchemaOutOfDate, FileReadOnly, MigrationChanged) as error:
        desk.complain(error)
        return REFUSED
    except BatutaError as error:
        desk.complain(error)
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


def tree(desk: Desk) -> typer.Typer:
    texts = desk.texts()
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
    schema.add_to(cli, texts)
    backup.add_to(cli, texts)
    doctor.add_to(cli, texts)
    health.add_to(cli, texts)
    incidents.add_to(cli, texts)
    tokens.add_to(cli, texts)
    jobs.add_to(cli, texts)
    controls.add_to(cli, texts)
    timetable.add_to(cli, texts)
    queues.add_to(cli, texts)
    guards.add_to(cli, texts)
    workers.add_to(cli, texts)
    up.add_to(cli, texts)
    roles.add_to(cli, texts)
    roles.add_roles_of_app(cli, desk)
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
    """Read before the tree was made (``desk.make_desk``); here so that they are documented and accepted."""
    if lang not in (None, "pt-BR", "en"):
        raise typer.BadParameter("pt-BR | en", param_hint="--lang")
