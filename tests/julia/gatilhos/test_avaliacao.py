"""Answers to a request for feedback. Scores from 1 to 5 and simple words are understood, and every doubtful answer is
left for an operator.
"""

import pytest

from app.contexts.gatilhos.avaliacao import Avaliacao, Lida, avaliar

GOOD, FAIR, BAD, UNCLEAR = Avaliacao.POSITIVA, Avaliacao.NEUTRA, Avaliacao.NEGATIVA, Avaliacao.INDEFINIDA


@pytest.mark.parametrize(
    ("texto", "lida"),
    [
        ("5", Lida(GOOD, 5)),
        ("5!", Lida(GOOD, 5)),
        ("Nota 4", Lida(GOOD, 4)),
        ("4/5", Lida(GOOD, 4)),
        ("4 de 5", Lida(GOOD, 4)),
        ("3, mais ou menos", Lida(FAIR, 3)),
        ("2 - faltou material", Lida(BAD, 2)),
        ("minha nota é 1", Lida(BAD, 1)),
        ("5 estrelas", Lida(GOOD, 5)),
        ("Bom dia! Foi ótimo", Lida(GOOD)),
        ("gostei muito", Lida(GOOD)),
        ("sem problemas", Lida(GOOD)),
        ("péssimo", Lida(BAD)),
        ("muito desorganizado", Lida(BAD)),
        ("regular", Lida(FAIR)),
    ],
)
def test_clear_answer_has_its_class(texto: str, lida: Lida) -> None:
    assert avaliar(texto) == lida


@pytest.mark.parametrize(
    "texto",
    [
        "", "bom dia", "ok", "5 horas de espera", "nota 10", "10", "fiz 2 plantões", "às 5h", "5,5", "1.500",
        "não foi bom", "foi bom?", "bom, mas a equipe era ruim", "quando recebo?",
    ],
)  # fmt: skip
def test_unclear_answer_is_left_to_a_person(texto: str) -> None:
    assert avaliar(texto) == Lida(UNCLEAR)


def test_mark_and_words_that_disagree_are_left_to_a_person() -> None:
    assert avaliar("5, péssimo") == Lida(UNCLEAR, 5)
