"""No text makes the rules slow. The limits allow for a busy machine; ``bench.leitura`` measures."""

import time

import pytest

from tests.julia.leitura_grupos.adversas import ADVERSAS
from tests.julia.leitura_grupos.exemplos import lida

SIZE = 8 * 1024
# Eight KiB take some 30 ms on a free core; a pattern that backtracks takes minutes.
BAR = 3.0


@pytest.mark.parametrize("piece", ADVERSAS.values(), ids=ADVERSAS.keys())
def test_adversarial_text_is_read_in_time(piece: str) -> None:
    texto = (piece * (SIZE // len(piece) + 1))[:SIZE]
    began = time.process_time()
    lida(texto)
    assert time.process_time() - began < BAR


@pytest.mark.parametrize("line", ["UPA Exemplo SN\n", "SN\n", "plantonista 11/08\n"])
def test_many_lines_below_one_day_are_read_in_time(line: str) -> None:
    began = time.process_time()
    lida("10/08\n" + line * (64 * 1024 // len(line)))
    assert time.process_time() - began < BAR


def test_endless_word_is_not_spell_checked() -> None:
    began = time.process_time()
    lida("á" * 64 * 1024)
    assert time.process_time() - began < BAR


def test_adversarial_product_of_fields_is_bounded() -> None:
    hospitals = " e ".join(f"Hospital Teste {letter}{other}" for letter in "ABCDEFGHIJ" for other in "abcdefghij")
    texto = f"Preciso de clínico {hospitals}\n" + "de 01/09 a 30/10 SD e SN e manhã e tarde 1.500\n" * 20
    began = time.process_time()
    assert len(lida(texto).vagas) <= 1000
    assert time.process_time() - began < BAR
