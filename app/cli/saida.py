"""``--saida``: the file a command writes. Whether it can be written is known before anything is read."""

import os
from pathlib import Path
from typing import Annotated

import typer


def _in_a_folder(saida: Path) -> Path:
    folder = saida.absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"Folder '{folder}' does not exist.")
    if not saida.exists() and not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"Folder '{folder}' is not writable.")
    return saida


Saida = Annotated[Path, typer.Option("--saida", dir_okay=False, writable=True, callback=_in_a_folder)]
