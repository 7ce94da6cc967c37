"""``batuta grupos status | reprocessar | backfill | carregar | revisao | ver | aprovar | rejeitar``."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast
from uuid import UUID

import typer
from rich.progress import Progress
from rich.table import Table

from app.cli.grupos import autores, avaliar, fechamentos, ler, listas, nomes
from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.recebidas import motivo_em_palavras
from app.contexts.grupos.relato import CAMPOS, vaga_em_palavras
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.nomes.correcoes import Correcao
from app.contexts.vagas.revisao import Decidida, Revisao, VagaInexistente
from app.settings import Settings
from batuta.cli.context import REFUSED, Desk, JsonFlag, desk_of, wait_for, who
from batuta.stores.sql.database import Row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.contexts.esteira.operacao import Operacao

T = TypeVar("T")
BATCH = 100


class StatusDaVaga(StrEnum):
    """What can be listed of what was read."""

    AGUARDANDO_REVISAO = "aguardando_revisao"
    IMPORTADA = "importada"
    REJEITADA = "rejeitada"
    DESCARTADA = "descartada"
    DUPLICADA = "duplicada"


Limite = Annotated[int, typer.Option("--limite", min=1, max=100_000)]


def status(context: typer.Context, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    found, reasons = wait_for(_counts(desk))
    document = {"fila": found, "descartadas_por_motivo": reasons}
    desk.show(document, as_json, lambda: _tell_counts(desk, found, reasons))


def reprocessar(
    context: typer.Context,
    estagio: Annotated[Estagio | None, typer.Option("--estagio")] = None,
    limite: Limite = 100,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    revived = wait_for(_revive(desk, estagio, limite))
    told = desk.texts()("cli.grupos.revived", count=revived)
    document = {"sucesso": True, "reprocessados": revived, "mensagem": told}
    desk.show(document, as_json, lambda: desk.say(told))


def backfill(
    context: typer.Context,
    limite: Limite = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    found, added = wait_for(_backfill(desk, limite, dry_run))
    document = {"encontradas": found, "enfileiradas": added, "dry_run": dry_run}
    key = "would_enqueue" if dry_run else "enqueued"
    desk.show(document, as_json, lambda: desk.say(desk.texts()(f"cli.grupos.{key}", found=found, added=added)))


def carregar(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(dir_okay=False, exists=True, readable=True)],
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    try:
        loaded = wait_for(_load(desk, avaliar.nomes_de(desk, file)))
    except avaliar.BadInput as wrong:
        desk.say_wrong(str(wrong))
        raise typer.Exit(REFUSED) from wrong
    desk.show(loaded, as_json, lambda: desk.say(desk.texts()("cli.grupos.loaded", **loaded)))


def revisao(
    context: typer.Context,
    status: Annotated[StatusDaVaga, typer.Option("--status")] = StatusDaVaga.AGUARDANDO_REVISAO,
    limite: Limite = 20,
    pular: listas.Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    rows, waiting = wait_for(_with_review(desk, lambda review: _page(review, status, limite, pular)))
    told = [vaga_em_palavras(row, desk.work().zone) for row in rows]
    is_more = status is StatusDaVaga.AGUARDANDO_REVISAO and told and pular + len(told) < waiting
    document = {"aguardando": waiting, "vagas": told}
    desk.show(document, as_json, lambda: _tell_waiting(desk, told, status))
    if is_more and not as_json:
        after = pular + len(told)
        desk.say(desk.texts()("cli.grupos.waiting_more", shown=len(told), count=waiting, next=after))


def ver(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    row, sources = wait_for(_with_review(desk, lambda review: review.ver(_id(id))))
    document = vaga_em_palavras(row, desk.work().zone, sources)
    desk.show(document, as_json, lambda: _tell(desk, document))


def aprovar(
    context: typer.Context,
    id: str,
    hospital: Annotated[str | None, typer.Option("--hospital")] = None,
    cidade: Annotated[str | None, typer.Option("--cidade")] = None,
    uf: Annotated[str | None, typer.Option("--uf")] = None,
    especialidade: Annotated[str | None, typer.Option("--especialidade")] = None,
    data: Annotated[datetime | None, typer.Option("--data", formats=["%Y-%m-%d"])] = None,
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
    desk = desk_of(context)
    done = wait_for(
        _with_review(desk, lambda review: review.aprovar(_id(id), how, por=who(), notas=notas and notas[:500]))
    )
    _decided(desk, done, as_json)


def rejeitar(
    context: typer.Context,
    id: str,
    motivo: Annotated[str, typer.Option("--motivo")],
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    done = wait_for(_with_review(desk, lambda review: review.rejeitar(_id(id), motivo, por=who())))
    _decided(desk, done, as_json)


COMMANDS: dict[str, Callable[..., None]] = {
    "status": status,
    "reprocessar": reprocessar,
    "backfill": backfill,
    "carregar": carregar,
    "revisao": revisao,
    "ver": ver,
    "aprovar": aprovar,
    "rejeitar": rejeitar,
    **fechamentos.COMMANDS,
    **autores.COMMANDS,
    **nomes.COMMANDS,
    **listas.COMMANDS,
    **ler.COMMANDS,
}


async def _page(review: Revisao, status: StatusDaVaga, limite: int, pular: int) -> tuple[Sequence[Row], int]:
    return await review.pendentes(limite=limite, pular=pular, status=status.value), await review.quantas()


async def _revive(desk: Desk, estagio: Estagio | None, limite: int) -> int:
    async with _operation(desk) as operacao:
        dead = await operacao.mortas(estagio, limite)
        revived = 0
        with _bar(desk) as bar:
            task = bar.add_task(desk.texts()("cli.grupos.reviving"), total=len(dead))
            async for was_dead in operacao.reprocessar(dead, por=who()):
                revived += was_dead
                bar.advance(task)
    return revived


async def _backfill(desk: Desk, limite: int, dry_run: bool) -> tuple[int, int]:
    async with _operation(desk) as operacao:
        found = await operacao.esquecidas(limite)
        added = 0
        with _bar(desk) as bar:
            task = bar.add_task(desk.texts()("cli.grupos.enqueueing"), total=len(found))
            for first in range(0, 0 if dry_run else len(found), BATCH):
                some = found[first : first + BATCH]
                added += await operacao.enfileirar(some)
                bar.advance(task, len(some))
    return len(found), added


async def _load(desk: Desk, document: Mapping[str, Any]) -> dict[str, int]:
    from app.composition.groups import names

    async with desk.work() as work:
        return await names(work).carregar(document, now=work.clock.now())


def _bar(desk: Desk) -> Progress:
    return Progress(console=desk.err, transient=True, disable=not desk.err.is_terminal)


@asynccontextmanager
async def _operation(desk: Desk) -> "AsyncIterator[Operacao]":
    from app.composition.groups import operation

    async with desk.work() as work:
        yield operation(work, cast("Settings", desk.settings()))


async def _counts(desk: Desk) -> tuple[dict[str, Any], dict[str, int]]:
    from app.composition.groups import heard

    async with _operation(desk) as operacao:
        return await operacao.fila(), await heard(desk.work()).motivos()


async def _with_review(desk: Desk, act: Callable[[Revisao], Awaitable[T]]) -> T:
    from app.composition.groups import review

    async with desk.work() as work:
        return await act(review(work, cast("Settings", desk.settings())))


def _id(said: str) -> str:
    """As the database writes it; anything else is nobody's."""
    try:
        return str(UUID(said))
    except ValueError:
        raise VagaInexistente(id=said) from None


def _decided(desk: Desk, done: Decidida, as_json: bool) -> None:
    document = {"id": done.id, "status": done.status, "vaga_id": done.vaga_id, "aprendido": done.aprendido}
    desk.show(document, as_json, lambda: desk.say(desk.texts()("cli.grupos.decided", id=done.id, status=done.status)))


def _tell_counts(desk: Desk, found: dict[str, Any], reasons: dict[str, int]) -> None:
    texts = desk.texts()
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, count in found.items():
        table.add_row(name, str(count))
    desk.out.print(table)
    if reasons:
        desk.say(texts("cli.grupos.discarded"))
    for reason, count in reasons.items():
        words = motivo_em_palavras(texts, reason)
        desk.say(texts("cli.grupos.discarded_line", count=count, motivo=reason, words=words))


def _tell_waiting(desk: Desk, told: list[dict[str, Any]], status: StatusDaVaga) -> None:
    texts = desk.texts()
    if not told:
        waits = status is StatusDaVaga.AGUARDANDO_REVISAO
        desk.say(texts("cli.grupos.none_waiting") if waits else texts("cli.grupos.none_so", status=status.value))
        return
    columns = ("id", "hospital", "especialidade", "data", "periodo", "valor", "motivo")
    table = Table(*(texts(f"cli.grupos.column_{column}") for column in columns), box=None, pad_edge=False)
    for each in told:
        fields = {name: each["campos"][name]["valor"] for name in columns if name in CAMPOS}
        row = {**fields, "id": each["id"], "motivo": motivo_em_palavras(texts, each["motivo"])}
        table.add_row(*("" if row[column] is None else str(row[column]) for column in columns))
    desk.out.print(table)


def _tell(desk: Desk, document: dict[str, Any]) -> None:
    texts, became = desk.texts(), document["vaga"]
    desk.say(f"{document['id']}  {document['status']}  {motivo_em_palavras(texts, document['motivo'])}".rstrip())
    if became is not None:
        key = "became" if became["fechada_em"] is None else "became_closed"
        desk.say(texts(f"cli.grupos.{key}", **{**became, "fechada_em": (became["fechada_em"] or "")[:16]}))
    if (before := document["anterior"]) is not None:
        told = {name: "-" if said is None else said for name, said in before.items()}
        desk.say(texts("cli.grupos.told_before", **told))
    for name in CAMPOS:
        field = document["campos"][name]
        if field["valor"] is not None:
            where = "" if field["trecho"] is None else f"  [{field['trecho'][0]}–{field['trecho'][1]}]"
            desk.say(f"  {name}: {field['valor']}{where}")
    if (asked := document["pergunta"]) is not None:
        desk.say(f"  pergunta: {asked['estado']}  {asked['em'][:16]}  {asked['mensagem'] or ''}")
    desk.say("")
    desk.out.print(document["texto"], markup=False, highlight=False)
