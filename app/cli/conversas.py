"""``batuta conversas``: choose whether Julia or a person handles a conversation, send an answer that a person wrote,
resolve pending messages and probable opt-outs, and test how Julia interprets a message.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.grupos.listas import Limite, Pular
from app.cli.shared import ask, conversation_of, id_of, read_personal, word
from app.composition.julia import Julia
from app.contexts.conversas.atendimento import Com, EstagioDaConversa, Mudada
from app.contexts.conversas.duvidas import Decisao, Duvida, DuvidaDesconhecida
from app.contexts.conversas.optout import SHOWN
from app.contexts.conversas.pendencias import Pendencia, PendenciaDesconhecida
from app.contexts.conversas.relato import (
    conversa_em_palavras,
    mudada_em_palavras,
    respondida_em_palavras,
    vista_da_conversa_em_palavras,
)
from app.contexts.leitura_conversas.api import Leitura, ler
from app.contexts.mensagens.service import NaDevolucao
from batuta.cli import REFUSED, CliContext, JsonFlag, cli_context, current_user

# Number of characters of a message that a list shows.
LONGEST_SHOWN = 120
COLUMNS = ("id", "estagio", "status", "com", "responsavel", "mensagens", "ultima_mensagem_em")
Motivo = Annotated[str, typer.Option("--motivo")]


def listar(
    context: typer.Context,
    com: Annotated[Com | None, typer.Option("--com")] = None,
    estagio: Annotated[EstagioDaConversa | None, typer.Option("--estagio")] = None,
    encerradas: Annotated[bool, typer.Option("--encerradas")] = False,
    limite: Limite = 20,
    pular: Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    found = ask(
        ctx,
        lambda julia: julia.messages.atendimento.listar(
            com=com, estagio=estagio, encerradas=encerradas, limite=limite, pular=pular
        ),
    )
    shown = [conversa_em_palavras(row, ctx.work().zone) for row in found]
    ctx.show({"conversas": shown}, as_json, lambda: _show_conversations(ctx, shown))


def ver(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)

    async def see(julia: Julia) -> dict[str, Any]:
        reading = julia.messages.atendimento.ver(await conversation_of(julia, id))
        vista = await read_personal(julia, "conversas ver", reading)
        return vista_da_conversa_em_palavras(vista, julia.work.zone)

    document = ask(ctx, see)
    ctx.show(document, as_json, lambda: _show_conversation(ctx, document))


def assumir(context: typer.Context, id: str, motivo: Motivo, as_json: JsonFlag = False) -> None:
    async def act(julia: Julia) -> Mudada:
        care = julia.messages.atendimento
        return await care.assumir(await conversation_of(julia, id), por=current_user(), motivo=motivo)

    _change(cli_context(context), act, as_json)


def responder(context: typer.Context, id: str, texto: str, as_json: JsonFlag = False) -> None:
    async def act(julia: Julia) -> dict[str, Any]:
        conversa = await conversation_of(julia, id)
        return respondida_em_palavras(await julia.team.escrita.responder(conversa, texto, por=current_user()))

    ctx = cli_context(context)
    document = ask(ctx, act)
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.conversas.done_responder", **document)))


def devolver(
    context: typer.Context,
    id: str,
    mensagens: Annotated[NaDevolucao, typer.Option("--mensagens")],
    motivo: Motivo,
    as_json: JsonFlag = False,
) -> None:
    async def act(julia: Julia) -> Mudada:
        care = julia.messages.atendimento
        return await care.devolver(await conversation_of(julia, id), mensagens, por=current_user(), motivo=motivo)

    _change(cli_context(context), act, as_json)


def encerrar(context: typer.Context, id: str, motivo: Motivo, as_json: JsonFlag = False) -> None:
    async def act(julia: Julia) -> Mudada:
        care = julia.messages.atendimento
        return await care.encerrar(await conversation_of(julia, id), por=current_user(), motivo=motivo)

    _change(cli_context(context), act, as_json)


def _change(ctx: CliContext, act: Callable[[Julia], Awaitable[Mudada]], as_json: bool) -> None:
    document = mudada_em_palavras(ask(ctx, act))
    said = "repetida" if document["repetida"] else document["acao"]
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()(f"cli.conversas.done_{said}", **document)))


def _show_conversations(ctx: CliContext, shown: list[dict[str, Any]]) -> None:
    if not shown:
        ctx.say(ctx.texts()("cli.conversas.none"))
        return
    table = ctx.table("cli.conversas.column_", COLUMNS)
    for each in shown:
        table.add_row(*(_cell(ctx, column, each[column]) for column in COLUMNS))
    ctx.out.print(table)


def _cell(ctx: CliContext, column: str, value: Any) -> str:
    match column:
        case "estagio" | "status" | "com":
            return word(ctx, f"conversa_{column}", value)
        case "ultima_mensagem_em":
            return "" if value is None else ctx.moment(value)
        case _:
            return "" if value is None else str(value)


def _show_conversation(ctx: CliContext, document: dict[str, Any]) -> None:
    texts = ctx.texts()
    for column in COLUMNS:
        ctx.say(f"{texts(f'cli.conversas.column_{column}')}: {_cell(ctx, column, document[column])}")
    for line in document["historico"]:
        facts = line | {"acao": word(ctx, "conversa_acao", line["acao"]), "em": ctx.moment(line["em"])}
        ctx.say(texts("cli.conversas.history", **facts))
    for said in reversed(document["ultimas"]):
        autor = word(ctx, "conversa_autor", said["autor"])
        ctx.say(f"  {ctx.moment(said['em'])}  {autor}: {said['texto'][:LONGEST_SHOWN]}")
    for queued in document["na_fila"]:
        status = word(ctx, "mensagem", queued["status"])
        ctx.say(texts("cli.conversas.queued", tipo=queued["tipo"], status=status, para=ctx.moment(queued["para"])))


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
        # Print one JSON object per line, so that another program can read the output line by line.
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
    found = [_doubt(ctx, each) for each in ask(ctx, lambda julia: _read_doubts(julia, limite))]
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


async def _read_doubts(julia: Julia, limite: int) -> Sequence[Duvida]:
    return await read_personal(julia, "conversas duvidas", julia.messages.duvidas.listar(limite=limite))


async def _read_pending(julia: Julia, limite: int) -> Sequence[Pendencia]:
    return await read_personal(julia, "conversas pendencias", julia.messages.pendencias.listar(limite=limite))


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
    found = [_pending(ctx, each) for each in ask(ctx, lambda julia: _read_pending(julia, limite))]
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
    "listar": listar,
    "ver": ver,
    "assumir": assumir,
    "responder": responder,
    "devolver": devolver,
    "encerrar": encerrar,
    "ler": ler_texto,
    "duvidas": duvidas,
    "decidir": decidir,
    "pendencias": pendencias,
    "resolver": resolver,
}
