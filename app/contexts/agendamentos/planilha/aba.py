"""Turn a sheet's rows into appointments. The header may be any row near the top. An invalid row does not affect other
rows.

Two kinds of sheets are supported. A ``simples`` sheet has separate columns for patient, date and time. A ``coleta``
sheet is the laboratory's export, with brand, unit and one column for date and time. A row in a ``coleta`` sheet is
imported only if its room names a collection car.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from enum import IntEnum
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from app.contexts.agendamentos.documento.mascara import COVERED, esta_coberto
from app.contexts.agendamentos.planilha.celulas import (
    Celula,
    cep_da,
    data_da,
    data_hora_da,
    dito,
    hora_da,
    serial_dito,
    telefone_da,
    texto_da,
)
from app.contexts.agendamentos.planilha.colunas import (
    LONGEST_TITLE,
    SAMPLE,
    campo_concorrente,
    campo_escolhido,
    campo_provavel,
    chave_do_titulo,
    concorda,
    escolher_coluna,
    forma_de,
    nome_dito,
    palpites,
    parece_titulos,
    segue_endereco,
    titulo_dito,
    titulos_juntos,
)
from app.contexts.agendamentos.planilha.linhas import (
    LONGEST_NAME,
    MOST_AT_ONCE,
    MotivoDaLinha,
    Pedaco,
    Problema,
    Recusa,
    Reparo,
    Reparos,
    SituacaoDoAgendamento,
    chave_de,
    chave_seguinte,
    mais_longo,
)
from app.contexts.agendamentos.planilha.partes import (
    com_partes,
    documento_junto,
    endereco_junto,
    nome_junto,
    telefone_junto,
)
from app.contexts.agendamentos.planilha.secoes import dia_dito, eh_secao
from app.contexts.agendamentos.planilha.titulos import CABECALHOS, campo_de
from app.contexts.agendamentos.texto import limpo, plano
from batuta.kernel import dataclass

if TYPE_CHECKING:
    from batuta.kernel import Json

NENHUMA: Final[Mapping[str, str]] = {}
HEADER_WITHIN: Final = 30  # number of rows in which the header is searched
MIDNIGHT: Final = "00:00"  # the time that spreadsheet programs write for a day without a time
LOOK_AHEAD: Final = 10  # number of rows below a title row that are examined to guess what its columns contain
TOP: Final = 1000  # number of first rows; a sheet without text in them is refused
HEAVIEST: Final = 1024 * 1024  # maximum number of characters in one batch

SIMPLES: Final = ("nome_paciente", "data", "endereco_completo", "documento_completo")
COLETA: Final = ("nome_marca", "nome_unidade", "nome_paciente", "data_hora")
OPTIONAL: Final = frozenset({"hora", "telefone"})  # fields that are also guessed if no required column is missing
OF_COLETA: Final = frozenset({"nome_marca", "data_hora", "sala", "canal_confirmacao"})
_ROOM = re.compile(r"[^\W\d_]+(?:\s?-\s?[^\W\d_]+){3}\s?-\s?([^\W\d_].*)")
_SITUACOES: Final = {plano(each.value): each for each in SituacaoDoAgendamento}
_CONFIRMATION: Final = frozenset({"canal_confirmacao", "data_hora_confirmacao", "data_confirmacao", "hora_confirmacao"})
_EMPTY_CONFIRMATION: Final = frozenset({"whats", "whatsapp", "wpp"})


class Cabecalho(NamedTuple):
    linha: int  # counted from 1
    colunas: Mapping[str, int]
    nomes: Mapping[str, str]  # as written in the sheet
    repetidas: Sequence[str]
    forma: str = ""
    incertas: Mapping[str, str] = {}  # uncertain guesses: the proposed field of each title
    # the day of all rows if no column has the day, taken from the sheet's name or a row above the header
    dia: date | None = None

    @property
    def is_coleta(self) -> bool:
        if "data_hora" in self.colunas and not {"endereco_completo", "documento_completo"} <= self.colunas.keys():
            return True
        return "data" not in self.colunas and len(OF_COLETA & self.colunas.keys()) >= 2


@dataclass(frozen=True, slots=True)
class Aba:
    """A sheet that can be imported. ``altura`` is its number of rows, including empty rows and those above
    the header.
    """

    nome: str | None  # None for the only sheet of a file
    altura: int
    header: Cabecalho
    linhas: Callable[[], Iterable[Sequence[Celula]]]
    formulas: Sequence[int] = ()  # rows with a formula without a stored value
    escolhidas: Mapping[str, str] = field(default_factory=dict)  # fields that a person chose for titles


class Aspecto(IntEnum):
    """Measure of how closely a sheet resembles a list of appointments. A smaller value means a closer resemblance."""

    DE_AGENDAMENTOS = 0
    DE_PACIENTES = 1  # one required column is missing
    EM_BRANCO = 2  # a template without rows
    COM_CABECALHO = 3
    OUTRA = 4
    VAZIA = 5


@dataclass(slots=True)
class _Lendo:
    since_1904: bool
    aba: Aba
    acima: int = 0  # number of rows in the previous sheets
    dia: date | None = None  # the day in the last dividing row
    erros: Reparos = field(default_factory=Reparos)
    avisos: Reparos = field(default_factory=Reparos)
    repetidos: Reparos = field(default_factory=Reparos)
    total: int = 0
    puladas: int = 0
    chaves: set[bytes] = field(default_factory=set)
    # hashes of the rows without a time, by row key
    sem_hora: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def is_coleta(self) -> bool:
        return self.aba.header.is_coleta

    def reparo(self, linha: int, coluna: str | None, problema: Problema) -> Reparo:
        return Reparo(linha, coluna, problema, self.aba.nome, self.acima)

    def pedaco(self, linhas: "Sequence[Mapping[str, Json]]", linha: int, *, is_last: bool = False) -> Pedaco:
        return Pedaco(
            linhas=linhas,
            ate=self.acima + linha,
            acima=self.acima,
            total=self.total,
            invalidas=self.erros.quantos,
            puladas=self.puladas,
            is_last=is_last,
            erros=self.erros.com(Reparos()) if is_last else (),
            avisos=self.avisos.com(self.repetidos) if is_last else (),
        )


def cabecalho_de(
    linhas: Sequence[Sequence[Celula]], escolhidas: Mapping[str, str] = NENHUMA, aba: str = ""
) -> Cabecalho | None:
    """Return the header of a sheet: the row near the top that names the most fields. Return None if no row names at
    least two fields.

    ``escolhidas`` has the fields that a person chose for column titles. If a required field is still missing, its
    column is guessed (``colunas``). If no column has the day of each appointment, that day is read from a row above the
    header, a dividing row or the sheet's name.
    """
    best: Cabecalho | None = None
    for number, linha in enumerate(linhas[:HEADER_WITHIN], start=1):
        found = _header(number, linha, escolhidas, linhas[number:])
        both = titulos_juntos(linhas[number - 2], linha) if number > 1 and found.colunas and _missing(found) else None
        if both is not None and len((known := _header(number, both, escolhidas, linhas[number:])).colunas) > len(
            found.colunas
        ):
            linha, found = both, known
        if parece_titulos(linha) and (_missing(found) or not (found.is_coleta or found.colunas.keys() >= OPTIONAL)):
            found = _guess_columns(found, linha, linhas[number:])
        if len(found.colunas) > (1 if best is None else len(best.colunas)):
            best = found
    return best if best is None or _missing(best) != ["data"] else _with_day(best, linhas, aba)


def _with_day(header: Cabecalho, linhas: Sequence[Sequence[Celula]], aba: str) -> Cabecalho:
    rows = [
        *linhas[: header.linha - 1],
        *(row for row in linhas[header.linha :] if eh_secao(header.colunas, row)),
        [aba],
    ]
    for row in rows:
        dia = dia_dito(row)
        if dia is not None:
            title = next(titulo_dito(valor) for valor in row if dia_dito([valor]) == dia)
            return header._replace(dia=dia, nomes={**header.nomes, "data": title})
    return header


def _guess_columns(header: Cabecalho, linha: Sequence[Celula], below: Sequence[Sequence[Celula]]) -> Cabecalho:
    """Return the header with guessed columns for the fields that no title names. If fewer than three columns are known
    even then, return the header unchanged. If no required column is missing, the content alone suggests no column.
    """
    rows = [row for row in below[: SAMPLE * 2] if _says_something(row)]
    wanted = [*(SIMPLES if not header.is_coleta else COLETA), *OPTIONAL]
    missing = [each for each in wanted if each not in header.colunas]
    found = palpites(linha, rows, missing, set(header.colunas.values()))
    if not _missing(header):
        found = [each for each in found if each.campo == campo_provavel(each.titulo) and concorda(each, rows)]
    if len(found) + len(header.colunas) < 3:
        return header
    nomes = {**header.nomes, **{each.campo: each.titulo for each in found}}
    return header._replace(
        colunas=com_partes({**header.colunas, **{each.campo: each.coluna for each in found}}, nomes),
        nomes=nomes,
        incertas={**header.incertas, **{each.titulo: each.campo for each in found if not each.is_sure}},
    )


def aspecto_de(
    top: Sequence[Sequence[Celula]], *, has_more: bool = False, escolhidas: Mapping[str, str] = NENHUMA, aba: str = ""
) -> Aspecto:
    """Return how closely a sheet resembles a list of appointments. ``top`` has the first rows of the sheet.
    ``has_more`` says whether more rows follow.
    """
    header = cabecalho_de(top, escolhidas, aba)
    if header is None:
        return Aspecto.OUTRA if has_more or any(_says_something(linha) for linha in top) else Aspecto.VAZIA
    has_rows = has_more or any(_says_something(linha) for linha in top[header.linha :])
    if not _missing(header):
        return Aspecto.DE_AGENDAMENTOS if has_rows else Aspecto.EM_BRANCO
    return Aspecto.DE_PACIENTES if has_rows and "nome_paciente" in header.colunas else Aspecto.COM_CABECALHO


def cabecalho_conferido(
    top: Sequence[Sequence[Celula]], escolhidas: Mapping[str, str] = NENHUMA, aba: str = ""
) -> Cabecalho:
    """Return the header of a sheet. Raises ``Recusa`` with the reason if the sheet has no usable header. ``top`` has
    the first rows of the sheet; the function does not check any later rows.
    """
    if not any(_says_something(linha) for linha in top):
        raise Recusa(MotivoDaLinha.VAZIA)
    header = cabecalho_de(top, escolhidas, aba)
    if header is None:
        raise Recusa(MotivoDaLinha.SEM_CABECALHO, colunas=_titles(SIMPLES))
    if missing := _missing(header):
        raise Recusa(MotivoDaLinha.SEM_COLUNAS, colunas=_titles(missing), forma=header.forma)
    if header.incertas:
        proposal = ", ".join(f'"{titulo}={nome_dito(campo)}"' for titulo, campo in header.incertas.items())
        raise Recusa(MotivoDaLinha.COLUNAS_INCERTAS, proposta=proposal, forma=header.forma)
    return header


def _missing(header: Cabecalho) -> list[str]:
    required = COLETA if header.is_coleta else SIMPLES
    has_day = header.dia is not None or "data_hora" in header.colunas
    return [each for each in required if each not in header.colunas and not (each == "data" and has_day)]


def pedacos_de(
    abas: Sequence[Aba], *, since_1904: bool = False, avisos: Iterable[Reparo] = (), apos: int = 0
) -> Iterator[Pedaco]:
    """Yield the rows of the sheets in batches. Each batch has rows from one sheet only. Rows up to line ``apos`` are
    counted but not yielded.

    Line numbers continue across sheets. ``avisos`` has the warnings from earlier checks, which are reported with the
    last batch.
    """
    lendo = _Lendo(since_1904, abas[0])
    for aviso in avisos:
        lendo.avisos.append(aviso)
    for aba in abas:
        lendo.aba = aba
        yield from _da_aba(lendo, apos - lendo.acima, is_last=aba is abas[-1])
        lendo.acima += aba.altura


def _da_aba(lendo: _Lendo, apos: int, *, is_last: bool) -> Iterator[Pedaco]:
    header = lendo.aba.header
    lendo.dia = None
    for nome in header.repetidas:
        lendo.avisos.append(lendo.reparo(header.linha, nome, Problema.COLUNA_REPETIDA))
    for linha in lendo.aba.formulas:
        if linha > header.linha:
            lendo.avisos.append(lendo.reparo(linha, None, Problema.FORMULA))
    some: list[dict[str, Json]] = []
    number = weight = 0
    for number, cells, following in _with_following(lendo.aba.linhas()):
        if (
            number > header.linha
            and parece_titulos(cells)
            and (below := _next_header(lendo, number, cells, following())) is not None
        ):
            header = below._replace(dia=header.dia)
            lendo.aba = replace(lendo.aba, header=header)
            continue
        row = _read_row(lendo, header, number, cells) if number > header.linha else None
        if row is None or number <= apos:
            continue
        some.append(row)
        weight += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(some) >= MOST_AT_ONCE or weight >= HEAVIEST:
            yield lendo.pedaco(some, number)
            some, weight = [], 0
    if some or is_last:
        yield lendo.pedaco(some, number, is_last=is_last)


def _with_following(
    linhas: Iterable[Sequence[Celula]],
) -> Iterator[tuple[int, Sequence[Celula], Callable[[], Sequence[Sequence[Celula]]]]]:
    """Yield each row of a sheet with its number and a function that returns the next few rows without
    consuming them.
    """
    rows = iter(linhas)
    ahead: deque[Sequence[Celula]] = deque()

    def following() -> Sequence[Sequence[Celula]]:
        ahead.extend(islice(rows, max(0, LOOK_AHEAD - len(ahead))))
        return [*ahead]

    number = 0
    while True:
        linha = ahead.popleft() if ahead else next(rows, None)
        if linha is None:
            return
        number += 1
        yield number, linha, following


def _next_header(
    lendo: _Lendo, number: int, linha: Sequence[Celula], following: Sequence[Sequence[Celula]]
) -> Cabecalho | None:
    """Return the header of another table if that table begins at this row. Return None if the row belongs to the
    current table or repeats its header.

    If the row has at least two cells that look like titles, columns are also guessed from the content below. Each
    uncertain column adds a warning.
    """
    if _is_header_again(lendo.aba.header, linha):
        return None
    known = _header(number, linha, lendo.aba.escolhidas, following)
    titles = sum(isinstance(valor, str) and campo_provavel(valor) is not None for valor in linha)
    found = _guess_columns(known, linha, following if titles > 1 else ())
    if _missing(found._replace(dia=lendo.aba.header.dia)):
        return None
    for titulo in found.incertas:
        lendo.avisos.append(lendo.reparo(number, titulo, Problema.COLUNA_SUPOSTA))
    return found


def _read_row(lendo: _Lendo, header: Cabecalho, number: int, linha: Sequence[Celula]) -> "dict[str, Json] | None":
    if not _says_something(linha) or _is_header_again(header, linha):
        return None
    if eh_secao(header.colunas, linha):
        lendo.dia = dia_dito(linha) or lendo.dia
        lendo.avisos.append(lendo.reparo(number, None, Problema.SECAO))
        return None
    lendo.total += 1
    wrong = lendo.erros.quantos
    try:
        row = _row(lendo, header, number, linha)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError):
        # No known cell raises an error here. If one does, only its row is lost.
        lendo.erros.append(lendo.reparo(number, None, Problema.ILEGIVEL))
        return None
    if row is None:
        lendo.puladas += lendo.erros.quantos == wrong
        return None
    chave = chave_de(row) if "hora_agendamento" in row or "origem_id" in row else _sem_hora(lendo, row)
    if (mark := bytes.fromhex(chave)[:16]) in lendo.chaves:
        lendo.repetidos.append(lendo.reparo(number, None, Problema.REPETIDO))
    lendo.chaves.add(mark)
    return row | {"chave": chave}


def _sem_hora(lendo: _Lendo, row: "Mapping[str, Json]") -> str:
    """Return the appointment key of a row without a time. Two rows with the same patient, place and day may still be
    different visits, so they get different keys if their other fields differ.
    """
    chave = chave_de(row)
    said = hash(tuple(sorted((name, str(value)) for name, value in row.items() if name not in ("linha", "aba"))))
    before = lendo.sem_hora.get(chave, ())
    if said not in before:
        lendo.sem_hora[chave] = before = (*before, said)
        if len(before) > 1:
            lendo.avisos.append(lendo.reparo(int(str(row["linha"])), None, Problema.SEM_HORA))
    place = before.index(said)
    return chave if place == 0 else chave_seguinte(chave, place + 1)


def _header(
    number: int, linha: Sequence[Celula], escolhidas: Mapping[str, str], abaixo: Sequence[Sequence[Celula]]
) -> Cabecalho:
    """Return the header that a row's titles give, as far as the titles are known. ``abaixo`` has the rows below, which
    decide between several columns for one field.
    """
    places: dict[str, list[int]] = {}
    rivals: dict[str, list[int]] = {}
    for place, valor in enumerate(linha):
        if not isinstance(valor, str) or len(valor) > LONGEST_TITLE:
            continue
        name = campo_escolhido(valor, escolhidas)
        if name is None and (rival := campo_concorrente(valor)) is not None:
            rivals.setdefault(rival, []).append(place)
        if name is None or (name == "numero_endereco" and not segue_endereco(linha, place)):
            continue
        # With two confirmation columns, the second has the time. The first has the date, or date and time.
        if name == "data_hora_confirmacao" and name in places and "hora_confirmacao" not in places:
            name = "hora_confirmacao"
        places.setdefault(name, []).append(place)
    rows = [row for row in abaixo[: SAMPLE * 2] if _says_something(row)]
    found = [
        escolher_coluna(name, [*of_name, *rivals.get(name, ())], linha, rows, escolhidas)
        for name, of_name in places.items()
    ]
    nomes = {each.campo: each.titulo for each in found}
    colunas = com_partes({each.campo: each.coluna for each in found}, nomes)
    chosen = {each.coluna for each in found}
    return Cabecalho(
        number,
        colunas,
        nomes,
        [titulo_dito(linha[each]) for of_name in places.values() for each in of_name if each not in chosen],
        forma_de(linha) if len(colunas) > 1 or parece_titulos(linha) else "",
        {each.titulo: each.campo for each in found if not each.is_sure},
    )


def _is_header_again(header: Cabecalho, linha: Sequence[Celula]) -> bool:
    """Return whether a row repeats the header, as on each page of a printed report."""
    patient = header.colunas["nome_paciente"]
    if patient >= len(linha) or not _is_title(linha[patient], header.nomes["nome_paciente"]):
        return False
    said = {name: linha[place] for name, place in header.colunas.items() if place < len(linha) and dito(linha[place])}
    return len(said) > 1 and all(
        _is_title(valor, header.nomes[name]) for name, valor in said.items() if name in header.nomes
    )


def _is_title(valor: Celula, titulo: str) -> bool:
    if not isinstance(valor, str) or len(valor) >= 80:
        return False
    return chave_do_titulo(valor) == chave_do_titulo(titulo) or campo_de(valor) == campo_de(titulo) is not None


def _says_something(linha: Sequence[Celula]) -> bool:
    return any(valor is not None and valor != "" and (not isinstance(valor, str) or valor.strip()) for valor in linha)


def _titles(fields: Iterable[str]) -> str:
    return ", ".join(CABECALHOS[each][0] for each in fields)


def _row(lendo: _Lendo, header: Cabecalho, number: int, linha: Sequence[Celula]) -> "dict[str, Json] | None":
    """Convert a row to an appointment's fields. Return None if the row is skipped. If the row is invalid, add the
    reason to ``erros``.
    """
    cells = {name: linha[place] if place < len(linha) else None for name, place in header.colunas.items()}

    def remark(where: Reparos, name: str, problema: Problema) -> None:
        where.append(lendo.reparo(number, header.nomes.get(name), problema))

    for name, valor in cells.items():
        if isinstance(valor, str) and COVERED in valor and esta_coberto(name, valor):
            cells[name] = None
            remark(lendo.avisos, name, Problema.COBERTO)
        elif isinstance(valor, str) and len(valor) > LONGEST_NAME and len(valor) > mais_longo(name):
            cells[name] = texto_da(valor)[: mais_longo(name)]
            remark(lendo.avisos, name, Problema.TEXTO_CORTADO)
    carro = dito(cells.get("carro"))
    if "sala" in cells and lendo.is_coleta:
        room = _ROOM.fullmatch(limpo(texto_da(cells["sala"])))
        if room is None:
            remark(lendo.avisos, "sala", Problema.SALA)
            return None
        carro = room[1].partition(" - ")[0].strip()[: mais_longo("carro")]
    for name in ("nome_marca", "nome_unidade", "nome_paciente") if lendo.is_coleta else ("nome_paciente",):
        if dito(cells[name]) is None:
            remark(lendo.erros, name, Problema.SEM_NOME if name == "nome_paciente" else Problema.SEM_VALOR)
            return None
    dia, hora = _when(lendo, header, cells, remark)
    if lendo.is_coleta and dia is None:
        remark(lendo.erros, "data_hora", Problema.DATA_ILEGIVEL)
        return None
    row: dict[str, Json] = {
        "linha": number,
        "aba": lendo.aba.nome,
        "data_agendamento": dia,
        "hora_agendamento": hora,
        "carro": carro,
    }
    row["hora_dita"] = _hour_words(cells) if hora is None else None
    row |= _texts(lendo, cells, remark)
    row |= _check_cells(lendo, cells, remark, is_coleta=lendo.is_coleta)
    row |= _confirmation(lendo, cells)
    return {name: value for name, value in row.items() if value is not None}


Remark = Callable[[Reparos, str, Problema], None]


def _when(
    lendo: _Lendo, header: Cabecalho, cells: Mapping[str, Celula], remark: Remark
) -> tuple[str | None, str | None]:
    if "data_hora" in cells:
        dia, hora = data_hora_da(cells["data_hora"], since_1904=lendo.since_1904)
        if dia is not None and hora is None:
            remark(lendo.avisos, "data_hora", Problema.HORA_ILEGIVEL)
        return None if dia is None else dia.isoformat(), hora
    dia, beside = data_hora_da(serial_dito(cells.get("data")), since_1904=lendo.since_1904)
    if "data" not in cells:
        dia = lendo.dia or header.dia
    hora = hora_da(cells.get("hora")) or (beside if beside != MIDNIGHT else None)
    if dia is None and "data" in cells:
        remark(lendo.avisos, "data", Problema.DATA_ILEGIVEL)
    if hora is None and "hora" in cells:
        remark(lendo.avisos, "hora", Problema.HORA_ILEGIVEL)
    return None if dia is None else dia.isoformat(), hora


def _hour_words(cells: Mapping[str, Celula]) -> str | None:
    """Return the words that a cell contains instead of a time, such as "manhã" (morning). These words distinguish two
    visits of a patient on one day.
    """
    if "data_hora" in cells:
        return " ".join(re.findall(r"[a-z]+", plano(limpo(texto_da(cells["data_hora"]))))) or None
    return dito(cells.get("hora"))


def _texts(lendo: _Lendo, cells: Mapping[str, Celula], remark: Remark) -> "dict[str, Json]":
    plain = (
        "nome_paciente", "nome_marca", "nome_unidade", "observacoes", "exames", "endereco_coleta", "endereco_completo",
        "numero_convenio", "nome_convenio", "carteira_convenio", "especialidade", "origem_id",
    )  # fmt: skip
    row: dict[str, Json] = {}
    for name in plain:
        if name in cells:
            row[name] = dito(cells[name])
    row["nome_paciente"] = nome_junto(cells)
    row["documento_completo"] = documento_junto(cells, lendo.aba.header.colunas)
    row["endereco_completo"] = endereco_junto(cells) or row.get("endereco_coleta")
    return row


def _check_cells(lendo: _Lendo, cells: Mapping[str, Celula], remark: Remark, *, is_coleta: bool) -> "dict[str, Json]":
    row: dict[str, Json] = {"telefone": telefone_da(telefone_junto(cells)), "cep": cep_da(cells.get("cep"))}
    if row["telefone"] is None and dito(cells.get("telefone")) is not None:
        remark(lendo.avisos, "telefone", Problema.TELEFONE_ILEGIVEL)
    if row["cep"] is None and dito(cells.get("cep")) is not None:
        remark(lendo.avisos, "cep", Problema.CEP_ILEGIVEL)
    if (convenio := dito(cells.get("convenio"))) is not None:
        row["numero_convenio" if is_coleta else "nome_convenio"] = convenio
    said = dito(cells.get("status"))
    situacao = None if said is None else _SITUACOES.get(plano(limpo(said)))
    if situacao is None and said is not None:
        remark(lendo.avisos, "status", Problema.STATUS_DESCONHECIDO)
    row["status"] = None if situacao is None else situacao.value
    return row


def _confirmation(lendo: _Lendo, cells: Mapping[str, Celula]) -> "dict[str, Json]":
    if _CONFIRMATION.isdisjoint(cells):
        return {}
    canal = dito(cells.get("canal_confirmacao"))
    both = cells.get("data_hora_confirmacao")
    if plano(texto_da(both)) in _EMPTY_CONFIRMATION:
        both = None
    dia, hora = data_hora_da(both, since_1904=lendo.since_1904)
    dia = dia or data_da(cells.get("data_confirmacao"), since_1904=lendo.since_1904)
    return {
        "canal_confirmacao": canal,
        "data_confirmacao": None if dia is None else dia.isoformat(),
        "hora_confirmacao": hora or hora_da(cells.get("hora_confirmacao")),
    }
