"""The marks that the readers leave on a text: what stands where. Places are those of ``Texto.plano``."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal

from app.contexts.grupos.leitura.tipos import Periodo

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


def apagar(plano: str, marcas: Iterable[Marca], com: str = TOMADO) -> str:
    """The text with the marks taken out of it, every other letter at its place. Line ends stay."""
    parts, free = [], 0
    for each in sorted(marcas, key=lambda mark: mark.inicio):
        if each.fim <= free:
            continue
        start = max(each.inicio, free)
        parts.append(plano[free:start])
        taken = plano[start : each.fim]
        parts.append(com * len(taken) if "\n" not in taken else "".join("\n" if c == "\n" else com for c in taken))
        free = each.fim
    parts.append(plano[free:])
    return "".join(parts)
