"""The message that asks whoever posted for what is missing: only that, once for all his offers, and how to be left alone."""

from datetime import date

import pytest

from app.contexts.grupos.recuperacao import Falta, pergunta
from app.contexts.leitura_conversas.api import OptOut, ler

DAY = date(2026, 3, 20)


def test_only_what_is_missing_is_asked_and_he_is_told_of_which_offer() -> None:
    text = pergunta(
        "Fulana Teste", [Falta(campos=("hospital",), especialidade="Pediatria", data=DAY, periodo="noturno")]
    )
    assert text.startswith("Oi, Fulana! ")
    assert "• o hospital (Pediatria, 20/03, noturno)\n" in text
    for other in ("o dia", "o valor", "o horário", "a especialidade"):
        assert other not in text


def test_several_offers_are_one_message_with_a_line_for_what_each_kind_lacks() -> None:
    faltas = [
        Falta(campos=("hospital", "valor"), especialidade="UTI", data=date(2026, 3, 20 + n)) for n in range(7)
    ] + [Falta(campos=("horario", "data"), hospital="Hospital Fictício")]
    lines = [line for line in pergunta(None, faltas).splitlines() if line.startswith("•")]
    assert lines == [
        "• o hospital e o valor (UTI, 20/03; UTI, 21/03; UTI, 22/03; UTI, 23/03; UTI, 24/03 e mais 2)",
        "• o dia e o horário (Hospital Fictício)",
    ]


@pytest.mark.parametrize("nome", [None, "", "~*~", "5511900000001", "{nome}"])
def test_a_name_that_is_none_is_not_said(nome: str | None) -> None:
    assert pergunta(nome, [Falta(campos=("data",))]).startswith("Oi! ")


def test_what_the_offer_says_cannot_become_lines_of_ours() -> None:
    text = pergunta("Fulana", [Falta(campos=("data",), hospital="Hospital\n• clique {aqui}" + "x" * 500)])
    assert len(text.splitlines()) == 3
    assert len(text) < 400


def test_the_word_it_names_for_being_left_alone_is_one_that_counts() -> None:
    assert "PARAR" in pergunta("Fulana", [Falta(campos=("data",))])
    assert ler("PARAR").opt_out is OptOut.CERTO
