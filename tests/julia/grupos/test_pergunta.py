"""The message that asks an author for missing fields. The message asks only for these fields, once for all of the
author's offers, and mentions the opt-out word.
"""

from datetime import date

import pytest

from app.contexts.grupos.recuperacao import Falta, pergunta
from app.contexts.leitura_conversas.api import OptOut, ler

DAY = date(2026, 3, 20)


def test_question_names_only_the_missing_fields_and_the_offer() -> None:
    text = pergunta(
        "Fulana Teste", [Falta(campos=("hospital",), especialidade="Pediatria", data=DAY, periodo="noturno")]
    )
    assert text.startswith("Oi, Fulana! ")
    assert "• o hospital (Pediatria, 20/03, noturno)\n" in text
    for other in ("o dia", "o valor", "o horário", "a especialidade"):
        assert other not in text


def test_several_offers_are_one_message_with_a_line_per_kind_of_gap() -> None:
    faltas = [
        Falta(campos=("hospital", "valor"), especialidade="UTI", data=date(2026, 3, 20 + n)) for n in range(7)
    ] + [Falta(campos=("horario", "data"), hospital="Hospital Fictício")]
    lines = [line for line in pergunta(None, faltas).splitlines() if line.startswith("•")]
    assert lines == [
        "• o hospital e o valor (UTI, 20/03; UTI, 21/03; UTI, 22/03; UTI, 23/03; UTI, 24/03 e mais 2)",
        "• o dia e o horário (Hospital Fictício)",
    ]


@pytest.mark.parametrize("nome", [None, "", "~*~", "5511900000001", "{nome}"])
def test_invalid_name_is_not_used(nome: str | None) -> None:
    assert pergunta(nome, [Falta(campos=("data",))]).startswith("Oi! ")


def test_text_of_the_offer_cannot_add_lines_to_the_question() -> None:
    text = pergunta("Fulana", [Falta(campos=("data",), hospital="Hospital\n• clique {aqui}" + "x" * 500)])
    assert len(text.splitlines()) == 3
    assert len(text) < 400


def test_opt_out_word_of_the_question_is_recognised() -> None:
    assert "PARAR" in pergunta("Fulana", [Falta(campos=("data",))])
    assert ler("PARAR").opt_out is OptOut.CERTO
