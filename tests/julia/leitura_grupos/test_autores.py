"""The scores of the reader of group messages do not get worse for any author. ``docs/leitura.md`` has the scores for
authors on whose messages the reader was not fitted.
"""

import pytest

from app.contexts.leitura_grupos.api import heuristica
from app.contexts.vagas.limiares import Limiares
from tests.julia.leitura_grupos.placar import autores, igual, lidas, mensagens, placar, por_chave

# Lowest F1 of offers, share of correct categories, F1 of vacancies and share of correct prices.
PISOS = {
    "primeiro": (0.99, 0.97, 0.98, 0.99),
    "segundo": (0.97, 0.94, 0.93, 0.95),
    "capixaba": (0.99, 0.97, 0.96, 0.97),
    "decimo": (0.98, 0.97, 0.96, 0.97),
    "onze": (0.98, 0.97, 0.96, 0.97),
    "doze": (0.99, 0.97, 0.94, 0.96),
    "treze": (0.98, 0.95, 0.96, 0.93),
    "catorze": (0.98, 0.96, 0.97, 0.97),
    "quinze": (0.98, 0.97, 0.97, 0.97),
    "dezesseis": (0.98, 0.97, 0.95, 0.94),
    "dezessete": (0.98, 0.97, 0.94, 0.94),
    "dezoito": (0.98, 0.97, 0.90, 0.95),
    "centro": (0.98, 0.97, 0.97, 0.97),
    "minas": (0.98, 0.97, 0.94, 0.94),
    "nordeste": (0.98, 0.96, 0.93, 0.98),
    "norte": (0.98, 0.96, 0.96, 0.98),
    "sudeste": (0.98, 0.96, 0.95, 0.94),
    "sul": (0.99, 0.97, 0.97, 0.95),
}


def test_every_author_has_a_floor() -> None:
    assert {*autores()} == {*PISOS}


@pytest.mark.parametrize("autor", PISOS)
def test_scores_of_an_author_reach_their_floor(autor: str) -> None:
    found = placar([autor])
    scores = (found.oferta, found.categoria, found.vaga, found.campo("valor"))
    assert all(score >= floor for score, floor in zip(scores, PISOS[autor], strict=True)), scores


def test_vacancies_above_the_limit_are_correct_more_often_than_those_below() -> None:
    right: dict[bool, list[bool]] = {True: [], False: []}
    for autor in autores():
        for message, read in zip(mensagens(autor), lidas(autor), strict=True):
            expected = por_chave(message)
            for key, each in por_chave(read, apelidos=True).items():
                is_right = key in expected and igual("valor", expected[key]["valor"], each["valor"])
                right[each["confianca"] >= Limiares().leitura].append(is_right)
    above, below = (sum(each) / len(each) for each in (right[True], right[False]))
    assert above >= 0.97 > 0.85 > below


def test_no_scam_is_offered() -> None:
    for autor in autores():
        for message, read in zip(mensagens(autor), lidas(autor), strict=True):
            if message["categoria"] == "spam" and heuristica(message["texto"]).score:
                assert not read["vagas"], message["id"]
