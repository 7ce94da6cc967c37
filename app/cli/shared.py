"""Helpers of Julia's commands: open the application, find ids, format states and dates, check output files."""

import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Annotated, Final, TypeVar
from uuid import UUID

import typer

from app.composition.julia import Julia, julia_of
from batuta import BatutaError
from batuta.cli import CliContext
from batuta.errors import ConfigError
from batuta.reasons import define
from batuta.sql import full_id

NO_FOLDER = define("saida_sem_pasta", "folder {folder} does not exist")
FOLDER_READ_ONLY = define("saida_sem_permissao", "folder {folder} is not writable")
OTHER_FILE = define("saida_outra", "create it, or choose another file")

# Formats in which an operator may write a day or an instant: ISO 8601, or as the Portuguese lists show them.
DAY: Final = ["%Y-%m-%d", "%d/%m/%Y"]
MOMENT: Final = ["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%d/%m/%Y %H:%M"]

T = TypeVar("T")


def ask(ctx: CliContext, act: Callable[[Julia], Awaitable[T]]) -> T:
    """Open the application, run ``act`` to its end and close the application."""
    return ctx.ask(lambda work: act(julia_of(work)))


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
    """Return a state in the operator's language. A state without a text is returned as stored."""
    return "-" if state is None else ctx.texts().get(f"estado.{kind}.{state}", state)


def cell(ctx: CliContext, column: str, value: object) -> str:
    """Format one cell of a list for people: prices, days, hours, periods and states are shown in the operator's
    language.
    """
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


def _require_folder(saida: Path) -> Path:
    """Check that the output file can be written, before any input is read."""
    folder = saida.absolute().parent
    if not folder.is_dir():
        raise ConfigError(problem=NO_FOLDER(folder=folder), next_step=OTHER_FILE())
    if not saida.exists() and not os.access(folder, os.W_OK):
        raise ConfigError(problem=FOLDER_READ_ONLY(folder=folder), next_step=OTHER_FILE())
    return saida


Arquivo = Annotated[Path, typer.Argument(dir_okay=False, writable=True, callback=_require_folder)]
Saida = Annotated[Path, typer.Option("--saida", dir_okay=False, writable=True, callback=_require_folder)]
