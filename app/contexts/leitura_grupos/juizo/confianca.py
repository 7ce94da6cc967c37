"""The calibrated confidence of a vacancy: how probable it is that hospital, day, period, speciality and price are correct.

A logistic model weighs how the vacancy was derived and what no rule explained. Its weights are in
``dados/confianca.json``; ``python -m tests.julia.leitura_grupos.calibrar`` fits them on the labelled messages.
"""

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log1p

from app.contexts.leitura_grupos.juizo.intencao import Juizo
from app.contexts.leitura_grupos.juizo.sinais import Sinal
from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Marca
from app.contexts.leitura_grupos.texto.texto import Palavra
from app.contexts.leitura_grupos.texto.vocabulario import DADOS, todas_as_palavras
from app.contexts.leitura_grupos.tipos import Derivacao, Forma, VagaLida

SUSPEITA = 0.5
_WORD = re.compile(r"[a-z]{3,}|\d+")
_SIGNS = ("conversa", "aviso", "procura", "troca", "venda", "emprego", "nao_medico", "golpe")
_CORRECTED = re.compile(r"\b(?:corrig|correcao|errata|retific|ops|digo|errad[oa]|atualiza|edit|mudou|nao)\w*")
# Words around an offer that say nothing about the shift.
_PLAIN = frozenset(
    [
        "que",
        "com",
        "para",
        "pra",
        "por",
        "uma",
        "uns",
        "dos",
        "das",
        "nos",
        "nas",
        "aos",
        "pelo",
        "pela",
        "mais",
        "sem",
        "sob",
        "sobre",
        "ate",
        "entre",
        "quando",
        "como",
        "onde",
        "qual",
        "quem",
        "isso",
        "esse",
        "essa",
        "este",
        "esta",
        "nosso",
        "nossa",
        "seu",
        "sua",
        "meu",
        "minha",
        "tem",
        "ter",
        "temos",
        "teve",
        "foi",
        "era",
        "sao",
        "ser",
        "vai",
        "vou",
        "sim",
        "muito",
        "muita",
        "bem",
        "aqui",
        "ali",
        "agora",
        "ainda",
        "tambem",
        "tbm",
        "porque",
        "pois",
        "mas",
        "nem",
        "cada",
        "todo",
        "toda",
        "todos",
        "todas",
        "ele",
        "ela",
        "eles",
        "elas",
        "voce",
        "voces",
        "favor",
        "obrigado",
        "obrigada",
        "abs",
        "att",
    ]
)


def inexplicadas(folha: Folha, found: Sequence[Sinal]) -> list[Palavra]:
    """Return the words and numbers that no rule explained."""
    people = [each.nome for each in folha.contatos if each.nome is not None]
    marks: list[Marca | Sinal] = [
        *folha.dias, *folha.turnos, *folha.lugares, *folha.areas, *folha.precos, *folha.condicoes, *folha.combinar,
        *folha.pagamentos, *folha.fechados, *folha.cidades, *folha.riscados, *people, *found,
    ]  # fmt: skip
    marks.sort(key=lambda each: each.inicio)
    known, left, at, until = todas_as_palavras(), [], 0, 0
    for word in folha.texto.palavras:
        while at < len(marks) and marks[at].inicio <= word.inicio:
            until = max(until, marks[at].fim)
            at += 1
        if word.inicio < until or folha.livre[word.inicio : word.fim] != word.texto:
            continue
        if _WORD.fullmatch(word.texto) and word.texto not in known and word.texto not in _PLAIN:
            left.append(word)
    return left


@dataclass(frozen=True, slots=True)
class Evidencia:
    """Facts of the whole message, as features of each of its vacancies."""

    folha: Folha
    sinais: Counter[str]
    inexplicadas: Sequence[Palavra]
    juizo: Juizo

    def de(self, vagas: Sequence[VagaLida]) -> list[tuple[float, ...]]:
        """Return the features of each vacancy of the message."""
        shared = tuple(self._comuns(vagas)) if vagas else ()
        return [(*shared, *self._proprios(each)) for each in vagas]

    @property
    def limite(self) -> float:
        """The highest confidence of a vacancy of the message. A person decides about a message with signs of a scam."""
        has_link = "http" in self.folha.texto.plano or "www." in self.folha.texto.plano
        return SUSPEITA if self.sinais["golpe"] > 1 or (self.sinais["golpe"] and has_link) else 1.0

    def _comuns(self, vagas: Sequence[VagaLida]) -> Iterator[float]:
        folha = self.folha
        words = max(1, len(folha.texto.palavras))
        numbers = [each for each in self.inexplicadas if each.texto[0].isdigit()]
        prices = {(each.reais, each.por_hora) for each in folha.precos[:60]}
        used = {each.valor.trecho for each in vagas if each.valor is not None}
        priced = sum(each.valor is not None for each in vagas)
        stated = sum(len({day.inicio for day in each.dias}) for each in folha.dias[:200])
        yield log1p(len(vagas))
        yield log1p(len(self.inexplicadas))
        yield len(self.inexplicadas) / words
        yield log1p(len(numbers))
        yield log1p(max(0, len(vagas) / max(1, stated) - 1))
        yield log1p(len(prices))
        yield float(len(prices) > len(used))
        yield float(bool(folha.precos) and priced < len(vagas))
        yield float(not folha.precos and not folha.combinar)
        yield log1p(len({each.nome for each in folha.lugares[:200]}))
        yield log1p(len({each.nome for each in folha.areas[:200]}))
        yield log1p(len(folha.fechados))
        yield float(bool(folha.riscados))
        yield log1p(len(_CORRECTED.findall(folha.texto.plano[:4000])))
        yield self.juizo.confianca
        yield float(any(each.solto for each in folha.dias) and any(not each.solto for each in folha.dias))
        yield float(bool(self.sinais["oferta"] + self.sinais["cede"]))
        yield from (float(min(self.sinais[name], 2)) for name in _SIGNS)
        yield log1p(words) / 5

    def _proprios(self, vaga: VagaLida) -> Iterator[float]:
        derived = vaga.derivacao
        assert derived is not None
        yield from (float(derived.forma is each) for each in (Forma.TITULO, Forma.PRODUTO, Forma.TABELA))
        yield log1p(derived.produto - 1)
        yield float(derived.herdados)
        yield float(derived.padroes)
        yield float(derived.preco in (2, 3))
        yield float(derived.preco == 4)
        yield float(derived.preco > 4)
        yield float(derived.de_semana)
        yield vaga.hospital.confianca
        yield float(vaga.hospital.confianca == 1.0)
        yield float(vaga.especialidade.confianca < 1.0)
        yield float(vaga.periodo.confianca < 1.0)
        yield log1p(self._na_linha(derived))
        yield float(vaga.valor is not None and not 400 <= vaga.valor.valor <= 6000)

    def _na_linha(self, derived: Derivacao) -> int:
        """Count the unexplained words of the vacancy's line."""
        starts = [each.inicio for each in self.inexplicadas]
        return bisect_left(starts, derived.do_bloco[1]) - bisect_left(starts, derived.do_bloco[0])


def com_confianca(vaga: VagaLida, features: Sequence[float], at_most: float) -> VagaLida:
    return replace(vaga, certeza=min(at_most, probabilidade(features)))


def probabilidade(features: Sequence[float]) -> float:
    weights = _pesos()
    total = weights[0] + sum(weight * each for weight, each in zip(weights[1:], features, strict=True))
    return round(1 / (1 + exp(-max(-30.0, min(30.0, total)))), 3)


@cache
def _pesos() -> tuple[float, ...]:
    return tuple(json.loads((DADOS / "confianca.json").read_text(encoding="utf-8"))["pesos"])
