"""Shared by Julia's commands: the open application, ids, and the file that a command writes."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar
from uuid import UUID

import typer

from app.composition.julia import Julia, julia_of
from batuta.cli.context import CliContext, wait_for
from batuta.kernel.errors import BatutaError

T = TypeVar("T")


def ask(ctx: CliContext, act: Callable[[Julia], Awaitable[T]]) -> T:
    """Open the application, run ``act`` to its end and close the application."""
    return wait_for(_ask(julia_of(ctx.work()), act))


async def _ask(julia: Julia, act: Callable[[Julia], Awaitable[T]]) -> T:
    async with julia.work:
        return await act(julia)


def uuid_or(written: str, error: BatutaError) -> str:
    """The id as the database writes it; raises ``error`` if ``written`` is not an id."""
    try:
        return str(UUID(written))
    except ValueError:
        raise error from None


def _in_a_folder(saida: Path) -> Path:
    """Whether the file can be written is known before anything is read."""
    folder = saida.absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"Folder '{folder}' does not exist.")
    if not saida.exists() and not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"Folder '{folder}' is not writable.")
    return saida


Saida = Annotated[Path, typer.Option("--saida", dir_okay=False, writable=True, callback=_in_a_folder)]
