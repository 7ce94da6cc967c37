"""The rules read every text quickly. The limits allow for a busy machine; ``bench.leitura`` measures exact times."""

import sys
import time
from types import FrameType

import pytest

from tests.julia.leitura_grupos.adversas import ADVERSAS
from tests.julia.leitura_grupos.exemplos import lida

SIZE = 8 * 1024
# Eight KiB take about 30 ms on a free core. A pattern that backtracks takes minutes.
BAR = 3.0
OFFER = "10/08 sáb das 07h às 19h - UPA Exemplo - clínica médica - R$ 1.500,00 PJ. Falar com Fulana 91 98100-0001\n"


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


@pytest.mark.parametrize("line", [OFFER, "Hospital Amostra - Marabá/PA\nOrtopedia 10/09 SD 1.500\n", "SN\n"])
def test_work_grows_with_the_length_of_the_text(line: str) -> None:
    calls = [_count_calls(line * (size * 1024 // len(line))) for size in (4, 16)]
    assert calls[1] < 5 * calls[0], calls


def _count_calls(texto: str) -> int:
    """Count the function calls while a text is read. Unlike the time, this number does not depend on the machine."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event.endswith("call")

    lida("")  # the first call loads the vocabulary
    sys.setprofile(count)
    try:
        lida(texto)
    finally:
        sys.setprofile(None)
    return calls
