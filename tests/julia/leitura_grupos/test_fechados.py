"""Notices that a shift is taken, and messages that use the same words about something else."""

from datetime import UTC, datetime

import pytest

from app.contexts.leitura_grupos.api import Fechamento, ler

OTHER_SENSES = [
    "Grupo fechado só para admins",
    "Rosto coberto é proibido",
    "vaga de estacionamento preenchida",
    "quase preenchida, corram",
    "quase todas preenchidas",
    "Contrato fechado com a cooperativa",
    "plantão coberto pelo convênio",
    "Diagnóstico fechado do paciente do Hospital Fictício dia 20/03 noturno",
    "Contrato fechado com o Hospital Fictício, dia 20/03 noturno começamos",
    "Dia 20/03 noturno Hospital Fictício: quase preenchida, corre!",
    "ficha preenchida do Hospital Fictício dia 20/03 noturno, mandar no PV",
    "Hospital Fictício 20/03 noturno: plantão coberto por convênio, pediatria, R$ 1.500, vaga aberta",
]


def closing(texto: str) -> Fechamento | None:
    return ler(texto, enviado_em=datetime(2026, 3, 10, 12, tzinfo=UTC)).fechamento


@pytest.mark.parametrize("texto", OTHER_SENSES)
def test_closing_words_about_something_else_are_ignored(texto: str) -> None:
    assert closing(texto) is None


@pytest.mark.parametrize("texto", ["Salão reservado e refeitório fechado", "telhado coberto"])
def test_closing_with_an_unknown_subject_is_unclear(texto: str) -> None:
    said = closing(texto)
    assert said is not None
    assert not said.claro


@pytest.mark.parametrize(
    "texto",
    [
        "Preenchida! Obrigado", "Pessoal fechado, obrigada", "essa já está coberta", "Esse plantão foi preenchido", "SN coberto ✅",
        "*FECHADO*", "vaga do noturno preenchida", "agora sim: fechada", "20/03 preenchida", "Hospital Fictício coberto", "já foi",
        "Cobertura no Hospital Fictício já fechou", "pediatria coberta", "UTI fechada", "Vagas de sábado preenchidas",
    ],
)  # fmt: skip
def test_closing_of_a_shift_or_without_another_subject_is_clear(texto: str) -> None:
    said = closing(texto)
    assert said is not None
    assert said.claro
