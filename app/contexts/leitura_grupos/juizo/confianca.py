"""A vacancy's calibrated confidence: how probable it is that hospital, day, period, speciality and price are correct.

A logistic model weighs the features in ``evidencia``. Its weights are in ``dados/confianca.json``; ``python -m
tests.julia.leitura_grupos.calibrar`` fits them on the labelled messages.
"""

import json
from collections.abc import Sequence
from functools import cache
from math import exp
from operator import mul

from app.contexts.leitura_grupos.juizo.evidencia import COMUNS, PROPRIAS
from app.contexts.leitura_grupos.texto.vocabulario import DADOS
from app.contexts.leitura_grupos.tipos import VagaLida

# Highest confidence of a vacancy with a doubt that occurs too rarely in the labelled messages.
DUVIDOSA = 0.9
_DUVIDA = (*COMUNS, *PROPRIAS).index("duvida")


def com_confianca(vaga: VagaLida, features: Sequence[float], at_most: float) -> VagaLida:
    return vaga.com_certeza(min(at_most, ate(features), probabilidade(features)))


def ate(features: Sequence[float]) -> float:
    """Return the highest confidence that a vacancy may get. If there is a reason to doubt the vacancy (``duvidas``),
    this limit is so low that a person decides.
    """
    return DUVIDOSA if features[_DUVIDA] else 1.0


def probabilidade(features: Sequence[float]) -> float:
    intercept, weights = _pesos()
    total = intercept + sum(map(mul, weights, features))
    return round(1 / (1 + exp(-max(-30.0, min(30.0, total)))), 3)


@cache
def _pesos() -> tuple[float, tuple[float, ...]]:
    intercept, *weights = json.loads((DADOS / "confianca.json").read_text(encoding="utf-8"))["pesos"]
    return intercept, tuple(weights)
