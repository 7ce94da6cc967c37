"""What a person may say a vaga is: no hospital that is no name, no speciality nobody has, no day or number that cannot be meant.

One slip of a reviewer is learnt, and would be read into every message afterwards.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta
from typing import Final

from rapidfuzz import fuzz, process

from app.contexts.leitura_grupos.api import Periodo, chave
from app.contexts.nomes.nomes import Nomes, pode_ser_nome
from batuta import BatutaError

AHEAD: Final = timedelta(days=366)
NEAR: Final = 60.0
ESTADOS: Final = frozenset(
    [
        "AC",
        "AL",
        "AM",
        "AP",
        "BA",
        "CE",
        "DF",
        "ES",
        "GO",
        "MA",
        "MG",
        "MS",
        "MT",
        "PA",
        "PB",
        "PE",
        "PI",
        "PR",
        "RJ",
        "RN",
        "RO",
        "RR",
        "RS",
        "SC",
        "SE",
        "SP",
        "TO",
    ]
)
WHATSAPP: Final = r"^55[1-9][1-9][2-9][0-9]{7,8}$"


class NaoENome(BatutaError):
    sentence = "that is no hospital's name ({motivo}): write how it is called, as in 'Hospital Fictício'"


class EspecialidadeDesconhecida(BatutaError):
    sentence = (
        "nobody knows that speciality; those nearest are {perto}: write one, or add yours with `batuta grupos carregar`"
    )


class CorrecaoRecusada(BatutaError):
    sentence = "{campo} cannot be that, it is {espera}: correct it and try again"


class LugarSemHospital(BatutaError):
    sentence = "a town and a state are a hospital's: say which hospital too"


class MotivoAusente(BatutaError):
    sentence = "a rejection says why: give the reason and try again"


RECUSAS: Final = (NaoENome, EspecialidadeDesconhecida, CorrecaoRecusada, LugarSemHospital, MotivoAusente)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correcao:
    """What a person says otherwise; None: as it is."""

    hospital: str | None = None
    cidade: str | None = None
    uf: str | None = None
    especialidade: str | None = None
    data: date | None = None
    periodo: Periodo | None = None
    hora_inicio: str | None = None
    hora_fim: str | None = None
    valor: float | None = None
    contato_nome: str | None = None
    contato_whatsapp: str | None = None

    @property
    def campos(self) -> list[str]:
        return [each.name for each in fields(self) if getattr(self, each.name) is not None]

    def recusar(self, hoje: date) -> None:
        """Raises where something cannot be meant. ``hoje``: the day in São Paulo."""
        if self.hospital is None and (self.cidade is not None or self.uf is not None):
            raise LugarSemHospital
        if self.uf is not None and self.uf not in ESTADOS:
            raise CorrecaoRecusada(campo="uf", espera="SP, RJ, …")
        if self.data is not None and self.data - hoje > AHEAD:
            raise CorrecaoRecusada(campo="data", espera=f"<= {(hoje + AHEAD).isoformat()}")
        if self.contato_whatsapp is not None and not re.match(WHATSAPP, self.contato_whatsapp):
            raise CorrecaoRecusada(campo="contato_whatsapp", espera="5511900000001")


def nome_de_lugar(nome: str, nomes: Nomes) -> None:
    """Raises unless a name that nobody knows yet may become a hospital's."""
    score, why = em_duvida(nome, nomes)
    if not score:
        raise NaoENome(motivo=why or "")


def em_duvida(nome: str, nomes: Nomes) -> tuple[float, str | None]:
    """How likely a text is a place's name: a speciality is none."""
    return pode_ser_nome(nome, eh_especialidade=nomes.vocabulario.especialidades.valor(nome) is not None)


def especialidade_de(nome: str, nomes: Nomes) -> str:
    """How the speciality is called that a person means."""
    known = nomes.vocabulario.especialidades
    canonical = known.valor(nome)
    if canonical is None:
        raise EspecialidadeDesconhecida(perto=", ".join(_find_near(nome, sorted(set(known.valores())))))
    return canonical


def _find_near(nome: str, known: Sequence[str]) -> list[str]:
    found = process.extract(nome, known, processor=chave, scorer=fuzz.WRatio, score_cutoff=NEAR, limit=3)
    return [each for each, _, _ in found] or list(known[:3])
