"""The marks that the readers leave on a text: what stands where. Places are those of ``Texto.plano``."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from operator import attrgetter
from typing import TypeVar

from app.contexts.leitura_grupos.tipos import Periodo

TOMADO, DATADO = "\x01", "\x02"


@dataclass(frozen=True, slots=True)
class Marca:
    inicio: int
    fim: int


@dataclass(frozen=True, slots=True)
class Dia(Marca):
    data: date


@dataclass(frozen=True, slots=True)
class Dias(Marca):
    """A run of days. ``semana``: the weekdays it names when no number does; ``solto``: it may be a price's condition."""

    dias: tuple[Dia, ...]
    semana: frozenset[int] = frozenset()
    solto: bool = False
    feriado: bool = False
    passou: bool = False


@dataclass(frozen=True, slots=True)
class Turno(Marca):
    """A period, its hours, or only how long it takes; at least one of them."""

    periodo: Periodo | None = None
    das: time | None = None
    ate: time | None = None
    horas: int | None = None


@dataclass(frozen=True, slots=True)
class Condicao(Marca):
    """When a price holds: on these weekdays, on holidays."""

    semana: frozenset[int] = frozenset()
    feriado: bool = False


@dataclass(frozen=True, slots=True)
class Preco(Marca):
    """``plantoes``: it is the sum for so many shifts; ``soma``: it comes on top of another."""

    reais: Decimal
    por_hora: bool = False
    liquido: bool = False
    plantoes: int = 1
    soma: bool = False
    certo: bool = True


@dataclass(frozen=True, slots=True)
class Combinar(Marca):
    """The price is to be agreed."""


@dataclass(frozen=True, slots=True)
class Lugar(Marca):
    nome: str
    cidade: str | None = None
    uf: str | None = None
    cidade_em: tuple[int, int] | None = None
    confianca: float = 1.0


@dataclass(frozen=True, slots=True)
class Area(Marca):
    """``fraca``: any doctor may be called so ("plantonista"); a real speciality in the message wins."""

    nome: str
    fraca: bool = False


@dataclass(frozen=True, slots=True)
class Fone(Marca):
    """``numero`` None: without the area code it is nobody's."""

    numero: str | None


@dataclass(frozen=True, slots=True)
class Pagamento(Marca):
    parte: str
    valor: str


@dataclass(frozen=True, slots=True)
class Fechado(Marca):
    """It was taken, or nobody is wanted any more. ``sinal``: only a sign says so."""

    sinal: str = ""


M = TypeVar("M", bound=Marca)
_inicio = attrgetter("inicio")


def entre(marcas: Sequence[M], inicio: int, fim: int) -> Sequence[M]:
    """Those that begin in a stretch of the text; they must be in its order."""
    first = bisect_left(marcas, inicio, key=_inicio)
    return marcas[first : bisect_left(marcas, fim, lo=first, key=_inicio)]


def linha_de(plano: str, lugar: int, janela: int = 1000) -> tuple[int, int]:
    """The line a place is on, as far as a window to each side of it."""
    start = plano.rfind("\n", max(0, lugar - janela), lugar) + 1 or max(0, lugar - janela)
    end = plano.find("\n", lugar, lugar + janela)
    return start, min(len(plano), lugar + janela) if end < 0 else end


def apagar(plano: str, marcas: Iterable[Marca], com: str = TOMADO) -> str:
    """The text with the marks taken out of it, every other letter at its place. Line ends stay."""
    ordered = sorted(marcas, key=_inicio)
    if not ordered:
        return plano
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
