"""``batuta grupos revisao | ver | aprovar | rejeitar``: decide about vacancies that are awaiting review."""

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from app.cli.grupos.listas import Pular
from app.cli.shared import DAY, ask, cell, id_of, read_personal, word
from app.composition.julia import Julia
from app.contexts.grupos.recebidas import campo_em_palavras, motivo_em_palavras
from app.contexts.grupos.relato import CAMPOS, vaga_em_palavras
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.nomes.correcoes import Correcao
from app.contexts.vagas.revisao import Decidida, VagaInexistente
from batuta.cli import CliContext, JsonFlag, cli_context, current_user
from batuta.sql import Row


class StatusDaExtracao(StrEnum):
    """The states by which operators can filter the list of extracted vacancies."""

    AGUARDANDO_REVISAO = "aguardando_revisao"
    IMPORTADA = "importada"
    REJEITADA = "rejeitada"
    DESCARTADA = "descartada"
    DUPLICADA = "duplicada"


def revisao(
    context: typer.Context,
    status: Annotated[StatusDaExtracao, typer.Option("--status")] = StatusDaExtracao.AGUARDANDO_REVISAO,
    limite: Annotated[int, typer.Option("--limite", min=1, max=100_000)] = 20,
    pular: Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    rows, waiting = ask(ctx, lambda julia: _page(julia, status, limite, pular))
    vagas = [vaga_em_palavras(row, ctx.work().zone) for row in rows]
    is_more = status is StatusDaExtracao.AGUARDANDO_REVISAO and vagas and pular + len(vagas) < waiting
    document = {"aguardando": waiting, "vagas": vagas}
    ctx.show(document, as_json, lambda: _print_waiting(ctx, vagas, status))
    if is_more and not as_json:
        after = pular + len(vagas)
        ctx.say(ctx.texts()("cli.grupos.waiting_more", shown=len(vagas), count=waiting, next=after))


def ver(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    row, sources = ask(ctx, lambda julia: _see(julia, id))
    document = vaga_em_palavras(row, ctx.work().zone, sources)
    ctx.show(document, as_json, lambda: _print(ctx, document))


def aprovar(
    context: typer.Context,
    id: str,
    hospital: Annotated[str | None, typer.Option("--hospital")] = None,
    cidade: Annotated[str | None, typer.Option("--cidade")] = None,
    uf: Annotated[str | None, typer.Option("--uf")] = None,
    especialidade: Annotated[str | None, typer.Option("--especialidade")] = None,
    data: Annotated[datetime | None, typer.Option("--data", formats=DAY)] = None,
    periodo: Annotated[Periodo | None, typer.Option("--periodo")] = None,
    hora_inicio: Annotated[datetime | None, typer.Option("--hora-inicio", formats=["%H:%M"])] = None,
    hora_fim: Annotated[datetime | None, typer.Option("--hora-fim", formats=["%H:%M"])] = None,
    valor: Annotated[float | None, typer.Option("--valor", min=100, max=50_000)] = None,
    notas: Annotated[str | None, typer.Option("--notas")] = None,
    as_json: JsonFlag = False,
) -> None:
    how = Correcao(
        hospital=hospital,
        cidade=cidade,
        uf=None if uf is None else uf.strip().upper(),
        especialidade=especialidade,
        data=None if data is None else data.date(),
        periodo=periodo,
        hora_inicio=None if hora_inicio is None else f"{hora_inicio:%H:%M}",
        hora_fim=None if hora_fim is None else f"{hora_fim:%H:%M}",
        valor=valor,
    )
    ctx = cli_context(context)
    noted = notas and notas[:500]
    done = ask(ctx, lambda julia: _approve(julia, id, how, noted))
    _show_decision(ctx, done, as_json)


def rejeitar(
    context: typer.Context,
    id: str,
    motivo: Annotated[str, typer.Option("--motivo")],
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    done = ask(ctx, lambda julia: _reject(julia, id, motivo))
    _show_decision(ctx, done, as_json)


COMMANDS: dict[str, Callable[..., None]] = {"revisao": revisao, "ver": ver, "aprovar": aprovar, "rejeitar": rejeitar}


async def _page(julia: Julia, status: StatusDaExtracao, limite: int, pular: int) -> tuple[Sequence[Row], int]:
    review = julia.groups.revisao
    reading = review.pendentes(limite=limite, pular=pular, status=status.value)
    return await read_personal(julia, "grupos revisao", reading), await review.quantas()


async def _id(julia: Julia, written: str) -> str:
    return await id_of(julia, ("vagas_grupo", "vagas"), written, VagaInexistente(id=written))


async def _see(julia: Julia, id: str) -> tuple[Row, Sequence[Row]]:
    row, sources = await julia.groups.revisao.ver(await _id(julia, id))
    await julia.work.access.note(actor=current_user(), action="access.read", subject="batuta grupos ver", count=1)
    return row, sources


async def _approve(julia: Julia, id: str, how: Correcao, notes: str | None) -> Decidida:
    return await julia.groups.revisao.aprovar(await _id(julia, id), how, por=current_user(), notas=notes)


async def _reject(julia: Julia, id: str, motivo: str) -> Decidida:
    return await julia.groups.revisao.rejeitar(await _id(julia, id), motivo, por=current_user())


def _show_decision(ctx: CliContext, done: Decidida, as_json: bool) -> None:
    document = {"id": done.id, "status": done.status, "vaga_id": done.vaga_id, "aprendido": done.aprendido}
    ctx.show(document, as_json, lambda: _print_decided(ctx, done))


def _print_decided(ctx: CliContext, done: Decidida) -> None:
    ctx.say(ctx.texts()("cli.grupos.decided", id=done.id, status=word(ctx, "vaga", done.status)))


def _print_waiting(ctx: CliContext, vagas: list[dict[str, Any]], status: StatusDaExtracao) -> None:
    texts = ctx.texts()
    if not vagas:
        waits, state = status is StatusDaExtracao.AGUARDANDO_REVISAO, word(ctx, "vaga", status)
        ctx.say(texts("cli.grupos.none_waiting") if waits else texts("cli.grupos.none_so", status=state))
        return
    columns = ("id", "hospital", "especialidade", "data", "periodo", "valor", "motivo")
    table = ctx.table("cli.grupos.column_", columns)
    for each in vagas:
        fields = {name: each["campos"][name]["valor"] for name in columns if name in CAMPOS}
        row = {**fields, "id": each["id"], "motivo": motivo_em_palavras(texts, each["motivo"])}
        table.add_row(*(cell(ctx, column, row[column]) for column in columns))
    ctx.out.print(table)


def _print(ctx: CliContext, document: dict[str, Any]) -> None:
    texts, became = ctx.texts(), document["vaga"]
    status, why = word(ctx, "vaga", document["status"]), motivo_em_palavras(texts, document["motivo"])
    ctx.say(f"{document['id']}  {status}  {why}".rstrip())
    if became is not None:
        key = "became" if became["fechada_em"] is None else "became_closed"
        ctx.say(texts(f"cli.grupos.{key}", **_format_fields(ctx, became)))
    if (before := document["anterior"]) is not None:
        ctx.say(texts("cli.grupos.known_before", **_format_fields(ctx, before)))
    for name in CAMPOS:
        field = document["campos"][name]
        if field["valor"] is not None:
            where = "" if field["trecho"] is None else f"  [{field['trecho'][0]}–{field['trecho'][1]}]"
            ctx.say(f"  {campo_em_palavras(texts, name)}: {cell(ctx, name, field['valor'])}{where}")
    if (asked := document["pergunta"]) is not None:
        state, sent = word(ctx, "pergunta", asked["estado"]), word(ctx, "mensagem", asked["mensagem"])
        ctx.say(texts("cli.grupos.asked", state=state, at=ctx.moment(asked["em"]), message=sent))
    ctx.say("")
    ctx.out.print(document["texto"], markup=False, highlight=False)


def _format_fields(ctx: CliContext, vaga: dict[str, Any]) -> dict[str, str]:
    shown = {name: cell(ctx, name, value) or "-" for name, value in vaga.items()}
    return shown | ({"fechada_em": ctx.moment(vaga["fechada_em"])} if vaga.get("fechada_em") else {})
