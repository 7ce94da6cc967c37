"""Reasons to doubt a vacancy. A doubtful vacancy may be correct, but a reviewer decides about it."""

import pytest

from tests.julia.leitura_grupos.exemplos import curtas, vagas

CERTA = "Hospital Vida Plena, Marabá/PA\nclínico\n11/08 SN\n12/08 SN\n1.500"


def test_message_without_a_doubt_is_certain() -> None:
    assert all(each.confianca > 0.95 for each in vagas(CERTA))


@pytest.mark.parametrize(
    "texto",
    [
        # the name ends with a town, has no capitals, or another word follows it
        "Hospital Vida Plena Bauru, clínico\n11/08 SN 1.500",
        "clínico no hospital vida plena, 11/08 SN, 1.500",
        "Hospital Vida Plena descoberta 11/08 SN clínico 1.500",
        # two places and two shifts were combined
        "HTN e UPA Exemplo 11/08 clínico, SD ou SN em uma e outra. 1.900 cada",
        # a day is excluded, a holiday is the only day, or a price replaces another one
        "HTN clínico de 10 a 14/08 SN, exceto 12/08. 1.500",
        "Natal no HTN, clínico, SD 2.300",
        "HTN clínico 12/08 SN 1.300\n\nvalor subiu para 1.600",
        # the conditions of the prices are not read
        "HTN clínico\nqua 05 SN\nqui 06 SN\nsex 07 SN\nR$ 1.300 até quinta, sexta 1.450",
        "HTN clínico\n11/08 SN\n15/08 SN\nsegunda é mil e quatrocentos e sábado é mil e seiscentos",
        "HTN clínico\n11/08 SN\n12/08 SN\n15/08 SN 1.700, demais dias 1.500",
        # the price may be a sum
        "HTN clínico 11/08 SN e 12/08 SN, total 3.000",
    ],
)
def test_vacancy_with_a_doubt_waits_for_a_person(texto: str) -> None:
    found = vagas(texto)
    assert found
    assert all(each.confianca <= 0.9 for each in found)


def test_price_of_another_kind_of_day_is_doubted() -> None:
    found = vagas("HTN: UTI sex N, sáb D, sáb N, dom N 🙏 1.650 sem 1.850 fds")
    wrong = [each for each in found if each.data.valor.weekday() > 4 and each.valor and each.valor.valor == 1650]
    assert wrong
    assert all(each.confianca <= 0.9 for each in wrong)


def test_sector_before_a_hospital_is_not_a_part_of_its_name() -> None:
    assert {each.hospital.valor for each in vagas("PS Hospital Vida Plena (Marabá/PA)\n11/08 SN\nclínico 1.500")} == {
        "Hospital Vida Plena"
    }


def test_total_with_the_number_of_shifts_before_it_is_divided() -> None:
    said = "de 11 a 13/08 SN HTN clínico. 3 plantões, 4.500 no total"
    assert curtas(said) == [f"08-{day} noturno 1500" for day in (11, 12, 13)]


def test_written_days_are_not_a_multiplication() -> None:
    listed = vagas("Hospital Vida Plena, Marabá/PA\nclínico 1.500\n11, 12, 13, 14 e 17/08 SN")
    combined = vagas("Hospital Vida Plena, Marabá/PA\nclínico 1.500\n10 a 14/08 SD e SN")
    assert (len(listed), len(combined)) == (5, 10)
    assert min(each.confianca for each in listed) >= 0.98
    assert max(each.confianca for each in combined) < 0.95
