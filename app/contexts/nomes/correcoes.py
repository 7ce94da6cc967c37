"""Validate an operator's corrections: hospital names, specialities, days and numbers.

The pipeline learns from corrections, so a wrong correction would affect how every later message is read.
"""

import re
from collections.abc import Sequence
from dataclasses import fields
from datetime import date, timedelta
from typing import Final

from app.contexts.leitura_grupos.api import Periodo, chave
from app.contexts.nomes.nomes import Nomes, pode_ser_nome
from batuta import BatutaError
from batuta.kernel import dataclass
from batuta.reasons import define

AHEAD: Final = timedelta(days=366)
ULTIMO_DIA: Final = define("ultimo_dia_aceito", "a day until {dia}")
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
    sentence = "the text is not a hospital name ({motivo}): write a name such as 'Hospital Fictício'"


class EspecialidadeDesconhecida(BatutaError):
    sentence = "unknown speciality; the nearest are {perto}: choose one, or add yours with `batuta grupos carregar`"


class CorrecaoRecusada(BatutaError):
    sentence = "{campo} has an invalid value, expected {espera}: correct it and try again"


class LugarSemHospital(BatutaError):
    sentence = "a town or state needs a hospital: give the hospital too"


class MotivoAusente(BatutaError):
    sentence = "a rejection needs a reason: give it and try again"


RECUSAS: Final = (NaoENome, EspecialidadeDesconhecida, CorrecaoRecusada, LugarSemHospital, MotivoAusente)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correcao:
    """An operator's corrections to an extracted vacancy. A field that is None stays unchanged."""

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
        """Raise an error if a corrected value is implausible. ``hoje`` is today's date in São Paulo."""
        if self.hospital is None and (self.cidade is not None or self.uf is not None):
            raise LugarSemHospital
        if self.uf is not None and self.uf not in ESTADOS:
            raise CorrecaoRecusada(campo="uf", espera="SP, RJ, …")
        if self.data is not None and self.data - hoje > AHEAD:
            raise CorrecaoRecusada(campo="data", espera=ULTIMO_DIA(dia=hoje + AHEAD))
        if self.contato_whatsapp is not None and not re.match(WHATSAPP, self.contato_whatsapp):
            raise CorrecaoRecusada(campo="contato_whatsapp", espera="5511900000001")


def nome_de_lugar(nome: str, nomes: Nomes) -> None:
    """Raise NaoENome if a text cannot be a hospital name."""
    score, why = em_duvida(nome, nomes)
    if not score:
        raise NaoENome(motivo=why or "")


def em_duvida(nome: str, nomes: Nomes) -> tuple[float, str | None]:
    """Return the probability that a text is the name of a place. If the probability is 0, for example because the text
    is a speciality, also return the reason.
    """
    return pode_ser_nome(nome, eh_especialidade=nomes.vocabulario.especialidades.valor(nome) is not None)


def especialidade_de(nome: str, nomes: Nomes) -> str:
    """Return the canonical name of a speciality. Raises EspecialidadeDesconhecida if the text is not a known
    speciality.
    """
    known = nomes.vocabulario.especialidades
    canonical = known.valor(nome)
    if canonical is None:
        raise EspecialidadeDesconhecida(perto=", ".join(_find_near(nome, sorted(set(known.valores())))))
    return canonical


def _find_near(nome: str, known: Sequence[str]) -> list[str]:
    from rapidfuzz import fuzz, process  # takes half a megabyte, which most processes never need

    found = process.extract(nome, known, processor=chave, scorer=fuzz.WRatio, score_cutoff=NEAR, limit=3)
    return [each for each, _, _ in found] or list(known[:3])
