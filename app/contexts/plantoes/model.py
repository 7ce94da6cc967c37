"""Results and errors of actions on a vacancy, and the rules that need no database access."""

import re
from datetime import date, timedelta
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from app.contexts.leitura_grupos.api import UFS, Periodo
from app.contexts.vagas.api import PROCURA, StatusDaVaga
from batuta import BatutaError
from batuta.kernel import dataclass
from batuta.reasons import define

HORA: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
AHEAD: Final = timedelta(days=366)
DIAS_ACEITOS: Final = define("dias_aceitos", "{de} to {ate}")
MENOR_VALOR, MAIOR_VALOR = 100, 50_000
# Maximum number of doctors in one announcement.
MOST_OFFERS: Final = 50


class VagaDesconhecida(BatutaError):
    sentence = "vacancy {id} does not exist: `batuta vagas listar` lists the existing ones"


class MedicoDesconhecido(BatutaError):
    sentence = "doctor {id} does not exist: give the id of a doctor in `clientes`"


class HospitalDesconhecido(BatutaError):
    sentence = "no hospital has that name: create it with `--novo-hospital` (`novo_hospital` in JSON)"


class HospitalParecido(HospitalDesconhecido):
    sentence = (
        "no hospital has that name; the nearest are {perto}: write one of them, or create it with `--novo-hospital`"
        " (`novo_hospital` in JSON)"
    )


class HospitalDeVarios(BatutaError):
    sentence = "several hospitals have that name, in {cidades}: give the city too"


class HospitalSemOfertas(BatutaError):
    sentence = "hospital {hospital} is blocked, and its vacancies are not offered: choose another hospital"


class CampoDaVagaRecusado(BatutaError):
    sentence = "{campo} has an invalid value; it must be {espera}: correct it and try again"


class VagaRepetida(BatutaError):
    sentence = (
        "vacancy {id} is open for the same hospital, day, period and speciality: use it, or create another with `--outra`"
        " (`outra` in JSON)"
    )


class VagaOcupada(BatutaError):
    sentence = "vacancy {id} is already taken (status: {status}): `batuta vagas listar --status aberta` lists open ones"


class VagaNaoPode(BatutaError):
    sentence = "vacancy {id} is {status}, and this action needs {precisa}: `batuta vagas ver {id}` shows its history"


class PlantaoComecou(BatutaError):
    sentence = "the shift of vacancy {id} has started: the vacancy is no longer offered"


class MotivoDaCancelada(StrEnum):
    """Reasons why an operator may cancel a vacancy."""

    NAO_COMPARECEU = "nao_compareceu"
    MEDICO_DESISTIU = "medico_desistiu"
    CANCELADA_PELO_HOSPITAL = "cancelada_pelo_hospital"
    ERRO_DE_CADASTRO = "erro_de_cadastro"
    OUTRO = "outro"


# Reason of the hourly job for cancelling a vacancy: its start passed without a doctor.
VENCIDA: Final = "vencida"
# These reasons apply only to a reserved vacancy.
DE_PLANTAO_RESERVADO: Final = (MotivoDaCancelada.NAO_COMPARECEU, MotivoDaCancelada.MEDICO_DESISTIU)


@dataclass(frozen=True, slots=True, kw_only=True)
class NovaVaga:
    """A vacancy that an operator enters, with hours or a period such as day or night. If ``outra`` is set, the vacancy
    is created even if an equal one exists.
    """

    hospital: str
    especialidade: str
    data: date
    cidade: str | None = None
    uf: str | None = None
    periodo: Periodo | None = None
    hora_inicio: str | None = None
    hora_fim: str | None = None
    valor: int | None = None
    novo_hospital: bool = False
    outra: bool = False

    def recusar(self, hoje: date) -> None:
        """Raise CampoDaVagaRecusado for the first implausible field. ``hoje`` is today's date in São Paulo."""
        if not hoje <= self.data <= hoje + AHEAD:
            raise CampoDaVagaRecusado(campo="data", espera=DIAS_ACEITOS(de=hoje, ate=hoje + AHEAD))
        for campo, hour in (("hora_inicio", self.hora_inicio), ("hora_fim", self.hora_fim)):
            is_wrong = re.fullmatch(HORA, hour) is None if hour is not None else self.hora_inicio != self.hora_fim
            if is_wrong:
                raise CampoDaVagaRecusado(campo=campo, espera="19:00")
        if self.hora_inicio is None and self.periodo is None:
            raise CampoDaVagaRecusado(campo="periodo", espera=", ".join(Periodo))
        if self.valor is not None and not MENOR_VALOR <= self.valor <= MAIOR_VALOR:
            raise CampoDaVagaRecusado(campo="valor", espera=f"{MENOR_VALOR} … {MAIOR_VALOR}")
        if self.uf is not None and self.uf.lower() not in UFS:
            raise CampoDaVagaRecusado(campo="uf", espera="SP, RJ, …")


@dataclass(frozen=True, slots=True)
class Feita:
    """Result: the vacancy was changed as requested."""

    id: str
    status: StatusDaVaga


@dataclass(frozen=True, slots=True)
class Repetida:
    """Result: nothing was written, because the vacancy already had the requested state."""

    id: str
    status: StatusDaVaga


@dataclass(frozen=True, slots=True)
class Ocupada:
    """Result: the change was refused, because the vacancy is or was reserved for another doctor."""

    id: str
    status: StatusDaVaga


@dataclass(frozen=True, slots=True)
class Impedida:
    """Result: the vacancy's state does not permit the change. ``precisa`` has the states that permit it."""

    id: str
    status: StatusDaVaga
    precisa: tuple[StatusDaVaga, ...]


Resposta: TypeAlias = Feita | Repetida | Ocupada | Impedida


def exigir(resposta: Resposta) -> Feita | Repetida:
    """Return the result of a change if the vacancy now has the requested state. Otherwise raise VagaOcupada or
    VagaNaoPode.
    """
    match resposta:
        case Feita() | Repetida():
            return resposta
        case Ocupada(id, status):
            raise VagaOcupada(id=id, status=status.value)
        case Impedida(id, status, precisa):
            raise VagaNaoPode(id=id, status=status.value, precisa=" | ".join(precisa))
        case _:
            assert_never(resposta)


@dataclass(frozen=True, slots=True, kw_only=True)
class SituacaoDaVaga:
    """The facts that decide whether a vacancy may change. ``oferecida`` means that the vacancy was offered to at least
    one doctor.
    """

    id: str
    status: StatusDaVaga
    cliente_id: str | None = None
    oferecida: bool = False


# The new state of the vacancy, or the result for the caller if the state does not change.
Decisao: TypeAlias = StatusDaVaga | Resposta


def decidir_anuncio(vaga: SituacaoDaVaga) -> Decisao:
    return _ocupada(vaga) or StatusDaVaga.ANUNCIADA


def decidir_reserva(vaga: SituacaoDaVaga, *, quer: str) -> Decisao:
    """Decide whether a vacancy can be reserved. ``quer`` is the doctor who wants it."""
    if vaga.status is StatusDaVaga.RESERVADA and vaga.cliente_id == quer:
        return Repetida(vaga.id, vaga.status)
    return _ocupada(vaga) or StatusDaVaga.RESERVADA


def decidir_liberacao(vaga: SituacaoDaVaga) -> Decisao:
    if vaga.status in PROCURA:
        return Repetida(vaga.id, vaga.status)
    if vaga.status is not StatusDaVaga.RESERVADA:
        return Impedida(vaga.id, vaga.status, (StatusDaVaga.RESERVADA,))
    return StatusDaVaga.ANUNCIADA if vaga.oferecida else StatusDaVaga.ABERTA


def decidir_realizada(vaga: SituacaoDaVaga) -> Decisao:
    return _depois_do_plantao(vaga, StatusDaVaga.REALIZADA, (StatusDaVaga.PENDENTE_CONFIRMACAO,))


def decidir_cancelamento(vaga: SituacaoDaVaga, *, motivo: MotivoDaCancelada) -> Decisao:
    """Decide whether a vacancy can be cancelled. A reserved vacancy must first be released, so that its doctor is
    informed.
    """
    before = () if motivo in DE_PLANTAO_RESERVADO else PROCURA
    return _depois_do_plantao(vaga, StatusDaVaga.CANCELADA, (*before, StatusDaVaga.PENDENTE_CONFIRMACAO))


def motivos_possiveis(status: StatusDaVaga) -> list[MotivoDaCancelada]:
    """Return the reasons that an operator may give to cancel a vacancy with a given status."""
    return [motivo for motivo in MotivoDaCancelada if status not in PROCURA or motivo not in DE_PLANTAO_RESERVADO]


def _ocupada(vaga: SituacaoDaVaga) -> Ocupada | Impedida | None:
    """Return why a vacancy cannot be announced or reserved: it has or had a doctor (``Ocupada``), or it is cancelled
    (``Impedida``). Return None if the vacancy still needs a doctor.
    """
    if vaga.status in PROCURA:
        return None
    if vaga.status is StatusDaVaga.CANCELADA:
        return Impedida(vaga.id, vaga.status, PROCURA)
    return Ocupada(vaga.id, vaga.status)


def _depois_do_plantao(vaga: SituacaoDaVaga, para: StatusDaVaga, precisa: tuple[StatusDaVaga, ...]) -> Decisao:
    if vaga.status is para:
        return Repetida(vaga.id, para)
    return para if vaga.status in precisa else Impedida(vaga.id, vaga.status, precisa)
