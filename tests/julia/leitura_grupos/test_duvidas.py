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
        # the place has only a kind and a town, or a longer name
        "clínico no Hospital de Marabá, 11/08 SN, 1.500",
        "HTN Velho 11/08 SN clínico 1.500",
        # a price depends on the month, or some days have the price of other days
        "HTN, valor novo a partir de setembro: 1.600. Vagas: 28/08 SN, 02/09 SN clínico. Agosto segue 1.400",
        "HTN clínico\n14/08 SN\n17/08 SN\nSemana 1.450, fds 1.600\nSegunda paga como fds",
        # a part of the message is denied
        "O plantão do HTN NÃO é dia 11, é noite de 12/08, clínico, 1.500",
        # the line says that its shift is taken, in words that the rules do not read
        "HTN clínico 1.500\n11/08 SN (garantido)",
        # the lines begin with different signs that no legend explains
        "HTN clínico 1.400\n◇ 11/08 SN\n◆ 12/08 SN\n◇ 13/08 SD",
        # a table that the rules do not read
        "HTN clínico 1.400\n10/08 11/08\nSD . *\nSN * .",
        # the stated number of shifts is another one
        "HTN clínico 1.500, quatro plantões:\n11/08 SN\n12/08 SN\n13/08 SN",
        # the shift is divided, and the author keeps a part
        "Alguém pra dividir 24h sábado no HTN? Eu faço o dia, preciso de quem faça a noite, 1.400",
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


@pytest.mark.parametrize(
    ("texto", "dia"),
    [
        # a price for the weekend or for certain days, on a line of its own, was not used for these days
        ("HTN clínico\n14/08 SN\n15/08 SD\nSN 1.400 / SD 1.300\nFim de semana 1.900", 15),
        ("HTN clínico\n14/08 SN\n04/09 SD\n05/09 SD\nSN 1.400 / SD 1.300\nFeriadão (4 a 7/09) = 1.900", 4),
    ],
)
def test_price_for_certain_days_is_used_or_doubted(texto: str, dia: int) -> None:
    found = [each for each in vagas(texto) if each.data.valor.day == dia]
    assert found
    assert all(each.confianca <= 0.9 or (each.valor and each.valor.valor == 1900) for each in found)


def test_near_weekday_next_to_far_dates_is_doubted() -> None:
    [near] = [
        each
        for each in vagas("Feriado 07/09 (segunda) HTN SD 2.200. Véspera (dom) SN 1.800. Clínico")
        if each.data.valor.day == 9
    ]
    assert near.confianca <= 0.9


def test_second_of_two_alternative_places_is_doubted() -> None:
    found = vagas("Clínico, 11/08 SN, HTN ou UPA Exemplo (a definir no dia), 1.400")
    assert all(each.confianca <= 0.9 for each in found if each.hospital.valor != "Hospital Teste do Norte")


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
