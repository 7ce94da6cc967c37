"""Answers to a request for feedback. Scores from 1 to 5 and simple words are understood, and every doubtful answer is
left for an operator.
"""

import pytest

from app.contexts.gatilhos.avaliacao import Avaliacao, AvaliacaoLida, avaliar

GOOD, FAIR, BAD, UNCLEAR = Avaliacao.POSITIVA, Avaliacao.NEUTRA, Avaliacao.NEGATIVA, Avaliacao.INDEFINIDA


@pytest.mark.parametrize(
    ("texto", "lida"),
    [
        ("5", AvaliacaoLida(GOOD, 5)),
        ("5!", AvaliacaoLida(GOOD, 5)),
        ("Nota 4", AvaliacaoLida(GOOD, 4)),
        ("4/5", AvaliacaoLida(GOOD, 4)),
        ("4 de 5", AvaliacaoLida(GOOD, 4)),
        ("3, mais ou menos", AvaliacaoLida(FAIR, 3)),
        ("2 - faltou material", AvaliacaoLida(BAD, 2)),
        ("minha nota é 1", AvaliacaoLida(BAD, 1)),
        ("5 estrelas", AvaliacaoLida(GOOD, 5)),
        ("Bom dia! Foi ótimo", AvaliacaoLida(GOOD)),
        ("gostei muito", AvaliacaoLida(GOOD)),
        ("sem problemas", AvaliacaoLida(GOOD)),
        ("péssimo", AvaliacaoLida(BAD)),
        ("muito desorganizado", AvaliacaoLida(BAD)),
        ("regular", AvaliacaoLida(FAIR)),
    ],
)
def test_clear_answer_has_its_class(texto: str, lida: AvaliacaoLida) -> None:
    assert avaliar(texto) == lida


@pytest.mark.parametrize(
    "texto",
    [
        "", "bom dia", "ok", "5 horas de espera", "nota 10", "10", "fiz 2 plantões", "às 5h", "5,5", "1.500",
        "não foi bom", "foi bom?", "bom, mas a equipe era ruim", "quando recebo?",
    ],
)  # fmt: skip
def test_unclear_answer_is_left_to_a_person(texto: str) -> None:
    assert avaliar(texto) == AvaliacaoLida(UNCLEAR)


def test_mark_and_words_that_disagree_are_left_to_a_person() -> None:
    assert avaliar("5, péssimo") == AvaliacaoLida(UNCLEAR, 5)
