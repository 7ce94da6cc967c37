"""``batuta campanhas list | show | create | schedule | pause | resume | cancel``."""

import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from app.cli.shared import ask
from app.contexts.campanhas.model import Acao, FiltroRecusado, StatusDaCampanha, TipoDeCampanha
from app.contexts.campanhas.relato import agendada_em_palavras, campanha_em_palavras, progresso_em_palavras
from app.contexts.campanhas.service import Campanhas, NovaCampanha
from batuta.cli import CliContext, JsonFlag, cli_context, current_user

COLUMNS = (
    "id",
    "nome_template",
    "tipo_campanha",
    "status",
    "total_destinatarios",
    "enviados",
    "entregues",
    "respondidos",
)


def show_all(
    context: typer.Context,
    status: Annotated[StatusDaCampanha | None, typer.Option("--status")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=500)] = 50,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    rows = ask(ctx, lambda julia: julia.campaigns.campanhas.todas(status=status, limit=limit))
    campanhas = [campanha_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"campanhas": campanhas}, as_json, lambda: _tell_all(ctx, campanhas))


def show(context: typer.Context, id: int, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    document = _progress(ctx, id)
    ctx.show(document, as_json, lambda: _tell(ctx, document))


def create(
    context: typer.Context,
    nome: Annotated[str, typer.Option("--nome")],
    tipo: Annotated[TipoDeCampanha, typer.Option("--tipo")],
    corpo: Annotated[str, typer.Option("--corpo", help="{nome}, {especialidade}")],
    especialidade: Annotated[list[str] | None, typer.Option("--especialidade")] = None,
    regiao: Annotated[list[str] | None, typer.Option("--regiao")] = None,
    cliente: Annotated[list[str] | None, typer.Option("--cliente")] = None,
    quantidade: Annotated[int, typer.Option("--quantidade")] = 50,
    filtros: Annotated[Path | None, typer.Option("--filtros", help="JSON", dir_okay=False, exists=True)] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    asked: dict[str, Any] = {
        **({} if filtros is None else _read(filtros)),
        **({"especialidades": especialidade} if especialidade else {}),
        **({"regioes": regiao} if regiao else {}),
        **({"clientes_especificos": cliente} if cliente else {}),
        **({"quantidade_alvo": quantidade} if filtros is None or quantidade != 50 else {}),
    }
    nova = NovaCampanha(nome=nome, tipo=tipo, corpo=corpo, audience_filters=asked)
    id, strange = ask(ctx, lambda julia: _created(julia.campaigns.campanhas, nova))
    avisos = [ctx.texts()("campanhas.de_ninguem", valor=word) for word in strange]
    document = {"id": id, "status": StatusDaCampanha.RASCUNHO.value, "avisos": avisos}
    ctx.show(document, as_json, lambda: _confirm(ctx, "created", id))
    if not as_json:
        for each in avisos:
            ctx.say(f"  → {each}")


def schedule(
    context: typer.Context,
    id: int,
    at: Annotated[
        datetime | None, typer.Option("--at", formats=["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"], help="2026-03-11T10:00")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    para = None if at is None else at.replace(tzinfo=ctx.work().zone)
    made = ask(ctx, lambda julia: julia.campaigns.campanhas.agendar(id, para, by=current_user()))
    document = agendada_em_palavras(id, made)
    ctx.show(document, as_json, lambda: _tell_scheduled(ctx, document))


def pause(context: typer.Context, id: int, as_json: JsonFlag = False) -> None:
    _do(cli_context(context), Acao.PAUSAR, id, as_json, lambda campanhas: campanhas.pausar(id, by=current_user()))


def resume(context: typer.Context, id: int, as_json: JsonFlag = False) -> None:
    _do(cli_context(context), Acao.RETOMAR, id, as_json, lambda campanhas: campanhas.retomar(id, by=current_user()))


def cancel(context: typer.Context, id: int, as_json: JsonFlag = False) -> None:
    _do(cli_context(context), Acao.CANCELAR, id, as_json, lambda campanhas: campanhas.cancelar(id, by=current_user()))


COMMANDS: dict[str, Callable[..., None]] = {
    "list": show_all,
    "show": show,
    "create": create,
    "schedule": schedule,
    "pause": pause,
    "resume": resume,
    "cancel": cancel,
}


def _do(
    ctx: CliContext, acao: Acao, id: int, as_json: bool, act: Callable[[Campanhas], Awaitable[StatusDaCampanha]]
) -> None:
    status = ask(ctx, lambda julia: act(julia.campaigns.campanhas))
    ctx.show({"id": id, "status": status.value}, as_json, lambda: _confirm(ctx, acao.value, id, status=status.value))


def _progress(ctx: CliContext, id: int) -> dict[str, Any]:
    progresso = ask(ctx, lambda julia: julia.campaigns.campanhas.progresso(id))
    return progresso_em_palavras(progresso, ctx.work().zone)


async def _created(campanhas: Campanhas, nova: NovaCampanha) -> tuple[int, tuple[str, ...]]:
    id = await campanhas.criar(nova, by=current_user())
    return id, await campanhas.avisos(nova.audience_filters)


def _read(file: Path) -> dict[str, Any]:
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise FiltroRecusado(filtro=file.name, takes="JSON") from None
    if not isinstance(read, dict):
        raise FiltroRecusado(filtro=file.name, takes="{…}")
    return read


def _confirm(ctx: CliContext, what: str, id: int, **facts: object) -> None:
    ctx.say(ctx.texts()(f"cli.campanhas.{what}", id=id, **facts))


def _tell_scheduled(ctx: CliContext, document: dict[str, Any]) -> None:
    _confirm(ctx, Acao.AGENDAR.value, **{name: document[name] for name in ("id", "status", "destinatarios")})
    if document["excluidos"]:
        ctx.say(ctx.texts()("cli.campanhas.excluidos", reasons=_counted(document["excluidos"])))


def _counted(reasons: dict[str, int]) -> str:
    return ", ".join(f"{why} {count}" for why, count in sorted(reasons.items()))


def _tell_all(ctx: CliContext, campanhas: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not campanhas:
        ctx.say(texts("cli.campanhas.none"))
        return
    table = Table(*(texts(f"cli.campanhas.column_{column}") for column in COLUMNS), box=None, pad_edge=False)
    for each in campanhas:
        table.add_row(*(str(each[column]) for column in COLUMNS))
    ctx.out.print(table)


def _tell(ctx: CliContext, document: dict[str, Any]) -> None:
    texts, progress = ctx.texts(), document["progresso"]
    ctx.say(
        texts(
            "cli.campanhas.head",
            **{name: document[name] for name in ("id", "nome_template", "tipo_campanha", "status")},
        )
    )
    if document["erro"]:
        ctx.say(f"  → {ctx.texts().reason(document['erro'])}")
    if document["ninguem_recebeu"]:
        ctx.say(f"  → {texts('cli.campanhas.ninguem')}")
    counts = ("destinatarios", "enfileiradas", "na_fila", "enviados", "entregues", "respostas", "em_duvida")
    ctx.say(texts("cli.campanhas.counts", **{name: progress[name] for name in counts}))
    for group in ("bloqueadas", "canceladas", "erros", "excluidos"):
        if progress[group]:
            ctx.say(texts(f"cli.campanhas.{group}", reasons=_counted(progress[group])))
