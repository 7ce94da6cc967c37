"""Rewrite tables. Rows and columns are days, weekdays, hospitals, sectors or shifts; cells contain signs, names or
values.

Each cell with an open shift becomes one line with the headings of its row and column:

    turno | seg | ter          seg 12/01 SN
    SD    |  -  |  x     →     ter 13/01 SD
    SN    |  x  |  -

A table whose columns have labels ("data", "turno", "valor", "situação") becomes one line per open row.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import islice, zip_longest

from app.contexts.leitura_grupos.blocos.celula import (
    Celula,
    Tipo,
    celula,
    esta_aberta,
    legendas,
    partes,
    por_hora,
    rotulo,
)
from app.contexts.leitura_grupos.blocos.escrita import Linha, dito, inteiro, juntas, letras
from app.contexts.leitura_grupos.blocos.mes import Meses, dia_do_mes
from app.contexts.leitura_grupos.texto.texto import contem, dobrado
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario
from batuta.kernel import dataclass

NOME = "tabela"
MAIS_COLUNAS, MAIS_TABELAS, LONGA = 40, 20, 400
_RULE = re.compile(r"(?=.*?(?:---|===|_____))[\s|:+=_-]++")
_SPACE = re.compile(r"\s+")
_SPACES = re.compile(r" {2,}|\t+")
# Signs between columns. Without them, only a row of weekdays can be a row of a table.
_COLUNAS = ("|", ";", "\t", "  ")
_COMECA_COM_DIA = re.compile(r"\n\s*(?:seg|ter|qua|qui|sex|sab|dom)[a-z./]*\s*(?:seg|ter|qua|qui|sex|sab|dom)")
_SEMANA = ("seg", "ter", "qua", "qui", "sex", "sab", "dom")
_DIURNOS = ("d", "sd", "diurno", "dia")
_SO_SEMANA = re.compile(r"\s*(?:(?:seg|ter|qua|qui|sex|sab|dom)(?:unda|ca|rta|nta|ta|ado|ingo)?\b[\s./]*){3,7}")
_INICIAIS = ("s t q q s s d", "s t q q s", "s t q q s s")
_EIXOS = (Tipo.DIA, Tipo.SEMANA, Tipo.TURNO, Tipo.AREA, Tipo.LUGAR)
_ORDEM = (Tipo.LUGAR, Tipo.AREA, Tipo.OUTRA, Tipo.DIA, Tipo.SEMANA, Tipo.TURNO, Tipo.PRECO)
# Appended to the lines of a table without an open shift, so that they count as taken.
_TOMADA = " (preenchido)"


@dataclass(frozen=True, slots=True)
class Fila:
    """A row of a table in a message. ``linha`` is the index of the line from which the row was read."""

    linha: int
    celulas: tuple[Celula, ...]


def reescrever(found: list[Linha], hoje: date, vocabulario: Vocabulario) -> list[Linha]:
    """Replace each table by one line per open shift."""
    if not contem(letras(found), _COLUNAS) and _COMECA_COM_DIA.search(inteiro(found)) is None:
        return found
    tables = [*islice(_regioes(found, vocabulario), MAIS_TABELAS)]
    if not tables:
        return _celulas_soltas(found, vocabulario)
    inside = {fila.linha for rows in tables for fila in rows}
    outside = (each.plano for place, each in enumerate(found) if place not in inside and len(each.texto) < LONGA)
    rest = "\n".join(islice(outside, 60))
    meses = Meses.de(found, hoje)
    result: list[Linha] = []
    ends = {rows[-1].linha: rows for rows in tables}
    weeks: set[int] = set()
    for place, each in enumerate(found):
        if place not in inside:
            result.append(each)
        elif place in ends:
            rows = ends[place]
            signs = frozenset(cell.sinal for row in rows for cell in row.celulas if len(cell.sinal) < 12)
            legend = legendas(rest, frozenset(islice(sorted(signs), 20)))
            table = _Tabela(rows, legend, meses, vocabulario)
            result.extend(table.linhas())
            if table.semana is not None:
                weeks.add(table.semana)
    headings = {id(found[at]) for at in weeks}
    return [_sem_semana(each) if id(each) in headings else each for each in result]


def _sem_semana(line: Linha) -> Linha:
    """Remove the first and the last day of the week from the line above a table, because the table's cells contain the
    days.
    """
    found = Meses.faixa(line.plano)
    if found is None:
        return line
    start, end = found.span()
    return Linha(line.texto[:start] + " " * (end - start) + line.texto[end:], line.lugares)


# Rows and cells.


def _regioes(found: Sequence[Linha], vocabulario: Vocabulario) -> Iterator[list[Fila]]:
    """Yield tables: groups of adjacent lines with the same separator, starting at the header. Lines of dashes are
    skipped.
    """
    rows: list[Fila] = []
    sign = ""
    for place, line in enumerate(found):
        if rows and line.texto.strip() and _RULE.fullmatch(line.texto):
            continue
        own = _separador(line.texto)
        if own and own == sign:
            rows.append(_fila(place, line, own, vocabulario))
            continue
        yield from _inteiras(rows)
        rows, sign = ([_fila(place, line, own, vocabulario)], own) if own else ([], "")
    yield from _inteiras(rows)


def _inteiras(rows: list[Fila]) -> Iterator[list[Fila]]:
    """Yield a table's rows, starting at its header. Yield nothing if no row is a header."""
    for at in range(len(rows) - 1):
        if _cabeca(rows[at]) is not None or _e_calendario(rows[at : at + 2]):
            yield rows[at:]
            return


def _separador(text: str) -> str:
    if len(text) > LONGA:
        return ""
    if "|" in text and text.strip().strip("|"):
        return "|"
    if text.count(";") >= 1 and len(text.split(";")) > 2:
        return ";"
    if "\t" in text.rstrip():
        return "\t"
    if _SO_SEMANA.fullmatch(dobrado(text)):
        return "  "
    return "  " if _SPACES.search(text.strip()) or (text[:2] == "  " and text.strip()) else ""


def _fila(place: int, line: Linha, sign: str, vocabulario: Vocabulario) -> Fila:
    text = line.texto.rstrip()
    if sign == "  ":
        spans, at = [], len(text) - len(text.lstrip())
        for gap in (_SPACE if _SO_SEMANA.fullmatch(line.plano) else _SPACES).finditer(text, at):
            spans.append((at, gap.start()))
            at = gap.end()
        spans.append((at, len(text)))
    else:
        start = text.index("|") + 1 if sign == "|" and text.lstrip().startswith("|") else 0
        end = len(text) - 1 if sign == "|" and text.endswith("|") and len(text) > start else len(text)
        spans, at = [], start
        for place_of in (each.start() for each in re.finditer(re.escape(sign), text[:end]) if each.start() >= start):
            spans.append((at, place_of))
            at = place_of + 1
        spans.append((at, end))
    cells = (celula(line, first, last, vocabulario) for first, last in spans[:MAIS_COLUNAS])
    return Fila(place, tuple(cells))


# Headers.


@dataclass(frozen=True, slots=True)
class Cabeca:
    """The header of a table. ``rotulos`` has the type of each labelled column. ``eixo`` has the columns whose heading
    is itself a day, a shift, a speciality or a place.
    """

    fila: Fila
    rotulos: dict[int, Tipo]
    eixo: dict[int, Celula]


def _cabeca(row: Fila) -> Cabeca | None:
    cells = row.celulas
    if (first := _primeira_inicial(row)) is not None:
        return Cabeca(row, {}, dict(enumerate(cells[first:], first)))
    labels = {place: kind for place, each in enumerate(cells) if (kind := rotulo(each)) is not None}
    axes = {place: each for place, each in enumerate(cells) if each.tipo in _EIXOS and place not in labels}
    if 0 in axes and len(axes) > 1 and (len(cells) > len(axes) or _e_canto(cells)):
        axes.pop(0)
    kinds = {_eixo(each.tipo) for each in axes.values()}
    # "clínica" is also a label: "25/11 | 7h-19h | clínica" is a row.
    labelled = axes and labels and cells[0].tipo is not Tipo.DIA
    if len(kinds) == 1 and (len(axes) > 1 or labelled) and _so_titulos(cells, axes, labels):
        # "dia" is a shift next to "noite", and a label next to "SD" and "SN".
        if kinds == {Tipo.TURNO} and not any(each.plano in _DIURNOS for each in axes.values()):
            for place in [at for at in labels if at and cells[at].tipo is Tipo.TURNO]:
                axes[place] = cells[place]
                labels.pop(place)
        # "clínica" is a speciality next to "pediatria" and "UTI", and otherwise a label.
        for place in (
            [at for at in labels if cells[at].inicio and cells[at].tipo is Tipo.AREA] if kinds == {Tipo.AREA} else ()
        ):
            axes[place] = cells[place]
            labels.pop(place)
        return Cabeca(row, labels, dict(sorted(axes.items())))
    if len(labels) > 1 and len(labels) >= len(cells) - 1 - (cells[0].tipo in (Tipo.MES, Tipo.VAZIA)):
        return Cabeca(row, labels, {})
    return None


def _primeira_inicial(row: Fila) -> int | None:
    """Return the position of the first initial of a weekday in a header of initials ("S T Q Q S S D"), or None."""
    initials = [each.plano for each in row.celulas]
    return next((at for at in (1, 0) if " ".join(initials[at:]) in _INICIAIS), None)


def _is_header(head: Cabeca, new: Cabeca) -> bool:
    """Return whether a row that looks like a header really begins another table. A row such as "04 | D/N | D" begins no
    table, because its cells only look like headings.
    """
    return bool(new.rotulos) or {each.tipo for each in new.eixo.values()} == {each.tipo for each in head.eixo.values()}


def _eixo(kind: Tipo) -> Tipo:
    return Tipo.DIA if kind is Tipo.SEMANA else kind


def _e_canto(cells: Sequence[Celula]) -> bool:
    """Return whether the first cell of a header applies to the whole table, such as "UTI adulto" in "UTI adulto | SD |
    SN".
    """
    return len({_eixo(each.tipo) for each in cells[1:]}) == 1 and _eixo(cells[0].tipo) is not _eixo(cells[1].tipo)


def _so_titulos(cells: Sequence[Celula], axes: dict[int, Celula], labels: dict[int, Tipo]) -> bool:
    """Return whether a row has only headings, labels and empty cells. The first cell may have any content except a
    price.
    """
    others = [at for at in range(len(cells)) if at not in axes and at not in labels]
    return all(at == 0 or cells[at].tipo is Tipo.VAZIA for at in others) and not any(
        each.tipo is Tipo.PRECO for each in cells
    )


def _e_calendario(rows: Sequence[Fila]) -> bool:
    """Return whether a table is a calendar, in which rows of days alternate with rows of signs."""
    return len(rows) > 1 and _so_dias(rows[0]) and not _so_dias(rows[1]) and len(rows[1].celulas) > 1


def _so_dias(row: Fila) -> bool:
    cells = [each for each in row.celulas if each.tipo is not Tipo.VAZIA]
    return len(cells) > 1 and all(each.tipo in (Tipo.DIA, Tipo.NUMERO) and each.plano.isdigit() for each in cells)


def _tem_dias(row: Fila) -> bool:
    """Return whether a row has only days without a month. The row's heading is ignored."""
    return _so_dias(row) or (row.celulas[0].tipo is Tipo.OUTRA and _so_dias(Fila(row.linha, row.celulas[1:])))


def _so_semana(head: Cabeca) -> bool:
    return bool(head.eixo) and all(each.tipo is Tipo.SEMANA for each in head.eixo.values())


# Lines.


class _Tabela:
    def __init__(self, rows: Sequence[Fila], legend: dict[str, bool], meses: Meses, vocabulario: Vocabulario) -> None:
        self._rows, self._legend, self._meses, self._vocabulario = rows, legend, meses, vocabulario
        cells = [cell for row in rows for cell in row.celulas]
        self._mes = next((meses.numero(each.plano) for each in cells if each.tipo is Tipo.MES), None)
        self._mes = self._mes or meses.em(rows[0].linha)
        self.semana: int | None = None
        self._dias_da_semana: dict[int, date] = {}
        if any(each.tipo is Tipo.SEMANA for each in cells) or self._por_iniciais():
            self._ler_semana()

    def linhas(self) -> list[Linha]:
        open_lines: list[Linha] = []
        taken: list[Linha] = []
        for parts, is_open in self._vagas():
            (open_lines if is_open else taken).append(self._linha(parts))
        return open_lines or [each.com(len(each.texto), _TOMADA) for each in taken]

    def _vagas(self) -> Iterator[tuple[list[tuple[Tipo, Linha]], bool]]:
        head: Cabeca | None = None
        days: Fila | None = None
        for row, after in zip_longest(self._rows, self._rows[1:]):
            if _tem_dias(row) and (head is None or _so_semana(head)):
                if after is None or _tem_dias(after) or _cabeca(after) is not None:
                    days = None
                    yield from self._da_grade(head, row) if head is not None else ()
                else:
                    days = row
                continue
            if (new := _cabeca(row)) is not None and (head is None or _is_header(head, new)):
                head, days = new, None
                continue
            if days is not None:
                yield from self._do_calendario(days, row)
            elif head is not None and head.eixo:
                yield from self._da_grade(head, row)
            elif head is not None:
                yield self._do_registro(head, row)

    def _do_calendario(self, days: Fila, row: Fila) -> Iterator[tuple[list[tuple[Tipo, Linha]], bool]]:
        placed = self._alinhadas(days, row)
        shared = [(cell.tipo, cell.linha) for at, cell in placed if at is None and cell.tipo in _EIXOS]
        for at, cell in placed:
            if at is not None:
                day = days.celulas[at]
                yield (
                    [*shared, (Tipo.DIA, day.linha), *partes(cell, self._vocabulario)],
                    esta_aberta(cell, self._legend),
                )

    def _da_grade(self, head: Cabeca, row: Fila) -> Iterator[tuple[list[tuple[Tipo, Linha]], bool]]:
        corner = head.fila.celulas[0] if 0 not in head.rotulos and 0 not in head.eixo else None
        shared: list[tuple[Tipo, Linha]] = []
        if corner is not None and corner.tipo not in (Tipo.VAZIA, Tipo.MES) and rotulo(corner) is None:
            shared.extend(each for each in partes(corner, self._vocabulario) if each[0] in _EIXOS)
        placed = self._alinhadas(head.fila, row)
        own = [(at, cell) for at, cell in placed if at is None or at not in head.eixo]
        for at, cell in own:
            kind = head.rotulos.get(at) if at is not None else None
            if cell.tipo is not Tipo.VAZIA and kind is not Tipo.NUMERO and not _is_counter(cell):
                shared.extend(self._celula_de_rotulo(cell, kind, head, at))
        filled = {at: cell for at, cell in placed if at in head.eixo}
        for at, title in head.eixo.items():
            cell = filled.get(at) or celula(title.linha, 0, 0, self._vocabulario)
            if title.tipo is Tipo.TURNO and cell.tipo is Tipo.SEMANA:
                continue  # "Dia" heads a column of weekdays
            is_open = esta_aberta(cell, self._legend)
            content = partes(cell, self._vocabulario) if is_open else []
            kept = [each for each in content if each[0] in (*_EIXOS, Tipo.PRECO)]
            if title.tipo is Tipo.SEMANA and any(kind is Tipo.DIA for kind, _ in kept):
                yield [*shared, *kept], is_open
                continue
            yield [*shared, *self._titulo(at, title, min(head.eixo)), *kept], is_open

    def _titulo(self, at: int, title: Celula, first: int) -> list[tuple[Tipo, Linha]]:
        if self._por_iniciais() and title.tipo not in (Tipo.DIA, Tipo.SEMANA):
            return [(Tipo.SEMANA, dito(_SEMANA[at - first], title.linha))]
        return partes(title, self._vocabulario)

    def _do_registro(self, head: Cabeca, row: Fila) -> tuple[list[tuple[Tipo, Linha]], bool]:
        parts: list[tuple[Tipo, Linha]] = []
        is_open = True
        states = [at for at, kind in head.rotulos.items() if kind is Tipo.OUTRA]
        for at, cell in self._alinhadas(head.fila, row):
            kind = head.rotulos.get(at) if at is not None else None
            if kind is Tipo.OUTRA:
                stated = esta_aberta(cell, self._legend)
                blank_opens = cell.tipo is Tipo.VAZIA and self._legend.get("") is not False
                is_open = is_open and (stated or blank_opens or cell.tipo is Tipo.PRECO)
            elif kind is Tipo.NUMERO:
                is_open = is_open and cell.plano not in ("0", "00")
            elif cell.tipo is not Tipo.VAZIA:
                parts.extend(self._celula_de_rotulo(cell, kind, head, at))
            if not states and cell.tipo is Tipo.FECHADA and at is not None and (cell.sinal != "-" or kind is None):
                is_open = False
        return parts, is_open

    def _celula_de_rotulo(
        self, cell: Celula, kind: Tipo | None, head: Cabeca, at: int | None
    ) -> list[tuple[Tipo, Linha]]:
        title = head.fila.celulas[at] if at is not None and at < len(head.fila.celulas) else None
        number = re.match(r"(?:r?\$ ?)?(\d[\d.,]*)", cell.plano)
        hourly = title is not None and por_hora(title) and number is not None and cell.tipo is not Tipo.TURNO
        if hourly and number is not None and (cell.tipo is Tipo.PRECO or 20 < _inteiro(number[1]) < 900):
            if "/" in cell.plano:
                return [(Tipo.PRECO, cell.linha)]
            end = len(cell.linha.texto) - len(cell.linha.texto[number.end() :]) if number else 0
            return [(Tipo.PRECO, cell.linha.com(end, "/h"))]
        if kind is Tipo.PRECO and number is not None and "$" not in cell.plano:
            return [(Tipo.PRECO, juntas((dito("R$", cell.linha), cell.linha), ""))]
        if kind is not None and cell.tipo in (Tipo.OUTRA, Tipo.NUMERO, Tipo.ABERTA, Tipo.FECHADA):
            found = partes(cell, self._vocabulario)
            if kind is Tipo.DIA and cell.tipo is Tipo.NUMERO:
                return [(Tipo.DIA, cell.linha)]
            return [(kind if each is Tipo.OUTRA else each, line) for each, line in found]
        return partes(cell, self._vocabulario)

    def _linha(self, parts: list[tuple[Tipo, Linha]]) -> Linha:
        dated = any(kind is Tipo.DIA for kind, _ in parts)
        ordered = sorted(
            (each for each in parts if each[0] in _ORDEM and not (each[0] is Tipo.SEMANA and dated)),
            key=lambda each: _ORDEM.index(each[0]),
        )
        return juntas(self._partes(ordered), NOME)

    def _partes(self, ordered: list[tuple[Tipo, Linha]]) -> Iterator[Linha]:
        for place, (kind, line) in enumerate(ordered):
            if kind is Tipo.LUGAR and place == 0 and len(ordered) > 1:
                # The label "local:" makes a name a place, even without a word such as "hospital".
                yield juntas((dito("local:", line), line, dito("|", line)), NOME)
            else:
                yield self._escrita(kind, line)

    def _escrita(self, kind: Tipo, line: Linha) -> Linha:
        if kind is Tipo.SEMANA:
            weekday = _dia_da_semana(line.plano.strip())
            if weekday is not None and weekday in self._dias_da_semana:
                return dito(f"{self._dias_da_semana[weekday]:%d/%m/%Y}", line)
        return dia_do_mes(line, self._mes) if kind is Tipo.DIA else line

    def _alinhadas(self, head: Fila, row: Fila) -> list[tuple[int | None, Celula]]:
        """Pair each cell of a row with its column. Columns separated by spaces are matched by their position in the
        line.
        """
        titles = head.celulas
        is_titled = row.celulas[0].fim <= titles[0].inicio and titles[0].tipo is not Tipo.VAZIA
        if len(titles) == len(row.celulas) and not (is_titled and row.celulas[0].fim > 0):
            return list(enumerate(row.celulas))
        by_spaces = all(each.tipo is not Tipo.VAZIA for each in (*titles, *row.celulas))
        if not by_spaces:
            return [(at if at < len(titles) else None, cell) for at, cell in enumerate(row.celulas)]
        if len(titles) + 1 == len(row.celulas):
            return [(at - 1 if at else None, cell) for at, cell in enumerate(row.celulas)]
        return [(_mais_perto(titles, cell), cell) for cell in row.celulas]

    # Weeks.

    def _por_iniciais(self) -> bool:
        return any(_primeira_inicial(row) is not None for row in self._rows)

    def _ler_semana(self) -> None:
        found = self._meses.semana(self._rows[0].linha)
        if found is None:
            return
        first, last, self.semana = found
        for away in range((last - first).days + 1):
            day = first + timedelta(days=away)
            self._dias_da_semana.setdefault(day.weekday(), day)


def _is_counter(cell: Celula) -> bool:
    """Return whether a cell contains only a number that counts the rows: "semana1", "1"."""
    return cell.tipo is Tipo.NUMERO or (
        re.fullmatch(r"(?:semana|sem|linha|item)? ?\d{1,2}[ao.)]?", cell.plano) is not None and cell.tipo is Tipo.OUTRA
    )


def _mais_perto(titles: Sequence[Celula], cell: Celula) -> int | None:
    middle = (cell.inicio + cell.fim) / 2
    if cell.inicio == 0 and titles[0].inicio > 0 and cell.fim <= titles[0].inicio:
        return None
    return min(range(len(titles)), key=lambda at: abs((titles[at].inicio + titles[at].fim) / 2 - middle))


def _dia_da_semana(word: str) -> int | None:
    if word[:1].isdigit():
        return int(word[0]) - 2
    return _SEMANA.index(word[:3]) if word[:3] in _SEMANA else None


def _inteiro(number: str) -> int:
    return int(re.sub(r"\D.*", "", number) or 0)


# Cells without a header.

_PAR = re.compile(r"(?P<turno>sd|sn|diurno|noturno|noite|manha|tarde|dia|[dnmt])\b[ :=-]{1,3}(?P<resto>\S.{0,20})")


def _celulas_soltas(found: list[Linha], vocabulario: Vocabulario) -> list[Linha]:
    """Rewrite rows of tables that have no header: rows whose cells pair a shift with a sign ("manhã x | tarde -"), and
    rows that end with the name of the doctor who took the shift.
    """
    if not any("|" in each.texto or ";" in each.texto or "\t" in each.texto for each in found):
        return found
    result: list[Linha] = []
    for rows, lines in _seguidas(found, vocabulario):
        if len(rows) < 2:
            result.extend(lines)
            continue
        ends = [row.celulas[-1] for row in rows]
        has_states = any(each.tipo is Tipo.ABERTA for each in ends) and all(
            each.tipo in (Tipo.ABERTA, Tipo.FECHADA, Tipo.VAZIA) for each in ends
        )
        for row, line in zip(rows, lines, strict=True):
            result.append(_com_pares(row, line, vocabulario))
            if has_states and row.celulas[-1].tipo is Tipo.FECHADA:
                result[-1] = line.com(len(line.texto), _TOMADA)
    return result


def _seguidas(found: list[Linha], vocabulario: Vocabulario) -> Iterator[tuple[list[Fila], list[Linha]]]:
    """Yield each group of adjacent lines with the same separator and number of cells, as a pair: its parsed rows and
    its lines. A line that is not a table row forms a pair of its own, with an empty list of rows.
    """
    rows: list[Fila] = []
    lines: list[Linha] = []
    sign = ""
    for place, line in enumerate(found):
        own = _separador(line.texto)
        row = _fila(place, line, own, vocabulario) if own in ("|", ";", "\t") else None
        if rows and (row is None or own != sign or len(row.celulas) != len(rows[0].celulas)):
            yield rows, lines
            rows, lines = [], []
        if row is None:
            yield [], [line]
        else:
            rows, lines, sign = [*rows, row], [*lines, line], own
    if rows:
        yield rows, lines


def _com_pares(row: Fila, line: Linha, vocabulario: Vocabulario) -> Linha:
    """Keep only the shifts in a row that are marked as open: "27/07 - manhã x | tarde - | noite -"."""
    first = row.celulas[0].linha.plano
    head = re.search(r"\b(?:sd|sn|diurno|noturno|noite|manha|tarde|dia|[dnmt])\b[ :=-]{1,3}\S{1,12}$", first)
    if head is None or len(row.celulas) < 2:
        return line
    lead = row.celulas[0].linha.parte(0, head.start())
    if not any(char.isdigit() for char in lead.texto):
        return line
    pairs = [row.celulas[0].linha.parte(head.start(), len(first)), *(each.linha for each in row.celulas[1:])]
    kept: list[Linha] = []
    for each in pairs:
        found = _PAR.fullmatch(each.plano.strip())
        if found is None:
            return line
        start = each.plano.index(found["resto"], found.end("turno"))
        sign = celula(each, start, len(each.texto), vocabulario)
        if sign.tipo not in (Tipo.ABERTA, Tipo.FECHADA, Tipo.PRECO, Tipo.VAZIA):
            return line
        if esta_aberta(sign, {}):
            shift = each.parte(0, found.end("turno"))
            kept.append(shift if sign.tipo is not Tipo.PRECO else each)
    if not kept:
        return line.com(len(line.texto), _TOMADA)
    return juntas((lead, juntas(kept, "", " e ")), NOME)
