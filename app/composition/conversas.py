"""Builds the contexts that act on conversations: the states of doctors."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.contexts.estado_medico.jobs import Manutencao
from app.contexts.estado_medico.service import EstadoDosMedicos, Estados
from batuta import Batuta
from batuta.jobs import JobHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctors:
    estado: EstadoDosMedicos  # listener for sent and received messages
    estados: Estados
    manutencao: Manutencao

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {
            "doctor-state-manutencao-diaria": self.manutencao.diaria,
            "doctor-state-manutencao-semanal": self.manutencao.semanal,
        }


def build_doctors(work: Batuta) -> Doctors:
    return Doctors(
        estado=EstadoDosMedicos(work.database.dialect, work.ids),
        estados=Estados(work.database, work.ids, work.clock),
        manutencao=Manutencao(work.database, work.ids, work.clock),
    )
