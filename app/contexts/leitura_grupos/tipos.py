"""Types for the content of a group message: its category and its vacancies. Each field has its position in the message."""

from datetime import date, time
from decimal import Decimal
from enum import StrEnum
from typing import Generic, TypeVar

from batuta.kernel import dataclass

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


@dataclass(slots=True, unsafe_hash=True)
class Campo(Generic[T]):
    """A value read from the text. ``trecho`` is its position in the source text, or None if the value is a default that
    the text does not state.
    """

    valor: T
    trecho: Trecho | None
    confianca: float = 1.0


class Forma(StrEnum):
    """How a vacancy was read from the message."""

    LINHA = "linha"
    TITULO = "titulo"
    PRODUTO = "produto"
    TABELA = "tabela"


@dataclass(slots=True, unsafe_hash=True)
class Derivacao:
    """How a vacancy was read: from one line, with fields of a heading, as a combination of lists, or from a cell of a
    table.

    ``herdados`` counts the fields that another line states, ``padroes`` the fields that no line states. ``produto`` is
    the number of vacancies from the same line. ``preco`` is the distance of the price: 0 means the same line, then the
    heading, the section, the message; the largest value means no price. ``disputa`` counts the other prices that apply
    equally well. ``de_semana`` means that only a weekday names the day. ``abaixo`` counts the fields that a later line
    states. ``do_bloco`` is the range of the line, ``dia`` the position of the day.
    """

    forma: Forma
    herdados: int
    padroes: int
    produto: int
    preco: int
    disputa: int
    de_semana: bool
    abaixo: int
    do_bloco: Trecho
    dia: int


@dataclass(slots=True, unsafe_hash=True)
class VagaDita:
    """A shift as a message offers it. A field that the message does not state is None.

    ``derivacao`` and ``certeza`` are set for complete vacancies that the rules read. ``certeza`` is the calibrated
    probability that the vacancy and its price are correct.
    """

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
    derivacao: Derivacao | None = None
    certeza: float | None = None

    @property
    def confianca(self) -> float:
        """The calibrated probability of the vacancy. If it is not set, this is the lowest confidence of the four fields
        that identify the vacancy. A missing field counts as 0.
        """
        if self.certeza is not None:
            return self.certeza
        fields = (self.hospital, self.especialidade, self.data, self.periodo)
        return min(0.0 if each is None else each.confianca for each in fields)


@dataclass(slots=True, unsafe_hash=True)
class VagaLida(VagaDita):
    """A complete vacancy. It has exactly one hospital, one day, one period and one speciality."""

    hospital: Campo[str]
    especialidade: Campo[str]
    data: Campo[date]
    periodo: Campo[Periodo]

    def com_certeza(self, certeza: float) -> "VagaLida":
        return VagaLida(
            self.hospital,
            self.especialidade,
            self.data,
            self.periodo,
            self.cidade,
            self.uf,
            self.hora_inicio,
            self.hora_fim,
            self.valor,
            self.valor_tipo,
            self.forma_pagamento,
            self.contato_nome,
            self.contato_whatsapp,
            self.derivacao,
            certeza,
        )


@dataclass(frozen=True, slots=True)
class Fechamento:
    """A statement that vacancies are taken. ``vagas`` has the vacancies that are stated in full. ``hospitais``,
    ``dias`` and ``periodos`` have the hospitals, days and periods that the message names.

    ``certo`` means that the message is a notice, not a conversation. ``firme`` means that the closing word cannot mean
    "agreed". ``todas`` means that several vacancies are meant. ``claro`` means that the closing word can refer only to
    a shift.
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
    """The content of a group message. ``vagas`` is empty for an offer whose dates are past, or that lacks a hospital or
    a date (``incompletas``).

    ``incompletas`` and ``vagas`` may occur together, for example if one line names another place without a day.
    ``inexplicadas`` has the words that no rule matched.
    """

    eh_oferta: bool
    confianca: float
    categoria: Categoria
    motivo: str
    vagas: tuple[VagaLida, ...] = ()
    fechamento: Fechamento | None = None
    incompletas: tuple[VagaDita, ...] = ()
    inexplicadas: tuple[Trecho, ...] = ()


@dataclass(frozen=True, slots=True)
class Nota:
    """The result of the heuristic: the score (how much a text resembles an offer), and its signals."""

    score: float
    motivo: str
    sinais: tuple[str, ...] = ()
