"""Helpers for Julia's commands: open the application, find ids, format states and dates, and check output files."""

import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

import typer

from app.composition.julia import Julia, julia_of
from app.contexts.conversas.atendimento import ConversaDesconhecida
from batuta import BatutaError
from batuta.cli import CliContext, current_user
from batuta.errors import ConfigError
from batuta.reasons import define
from batuta.sql import full_id

NO_FOLDER = define("saida_sem_pasta", "folder {folder} does not exist")
FOLDER_READ_ONLY = define("saida_sem_permissao", "folder {folder} is not writable")
OTHER_FILE = define("saida_outra", "create it, or choose another file")

# Formats in which an operator may write a day or an instant: ISO 8601, or the format of the Portuguese lists.
DAY: Final = ["%Y-%m-%d", "%d/%m/%Y"]
MOMENT: Final = ["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%d/%m/%Y %H:%M"]

T = TypeVar("T")


def ask(ctx: CliContext, act: Callable[[Julia], Awaitable[T]]) -> T:
    """Open the application, await ``act``, close the application and return the result of ``act``."""
    return ctx.ask(lambda work: act(julia_of(work)))


async def read_personal(julia: Julia, command: str, reading: Awaitable[T], *, action: str = "read") -> T:
    """Await ``reading`` and return its result. Record the access to personal data in the audit log."""
    found = await reading
    count = len(found) if isinstance(found, Sequence) else 1
    if count:
        await julia.work.access.note(
            actor=current_user(), action=f"access.{action}", subject=f"batuta {command}", count=count
        )
    return found


def write_private(file: Path, text: str, *, encoding: str = "utf-8") -> None:
    """Write a file that only its owner can read. If the file already exists, remove all other users' permissions."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding=encoding, newline="") as out:
        os.fchmod(descriptor, 0o600)
        out.write(text)


async def id_of(julia: Julia, tables: Sequence[str], written: str, error: BatutaError) -> str:
    """Return the id in one of ``tables`` that equals or begins with ``written``.

    Raises ``error`` if no id matches, or AmbiguousId if several do.
    """
    with suppress(ValueError):
        return str(UUID(written))  # a complete id: the service checks whether it exists
    for table in tables:
        if (found := await full_id(julia.work.database, table, written)) is not None:
            return found
    raise error


def word(ctx: CliContext, kind: str, state: str | None) -> str:
    """Return the word that operators see for a stored state. If the text files have no such word, return the state as
    stored.
    """
    return "-" if state is None else ctx.texts().get(f"estado.{kind}.{state}", state)


def cell(ctx: CliContext, column: str, value: object) -> str:
    """Format one table cell for display. Prices, days, periods and states are shown in the operator's language."""
    match column, value:
        case _, None:
            return ""
        case "valor", int() | float():
            return ctx.texts().money(float(value))
        case (("data" | "data_agendamento" | "data_confirmacao"), str() | date()):
            return ctx.texts().day(date.fromisoformat(str(value)[:10]))
        case "periodo", str():
            return word(ctx, "periodo", value.lower())
        case "status", str():
            return word(ctx, "vaga", value)
        case _:
            return str(value)


def format_cell(ctx: CliContext, value: Any, column: str, instants: Collection[str], words: Mapping[str, str]) -> str:
    """Format one value for display. ``instants`` has the names of the columns that contain points in time. ``words``
    maps each column that contains a state to the kind of state.
    """
    if value is None:
        return "-"
    if column in instants:
        return ctx.moment(value)
    return word(ctx, words[column], value) if column in words else str(value)


async def conversation_of(julia: Julia, written: str) -> str:
    return await id_of(julia, ["conversations"], written, ConversaDesconhecida(id=written))


def _require_folder(saida: Path) -> Path:
    """Refuse an output file whose folder does not exist or cannot be written. Commands call this function before they
    read any input.
    """
    folder = saida.absolute().parent
    if not folder.is_dir():
        raise ConfigError(problem=NO_FOLDER(folder=folder), next_step=OTHER_FILE())
    if not saida.exists() and not os.access(folder, os.W_OK):
        raise ConfigError(problem=FOLDER_READ_ONLY(folder=folder), next_step=OTHER_FILE())
    return saida


Arquivo = Annotated[Path, typer.Argument(dir_okay=False, writable=True, callback=_require_folder)]
Saida = Annotated[Path, typer.Option("--saida", dir_okay=False, writable=True, callback=_require_folder)]


def print_rows(
    ctx: CliContext,
    group: str,
    columns: Sequence[str],
    shown: Sequence[Mapping[str, Any]],
    formatted: Callable[[CliContext, str, Any], str],
) -> None:
    """Print rows as a table. ``group`` is the name of a command, whose texts provide the column titles and the message
    for an empty table.
    """
    if not shown:
        ctx.say(ctx.texts()(f"cli.{group}.none"))
        return
    table = ctx.table(f"cli.{group}.column_", columns)
    for each in shown:
        table.add_row(*(formatted(ctx, column, each[column]) for column in columns))
    ctx.out.print(table)
