"""The child process that opens a stranger's file: ``python -m app.contexts.agendamentos.leitor NAME LINE < FILE``.

It takes the file on its standard input and answers in frames, each the length of a JSON text and the text: a refusal, or how many
rows the sheet has and then its rows after LINE, some at a time; whoever does not read them keeps it waiting. It has little memory
and little time; whatever the file does to it, the process that asked goes on.

Everything a file can be refused for is known before its first row is given: while it is opened the limits are narrower than
afterwards, and what comes afterwards needs little more. So nobody has to take back what a refused file has brought.
"""

import json
import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from app.contexts.agendamentos.arquivo import MOST_BYTES, MOST_COLUMNS, MOST_ROWS, csv_lido, examinar
from app.contexts.agendamentos.celulas import Celula
from app.contexts.agendamentos.linhas import LONGEST_NAME, Motivo, Pedaco, Problema, Recusa, Reparo
from app.contexts.agendamentos.planilha import TOP, Aspecto, Cabecalho, aspecto_de, cabecalho_conferido, pedacos_de

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

MOST_SHEETS: Final = 20
MEMORY: Final = 192 * 1024 * 1024  # of addresses; fifty thousand rows need 100
MEMORY_TO_OPEN: Final = MEMORY - 32 * 1024 * 1024
CPU_SECONDS: Final = 30
CPU_SECONDS_TO_OPEN: Final = 10
OUT_OF_MEMORY: Final = 3
LENGTH: Final = 4  # bytes of a frame that say how many follow


@dataclass(frozen=True, slots=True)
class Folha:
    """A sheet that can be taken: ``altura`` rows, those above its header and empty ones among them."""

    altura: int
    header: Cabecalho
    linhas: Callable[[], Iterable[Sequence[Celula]]]
    since_1904: bool = False
    formulas: Sequence[int] = ()
    ignoradas: Sequence[str] = ()  # other sheets of appointments

    def pedacos(self, apos: int = 0) -> Iterator[Pedaco]:
        told = [Reparo(None, name[:LONGEST_NAME], Problema.ABA_IGNORADA) for name in self.ignoradas]
        told += [Reparo(row, None, Problema.FORMULA) for row in self.formulas if row > self.header.linha]
        return pedacos_de(self.linhas(), self.header, since_1904=self.since_1904, avisos=told, apos=apos)


def main(arguments: list[str]) -> int:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(MEMORY_TO_OPEN, CPU_SECONDS_TO_OPEN)
    try:
        folha = aberta(sys.stdin.buffer.read(MOST_BYTES + 1), arguments[0])
        _limit(MEMORY, CPU_SECONDS)
        _say({"altura": folha.altura})
        for pedaco in folha.pedacos(int(arguments[1])):
            _say(_em_json(pedaco))
    except Recusa as refused:
        _say({"recusada": refused.motivo.value, "facts": refused.facts})
    except MemoryError:
        return OUT_OF_MEMORY
    return 0


def aberta(content: bytes, name: str) -> Folha:
    """Raises ``Recusa``; nothing does that afterwards."""
    examined = examinar(content, name)
    if examined.is_csv:
        height, rows = csv_lido(content)
        return Folha(height, cabecalho_conferido([*islice(rows(), TOP)]), rows)
    return _of_workbook(content, since_1904=examined.since_1904, formulas=examined.formulas)


def _of_workbook(content: bytes, *, since_1904: bool, formulas: Sequence[int]) -> Folha:
    """Of the visible sheet that looks most like appointments, the first of several; another one that does is named."""
    from io import BytesIO

    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    looks: dict[str, Aspecto] = {}
    try:
        book = CalamineWorkbook.from_filelike(BytesIO(content))
        seen = [
            sheet.name
            for sheet in book.sheets_metadata
            if sheet.visible == SheetVisibleEnum.Visible and sheet.typ == SheetTypeEnum.WorkSheet
        ]
        for name in seen[:MOST_SHEETS]:
            found = book.get_sheet_by_name(name)  # only one at a time is held
            looks[name] = aspecto_de(_top(found))
        chosen = min(looks, key=lambda name: looks[name], default=None)
        if chosen is None or looks[chosen] is Aspecto.VAZIA:
            raise Recusa(Motivo.VAZIA)
        if chosen != found.name:
            found = book.get_sheet_by_name(chosen)
        top = _top(found)
    except (CalamineError, ValueError, OverflowError):
        raise Recusa(Motivo.ILEGIVEL) from None
    height = 0 if found.end is None else found.end[0] + 1
    if height > MOST_ROWS:
        raise Recusa(Motivo.GRANDE, oque=f"linha {height}", limite=MOST_ROWS)

    def rows() -> Iterator[Sequence[Celula]]:
        for row in found.iter_rows():
            yield row[:MOST_COLUMNS]

    others = [name for name, look in looks.items() if name != chosen and look <= Aspecto.DE_PACIENTES]
    return Folha(height, cabecalho_conferido(top), rows, since_1904, formulas, others)


def _top(sheet: "CalamineSheet") -> list[list[Celula]]:
    return [[*row[:MOST_COLUMNS]] for row in sheet.to_python(skip_empty_area=False, nrows=TOP)]


def _limit(memory: int, seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, CPU_SECONDS))


def _em_json(pedaco: Pedaco) -> dict[str, object]:
    return {
        "linhas": pedaco.linhas,
        "ate": pedaco.ate,
        "total": pedaco.total,
        "invalidas": pedaco.invalidas,
        "puladas": pedaco.puladas,
        "is_last": pedaco.is_last,
        "erros": [each.em_json() for each in pedaco.erros],
        "avisos": [each.em_json() for each in pedaco.avisos],
    }


def _say(document: dict[str, object]) -> None:
    text = json.dumps(document, ensure_ascii=True).encode()
    sys.stdout.buffer.write(len(text).to_bytes(LENGTH, "big") + text)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
