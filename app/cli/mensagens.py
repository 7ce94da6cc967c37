"""Commands that set the webhook of the WhatsApp gateway (``configurar-webhook``), list messages that may or may not
have been sent (``duvidas``), record an operator's decision about such a message (``decidir``), record an opt-out
(``optout``), and delete a person's data on request (``remover``).
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated

import typer

from app.cli.shared import ask, id_of, word
from app.composition.julia import Julia, julia_of
from app.contexts.comum.whatsapp import Unavailable
from app.contexts.conversas.optout import OptoutManual, Parado
from app.contexts.envio.envios_em_duvida import NotInDoubt
from app.contexts.mensagens.api import FILA_MENSAGENS
from app.integrations.evolution.client import EvolutionClient
from app.settings import Settings
from batuta.cli import FAILED, REFUSED, CliContext, JsonFlag, as_it_runs, cli_context, current_user, wait_for
from batuta.reasons import decode
from batuta.sql import Row

Telefone = Annotated[str, typer.Argument(metavar="TELEFONE")]
Motivo = Annotated[str, typer.Option("--motivo")]


class Decision(StrEnum):
    """An operator's decision whether a message was sent. Operators decide if Julia cannot find out."""

    ENVIADA = "enviada"
    NAO_ENVIADA = "nao-enviada"


def configurar_webhook(context: typer.Context, instancia: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    # A running `batuta up` passes the address of its gateway (in development: of the simulator) to commands in other
    # terminals.
    julia = julia_of(as_it_runs(ctx, ctx.settings(), ctx.work()))
    if julia.line is None:
        ctx.say_wrong(ctx.texts()("cli.configurar-webhook.nowhere"))
        raise typer.Exit(REFUSED)
    url = julia.settings.webhook_address
    refused = wait_for(_set_webhook(julia.line, julia.settings, instancia))
    document = {
        "instance": instancia,
        "url": url,
        "set": refused is None,
        "why": refused and ctx.texts().reason(refused.why),
    }
    key = "done" if refused is None else "refused"
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()(f"cli.configurar-webhook.{key}", **document)))
    if refused is not None:
        raise typer.Exit(FAILED)


def duvidas(
    context: typer.Context,
    limite: Annotated[int, typer.Option("--limite", min=1, max=1000)] = 50,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    rows = ask(ctx, lambda julia: julia.sending.registro.doubts(julia.work.database, limit=limite))
    found = [_doubt(ctx, row) for row in rows]
    ctx.show({"duvidas": found}, as_json, lambda: _show_doubts(ctx, found))


def decidir(context: typer.Context, id: str, o_que: Decision, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    sent = o_que is Decision.ENVIADA
    ask(ctx, lambda julia: _decide(julia, id, sent))
    document = {"id": id, "decisao": o_que.value}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.decidir.done", **document)))


async def _decide(julia: Julia, id: str, sent: bool) -> None:
    whole = await id_of(julia, [FILA_MENSAGENS.name], id, NotInDoubt(id=id))
    await julia.sending.reconciliador.decide(whole, sent=sent, by=current_user())


def _show_doubts(ctx: CliContext, found: list[dict[str, str | int | None]]) -> None:
    if not found:
        ctx.say(ctx.texts()("cli.duvidas.none"))
    for each in found:
        ctx.say(ctx.texts()("cli.duvidas.line", **{**each, "estado": word(ctx, "envio", str(each["estado"]))}))


def _doubt(ctx: CliContext, row: Row) -> dict[str, str | int | None]:
    return {
        "id": row["id"],
        "estado": row["envio_estado"],
        "desde": ctx.local(row["envio_desde"]),
        "tipo": row["tipo"],
        "instance": row["instance_name"],
        "motivo": ctx.texts().reason(decode(row["outcome_reason_code"]) or "-"),
    }


async def _set_webhook(line: EvolutionClient, settings: Settings, instance: str) -> Unavailable | None:
    """Set the webhook of a gateway instance. Return None on success, otherwise an object that describes the failure."""
    secret = None if settings.webhook_secret is None else settings.webhook_secret.get_secret_value()
    try:
        return await line.set_webhook(instance, settings.webhook_address, secret)
    finally:
        await line.close()


def optout(context: typer.Context, telefone: Telefone, motivo: Motivo = "-", as_json: JsonFlag = False) -> None:
    _end_contact(context, "optout", as_json, lambda manual: manual.parar(telefone, by=current_user(), reason=motivo))


def remover(context: typer.Context, telefone: Telefone, motivo: Motivo = "-", as_json: JsonFlag = False) -> None:
    _end_contact(context, "remover", as_json, lambda manual: manual.remover(telefone, by=current_user(), reason=motivo))


def _end_contact(
    context: typer.Context, command: str, as_json: bool, act: Callable[[OptoutManual], Awaitable[Parado]]
) -> None:
    ctx = cli_context(context)
    done = ask(ctx, lambda julia: act(julia.messages.optout))
    document = {"telefone": f"…{done.final}", "medico": done.medico, "canceladas": done.canceladas}
    key = f"cli.{command}.{'medico' if done.medico else 'externo'}"
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()(key, final=done.final, canceladas=done.canceladas)))
