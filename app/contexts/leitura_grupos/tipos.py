"""What a reading says: is it an offer, of which category, and which vagas; every field with the words it came from."""

from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")
Trecho = tuple[int, int]


class Categoria(StrEnum):
    OFERTA = "oferta"
    PROCURA = "procura_vaga"
    SPAM = "spam"
    PROPAGANDA = "propaganda"
    AVISO = "aviso"
    OUTRO = "outro"
    CONVERSA = "conversa"


class Periodo(StrEnum):
    DIURNO = "diurno"
    NOTURNO = "noturno"
    MANHA = "manha"
    TARDE = "tarde"
    CINDERELA = "cinderela"
    H24 = "24h"


class ValorTipo(StrEnum):
    FIXO = "fixo"
    A_COMBINAR = "a_combinar"


@dataclass(frozen=True, slots=True)
class Campo(Generic[T]):
    """``trecho`` is where in the source text it stands, as a slice; None: nothing says it, it is the rule's default."""

    valor: T
    trecho: Trecho | None
    confianca: float = 1.0


@dataclass(frozen=True, slots=True)
class VagaDita:
    """What a message says of a shift it offers. None: it does not say."""

    hospital: Campo[str] | None
    especialidade: Campo[str]
    data: Campo[date] | None
    periodo: Campo[Periodo] | None
    cidade: Campo[str] | None = None
    uf: Campo[str] | None = None
    hora_inicio: Campo[time] | None = None
    hora_fim: Campo[time] | None = None
    valor: Campo[Decimal] | None = None
    valor_tipo: Campo[ValorTipo] | None = None
    forma_pagamento: Campo[str] | None = None
    contato_nome: Campo[str] | None = None
    contato_whatsapp: Campo[str] | None = None

    @property
    def confianca(self) -> float:
        """As sure as the least sure of the four fields that make it one vaga; what is not said is not sure at all."""
        fields = (self.hospital, self.especialidade, self.data, self.periodo)
        return min(0.0 if each is None else each.confianca for each in fields)


@dataclass(frozen=True, slots=True)
class VagaLida(VagaDita):
    """One hospital, one day, one period, one speciality."""

    hospital: Campo[str]
    especialidade: Campo[str]
    data: Campo[date]
    periodo: Campo[Periodo]


@dataclass(frozen=True, slots=True)
class Fechamento:
    """A message says that something is taken. ``vagas``: those it tells whole; the rest is what else it names.

    ``certo``: the message is a notice, no talk. ``firme``: its word cannot mean "agreed". ``todas``: more than one is meant.
    ``claro``: nothing but a shift can be what it is of.
    """

    trecho: Trecho
    vagas: tuple[VagaLida, ...] = ()
    hospitais: tuple[str, ...] = ()
    dias: tuple[date, ...] = ()
    periodos: tuple[Periodo, ...] = ()
    certo: bool = True
    firme: bool = True
    claro: bool = True
    todas: bool = False


@dataclass(frozen=True, slots=True)
class Leitura:
    """``vagas`` may be empty for an offer: all dates are past, or no hospital or no date could be made out (``incompletas``).

    ``incompletas`` may stand beside ``vagas``: a line of another place that says no day.
    """

    eh_oferta: bool
    confianca: float
    categoria: Categoria
    motivo: str
    vagas: tuple[VagaLida, ...] = ()
    fechamento: Fechamento | None = None
    incompletas: tuple[VagaDita, ...] = ()


@dataclass(frozen=True, slots=True)
class Nota:
    """The cheap first look: how much a text resembles an offer, and which signs it shows."""

    score: float
    motivo: str
    sinais: tuple[str, ...] = ()
