"""``batuta campanhas``: create, schedule, pause and cancel campaigns, and show their progress."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.shared import MOMENT, ask, id_of, word
from app.composition.julia import Julia
from app.contexts.campanhas.model import Acao, FiltroRecusado, MedicosDesconhecidos, StatusDaCampanha, TipoDeCampanha
from app.contexts.campanhas.relato import (
    agendada_em_palavras,
    campanha_em_palavras,
    progresso_em_palavras,
    situacao_em_palavras,
    situacao_em_texto,
)
from app.contexts.campanhas.service import Campanhas, NovaCampanha
from batuta.cli import CliContext, JsonFlag, cli_context, current_user

COLUMNS = (
    "id",
    "nome_template",
    "tipo_campanha",
    "status",
    "agendar_para",
    "total_destinatarios",
    "enviados",
    "entregues",
    "respondidos",
)


def listar(
    context: typer.Context,
    status: Annotated[StatusDaCampanha | None, typer.Option("--status")] = None,
    limite: Annotated[int, typer.Option("--limite", min=1, max=500)] = 50,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    rows = ask(ctx, lambda julia: julia.campaigns.campanhas.todas(status=status, limit=limite))
    campanhas = [campanha_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"campanhas": campanhas}, as_json, lambda: _print_all(ctx, campanhas))


def ver(context: typer.Context, id: int, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    document = _progress(ctx, id)
    ctx.show(document, as_json, lambda: _print(ctx, document))


def porque(context: typer.Context, id: int, quem: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    document = situacao_em_palavras(ask(ctx, lambda julia: julia.campaigns.campanhas.situacao_de(id, quem)))
    ctx.show(document, as_json, lambda: ctx.say(situacao_em_texto(ctx.texts(), document)))


def criar(
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
        **({"quantidade_alvo": quantidade} if filtros is None or quantidade != 50 else {}),
    }
    nova = NovaCampanha(nome=nome, tipo=tipo, corpo=corpo, audience_filters=asked)
    id, strange = ask(ctx, lambda julia: _create(julia, nova, cliente or []))
    avisos = [ctx.texts()("campanhas.de_ninguem", valor=word) for word in strange]
    document = {"id": id, "status": StatusDaCampanha.RASCUNHO.value, "avisos": avisos}
    ctx.show(document, as_json, lambda: _confirm(ctx, "created", id))
    if not as_json:
        for each in avisos:
            ctx.say(f"  → {each}")


def agendar(
    context: typer.Context,
    id: int,
    para: Annotated[datetime | None, typer.Option("--para", formats=MOMENT)] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    at = None if para is None else para.replace(tzinfo=ctx.work().zone)
    made = ask(ctx, lambda julia: julia.campaigns.campanhas.agendar(id, at, by=current_user()))
    document = agendada_em_palavras(id, made)
    ctx.show(document, as_json, lambda: _confirm_schedule(ctx, document))


def pausar(context: typer.Context, id: int, as_json: JsonFlag = False) -> None:
    _do(cli_context(context), Acao.PAUSAR, id, as_json, lambda campanhas: campanhas.pausar(id, by=current_user()))


def retomar(context: typer.Context, id: int, as_json: JsonFlag = False) -> None:
    _do(cli_context(context), Acao.RETOMAR, id, as_json, lambda campanhas: campanhas.retomar(id, by=current_user()))


def cancelar(context: typer.Context, id: int, as_json: JsonFlag = False) -> None:
    _do(cli_context(context), Acao.CANCELAR, id, as_json, lambda campanhas: campanhas.cancelar(id, by=current_user()))


COMMANDS: dict[str, Callable[..., None]] = {
    "listar": listar,
    "ver": ver,
    "porque": porque,
    "criar": criar,
    "agendar": agendar,
    "pausar": pausar,
    "retomar": retomar,
    "cancelar": cancelar,
}


def _do(
    ctx: CliContext, acao: Acao, id: int, as_json: bool, act: Callable[[Campanhas], Awaitable[StatusDaCampanha]]
) -> None:
    status = ask(ctx, lambda julia: act(julia.campaigns.campanhas))
    ctx.show(
        {"id": id, "status": status.value}, as_json, lambda: _confirm(ctx, acao.value, id, status=_status(ctx, status))
    )


def _progress(ctx: CliContext, id: int) -> dict[str, Any]:
    progresso = ask(ctx, lambda julia: julia.campaigns.campanhas.progresso(id))
    return progresso_em_palavras(progresso, ctx.work().zone)


async def _create(julia: Julia, nova: NovaCampanha, clientes: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    unknown = MedicosDesconhecidos(quantos=1)
    if ids := [await id_of(julia, ["clientes"], each, unknown) for each in clientes]:
        nova = replace(nova, audience_filters={**nova.audience_filters, "clientes_especificos": ids})
    campanhas = julia.campaigns.campanhas
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


def _confirm_schedule(ctx: CliContext, document: dict[str, Any]) -> None:
    status, count = _status(ctx, document["status"]), document["destinatarios"]
    _confirm(ctx, Acao.AGENDAR.value, document["id"], status=status, destinatarios=count)
    if document["excluidos"]:
        ctx.say(ctx.texts()("cli.campanhas.excluidos", reasons=_count_reasons(ctx, "exclusao", document["excluidos"])))


def _status(ctx: CliContext, status: str) -> str:
    return word(ctx, "campanha", status)


def _count_reasons(ctx: CliContext, kind: str, reasons: dict[str, int]) -> str:
    """Format ``reasons`` as one line: each reason in the operator's language, followed by the number of messages or
    doctors that it applies to.
    """
    return ", ".join(f"{word(ctx, kind, why)} {count}" for why, count in sorted(reasons.items()))


def _print_all(ctx: CliContext, campanhas: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not campanhas:
        ctx.say(texts("cli.campanhas.none"))
        return
    table = ctx.table("cli.campanhas.column_", COLUMNS)
    for each in campanhas:
        row = {
            **each,
            "tipo_campanha": word(ctx, "tipo_de_campanha", each["tipo_campanha"]),
            "status": _status(ctx, each["status"]),
            "agendar_para": ctx.moment(each["agendar_para"]) or "-",
        }
        table.add_row(*(str(row[column]) for column in COLUMNS))
    ctx.out.print(table)


def _print(ctx: CliContext, document: dict[str, Any]) -> None:
    texts, progress = ctx.texts(), document["progresso"]
    tipo, status = word(ctx, "tipo_de_campanha", document["tipo_campanha"]), _status(ctx, document["status"])
    name = document["nome_template"]
    ctx.say(texts("cli.campanhas.head", id=document["id"], nome_template=name, tipo_campanha=tipo, status=status))
    for instant in ("agendar_para", "iniciada_em", "concluida_em"):
        if document[instant]:
            ctx.say(texts(f"cli.campanhas.{instant}", at=ctx.moment(document[instant])))
    if document["erro"]:
        ctx.say(f"  → {ctx.texts().reason(document['erro'])}")
    if document["espera"]:
        ctx.say(f"  → {texts('cli.campanhas.espera', why=texts.reason(document['espera']))}")
    if document["ninguem_recebeu"]:
        ctx.say(f"  → {texts('cli.campanhas.ninguem')}")
    counts = ("destinatarios", "enfileiradas", "na_fila", "enviados", "entregues", "respostas", "em_duvida")
    ctx.say(texts("cli.campanhas.counts", **{name: progress[name] for name in counts}))
    for group in ("bloqueadas", "canceladas", "erros", "excluidos"):
        if progress[group]:
            kind = "exclusao" if group == "excluidos" else "desfecho"
            ctx.say(texts(f"cli.campanhas.{group}", reasons=_count_reasons(ctx, kind, progress[group])))
