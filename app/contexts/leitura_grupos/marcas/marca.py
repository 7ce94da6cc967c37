"""Marks: ranges of a text that a reader recognised, such as a day, a price or a place. Positions refer to
``Texto.plano``, the normalised text.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import date, time
from decimal import Decimal
from operator import attrgetter
from typing import TypeVar

from app.contexts.leitura_grupos.tipos import Periodo
from batuta.kernel import dataclass

TOMADO, DATADO = "\x01", "\x02"


@dataclass(slots=True, unsafe_hash=True)
class Marca:
    inicio: int
    fim: int


@dataclass(slots=True, unsafe_hash=True)
class Dia(Marca):
    data: date


@dataclass(slots=True, unsafe_hash=True)
class Dias(Marca):
    """A sequence of days. ``semana`` has the weekdays if the text names weekdays instead of dates. ``solto`` means that
    the days may be only the condition of a price, and not the days of shifts.
    """

    dias: tuple[Dia, ...]
    semana: frozenset[int] = frozenset()
    solto: bool = False
    feriado: bool = False
    passou: bool = False


@dataclass(slots=True, unsafe_hash=True)
class Turno(Marca):
    """A shift. At least one of its period, its hours and its length is set."""

    periodo: Periodo | None = None
    das: time | None = None
    ate: time | None = None
    horas: int | None = None


@dataclass(slots=True, unsafe_hash=True)
class Condicao(Marca):
    """The condition under which a price applies: weekdays, holidays or certain days."""

    semana: frozenset[int] = frozenset()
    feriado: bool = False
    datas: frozenset[date] = frozenset()


@dataclass(slots=True, unsafe_hash=True)
class Preco(Marca):
    """A price. ``plantoes`` is the number of shifts that the price covers. ``soma`` means that this price is added to
    another price.
    """

    reais: Decimal
    por_hora: bool = False
    liquido: bool = False
    plantoes: int = 1
    soma: bool = False
    certo: bool = True


@dataclass(slots=True, unsafe_hash=True)
class Combinar(Marca):
    """A statement that the price is still to be agreed."""


@dataclass(slots=True, unsafe_hash=True)
class Lugar(Marca):
    nome: str
    cidade: str | None = None
    uf: str | None = None
    cidade_em: tuple[int, int] | None = None
    confianca: float = 1.0


@dataclass(slots=True, unsafe_hash=True)
class Area(Marca):
    """A speciality. ``fraca`` means that the word fits any doctor ("plantonista"); a specific speciality in the message
    then takes precedence.
    """

    nome: str
    fraca: bool = False


@dataclass(slots=True, unsafe_hash=True)
class Fone(Marca):
    """A phone number. ``numero`` is None if the area code is missing."""

    numero: str | None


@dataclass(slots=True, unsafe_hash=True)
class Pagamento(Marca):
    parte: str
    valor: str


@dataclass(slots=True, unsafe_hash=True)
class Fechado(Marca):
    """A word or sign that says that a shift is taken or that no doctor is wanted. ``sinal`` is the sign; it is empty
    for a word.
    """

    sinal: str = ""


M = TypeVar("M", bound=Marca)
_inicio = attrgetter("inicio")


def entre(marcas: Sequence[M], inicio: int, fim: int) -> Sequence[M]:
    """Return the marks that begin in a range of the text. ``marcas`` must be sorted by position."""
    if not marcas or marcas[0].inicio >= fim or marcas[-1].inicio < inicio:
        return marcas[:0]
    first = bisect_left(marcas, inicio, key=_inicio)
    return marcas[first : bisect_left(marcas, fim, first, key=_inicio)]


def linha_de(plano: str, lugar: int, janela: int = 1000) -> tuple[int, int]:
    """Return the start and end of the line around a position, at most ``janela`` characters to each side."""
    start = plano.rfind("\n", max(0, lugar - janela), lugar) + 1 or max(0, lugar - janela)
    end = plano.find("\n", lugar, lugar + janela)
    return start, min(len(plano), lugar + janela) if end < 0 else end


def apagar(plano: str, marcas: Iterable[Marca], com: str = TOMADO) -> str:
    """Replace the marked words with spaces. The text's length and its line ends do not change."""
    ordered = [*marcas]
    if not ordered:
        return plano
    ordered.sort(key=_inicio)
    parts, free = [], 0
    for each in ordered:
        if each.fim <= free:
            continue
        start = max(each.inicio, free)
        parts.append(plano[free:start])
        taken = plano[start : each.fim]
        parts.append(com * len(taken) if "\n" not in taken else "".join("\n" if c == "\n" else com for c in taken))
        free = each.fim
    parts.append(plano[free:])
    return "".join(parts)
