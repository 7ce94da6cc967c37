"""``batuta optout``: nothing more to this number on our own initiative. ``batuta remover``: and nothing is kept of the person."""

from typing import Annotated

import typer

from app.contexts.conversas.optout import OptoutManual, Parado
from batuta.cli.desk import Desk, JsonFlag, desk_of, wait_for, who


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
    from app.wiring import contexts

    async with desk.work() as work:
        by_hand = OptoutManual(work.database, contexts(work).conversas, work.ids, work.clock)
        act = by_hand.remover if removes else by_hand.parar
        return await act(telefone, by=who(), reason=reason)
