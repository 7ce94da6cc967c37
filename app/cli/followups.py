"""``batuta followups``: list conversations that are waiting for a follow-up, and pause or resume their follow-ups."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any

import typer

from app.cli.grupos.listas import Limite, Pular
from app.cli.shared import DAY, MOMENT, ask, conversation_of, format_cell, print_rows
from app.composition.julia import Julia
from app.contexts.conversas.atendimento import EstagioDaConversa
from app.contexts.followups.model import FollowupsMudados
from app.contexts.followups.relato import followup_em_palavras, followups_mudados_em_palavras
from batuta.cli import CliContext, JsonFlag, cli_context, current_user

COLUMNS = ("conversa", "estagio", "desde", "devido_em", "pausado_ate", "impedimento")
WORDS = {"estagio": "conversa_estagio", "impedimento": "followup_impedimento"}
INSTANTS = ("desde", "devido_em", "pausado_ate")
Motivo = Annotated[str, typer.Option("--motivo")]


def listar(
    context: typer.Context,
    estagio: Annotated[EstagioDaConversa | None, typer.Option("--estagio")] = None,
    devidos: Annotated[bool, typer.Option("--devidos")] = False,
    limite: Limite = 20,
    pular: Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    rows = ask(
        ctx,
        lambda julia: julia.followups.followups.listar(estagio=estagio, devidos=devidos, limite=limite, pular=pular),
    )
    shown = [followup_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"followups": shown}, as_json, lambda: print_rows(ctx, "followups", COLUMNS, shown, _cell))


def pausar(
    context: typer.Context,
    id: str,
    ate: Annotated[datetime, typer.Option("--ate", formats=[*MOMENT, *DAY])],
    motivo: Motivo,
    as_json: JsonFlag = False,
) -> None:
    async def act(julia: Julia) -> FollowupsMudados:
        until = ate.replace(tzinfo=julia.work.zone)
        return await julia.followups.followups.pausar(
            await conversation_of(julia, id), until, por=current_user(), motivo=motivo
        )

    _change(cli_context(context), "done_pausar", act, as_json)


def retomar(context: typer.Context, id: str, motivo: Motivo, as_json: JsonFlag = False) -> None:
    async def act(julia: Julia) -> FollowupsMudados:
        return await julia.followups.followups.retomar(
            await conversation_of(julia, id), por=current_user(), motivo=motivo
        )

    _change(cli_context(context), "done_retomar", act, as_json)


def _change(ctx: CliContext, said: str, act: Callable[[Julia], Awaitable[FollowupsMudados]], as_json: bool) -> None:
    document = followups_mudados_em_palavras(ask(ctx, act), ctx.work().zone)
    shown = {name: _cell(ctx, name, value) for name, value in document.items()}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()(f"cli.followups.{said}", **shown)))


def _cell(ctx: CliContext, name: str, value: Any) -> str:
    return format_cell(ctx, value, name, INSTANTS, WORDS)


COMMANDS: dict[str, Callable[..., None]] = {"listar": listar, "pausar": pausar, "retomar": retomar}
