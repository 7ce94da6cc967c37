"""A linear model that confirms or corrects the category that the rules gave a message.

The rules count the signals for each category. The model also weighs every word, every pair of words, and the kinds of
fields in the message. Its weights are in ``dados/assunto.json``; ``python -m tests.julia.leitura_grupos.treinar`` fits
them.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import exp

from app.contexts.leitura_grupos.juizo.intencao import Juizo
from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.montagem.montar import Montagem
from app.contexts.leitura_grupos.texto.vocabulario import DADOS
from app.contexts.leitura_grupos.tipos import Categoria
from batuta.kernel import dataclass

# Number of first words that the model reads. Later words of a long message are about details.
MAIS_PALAVRAS = 120
# Lowest probability at which the model overrides the rules.
BASTA = 0.65
# Reasons for a category that the model does not change: the rules recognise messages without words, and requests for
# money, by their form.
_DE_FORMA = frozenset(("sem_texto", "midia", "link", "pede_pix"))
_CATEGORIAS = tuple(Categoria)
_LEAST = ((), (1,), (1, 2), (1, 2, 3))


@dataclass(frozen=True, slots=True)
class Assunto:
    """Weights of the linear model that classifies messages: for each feature, one weight per category."""

    pesos: Mapping[str, Sequence[float]]

    @classmethod
    def padrao(cls) -> "Assunto":
        return _padrao()

    def chances(self, features: Sequence[str]) -> dict[Categoria, float]:
        """Return the probability of each message category, given the features of a message."""
        rows = [each for each in map(self.pesos.get, features) if each is not None]
        totals = [sum(each) for each in zip(*rows, strict=True)]
        totals = totals or [0.0] * len(_CATEGORIAS)
        most = max(totals)
        parts = [exp(each - most) for each in totals]
        whole = sum(parts)
        return {kind: part / whole for kind, part in zip(_CATEGORIAS, parts, strict=True)}

    def rever(self, juizo: Juizo, features: Sequence[str]) -> tuple[Juizo, float]:
        """Return a message's category after the model has confirmed or corrected it, and the probability that the
        message is an offer.
        """
        if juizo.motivo in _DE_FORMA:
            return juizo, 0.0
        chances = self.chances(features)
        best = max(_CATEGORIAS, key=chances.__getitem__)
        offer = chances[Categoria.OFERTA]
        if best is juizo.categoria or chances[best] < BASTA:
            return juizo, offer
        return Juizo(best, round(max(0.5, min(0.99, chances[best])), 2), "palavras"), offer


def indicios(folha: Folha, sinais: Counter[str], montagem: Montagem, juizo: Juizo) -> list[str]:
    """Return a message's features: its words and pairs of words, its signals and fields, and its category according to
    the rules.
    """
    words = ["0" if each.texto.isdigit() else each.texto for each in folha.texto.palavras[:MAIS_PALAVRAS]]
    found = [*words, *[f"{one} {two}" for one, two in pairwise(words)]]
    for sign, counts in (("s", sinais.items()), ("m", _marcas(folha))):
        found += [f"{sign}:{kind}{least}" for kind, times in counts if times for least in _LEAST[min(times, 3)]]
    found += ["*", f"r:{juizo.categoria}", f"n:{len(folha.texto.palavras).bit_length()}"]
    if words:
        found.append(f"^{words[0]}")
    if montagem.abertas:
        found.append("v")
    return [*dict.fromkeys(found)]  # in a fixed order, because the result of adding floats depends on the order


def _marcas(folha: Folha) -> Iterator[tuple[str, int]]:
    yield "dia", len(folha.dias)
    yield "lugar", len(folha.lugares)
    yield "turno", sum(each.periodo is not None or each.das is not None for each in folha.turnos[:5])
    yield "preco", len(folha.precos)
    yield "contato", len(folha.contatos)
    yield "area", sum(not each.fraca for each in folha.areas[:5])
    yield "fechado", len(folha.fechados)
    yield "combinar", len(folha.combinar)
    yield "pergunta", folha.texto.plano.count("?", 0, 4000)
    yield "endereco", "http" in folha.texto.plano or "www." in folha.texto.plano


@cache
def _padrao() -> Assunto:
    stored = json.loads((DADOS / "assunto.json").read_text(encoding="utf-8"))
    return Assunto({each: [weight / 100 for weight in weights] for each, weights in stored.items()})
