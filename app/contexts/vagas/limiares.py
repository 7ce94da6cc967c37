"""The limits the pipeline decides by. Each decision keeps the one that counted."""

from dataclasses import dataclass

# 0.3 + 0.25 + 0.25 is 0.8, whatever floating point makes of it.
_QUASE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Limiares:
    """``alta``: so sure an offer that it need not be classified."""

    heuristica: float = 0.3
    alta: float = 0.8
    classificacao: float = 0.7
    importacao: float = 0.85
    revisao: float = 0.70


def alcanca(score: float, limiar: float) -> bool:
    return score >= limiar - _QUASE
