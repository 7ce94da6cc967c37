"""Types for a group message's content: its category and its vacancies. Each field has its position in the message."""

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
    """A value read from the text. ``trecho`` is its position in the source text, or None for a default value."""

    valor: T
    trecho: Trecho | None
    confianca: float = 1.0


class Forma(StrEnum):
    """The kind of lines from which a vacancy was read: a single line, a line with a heading, a combination of lists, or
    a table cell.
    """

    LINHA = "linha"
    TITULO = "titulo"
    PRODUTO = "produto"
    TABELA = "tabela"


@dataclass(slots=True, unsafe_hash=True)
class Derivacao:
    """How a vacancy was read from a message: the form of the lines, and the origin of each field.

    - ``herdados``: number of fields that another line states
    - ``abaixo``: number of fields that a later line states
    - ``padroes``: number of fields that no line states
    - ``produto``: number of vacancies that were read from the same line
    - ``preco``: distance of the price: 0 is the vacancy's line, followed by the heading, the section and the message;
      the largest value means that there is no price
    - ``disputa``: number of other prices that apply equally well
    - ``de_semana``: whether the message names the day only by its weekday
    - ``do_bloco``: range of the line in the text
    - ``dia``: position of the day in the text
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
        """The calibrated probability that the vacancy is correct. Without a calibration, this is the lowest confidence
        among hospital, speciality, day and period, where a missing field has the confidence 0.
        """
        if self.certeza is not None:
            return self.certeza
        fields = (self.hospital, self.especialidade, self.data, self.periodo)
        return min(0.0 if each is None else each.confianca for each in fields)


@dataclass(slots=True, unsafe_hash=True)
class VagaLida(VagaDita):
    """A complete vacancy, with exactly one hospital, one day, one period and one speciality."""

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
    """A statement that vacancies are taken. ``vagas`` has the vacancies that the message states in full. ``hospitais``,
    ``dias`` and ``periodos`` have all hospitals, days and periods that the message names.

    ``certo`` means that the message is a notice rather than a conversation. ``firme`` means that the message is about
    taken shifts; the word "fechado" alone may also mean "agreed". ``todas`` means that several vacancies are taken.
    ``claro`` means that the word for "taken" can refer only to a shift.
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
    """A group message's content. ``vagas`` is empty if an offer lacks a hospital or a date (see ``incompletas``), or if
    its dates are past.

    A message may have both ``vagas`` and ``incompletas``, for example if one line names another place without a day.
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
    """The result of the heuristic: a score that says how much a text resembles an offer, and the signals that were
    found.
    """

    score: float
    motivo: str
    sinais: tuple[str, ...] = ()
