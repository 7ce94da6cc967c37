"""The command tree. Every error becomes one sentence in the operator's language and an exit code."""

import sys
from typing import Annotated

import typer
from typer._click.exceptions import NoArgsIsHelpError

from batuta import __version__
from batuta.cli import controls, database, doctor, guards, health, jobs, queues, roles, timetable, tokens, up, workers
from batuta.cli.context import DONE, FAILED, INTERRUPTED, REFUSED, CliContext, make_cli_context
from batuta.cli.usage import translate, usage_sentence
from batuta.kernel.errors import BatutaError, ConfigError, FileReadOnly, MigrationChanged, SchemaOutOfDate


def main(argv: list[str] | None = None) -> int:
    """Run the ``batuta`` command and return its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    ctx = make_cli_context(argv)
    if (garbled := next((word for word in argv if not _is_text(word)), None)) is not None:
        ctx.say_wrong(ctx.texts()("cli.garbled", word=garbled.encode(errors="replace").decode()))
        return REFUSED
    command = translate(typer.main.get_command(tree(ctx)), ctx.texts())
    try:
        code = command.main(argv, prog_name="batuta", standalone_mode=False, obj=ctx)
    except typer.TyperException as mistake:
        if isinstance(mistake, NoArgsIsHelpError):  # its message is the help
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


def tree(ctx: CliContext) -> typer.Typer:
    ctx.load()
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
