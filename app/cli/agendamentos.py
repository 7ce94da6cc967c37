"""``batuta agendamentos``: import, list and export appointments, parse their addresses and documents again with the
current rules, and measure how accurately the rules parse a labelled file.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from app.cli.shared import DAY, Arquivo, Saida, T, ask, cell, id_of, read_personal, word, write_private
from app.composition.julia import Julia, julia_of
from app.contexts.agendamentos.importacao import resultado
from app.contexts.agendamentos.model import (
    AgendamentoInexistente,
    ImportacaoInexistente,
    StatusDaLeitura,
    colunas_ditas,
    recusada,
)
from app.contexts.agendamentos.normalizacao import documento_em_json, endereco_em_json, lido_pelas_regras
from app.contexts.agendamentos.planilha.colunas import nome_dito
from app.contexts.agendamentos.planilha.linhas import PlanilhaLida, Recusa
from app.contexts.agendamentos.planilha.processo import LeitorDeArquivos
from app.contexts.agendamentos.relato import Visao, agendamento_em_palavras, em_csv
from app.contexts.agendamentos.service import Filtro
from batuta.cli import FAILED, CliContext, JsonFlag, cli_context, current_user, wait_for
from batuta.extension import Texts
from batuta.kernel import Json, SystemClock
from batuta.reasons import decode
from batuta.sql import Row

FileArgument = Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, metavar="ARQUIVO")]
Documents = Annotated[bool, typer.Option("--documentos")]
ADDRESS = ("logradouro", "numero", "complemento", "bairro", "cidade", "uf", "cep")
DOCUMENT = ("cpf", "rg", "orgao_emissor", "uf_emissor")
COLUMNS = ("id", "data_agendamento", "hora_agendamento", "nome_unidade", "status", "normalization_status")
SHOWN_DOCUMENTS = ("cpf", "rg")
COUNTS = ("total_rows", "imported", "duplicates", "skipped", "invalid_rows", "jobs_enqueued")
IMPORT_COLUMNS: Final = ("created_at", "arquivo", "status", "progress", "imported", "duplicates", "invalid_rows", "id")
PAGE = 500
MOST_LISTED = 20


def importar(
    context: typer.Context,
    arquivo: FileArgument,
    coluna: Annotated[list[str] | None, typer.Option("--coluna", metavar="TITULO=CAMPO")] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    content = arquivo.read_bytes()
    with _progress(ctx, as_json) as progress:
        row = ask(ctx, lambda julia: _import_file(julia, content, arquivo.name, coluna or (), progress))
    document = resultado(row)
    ctx.show(document, as_json, lambda: _print(ctx, document))
    if document["imported"] + document["duplicates"] == 0:
        raise typer.Exit(FAILED)


def listar(
    context: typer.Context,
    situacao: Annotated[StatusDaLeitura | None, typer.Option("--leitura")] = None,
    dia: Annotated[datetime | None, typer.Option("--dia", formats=DAY)] = None,
    unidade: Annotated[str | None, typer.Option("--unidade")] = None,
    importacao: Annotated[str | None, typer.Option("--importacao")] = None,
    limite: Annotated[int, typer.Option("--limite", min=1, max=PAGE)] = 50,
    documentos: Documents = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    day = None if dia is None else dia.date().isoformat()
    asked = Filtro(leitura=situacao, de=day, ate=day, unidade=unidade)
    rows = ask(ctx, lambda julia: _read_audited(julia, "listar", _list(julia, asked, importacao, limite), documentos))
    shown = [agendamento_em_palavras(row, _visao(documentos)) for row in rows]
    ctx.show({"appointments": shown}, as_json, lambda: _print_all(ctx, shown, documentos))


def contar(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    counts = ask(ctx, lambda julia: julia.appointments.agendamentos.contagem())
    ctx.show(counts, as_json, lambda: ctx.say(_format_counts(ctx, counts)))


def saude(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Show the health of the tasks that parse appointments: queue size, rate, errors, latency and workers."""
    ctx = cli_context(context)
    document = ask(ctx, lambda julia: julia.appointments.health.documento())
    ctx.show(document, as_json, lambda: ctx.out.print(_health_table(ctx, document)))
    if document["status"] != "healthy":
        raise typer.Exit(FAILED)


def exportar(
    context: typer.Context,
    arquivo: Arquivo,
    documentos: Documents = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    count = ask(ctx, lambda julia: _export(julia, arquivo, documentos))
    document = {"linhas": count, "saida": str(arquivo)}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.agendamentos.exported", **document)))


def reprocessar(
    context: typer.Context,
    limite: Annotated[int, typer.Option("--limite", min=1, max=10_000)] = 1000,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    found = ask(ctx, lambda julia: julia.appointments.agendamentos.reprocessar(limit=limite, by=current_user()))
    document = {"jobs_enqueued": len(found)}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.agendamentos.reprocessed", **document)))


def avaliar(
    context: typer.Context,
    arquivo: FileArgument,
    saida: Saida,
    coluna: Annotated[list[str] | None, typer.Option("--coluna", metavar="TITULO=CAMPO")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Parse every row of a spreadsheet using only the rules, without a database, and write the fields to a file."""
    ctx = cli_context(context)
    chosen = colunas_ditas(coluna or ())
    lida = wait_for(_read(julia_of(ctx.work()).appointments.leitura, arquivo.read_bytes(), arquivo.name, chosen))
    clock = SystemClock()
    began = clock.monotonic()
    shown = [dict(_predict(row)) for row in lida.linhas]
    seconds = max(clock.monotonic() - began, 1e-9)
    write_private(saida, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in shown))
    document = {"linhas": len(shown), "saida": str(saida), "linhas_por_segundo": round(len(shown) / seconds)}
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.agendamentos.evaluated", **document)))


def ver(
    context: typer.Context,
    id: str,
    documentos: Annotated[bool, typer.Option("--documentos")] = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    row = ask(ctx, lambda julia: _read_audited(julia, "ver", _one(julia, id), documentos))
    shown = agendamento_em_palavras(row, _visao(documentos))
    ctx.show(shown, as_json, lambda: _print_one(ctx, shown, documentos))


def importacoes(
    context: typer.Context,
    id: Annotated[str | None, typer.Argument(metavar="[ID]")] = None,
    limite: Annotated[int, typer.Option("--limite", min=1, max=100)] = 20,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    if id is None:
        rows = ask(
            ctx,
            lambda julia: read_personal(
                julia, "agendamentos importacoes", julia.appointments.importacao.recentes(limite)
            ),
        )
        shown = [_import(ctx, row) for row in rows]
        ctx.show({"imports": shown}, as_json, lambda: _print_imports(ctx, shown))
        return
    row = ask(ctx, lambda julia: _one_import(julia, id))
    if row is None:
        raise ImportacaoInexistente(id=id)
    one = _import(ctx, row)
    ctx.show(one, as_json, lambda: _print_import(ctx, one))


async def _list(julia: Julia, asked: Filtro, importacao: str | None, limite: int) -> Sequence[Row]:
    """List appointments. ``importacao`` is the id of an import, or the first characters of that id."""
    if importacao is not None:
        file = await id_of(julia, ["importacoes"], importacao, ImportacaoInexistente(id=importacao))
        asked = replace(asked, importacao=file)
    return await julia.appointments.agendamentos.lista(asked, limite)


async def _one(julia: Julia, id: str) -> Row:
    whole = await id_of(julia, ["appointments"], id, AgendamentoInexistente(id=id))
    return await julia.appointments.agendamentos.um(whole)


async def _one_import(julia: Julia, id: str) -> Row | None:
    whole = await id_of(julia, ["importacoes"], id, ImportacaoInexistente(id=id))
    found = julia.appointments.importacao.encontrada(whole)
    return await read_personal(julia, "agendamentos importacoes", found)


COMMANDS: dict[str, Callable[..., None]] = {
    "importar": importar,
    "listar": listar,
    "contar": contar,
    "saude": saude,
    "exportar": exportar,
    "reprocessar": reprocessar,
    "avaliar": avaliar,
    "ver": ver,
    "importacoes": importacoes,
}


class _progress:  # noqa: N801 - a context manager, used as a word
    """Show a progress bar on a terminal. Pipes and JSON output get no progress bar."""

    def __init__(self, ctx: CliContext, as_json: bool) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=ctx.err, transient=True, disable=as_json or not ctx.err.is_terminal)
        self._what = ctx.texts()("cli.agendamentos.importing")

    def __enter__(self) -> Callable[[int, int], None]:
        self._bar.start()
        task = self._bar.add_task(self._what, total=None)
        return lambda done, total: self._bar.update(task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def _print(ctx: CliContext, document: dict[str, Any]) -> None:
    texts = ctx.texts()
    ctx.say(texts("cli.agendamentos.imported", **{name: document[name] for name in COUNTS}))
    mapping = ", ".join(f"{titulo} → {nome_dito(campo)}" for titulo, campo in document["colunas"].items())
    ctx.say(texts("cli.agendamentos.columns_read", colunas=mapping))
    problems = [("errors", each) for each in document["errors"]] + [("warnings", each) for each in document["warnings"]]
    for kind, each in problems[:MOST_LISTED]:
        ctx.say(_problem(texts, kind, each))
    if len(problems) > MOST_LISTED:
        ctx.say(texts("cli.agendamentos.more", count=len(problems) - MOST_LISTED, id=document["importacao_id"]))
    ctx.say(texts("cli.agendamentos.import_hint", id=document["importacao_id"]))


def _health_table(ctx: CliContext, document: Mapping[str, Any]) -> Table:
    texts, metrics = ctx.texts(), document["metrics"]
    alerts = ", ".join(texts(f"cli.agendamentos.alert_{each}") for each in document["alerts"])
    counts = _format_counts(ctx, {status: count for status, count in metrics["appointments"].items() if count})
    has_worker = texts("cli.agendamentos.yes" if metrics["has_worker"] else "cli.agendamentos.no")
    figures = {
        "status": texts(f"cli.agendamentos.health_{document['status']}"),
        "alerts": alerts or "-",
        **metrics,
        "oldest_due_seconds": _span(texts, metrics["oldest_due_seconds"]),
        "average_latency_seconds": _span(texts, metrics["average_latency_seconds"]),
        "processing_rate_per_minute": texts.number(metrics["processing_rate_per_minute"], 1),
        "error_rate": f"{texts.number(100 * metrics['error_rate'], 1)} %",
        "has_worker": has_worker,
        "appointments": counts or "-",
    }
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in figures.items():
        table.add_row(texts(f"cli.agendamentos.figure_{name}"), str(value))
    return table


def _format_counts(ctx: CliContext, counts: Mapping[str, int]) -> str:
    return ", ".join(f"{word(ctx, 'leitura', status)} {count}" for status, count in counts.items())


def _span(texts: Texts, seconds: float | None) -> str:
    return "-" if seconds is None else texts.span(timedelta(seconds=round(seconds, 1)))


def _print_all(ctx: CliContext, shown: list[dict[str, Any]], documentos: bool) -> None:
    texts = ctx.texts()
    if not shown:
        ctx.say(texts("cli.agendamentos.none"))
        return
    columns = (*COLUMNS, *SHOWN_DOCUMENTS) if documentos else COLUMNS
    table = ctx.table("cli.agendamentos.column_", columns)
    for each in shown:
        table.add_row(*(_format_field(ctx, column, each[column]) or "-" for column in columns))
    ctx.out.print(table)


def _format_field(ctx: CliContext, column: str, value: object) -> str:
    """Format one field of an appointment for display. States, dates and parsing problems are translated; the value of
    ``status`` is shown as it is written in the spreadsheet.
    """
    match column, value:
        case "normalization_status", str():
            return word(ctx, "leitura", value)
        case "normalization_error", str():
            return ctx.texts().reason(decode(value) or "")
        case "normalization_warnings", list():
            return ", ".join(word(ctx, "aviso_da_leitura", str(each)) for each in value)
        case (("normalized_at" | "created_at" | "updated_at"), str()):
            return ctx.moment(value)
        case (("endereco_normalizado" | "documento_normalizado"), dict()):
            return ", ".join(f"{name} {said}" for name, said in value.items() if said not in (None, "", []))
        case "status", str():
            return value
        case _:
            return cell(ctx, column, value)


async def _import_file(
    julia: Julia, content: bytes, name: str, colunas: Sequence[str], progress: Callable[[int, int], None]
) -> Row:
    importacao, by = julia.appointments.importacao, current_user()
    row = await importacao.importar(content, name, by=by, colunas=colunas, progress=progress)
    await julia.work.access.note(
        actor=current_user(),
        action="access.import",
        subject="batuta agendamentos importar",
        count=row["imported"],
        importacao=row["id"],
    )
    return row


def _visao(documentos: bool) -> Visao:
    return Visao.INTEIRA if documentos else Visao.SEM_DADOS


async def _read_audited(julia: Julia, command: str, reading: Awaitable[T], documentos: bool) -> T:
    """Await ``reading`` and return its result. If ``documentos`` is set, record in the audit log that personal data was
    shown.
    """
    if not documentos:
        return await reading
    return await read_personal(julia, f"agendamentos {command}", reading, action="unmask")


async def _export(julia: Julia, saida: Path, documentos: bool) -> int:
    visao = _visao(documentos)
    pages, before, count = [em_csv([], visao, header=True)], None, 0
    for _ in range(1_000_000):
        rows = await julia.appointments.agendamentos.lista(Filtro(antes_de=before), PAGE)
        pages.append(em_csv(rows, visao, header=False))
        count += len(rows)
        if len(rows) < PAGE:
            break
        before = rows[-1]["id"]
    await julia.work.access.note(
        actor=current_user(),
        action="access.export",
        subject="batuta agendamentos exportar",
        count=count,
        view=visao.name.lower(),
    )
    write_private(saida, "".join(pages), encoding="utf-8-sig")
    return count


async def _read(leitura: LeitorDeArquivos, content: bytes, name: str, chosen: Mapping[str, str]) -> PlanilhaLida:
    try:
        return await leitura.ler(content, name, chosen)
    except Recusa as refused:
        raise recusada(refused) from None


def _predict(row: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    endereco, documento = lido_pelas_regras(row.get("endereco_completo"), row.get("documento_completo"), row.get("cep"))
    address, document = endereco_em_json(endereco), documento_em_json(documento)
    yield "linha", row["linha"]
    yield "endereco_normalizado", {each: address[each] for each in ADDRESS}
    yield "cpf", documento.cpf
    yield "rg", documento.rg
    yield "documento_normalizado", {each: document[each] for each in DOCUMENT}
    yield "data", row.get("data_agendamento")
    yield "hora", row.get("hora_agendamento")
    yield "telefone", row.get("telefone")


def _import(ctx: CliContext, row: Any) -> dict[str, Any]:
    read = row["valid_rows"] + row["invalid_rows"] + row["skipped"]
    at = row["created_at"].astimezone(ctx.work().zone).isoformat(timespec="seconds")
    return {**resultado(row), "created_at": at, "read_rows": read}


def _print_one(ctx: CliContext, shown: dict[str, Any], documentos: bool) -> None:
    for name, value in shown.items():
        if value not in (None, ""):
            label = ctx.texts().get(f"cli.agendamentos.column_{name}", name)
            ctx.say(f"{label}: {_format_field(ctx, name, value)}")
    if not documentos:
        ctx.say(ctx.texts()("cli.agendamentos.covered"))


def _print_imports(ctx: CliContext, shown: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not shown:
        ctx.say(texts("cli.agendamentos.no_import"))
        return
    table = ctx.table("cli.agendamentos.import_", IMPORT_COLUMNS)
    for each in shown:
        progress = f"{each['read_rows']}/{each['total_rows']}"
        row = {**each, "arquivo": each["filename"], "id": each["importacao_id"], "progress": progress}
        row |= {"created_at": ctx.moment(each["created_at"]), "status": word(ctx, "importacao", each["status"])}
        table.add_row(*(str(row[column]) for column in IMPORT_COLUMNS))
    ctx.out.print(table)


def _print_import(ctx: CliContext, one: dict[str, Any]) -> None:
    texts = ctx.texts()
    _print_imports(ctx, [one])
    for kind in ("errors", "warnings"):
        for each in one[kind]:
            ctx.say(_problem(texts, kind, each))


def _problem(texts: Texts, kind: str, problem: Mapping[str, Any]) -> str:
    """Format one import problem as a line of output. ``kind`` is ``errors`` or ``warnings``."""
    line = problem["linha"] or "-"
    if problem.get("aba") is not None:
        line = texts("cli.agendamentos.of_sheet", linha=line, aba=problem["aba"])
    why = texts(f"agendamentos.motivo.{problem['problema']}")
    return texts(f"cli.agendamentos.{kind}", linha=line, coluna=problem["coluna"] or "-", motivo=why)
