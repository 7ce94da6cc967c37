"""The child process that opens a stranger's file: ``python -m app.contexts.agendamentos.leitor NAME < FILE``.

It takes the file on its standard input and answers one line of JSON. It has little memory and little time; whatever the file does
to it, the process that asked goes on.
"""

import json
import resource
import sys
from typing import Final

from app.contexts.agendamentos.arquivo import MOST_BYTES, MOST_COLUMNS, MOST_ROWS, csv_lido, examinar
from app.contexts.agendamentos.celulas import Celula
from app.contexts.agendamentos.linhas import Lida, Motivo, Recusa
from app.contexts.agendamentos.planilha import cabecalho_de, ler

MEMORY: Final = 192 * 1024 * 1024  # of addresses; fifty thousand rows need 130
CPU_SECONDS: Final = 10
OUT_OF_MEMORY: Final = 3


def main(arguments: list[str]) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        answer = em_json(lida(sys.stdin.buffer.read(MOST_BYTES + 1), arguments[0]))
    except Recusa as refused:
        answer = {"recusada": refused.motivo.value, "facts": refused.facts}
    except MemoryError:
        return OUT_OF_MEMORY
    json.dump(answer, sys.stdout, ensure_ascii=True)
    return 0


def lida(content: bytes, name: str) -> Lida:
    examined = examinar(content, name)
    if examined.is_csv:
        return ler(csv_lido(content))
    return ler(_cells(content), since_1904=examined.since_1904, formulas=examined.formulas)


def em_json(read: Lida) -> dict[str, object]:
    return {
        "linhas": read.linhas,
        "total": read.total,
        "puladas": read.puladas,
        "erros": [each.em_json() for each in read.erros],
        "avisos": [each.em_json() for each in read.avisos],
    }


def _cells(content: bytes) -> list[list[Celula]]:
    """Of the first visible sheet that has a header; otherwise of the first with anything in it."""
    from io import BytesIO

    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    try:
        book = CalamineWorkbook.from_filelike(BytesIO(content))
        seen = [
            sheet.name
            for sheet in book.sheets_metadata
            if sheet.visible == SheetVisibleEnum.Visible and sheet.typ == SheetTypeEnum.WorkSheet
        ]
        first: list[list[Celula]] | None = None
        for name in seen[:20]:
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False, nrows=MOST_ROWS)
            cells: list[list[Celula]] = [[*row[:MOST_COLUMNS]] for row in rows]
            if cabecalho_de(cells) is not None:
                return cells
            first = first or cells
    except (CalamineError, ValueError, OverflowError):
        raise Recusa(Motivo.ILEGIVEL) from None
    if not first:
        raise Recusa(Motivo.VAZIA)
    return first


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
