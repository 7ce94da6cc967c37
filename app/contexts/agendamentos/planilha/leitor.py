"""The child process that opens a stranger's file: ``python -m app.contexts.agendamentos.planilha.leitor NAME LINE < FILE``.

It takes the file on its standard input and answers in frames, each the length of a JSON text and the text: a refusal, or how many
rows the sheet has and then its rows after LINE, some at a time; whoever does not read them keeps it waiting. It has little memory
and little time; whatever the file does to it, the process that asked goes on.

Everything a file can be refused for is known before its first row is given: while it is opened the limits are narrower than
afterwards, and what comes afterwards needs little more. So nobody has to take back what a refused file has brought.
"""

import json
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from app.contexts.agendamentos.planilha.aba import (
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
from app.contexts.agendamentos.planilha.linhas import LONGEST_NAME, MotivoDaLinha, Pedaco, Problema, Recusa, Reparo

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

MOST_SHEETS: Final = 20
NOTHING: Final = (Aspecto.VAZIA, Aspecto.EM_BRANCO)  # a sheet that nobody filled in is not missed
MEMORY: Final = 192 * 1024 * 1024  # of addresses; fifty thousand rows need 100
MEMORY_TO_OPEN: Final = MEMORY - 32 * 1024 * 1024
CPU_SECONDS: Final = 30
CPU_SECONDS_TO_OPEN: Final = 10
OUT_OF_MEMORY: Final = 3
LENGTH: Final = 4  # bytes of a frame that say how many follow


@dataclass(frozen=True, slots=True)
class Folha:
    """A file that can be taken: the sheets that are read, in order. ``ignoradas``: the names of the others that say something."""

    abas: Sequence[Aba]
    since_1904: bool = False
    ignoradas: Mapping[str, Problema] = field(default_factory=dict)

    @property
    def altura(self) -> int:
        return sum(aba.altura for aba in self.abas)

    def pedacos(self, apos: int = 0) -> Iterator[Pedaco]:
        warnings = [Reparo(None, name[:LONGEST_NAME], why) for name, why in self.ignoradas.items()]
        return pedacos_de(self.abas, since_1904=self.since_1904, avisos=warnings, apos=apos)


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
        return Folha([Aba(None, height, cabecalho_conferido([*islice(rows(), TOP)]), rows)])
    return _read_workbook(content, examined)


def _read_workbook(content: bytes, examined: Examinado) -> Folha:
    """All visible sheets of appointments. If there is none, the one that looks most like it, which is refused for what it lacks."""
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
            top, heights[name] = _top(livro.aba(name)), livro.altura(name)
            looks[name] = aspecto_de(top, goes_on=heights[name] > TOP)
            if looks[name] is Aspecto.DE_AGENDAMENTOS:
                headers[name] = cabecalho_conferido(top)
        if not headers:
            best = min(looks, key=lambda name: looks[name], default=None)
            headers = {} if best is None else {best: cabecalho_conferido(_top(livro.aba(best)))}
    except (CalamineError, ValueError, OverflowError):
        raise Recusa(MotivoDaLinha.ILEGIVEL) from None
    if not headers:
        raise Recusa(MotivoDaLinha.VAZIA)
    if (height := sum(heights[name] for name in headers)) > MOST_ROWS:
        raise Recusa(MotivoDaLinha.GRANDE, oque=f"{height} linhas", limite=MOST_ROWS)
    abas = [
        Aba(
            name[:LONGEST_NAME] if len(headers) > 1 else None,
            heights[name],
            header,
            partial(livro.linhas, name),
            examined.formulas_de(name),
        )
        for name, header in headers.items()
    ]
    left = {name: Problema.ABA_IGNORADA for name, look in looks.items() if name not in headers and look not in NOTHING}
    left |= dict.fromkeys(livro.repetidas(), Problema.ABA_DE_MESMO_NOME)
    return Folha(abas, examined.since_1904, left | dict.fromkeys(seen[len(looks) :], Problema.ABA_DEMAIS))


class _Livro:
    """A workbook, of which one sheet at a time is held: each may take most of the memory there is."""

    def __init__(self, content: bytes) -> None:
        from io import BytesIO

        from python_calamine import CalamineWorkbook

        self._queries = CalamineWorkbook.from_filelike(BytesIO(content))
        self._held: CalamineSheet | None = None

    def visiveis(self) -> list[str]:
        return [*dict.fromkeys(self._names())]

    def repetidas(self) -> list[str]:
        """No program writes two sheets of one name; by it only the first is found."""
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

    def linhas(self, name: str) -> Iterator[Sequence[Celula]]:
        """Each from column A on: those it has been given begin where the sheet's first cell stands."""
        sheet = self.aba(name)
        left: list[Celula] = [None] * min(sheet.start[1] if sheet.start else 0, MOST_COLUMNS)
        for row in sheet.iter_rows():
            yield [*left, *row[: MOST_COLUMNS - len(left)]]


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
