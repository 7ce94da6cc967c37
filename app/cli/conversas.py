"""``batuta conversas ler | duvidas | decidir``."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from app.contexts.leitura_conversas.api import Leitura, ler
from batuta.cli import REFUSED, JsonFlag, cli_context


def ler_texto(
    context: typer.Context,
    texto: Annotated[str | None, typer.Argument(metavar="TEXTO")] = None,
    arquivo: Annotated[Path | None, typer.Option("--arquivo", exists=True, dir_okay=False, readable=True)] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    if (texto is None) == (arquivo is None):
        ctx.say_wrong(ctx.texts()("cli.conversas.which"))
        raise typer.Exit(REFUSED)
    for each in [texto] if texto is not None else _lines(arquivo):
        document = _in_words(ler(each or ""))
        # One object per line, so that another program reads the answer to a file line by line.
        ctx.say(json.dumps(document, ensure_ascii=False) if as_json else ctx.texts()("cli.conversas.read", **document))


def _lines(file: Path | None) -> Iterator[str]:
    assert file is not None
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            yield line.rstrip("\r\n")


def _in_words(leitura: Leitura) -> dict[str, Any]:
    return {
        "classe": leitura.classe.value,
        "opt_out": leitura.opt_out.value,
        "confianca": leitura.confianca,
        "regra": leitura.regra,
        "trechos": list(leitura.trechos),
    }


COMMANDS: dict[str, Callable[..., None]] = {"ler": ler_texto}
