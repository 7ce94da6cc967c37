"""Julia's own words for ``batuta``."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import typer

from app.composition.demo import Demo
from app.contexts.comum.whatsapp import NoLine, Unavailable
from app.settings import Settings
from batuta.cli.context import FAILED, REFUSED, Desk, JsonFlag, desk_of, wait_for, who

if TYPE_CHECKING:
    from app.composition.julia import Sending
from app.contexts.conversas.optout import OptoutManual, Parado


class Decision(StrEnum):
    """What a person found out about a message in doubt."""

    ENVIADA = "enviada"
    NAO_ENVIADA = "nao-enviada"


def seed_demo(
    context: typer.Context,
    medicos: Annotated[int, typer.Option("--medicos", min=1, max=10_000)] = 20,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    added = wait_for(_seed(desk, medicos))
    desk.show(added, as_json, lambda: desk.say(desk.texts()("cli.seed-demo.done", **added)))


def set_webhook(context: typer.Context, instance: str, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    settings = cast("Settings", desk.settings())
    refused = wait_for(_set_webhook(desk, settings, instance))
    url = settings.webhook_address
    if isinstance(refused, str):
        desk.say_wrong(refused)
        raise typer.Exit(REFUSED)
    document = {"instance": instance, "url": url, "set": refused is None, "why": refused and refused.why}
    key = "done" if refused is None else "refused"
    desk.show(document, as_json, lambda: desk.say(desk.texts()(f"cli.set-webhook.{key}", **document)))
    if refused is not None:
        raise typer.Exit(FAILED)


def duvidas(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000)] = 50,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    found = wait_for(_doubts(desk, limit))
    desk.show({"duvidas": found}, as_json, lambda: _show_doubts(desk, found))


def decidir(context: typer.Context, id: str, o_que: Decision, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    wait_for(_decide(desk, id, o_que))
    document = {"id": id, "decisao": o_que.value}
    desk.show(document, as_json, lambda: desk.say(desk.texts()("cli.decidir.done", **document)))


def _show_doubts(desk: Desk, found: list[dict[str, str | int | None]]) -> None:
    if not found:
        desk.say(desk.texts()("cli.duvidas.none"))
    for each in found:
        desk.say(desk.texts()("cli.duvidas.line", **each))


async def _doubts(desk: Desk, limit: int) -> list[dict[str, str | int | None]]:
    async with desk.work() as work:
        rows = await _sending(desk).registro.doubts(work.database, limit=limit)
    return [
        {
            "id": row["id"],
            "estado": row["envio_estado"],
            "desde": desk.local(row["envio_desde"]),
            "tipo": row["tipo"],
            "instance": row["instance_name"],
            "motivo": row["outcome_reason_code"],
        }
        for row in rows
    ]


async def _decide(desk: Desk, id: str, what: Decision) -> None:
    async with desk.work():
        await _sending(desk).reconciliador.decide(id, sent=what is Decision.ENVIADA, by=who())


def _sending(desk: Desk) -> "Sending":
    from app.composition.julia import sending

    return sending(desk.work(), cast("Settings", desk.settings()), NoLine())


async def _seed(desk: Desk, medicos: int) -> dict[str, int]:
    async with desk.work() as work:
        return await Demo(work.database, work.zone).fill(medicos, now=work.clock.now())


async def _set_webhook(desk: Desk, settings: Settings, instance: str) -> Unavailable | str | None:
    """None: it is set; a text: it was not even tried."""
    from app.composition.julia import whatsapp

    line = whatsapp(settings, desk.work().clock)
    if line is None:
        return desk.texts()("cli.set-webhook.nowhere")
    secret = None if settings.webhook_secret is None else settings.webhook_secret.get_secret_value()
    try:
        return await line.set_webhook(instance, settings.webhook_address, secret)
    finally:
        await line.close()


def optout(
    context: typer.Context,
    telefone: Annotated[str, typer.Argument(metavar="TELEFONE")],
    reason: Annotated[str, typer.Option("--reason", help="how it was asked for, for whoever reads it later")] = "-",
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    done = wait_for(_stop(desk, telefone, reason))
    document = {"telefone": f"…{done.final}", "medico": done.medico, "canceladas": done.canceladas}
    key = "cli.optout.medico" if done.medico else "cli.optout.externo"
    desk.show(document, as_json, lambda: desk.say(desk.texts()(key, final=done.final, canceladas=done.canceladas)))


def remover(
    context: typer.Context,
    telefone: Annotated[str, typer.Argument(metavar="TELEFONE")],
    reason: Annotated[str, typer.Option("--reason", help="how it was asked for, for whoever reads it later")] = "-",
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    done = wait_for(_stop(desk, telefone, reason, removes=True))
    document = {"telefone": f"…{done.final}", "medico": done.medico, "canceladas": done.canceladas}
    key = "cli.remover.medico" if done.medico else "cli.remover.externo"
    desk.show(document, as_json, lambda: desk.say(desk.texts()(key, final=done.final, canceladas=done.canceladas)))


async def _stop(desk: Desk, telefone: str, reason: str, *, removes: bool = False) -> Parado:
    from app.composition.julia import contexts

    async with desk.work() as work:
        by_hand = OptoutManual(work.database, contexts(work).conversas, work.ids, work.clock)
        act = by_hand.remover if removes else by_hand.parar
        return await act(telefone, by=who(), reason=reason)
