"""``batuta handoffs listar | ver | abrir | confirmar | recusar``: manage hand-offs. A hand-off asks the person who
posted a vacancy in a group to confirm a doctor for it.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import typer

from app.cli.grupos.listas import Limite, Pular
from app.cli.shared import ask, cell, id_of, print_rows, read_personal, word
from app.composition.julia import Julia
from app.contexts.handoffs.model import Decidido, HandoffDesconhecido, Status
from app.contexts.handoffs.relato import (
    aberto_em_palavras,
    decidido_em_palavras,
    handoff_em_palavras,
    vista_do_handoff_em_palavras,
)
from app.contexts.plantoes.model import MedicoDesconhecido, VagaDesconhecida
from batuta.cli import CliContext, JsonFlag, cli_context, current_user
from batuta.sql import Row

COLUMNS = ("id", "status", "hospital", "data", "telefone", "lembretes", "ate")
SHOWN = (
    *COLUMNS,
    "vaga",
    "medico",
    "divulgador",
    "aberto_em",
    "contatado_em",
    "ultimo_lembrete_em",
    "decidido_em",
    "via",
    "por",
)
Motivo = Annotated[str, typer.Option("--motivo")]


def listar(
    context: typer.Context,
    status: Annotated[Status | None, typer.Option("--status")] = None,
    todos: Annotated[bool, typer.Option("--todos")] = False,
    limite: Limite = 20,
    pular: Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)

    async def find(julia: Julia) -> Sequence[Row]:
        reading = julia.handoffs.handoffs.listar(status=status, todos=todos, limite=limite, pular=pular)
        return await read_personal(julia, "handoffs listar", reading)

    rows = ask(ctx, find)
    shown = [handoff_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"handoffs": shown}, as_json, lambda: print_rows(ctx, "handoffs", COLUMNS, shown, _cell))


def ver(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)

    async def see(julia: Julia) -> dict[str, Any]:
        reading = julia.handoffs.handoffs.ver(await _handoff(julia, id))
        vista = await read_personal(julia, "handoffs ver", reading)
        return vista_do_handoff_em_palavras(vista, julia.work.zone)

    document = ask(ctx, see)
    ctx.show(document, as_json, lambda: _print(ctx, document))


def abrir(
    context: typer.Context,
    vaga: Annotated[str, typer.Option("--vaga")],
    medico: Annotated[str, typer.Option("--medico")],
    motivo: Motivo,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)

    async def act(julia: Julia) -> dict[str, Any]:
        vaga_id = await id_of(julia, ["vagas"], vaga, VagaDesconhecida(id=vaga))
        medico_id = await id_of(julia, ["clientes"], medico, MedicoDesconhecido(id=medico))
        opened = await julia.handoffs.handoffs.abrir(vaga_id, medico_id, por=current_user(), motivo=motivo)
        return aberto_em_palavras(opened, julia.work.zone)

    document = ask(ctx, act)
    shown = document | {"ate": ctx.moment(document["ate"])}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.handoffs.opened", **shown)))


def confirmar(context: typer.Context, id: str, motivo: Motivo, as_json: JsonFlag = False) -> None:
    async def act(julia: Julia) -> Decidido:
        return await julia.handoffs.handoffs.confirmar(await _handoff(julia, id), por=current_user(), motivo=motivo)

    _decide(cli_context(context), act, as_json)


def recusar(context: typer.Context, id: str, motivo: Motivo, as_json: JsonFlag = False) -> None:
    async def act(julia: Julia) -> Decidido:
        return await julia.handoffs.handoffs.recusar(await _handoff(julia, id), por=current_user(), motivo=motivo)

    _decide(cli_context(context), act, as_json)


async def _handoff(julia: Julia, written: str) -> str:
    return await id_of(julia, ["external_handoffs"], written, HandoffDesconhecido(id=written))


def _decide(ctx: CliContext, act: Callable[[Julia], Awaitable[Decidido]], as_json: bool) -> None:
    document = decidido_em_palavras(ask(ctx, act))
    said = "repeated" if document["repetida"] else "decided"
    shown = {"id": document["id"], "status": word(ctx, "handoff", document["status"])}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()(f"cli.handoffs.{said}", **shown)))


def _print(ctx: CliContext, document: dict[str, Any]) -> None:
    texts = ctx.texts()
    for column in SHOWN:
        if document[column] is not None:
            ctx.say(f"{texts(f'cli.handoffs.column_{column}')}: {_cell(ctx, column, document[column])}")
    for line in document["historico"]:
        became = " → ".join(word(ctx, "handoff", each) for each in (line["de"], line["para"]) if each is not None)
        ctx.say(f"  {ctx.moment(line['em'])}  {became}  ({line['por']}: {line['motivo']})")


def _cell(ctx: CliContext, column: str, value: Any) -> str:
    match column:
        case "status":
            return word(ctx, "handoff", value)
        case "via":
            return word(ctx, "handoff_via", value)
        case "ate" | "aberto_em" | "contatado_em" | "ultimo_lembrete_em" | "decidido_em":
            return ctx.moment(value)
        case _:
            return cell(ctx, column, value)


COMMANDS: dict[str, Callable[..., None]] = {
    "listar": listar,
    "ver": ver,
    "abrir": abrir,
    "confirmar": confirmar,
    "recusar": recusar,
}
