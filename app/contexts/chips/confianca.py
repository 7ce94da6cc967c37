"""Compute a chip's trust from its messages, and the permissions that follow from the trust.

Trust is a score from 0 to 100, and the score determines the level. A chip's level and phase determine its permissions
and limits. Rates are fractions between 0 and 1. A chip that only reads groups never gets permission to send.
"""

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Final

from batuta.kernel import dataclass
from batuta.reasons import Reason, define

FAILURES_IN_A_ROW: Final = define("chip_falhas_seguidas", "{count} failures in a row")
TRUST_TOO_LOW: Final = define("chip_confianca_baixa", "trust {trust} is below {least}")

TOO_LOW: Final = 20
TOO_MANY_IN_A_ROW: Final = 10
BONUS: Final[Mapping[str, int]] = {
    "repouso": 0,
    "setup": 5,
    "primeiros_contatos": 10,
    "expansao": 20,
    "pre_operacao": 35,
    "teste_graduacao": 45,
    "operacao": 50,
}
# Messages per hour and per day of a fully trusted chip.
LIMITS: Final[Mapping[str, tuple[int, int]]] = {
    "repouso": (0, 0),
    "setup": (2, 5),
    "primeiros_contatos": (5, 10),
    "expansao": (10, 30),
    "pre_operacao": (15, 50),
    "teste_graduacao": (20, 70),
    "operacao": (30, 100),
}


class Nivel(StrEnum):
    """Levels of trust in a chip, best first."""

    VERDE = "verde"
    AMARELO = "amarelo"
    LARANJA = "laranja"
    VERMELHO = "vermelho"
    CRITICO = "critico"


FLOORS: Final[Mapping[Nivel, int]] = {
    Nivel.VERDE: 80,
    Nivel.AMARELO: 60,
    Nivel.LARANJA: 40,
    Nivel.VERMELHO: 20,
    Nivel.CRITICO: 0,
}
PERCENT: Final[Mapping[Nivel, int]] = {
    Nivel.VERDE: 100,
    Nivel.AMARELO: 80,
    Nivel.LARANJA: 50,
    Nivel.VERMELHO: 20,
    Nivel.CRITICO: 100,  # percentage of the phase's limits, capped at CRITICAL_LIMITS
}
CRITICAL_LIMITS: Final = (3, 10)
SECONDS_BETWEEN: Final[Mapping[Nivel, int]] = {
    Nivel.VERDE: 45,
    Nivel.AMARELO: 60,
    Nivel.LARANJA: 90,
    Nivel.VERMELHO: 120,
    Nivel.CRITICO: 180,
}
PROSPECTS: Final = frozenset({Nivel.VERDE, Nivel.AMARELO})
FOLLOWS_UP: Final = frozenset({Nivel.VERDE, Nivel.AMARELO, Nivel.LARANJA})


@dataclass(frozen=True, slots=True, kw_only=True)
class MedidasDoChip:
    """Statistics about a chip's messages over the last weeks. ``seguidas`` is the number of errors since the last
    successful send.
    """

    idade_dias: float = 0.0
    taxa_resposta: float = 0.0
    taxa_delivery: float = 0.0
    taxa_block: float = 0.0
    tipos_midia: int = 0
    erros_24h: int = 0
    conversas_bidirecionais: int = 0
    dias_sem_erro: int = 0
    seguidas: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissoes:
    pode_prospectar: bool = False
    pode_followup: bool = False
    pode_responder: bool = False
    limite_hora: int = 0
    limite_dia: int = 0
    delay_minimo_segundos: int = SECONDS_BETWEEN[Nivel.CRITICO]


NOTHING: Final = Permissoes()


def factors(medidas: MedidasDoChip, fase: str) -> dict[str, float]:
    """Return the terms that add up to a chip's trust score, by name."""
    return {
        "base": 30.0,
        "idade": 15 * _share(medidas.idade_dias, 30),
        "resposta": 20 * _share(medidas.taxa_resposta, 0.5),
        "delivery": 15 * _share(medidas.taxa_delivery, 0.95),
        "block": -20 * _share(medidas.taxa_block, 0.1),
        "midia": 10 * _share(medidas.tipos_midia, 4),
        "erros": -10 * _share(medidas.erros_24h, 5),
        "conversas": 15 * _share(medidas.conversas_bidirecionais, 20),
        "sem_erro": 10 * _share(medidas.dias_sem_erro, 7),
        "fase": 15 * BONUS[fase] / 50,
    }


def score(medidas: MedidasDoChip, fase: str) -> int:
    # Round before truncating: a floating-point sum of 69.9999999 must give 70, not 69.
    return min(100, max(0, int(round(sum(factors(medidas, fase).values()), 6))))


def level(trust: int) -> Nivel:
    return next(each for each, floor in FLOORS.items() if trust >= floor)


def permissions(tipo: str, fase: str, nivel: Nivel) -> Permissoes:
    if tipo != "julia":
        return NOTHING
    hour, day = LIMITS[fase]
    if nivel is Nivel.CRITICO:
        hour, day = min(hour, CRITICAL_LIMITS[0]), min(day, CRITICAL_LIMITS[1])
    return Permissoes(
        pode_prospectar=nivel in PROSPECTS,
        pode_followup=nivel in FOLLOWS_UP,
        pode_responder=True,
        limite_hora=hour * PERCENT[nivel] // 100,
        limite_dia=day * PERCENT[nivel] // 100,
        delay_minimo_segundos=SECONDS_BETWEEN[nivel],
    )


def demotion(trust: int, medidas: MedidasDoChip) -> Reason | None:
    """Return why a chip must stop sending, or None if it may continue."""
    if medidas.seguidas >= TOO_MANY_IN_A_ROW:
        return FAILURES_IN_A_ROW(count=medidas.seguidas)
    return TRUST_TOO_LOW(trust=trust, least=TOO_LOW) if trust < TOO_LOW else None


def describe(medidas: MedidasDoChip) -> dict[str, float]:
    return {name: float(value) for name, value in asdict(medidas).items()}


def _share(value: float, of: float) -> float:
    return min(1.0, max(0.0, value / of))
