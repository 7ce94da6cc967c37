"""``batuta grupos rotulos``: export operators' decisions as labelled data."""

import json

import typer

from app.cli.shared import Saida, ask, read_personal, write_private
from app.contexts.vagas.revisao import rotuladas
from batuta.cli import JsonFlag, cli_context


def rotulos(context: typer.Context, saida: Saida, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    rows = ask(
        ctx, lambda julia: read_personal(julia, "grupos rotulos", julia.groups.revisao.decididas(), action="export")
    )
    labels = rotuladas(rows, ctx.work().zone)
    write_private(saida, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in labels))
    offers = [each for each in labels if each["eh_oferta"]]
    counts = {
        "mensagens": len(labels),
        "ofertas": len(offers),
        "vagas": sum(len(each["vagas"]) for each in offers),
        "saida": str(saida),
    }
    ctx.show(counts, as_json, lambda: ctx.say(ctx.texts()("cli.grupos.evaluated", **counts)))
