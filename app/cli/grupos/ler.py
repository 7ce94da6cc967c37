"""``batuta grupos ler``: show the fields that the pipeline reads from a text, and the source words of each field."""

import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from app.cli.shared import DAY, MOMENT, ask, cell, word
from app.composition.julia import Julia
from app.contexts.esteira.ensaio import Ensaio, ensaiar, ensaio_em_palavras
from app.contexts.grupos.recebidas import campo_em_palavras, motivo_em_palavras
from app.contexts.leitura_grupos.api import heuristica
from batuta.cli import REFUSED, CliContext, JsonFlag, cli_context

STDIN = "-"


def ler(
    context: typer.Context,
    texto: Annotated[str, typer.Argument(metavar="TEXTO")] = STDIN,
    em: Annotated[datetime | None, typer.Option("--em", formats=[*DAY, *MOMENT])] = None,
    regiao: Annotated[str | None, typer.Option("--regiao")] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    said = texto if texto != STDIN else "" if sys.stdin.isatty() else sys.stdin.read()
    if not said.strip():
        ctx.say_wrong(ctx.texts()("cli.grupos.nothing_to_read"))
        raise typer.Exit(REFUSED)
    document = ensaio_em_palavras(ask(ctx, lambda julia: _read(julia, said, em, regiao)), said)
    ctx.show(document, as_json, lambda: _print(ctx, document))


async def _read(julia: Julia, texto: str, em: datetime | None, regiao: str | None) -> Ensaio:
    groups, work = julia.groups, julia.work
    nota = heuristica(texto, vocabulario=(await groups.dicionario.nomes()).vocabulario)
    sent = work.clock.now() if em is None else em.replace(tzinfo=work.zone)
    return await ensaiar(texto, em=sent, regiao=regiao, nota=nota, leitor=groups.rules, limiares=groups.limiares)


def _print(ctx: CliContext, document: dict[str, Any]) -> None:
    texts = ctx.texts()
    facts = {
        "categoria": motivo_em_palavras(texts, document["categoria"]),
        "lida_como": motivo_em_palavras(texts, document["lida_como"]),
        "confianca": texts.number(document["confianca"], 2),
    }
    ctx.say(texts("cli.grupos.read_as", **facts))
    ctx.say(
        texts(
            "cli.grupos.read_score",
            score=texts.number(document["score"], 2),
            sinais=", ".join(document["sinais"]) or "-",
        )
    )
    if document["descartada"]:
        why = motivo_em_palavras(texts, document["motivo"])
        ctx.say(
            texts(
                "cli.grupos.read_discarded",
                estagio=word(ctx, "estagio", document["estagio"]),
                motivo=document["motivo"],
                words=why,
            )
        )
    if document["fecha"] is not None:
        ctx.say(texts("cli.grupos.read_closes", words=document["fecha"]))
    for number, vaga in enumerate(document["vagas"], 1):
        ctx.say(texts("cli.grupos.read_vaga", number=number))
        for name, field in vaga.items():
            where = texts("cli.grupos.read_default") if field["trecho"] is None else _where(field)
            ctx.say(f"  {campo_em_palavras(texts, name)}: {cell(ctx, name, field['valor'])}  {where}")


def _where(field: dict[str, Any]) -> str:
    return f"[{field['trecho'][0]}–{field['trecho'][1]}] «{' '.join(field['palavras'].split())}»"
