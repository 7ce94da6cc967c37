"""``batuta agendamentos ver | importacoes``: one appointment, and the files that came."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, TypeVar, cast
from uuid import UUID

import typer
from rich.table import Table

from app.contexts.agendamentos.importacao import Importacao, resultado
from app.contexts.agendamentos.model import AgendamentoInexistente, ImportacaoInexistente
from app.contexts.agendamentos.relato import agendamento_em_palavras
from app.contexts.agendamentos.service import Agendamentos
from app.settings import Settings
from batuta.cli.context import Desk, JsonFlag, desk_of, wait_for
from batuta.kernel.errors import BatutaError
from batuta.texts import Texts

T = TypeVar("T")
# Who it is and where he lives is shown with the documents, and to nobody else.
PRIVATE: Final = (
    "nome_paciente", "telefone", "cep", "endereco_coleta", "endereco_completo", "endereco_normalizado", "observacoes",
    "carteira_convenio", "numero_convenio",
)  # fmt: skip
COLUMNS: Final = ("created_at", "arquivo", "status", "progress", "imported", "duplicates", "invalid_rows", "id")


def ver(
    context: typer.Context,
    id: str,
    documentos: Annotated[bool, typer.Option("--documentos")] = False,
    as_json: JsonFlag = False,
) -> None:
    desk, asked = desk_of(context), _id(id, AgendamentoInexistente(id=id))
    row = wait_for(_with(desk, lambda those, _: those.um(asked)))
    told = agendamento_em_palavras(row, com_documentos=documentos)
    shown = {name: value for name, value in told.items() if documentos or name not in PRIVATE}
    desk.show(shown, as_json, lambda: _tell(desk, shown, documentos))


def importacoes(
    context: typer.Context,
    id: Annotated[str | None, typer.Argument(metavar="[ID]")] = None,
    limite: Annotated[int, typer.Option("--limite", min=1, max=100)] = 20,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    if id is None:
        rows = wait_for(_with(desk, lambda _, importing: importing.recentes(limite)))
        told = [_import(desk, row) for row in rows]
        desk.show({"imports": told}, as_json, lambda: _tell_imports(desk, told))
        return
    asked = _id(id, ImportacaoInexistente(id=id))
    row = wait_for(_with(desk, lambda _, importing: importing.encontrada(asked)))
    if row is None:
        raise ImportacaoInexistente(id=id)
    one = _import(desk, row)
    desk.show(one, as_json, lambda: _tell_import(desk, one))


COMMANDS: dict[str, Callable[..., None]] = {"ver": ver, "importacoes": importacoes}


async def _with(desk: Desk, act: Callable[[Agendamentos, Importacao], Awaitable[T]]) -> T:
    from app.composition.appointments import appointments_of

    async with desk.work() as work:
        return await act(*appointments_of(work, cast("Settings", desk.settings())))


def _id(said: str, wrong: BatutaError) -> str:
    try:
        return str(UUID(said))
    except ValueError:
        raise wrong from None


def _import(desk: Desk, row: Any) -> dict[str, Any]:
    read = row["valid_rows"] + row["invalid_rows"] + row["skipped"]
    return {**resultado(row), "created_at": desk.local(row["created_at"]), "read_rows": read}


def _tell(desk: Desk, shown: dict[str, Any], documentos: bool) -> None:
    for name, value in shown.items():
        if value not in (None, ""):
            desk.say(f"{name}: {value}")
    if not documentos:
        desk.say(desk.texts()("cli.agendamentos.covered"))


def _tell_imports(desk: Desk, told: list[dict[str, Any]]) -> None:
    texts = desk.texts()
    if not told:
        desk.say(texts("cli.agendamentos.no_import"))
        return
    table = Table(*(texts(f"cli.agendamentos.import_{column}") for column in COLUMNS), box=None, pad_edge=False)
    for each in told:
        progress = f"{each['read_rows']}/{each['total_rows']}"
        row = {**each, "arquivo": each["filename"], "id": each["importacao_id"], "progress": progress}
        table.add_row(*(str(row[column]) for column in COLUMNS))
    desk.out.print(table)


def _tell_import(desk: Desk, one: dict[str, Any]) -> None:
    texts = desk.texts()
    _tell_imports(desk, [one])
    for kind in ("errors", "warnings"):
        for each in one[kind]:
            desk.say(problem_said(texts, kind, each))


def problem_said(texts: Texts, kind: str, problem: Mapping[str, Any]) -> str:
    """``kind``: errors or warnings."""
    line = problem["linha"] or "-"
    if problem.get("aba") is not None:
        line = texts("cli.agendamentos.of_sheet", linha=line, aba=problem["aba"])
    why = texts(f"agendamentos.motivo.{problem['problema']}")
    return texts(f"cli.agendamentos.{kind}", linha=line, coluna=problem["coluna"] or "-", motivo=why)
