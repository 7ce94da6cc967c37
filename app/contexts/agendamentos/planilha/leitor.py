"""Child process that opens an untrusted file.

Command: ``python -m app.contexts.agendamentos.planilha.leitor LINE < INPUT``.

The input consists of a frame with the file's name, a frame with the chosen columns, and the file itself. A frame is a
text preceded by its length. The child answers with frames of JSON: either a refusal, or the number of rows and then, in
batches, the rows after LINE. If the parent reads slowly, the pipe fills up and the child waits. Memory and time are
limited, so that no file can stop the parent.

Every reason to refuse a file is found before the first row is sent, so a refused file leaves no rows to undo. The
memory and time limits are lower while the child opens the file, so that enough of both remains for reading the rows.
"""

import json
import resource
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from app.contexts.agendamentos.planilha.aba import (
    NENHUMA,
    TOP,
    Aba,
    Aspecto,
    Cabecalho,
    aspecto_de,
    cabecalho_conferido,
    pedacos_de,
)
from app.contexts.agendamentos.planilha.arquivo import (
    MOST_BYTES,
    MOST_COLUMNS,
    MOST_ROWS,
    Examinado,
    csv_lido,
    examinar,
)
from app.contexts.agendamentos.planilha.celulas import Celula
from app.contexts.agendamentos.planilha.linhas import (
    LONGEST_NAME,
    Achado,
    MotivoDaLinha,
    Pedaco,
    Problema,
    Recusa,
    Reparo,
)
from batuta.kernel import dataclass

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

MOST_SHEETS: Final = 20
NOTHING: Final = (Aspecto.VAZIA, Aspecto.EM_BRANCO)  # sheets that are skipped without a warning
MEMORY: Final = 192 * 1024 * 1024  # address space in bytes; fifty thousand rows need 100 MiB
MEMORY_TO_OPEN: Final = MEMORY - 32 * 1024 * 1024
CPU_SECONDS: Final = 30
CPU_SECONDS_TO_OPEN: Final = 10
MOST_FILES: Final = 64
OUT_OF_MEMORY: Final = 3
LENGTH: Final = 4  # size in bytes of the length field of a frame


@dataclass(frozen=True, slots=True)
class Planilha:
    """A file that can be imported, with its sheets in file order. ``ignoradas`` has the names of sheets that have
    content but are not imported, each with the reason.
    """

    abas: Sequence[Aba]
    since_1904: bool = False
    ignoradas: Mapping[str, Problema] = field(default_factory=dict)

    @property
    def altura(self) -> int:
        return sum(aba.altura for aba in self.abas)

    @property
    def colunas(self) -> dict[str, str]:
        """Map the title of each imported column to its field."""
        return {titulo: campo for aba in self.abas for campo, titulo in aba.header.nomes.items()}

    def pedacos(self, apos: int = 0) -> Iterator[Pedaco]:
        warnings = [Reparo(None, name[:LONGEST_NAME], why) for name, why in self.ignoradas.items()]
        return pedacos_de(self.abas, since_1904=self.since_1904, avisos=warnings, apos=apos)


def main(arguments: list[str]) -> int:
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, MOST_FILES)):
        resource.setrlimit(what, (most, most))
    _limit(MEMORY_TO_OPEN, CPU_SECONDS_TO_OPEN)
    try:
        given = sys.stdin.buffer
        name = given.read(int.from_bytes(given.read(LENGTH), "big")).decode("utf-8", "replace")
        chosen = json.loads(given.read(int.from_bytes(given.read(LENGTH), "big")))
        folha = aberta(given.read(MOST_BYTES + 1), name, chosen)
        _limit(MEMORY, CPU_SECONDS)
        _say({"altura": folha.altura, "colunas": folha.colunas, "forma": folha.abas[0].header.forma})
        for pedaco in folha.pedacos(int(arguments[0])):
            _say(_em_json(pedaco))
    except Recusa as refused:
        _say({"recusada": refused.motivo.value, "facts": refused.facts})
    except MemoryError:
        return OUT_OF_MEMORY
    return 0


def aberta(content: bytes, name: str, escolhidas: Mapping[str, str] = NENHUMA) -> Planilha:
    """Open a file. Raises ``Recusa`` if the file is refused; reading the rows later never raises it. ``escolhidas`` has
    the fields that a person chose for column titles.
    """
    examined = examinar(content, name)
    if examined.is_csv:
        height, rows = csv_lido(content)
        header = cabecalho_conferido([*islice(rows(), TOP)], escolhidas)
        return Planilha([Aba(None, height, header, rows, escolhidas=escolhidas)])
    return _read_workbook(content, examined, escolhidas)


def _read_workbook(content: bytes, examined: Examinado, escolhidas: Mapping[str, str]) -> Planilha:
    """Open all visible sheets that contain appointments. If no sheet does, refuse the file, with the reason that
    applies to the sheet that most resembles a list of appointments.
    """
    from python_calamine import CalamineError

    looks: dict[str, Aspecto] = {}
    heights: dict[str, int] = {}
    headers: dict[str, Cabecalho] = {}
    try:
        livro = _Livro(content)
        seen = livro.visiveis()
        for name in seen:
            if sum(look not in NOTHING for look in looks.values()) == MOST_SHEETS:
                break
            top, heights[name] = livro.topo(name), livro.altura(name)
            looks[name] = aspecto_de(top, has_more=heights[name] > TOP, escolhidas=escolhidas, aba=name)
            if looks[name] is Aspecto.DE_AGENDAMENTOS:
                headers[name] = cabecalho_conferido(top, escolhidas, name)
        if not headers:
            best = min(looks, key=lambda name: looks[name], default=None)
            headers = {} if best is None else {best: cabecalho_conferido(livro.topo(best), escolhidas, best)}
    except (CalamineError, ValueError, OverflowError):
        raise Recusa(MotivoDaLinha.ILEGIVEL) from None
    if not headers:
        raise Recusa(MotivoDaLinha.VAZIA)
    if (height := sum(heights[name] for name in headers)) > MOST_ROWS:
        raise Recusa(MotivoDaLinha.GRANDE, oque=Achado.LINHAS, quanto=height, limite=MOST_ROWS)
    abas = [
        Aba(
            name[:LONGEST_NAME] if len(headers) > 1 else None,
            heights[name],
            header,
            partial(livro.linhas, name),
            examined.formulas_de(name),
            escolhidas,
        )
        for name, header in headers.items()
    ]
    left = {name: Problema.ABA_IGNORADA for name, look in looks.items() if name not in headers and look not in NOTHING}
    left |= dict.fromkeys(livro.repetidas(), Problema.ABA_DE_MESMO_NOME)
    return Planilha(abas, examined.since_1904, left | dict.fromkeys(seen[len(looks) :], Problema.ABA_DEMAIS))


class _Livro:
    """A workbook that keeps one sheet in memory at a time, because one sheet may need most of the memory limit."""

    def __init__(self, content: bytes) -> None:
        from io import BytesIO

        from python_calamine import CalamineWorkbook

        self._queries = CalamineWorkbook.from_filelike(BytesIO(content))
        self._held: CalamineSheet | None = None

    def visiveis(self) -> list[str]:
        return [*dict.fromkeys(self._names())]

    def repetidas(self) -> list[str]:
        """Return the sheet names that occur more than once. If several sheets have the same name, only the first of
        them can be opened.
        """
        return [name for name, times in Counter(self._names()).items() if times > 1]

    def _names(self) -> list[str]:
        from python_calamine import SheetTypeEnum, SheetVisibleEnum

        kinds = (SheetVisibleEnum.Visible, SheetTypeEnum.WorkSheet)
        return [each.name for each in self._queries.sheets_metadata if (each.visible, each.typ) == kinds]

    def aba(self, name: str) -> "CalamineSheet":
        if self._held is None or self._held.name != name:
            self._held = None
            self._held = self._queries.get_sheet_by_name(name)
        return self._held

    def altura(self, name: str) -> int:
        end = self.aba(name).end
        return 0 if end is None else end[0] + 1

    def topo(self, name: str) -> list[Sequence[Celula]]:
        rows = self.aba(name).to_python(skip_empty_area=False, nrows=TOP)
        return [*_fill_merged((row[:MOST_COLUMNS] for row in rows), self._merged(name))]

    def linhas(self, name: str) -> Iterator[Sequence[Celula]]:
        """Yield a sheet's rows, starting at column A. The spreadsheet library begins at the first filled column, so
        this method adds the empty cells before it.
        """
        sheet = self.aba(name)
        left: list[Celula] = [None] * min(sheet.start[1] if sheet.start else 0, MOST_COLUMNS)
        rows = ([*left, *row[: MOST_COLUMNS - len(left)]] for row in sheet.iter_rows())
        yield from _fill_merged(rows, self._merged(name))

    def _merged(self, name: str) -> dict[int, list[tuple[int, int]]]:
        """Map the first row of each vertically merged cell to its column and its last row. Rows and columns are counted
        from 0.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        for (top, left), (bottom, _) in self.aba(name).merged_cell_ranges or ():
            if bottom > top:
                found.setdefault(top, []).append((left, bottom))
        return found


def _fill_merged(
    rows: Iterable[Sequence[Celula]], merged: Mapping[int, Sequence[tuple[int, int]]]
) -> Iterator[Sequence[Celula]]:
    """Yield rows in which a vertically merged cell has its value in each of its rows. A spreadsheet stores the value
    only in the first of them. Rows without any other value stay empty.
    """
    held: dict[int, tuple[Celula, int]] = {}  # value and last row, by column
    for number, row in enumerate(rows):
        held = {column: each for column, each in held.items() if each[1] >= number}
        if held and any(valor not in (None, "") for valor in row):
            row = [
                held[place][0] if place in held and valor in (None, "") else valor for place, valor in enumerate(row)
            ]
        for column, last in merged.get(number, ()):
            if column < len(row):
                held[column] = row[column], last
        yield row


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
        "acima": pedaco.acima,
        "erros": [each.em_json() for each in pedaco.erros],
        "avisos": [each.em_json() for each in pedaco.avisos],
    }


def _say(document: dict[str, object]) -> None:
    text = json.dumps(document, ensure_ascii=True).encode()
    sys.stdout.buffer.write(len(text).to_bytes(LENGTH, "big") + text)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
