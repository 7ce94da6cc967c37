"""Fit the category model: ``python -m tests.julia.leitura_grupos.treinar`` writes ``dados/assunto.json``.

A multinomial logistic regression is fitted by stochastic gradient descent with adaptive steps, using only the standard
library. Features that occur only once are ignored.
"""

import json
import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from math import exp, sqrt

from app.contexts.leitura_grupos.juizo.assunto import Assunto
from app.contexts.leitura_grupos.leitor import indicios_de
from app.contexts.leitura_grupos.texto.vocabulario import DADOS
from app.contexts.leitura_grupos.tipos import Categoria
from tests.julia.leitura_grupos.placar import autores, mensagens, vocabulario

EPOCHS, STEP, L2, LEAST = 8, 0.1, 1e-3, 2
# Smaller weights are not stored.
SMALL = 0.04
_CATEGORIAS = tuple(Categoria)


@cache
def exemplos(autor: str) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Return the features and the category number of each of the author's messages that is labelled with a category."""
    found = []
    for each in mensagens(autor):
        if each["categoria"] is None:
            continue
        sent = datetime.fromisoformat(each["enviado_em"])
        where = each.get("regiao") or each.get("grupo")
        features = indicios_de(each["texto"], enviado_em=sent, regiao=where, vocabulario=vocabulario())
        found.append((tuple(sorted(features)), _CATEGORIAS.index(Categoria(each["categoria"]))))
    return tuple(found)


@cache
def sem(autor: str) -> Assunto:
    """Return a model that was fitted without the messages of one author."""
    return ajustado([each for other in autores() if other != autor for each in exemplos(other)])


def ajustado(examples: Sequence[tuple[tuple[str, ...], int]]) -> Assunto:
    times = Counter(each for features, _ in examples for each in features)
    rows = [([each for each in features if times[each] >= LEAST], kind) for features, kind in examples]
    size = len(_CATEGORIAS)
    weights = {each: [0.0] * size for each, count in times.items() if count >= LEAST}
    squares = {each: [1e-8] * size for each in weights}
    order = random.Random(1)
    for _ in range(EPOCHS):
        order.shuffle(rows)
        for features, kind in rows:
            totals = [sum(each) for each in zip(*(weights[name] for name in features), strict=True)]
            most = max(totals)
            parts = [exp(each - most) for each in totals]
            whole = sum(parts)
            errors = [part / whole - (place == kind) for place, part in enumerate(parts)]
            for name in features:
                own, seen = weights[name], squares[name]
                for place, error in enumerate(errors):
                    slope = error + L2 * own[place]
                    seen[place] += slope * slope
                    own[place] -= STEP * slope / sqrt(seen[place])
    return Assunto({name: own for name, own in weights.items() if max(map(abs, own)) >= SMALL})


def main() -> None:
    model = ajustado([each for autor in autores() for each in exemplos(autor)])
    stored = {name: [round(weight * 100) for weight in model.pesos[name]] for name in sorted(model.pesos)}
    text = json.dumps(stored, ensure_ascii=False, separators=(",", ":")).replace('],"', '],\n"')
    (DADOS / "assunto.json").write_text(text + "\n", encoding="utf-8")
    print(f"{len(stored)} features, {len(text) // 1024} KiB")


if __name__ == "__main__":
    main()
