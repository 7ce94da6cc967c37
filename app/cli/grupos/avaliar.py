"""``batuta grupos avaliar``: read labelled or unlabelled messages with the rules."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.shared import Saida, write_private
from app.composition.julia import julia_of
from app.contexts.esteira.ensaio import destino
from app.contexts.leitura_grupos.api import heuristica, ler
from app.contexts.leitura_grupos.documento import documento
from app.contexts.leitura_grupos.leitor import SAO_PAULO
from app.contexts.nomes.api import Nomes
from app.contexts.nomes.canonicos import NomesErrados, examinados, nomes_conhecidos
from app.contexts.vagas.api import Limiares
from batuta.cli import REFUSED, CliContext, JsonFlag, cli_context

_NEEDED = ("id", "texto", "enviado_em")


class BadInput(Exception):
    """An error in the input file. Its message is shown to the operator."""


def avaliar(
    context: typer.Context,
    arquivo: Annotated[Path, typer.Argument(dir_okay=False, exists=True, readable=True)],
    saida: Saida,
    canonicos: Annotated[Path | None, typer.Option("--canonicos", dir_okay=False, exists=True)] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    try:
        known = nomes_conhecidos({} if canonicos is None else nomes_de(ctx, canonicos))
        limits = julia_of(ctx.work()).groups.limiares
        read = [_lida(ctx, row, known, limits) for row in _rows(ctx, arquivo)]
    except BadInput as wrong:
        ctx.say_wrong(str(wrong))
        raise typer.Exit(REFUSED) from wrong
    write_private(saida, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in read))
    offers = [each for each in read if each["eh_oferta"]]
    counts = {
        "mensagens": len(read),
        "ofertas": len(offers),
        "vagas": sum(len(each["vagas"]) for each in offers),
        "saida": str(saida),
    }
    ctx.show(counts, as_json, lambda: ctx.say(ctx.texts()("cli.grupos.evaluated", **counts)))


def nomes_de(ctx: CliContext, file: Path) -> Mapping[str, Any]:
    """Load the names of a customer's hospitals and specialities from a file. If an entry is malformed, raise BadInput
    with a message that identifies the entry.
    """
    try:
        return examinados(json.loads(file.read_text(encoding="utf-8-sig")))
    except NomesErrados as wrong:
        why = ctx.texts()(f"cli.grupos.names_{wrong.facts['motivo']}", onde=str(wrong.facts["onde"]))
    except (ValueError, RecursionError):
        why = ctx.texts()("cli.grupos.names_json")
    raise BadInput(ctx.texts()("cli.grupos.not_canonicos", file=str(file), why=why))


def _rows(ctx: CliContext, file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, _row(ctx, number, line)


def _row(ctx: CliContext, number: int, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as wrong:
        raise BadInput(ctx.texts()("cli.grupos.not_json", line=number)) from wrong
    missing = [name for name in _NEEDED if not isinstance(row, dict) or not isinstance(row.get(name), str)]
    if missing:
        raise BadInput(ctx.texts()("cli.grupos.missing", line=number, fields=", ".join(missing)))
    return row  # type: ignore[no-any-return]


def _lida(ctx: CliContext, numbered: tuple[int, Mapping[str, Any]], known: Nomes, limits: Limiares) -> dict[str, Any]:
    """Return the fields that the rules read from a message, and the decision that the pipeline would have made about
    each vacancy on the day the message was sent.
    """
    number, row = numbered
    try:
        sent = datetime.fromisoformat(row["enviado_em"])
    except ValueError:
        sent = None
    if sent is None or sent.tzinfo is None:
        raise BadInput(ctx.texts()("cli.grupos.not_a_time", line=number))
    words, where = known.vocabulario, row.get("regiao")
    read = ler(row["texto"], enviado_em=sent, grupo=row.get("grupo"), regiao=where, vocabulario=words)
    nota = heuristica(row["texto"], vocabulario=words)
    said, day = documento(read), sent.astimezone(SAO_PAULO).date()
    for vaga, written in zip(read.vagas, said["vagas"], strict=True):
        written["destino"] = destino(vaga, read, nota, nomes=known, regiao=where, hoje=day, limiares=limits)
    return {"id": row["id"], **said}
