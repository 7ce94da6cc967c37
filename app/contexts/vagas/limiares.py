"""Thresholds for the pipeline's decisions. Each decision stores the threshold that it used."""

from batuta.kernel import dataclass

# Tolerance for floating-point sums: 0.3 + 0.25 + 0.25 must reach 0.8.
_QUASE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Limiares:
    """The pipeline's thresholds. A message whose heuristic score reaches ``alta`` is treated as an offer without being
    classified. A vacancy is imported only if the probability that it was read correctly reaches ``leitura``.
    """

    heuristica: float = 0.3
    alta: float = 0.8
    classificacao: float = 0.7
    importacao: float = 0.85
    revisao: float = 0.70
    leitura: float = 0.95


def alcanca(score: float, limiar: float) -> bool:
    return score >= limiar - _QUASE
