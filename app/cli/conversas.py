"""``batuta conversas ler | duvidas | decidir | pendencias | resolver``."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.grupos.listas import Limite
from app.cli.shared import ask, id_of, word
from app.composition.julia import Julia
from app.contexts.conversas.duvidas import Decisao, Duvida, DuvidaDesconhecida
from app.contexts.conversas.optout import SHOWN
from app.contexts.conversas.pendencias import Pendencia, PendenciaDesconhecida
from app.contexts.leitura_conversas.api import Leitura, ler
from batuta.cli import REFUSED, CliContext, JsonFlag, cli_context, current_user

# Number of characters of a message that a list shows.
LONGEST_SHOWN = 120


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
        # One object per line, so that another program can read the output line by line.
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


def duvidas(context: typer.Context, limite: Limite = 20, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found = [_doubt(ctx, each) for each in ask(ctx, lambda julia: julia.messages.duvidas.listar(limite=limite))]
    ctx.show({"duvidas": found}, as_json, lambda: _show_doubts(ctx, found))


def decidir(
    context: typer.Context,
    id: str,
    parar: Annotated[bool, typer.Option("--parar")] = False,
    seguir: Annotated[bool, typer.Option("--seguir")] = False,
    motivo: Annotated[str, typer.Option("--motivo")] = "-",
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    if parar == seguir:
        ctx.say_wrong(ctx.texts()("cli.conversas.decide_which"))
        raise typer.Exit(REFUSED)
    decisao = Decisao.PARAR if parar else Decisao.SEGUIR
    cancelled = ask(ctx, lambda julia: _decide(julia, id, decisao, motivo))
    document = {"id": id, "decisao": decisao.value, "canceladas": cancelled}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()(f"cli.conversas.decided_{decisao.value}", **document)))


async def _decide(julia: Julia, id: str, decisao: Decisao, motivo: str) -> int:
    whole = await id_of(julia, ["optouts_provaveis"], id, DuvidaDesconhecida(id=id))
    return await julia.messages.duvidas.decidir(whole, decisao, por=current_user(), motivo=motivo)


def _doubt(ctx: CliContext, duvida: Duvida) -> dict[str, Any]:
    return {
        "id": duvida.id,
        "desde": ctx.local(duvida.desde),
        "telefone": f"…{duvida.telefone[-SHOWN:]}",
        "cliente_id": duvida.cliente_id,
        "regra": duvida.regra,
        "texto": duvida.texto,
    }


def _show_doubts(ctx: CliContext, found: list[dict[str, Any]]) -> None:
    if not found:
        ctx.say(ctx.texts()("cli.conversas.no_doubt"))
    for each in found:
        ctx.say(ctx.texts()("cli.conversas.doubt", **each | {"texto": (each["texto"] or "-")[:LONGEST_SHOWN]}))


def pendencias(context: typer.Context, limite: Limite = 20, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found = [_pending(ctx, each) for each in ask(ctx, lambda julia: julia.messages.pendencias.listar(limite=limite))]
    ctx.show({"pendencias": found}, as_json, lambda: _show_pending(ctx, found))


def resolver(
    context: typer.Context,
    id: str,
    motivo: Annotated[str, typer.Option("--motivo")] = "-",
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    whole = ask(ctx, lambda julia: _resolve(julia, id, motivo))
    document = {"id": whole, "motivo": motivo}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.conversas.resolved", **document)))


async def _resolve(julia: Julia, id: str, motivo: str) -> str:
    whole = await id_of(julia, ["pendencias"], id, PendenciaDesconhecida(id=id))
    await julia.messages.pendencias.resolver(whole, por=current_user(), motivo=motivo)
    return whole


def _pending(ctx: CliContext, pendencia: Pendencia) -> dict[str, Any]:
    return {
        "id": pendencia.id,
        "desde": ctx.local(pendencia.desde),
        "telefone": "-" if pendencia.telefone is None else f"…{pendencia.telefone[-SHOWN:]}",
        "cliente_id": pendencia.cliente_id,
        "conversa_id": pendencia.conversa_id,
        "motivo": pendencia.motivo,
        "classe": pendencia.classe,
        "mensagens": pendencia.mensagens,
        "texto": pendencia.texto,
    }


def _show_pending(ctx: CliContext, found: list[dict[str, Any]]) -> None:
    if not found:
        ctx.say(ctx.texts()("cli.conversas.none_pending"))
    for each in found:
        shown = {"motivo": word(ctx, "pendencia", each["motivo"]), "texto": (each["texto"] or "-")[:LONGEST_SHOWN]}
        ctx.say(ctx.texts()("cli.conversas.pending", **each | shown))


COMMANDS: dict[str, Callable[..., None]] = {
    "ler": ler_texto,
    "duvidas": duvidas,
    "decidir": decidir,
    "pendencias": pendencias,
    "resolver": resolver,
}
