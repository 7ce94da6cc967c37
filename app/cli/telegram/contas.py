"""``batuta telegram``: show, pause and resume accounts, read a chat's old messages, record which Telegram user is which
doctor, and encrypt the stored sessions with a new key.
"""

from typing import Annotated, Any

import typer

from app.cli.shared import ask, read_personal, word
from app.composition.julia import Julia
from app.contexts.telegram.contas import EstadoDaConta
from batuta.cli import CliContext, JsonFlag, cli_context, current_user

COLUMNS = ("nome", "estado", "conectada", "na_fila", "em_duvida", "enviadas_ultima_hora", "espera_ate", "erro")


def status(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    document = ask(ctx, lambda julia: julia.telegram.health.documento())
    ctx.show(document, as_json, lambda: _print_accounts(ctx, document))


def historico(
    context: typer.Context,
    conta: Annotated[str | None, typer.Argument()] = None,
    chat: Annotated[str | None, typer.Argument()] = None,
    maximo: Annotated[int, typer.Option("--maximo", min=1, max=100_000)] = 1_000,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    document = ask(ctx, lambda julia: _history(julia, conta, chat, maximo))
    ctx.show(document, as_json, lambda: _print_history(ctx, document))


def pausar(context: typer.Context, conta: str, as_json: JsonFlag = False) -> None:
    _change(context, conta, EstadoDaConta.PAUSADA, as_json)


def retomar(context: typer.Context, conta: str, as_json: JsonFlag = False) -> None:
    _change(context, conta, EstadoDaConta.ATIVA, as_json)


def vincular(context: typer.Context, quem: str, usuario: int, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    ask(ctx, lambda julia: julia.telegram.servico.vincular(quem, usuario))
    ctx.show({"usuario": usuario}, as_json, lambda: ctx.say(ctx.texts()("cli.telegram.linked", usuario=usuario)))


def chaves(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    changed = ask(ctx, lambda julia: julia.telegram.sessoes.encrypt_all_again())
    ctx.show({"trocadas": changed}, as_json, lambda: ctx.say(ctx.texts()("cli.telegram.keys", count=changed)))


def _change(context: typer.Context, conta: str, estado: EstadoDaConta, as_json: bool) -> None:
    ctx = cli_context(context)
    by = current_user()
    ask(ctx, lambda julia: julia.telegram.servico.mudar(conta, estado, by=by))
    sentence = ctx.texts()("cli.telegram.changed", conta=conta, estado=word(ctx, "telegram_conta", estado.value))
    ctx.show({"conta": conta, "estado": estado.value}, as_json, lambda: ctx.say(sentence))


async def _history(julia: Julia, conta: str | None, chat: str | None, maximo: int) -> dict[str, Any]:
    servico = julia.telegram.servico
    queued = None if conta is None or chat is None else await servico.ler_historico(conta, chat, maximo=maximo)
    reading = servico.historicos(julia.work.zone, limit=20)
    return {"id": queued, "historicos": await read_personal(julia, "telegram historico", reading)}


def _print_accounts(ctx: CliContext, document: dict[str, Any]) -> None:
    texts = ctx.texts()
    if not document["contas"]:
        ctx.say(texts("cli.telegram.none"))
        return
    down = ", ".join(name for name, lives in document["worker"]["loops"].items() if not lives)
    ctx.say(texts("cli.telegram.loops_down", loops=down) if down else texts("cli.telegram.loops_up"))
    table = ctx.table("cli.telegram.column_", COLUMNS)
    for conta in document["contas"]:
        table.add_row(*_cells(ctx, conta))
    ctx.out.print(table)


def _cells(ctx: CliContext, conta: dict[str, Any]) -> list[str]:
    connected = ctx.texts()("cli.chips.yes" if conta["conectada"] else "cli.chips.no")
    shown = {
        **conta,
        "estado": word(ctx, "telegram_conta", conta["estado"]),
        "conectada": connected,
        "espera_ate": ctx.moment(conta["espera_ate"]),
        "erro": conta["erro"] and ctx.texts().reason(conta["erro"]),
    }
    return ["" if shown[name] is None else str(shown[name]) for name in COLUMNS]


def _print_history(ctx: CliContext, document: dict[str, Any]) -> None:
    texts = ctx.texts()
    if document["id"] is not None:
        ctx.say(texts("cli.telegram.reading", id=document["id"]))
    if not document["historicos"]:
        ctx.say(texts("cli.telegram.no_history"))
    for row in document["historicos"]:
        facts = {name: row[name] for name in ("conta", "lidas", "novas", "maximo")}
        ctx.say(texts("cli.telegram.progress", **facts, status=word(ctx, "telegram_historico", row["status"])))
