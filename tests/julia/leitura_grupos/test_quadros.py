"""Layouts other than lists: tables, calendars, and bare days below a month."""

import pytest

from app.contexts.leitura_grupos.tipos import Forma
from tests.julia.leitura_grupos.exemplos import curtas, inteiras, lida, vagas

H, U = "Hospital Teste do Norte", "UPA Exemplo Leste"
CM = "Clínica Médica"
WEEK = ["08-10 noturno 1500", "08-11 diurno 1500", "08-15 diurno 1700"]


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(
            "| turno | seg | ter | qua | qui | sex | sáb | dom |\n|---|---|---|---|---|---|---|---|\n"
            "| SD | - | x | - | - | - | x | - |\n| SN | x | - | - | - | - | - | - |",
            id="pipes and a rule",
        ),
        pytest.param("turno;10/08;11/08;15/08\nSD;ok;vago;vago\nSN;vago;ok;Dr. Teste", id="semicolons and words"),
        pytest.param("\t10/08\t11/08\t15/08\nD\t\tx\tx\nN\tx\t\t", id="tabs and empty cells"),
        pytest.param("        10/08  11/08  15/08\n07-19     -      x      x\n19-07     x      -      -", id="spaces"),
        pytest.param(
            "data | dia | D | N\n10/08 | seg | - | x\n11/08 | ter | x | -\n15/08 | sáb | x | -", id="days as rows"
        ),
        pytest.param(
            "turno | S | T | Q | Q | S | S | D\nSD | - | x | - | - | - | x | -\nSN | x | - | - | - | - | - | -",
            id="initials",
        ),
        pytest.param(
            "Dia;Turno;Médico\n10/08;SD;Dra. Teste\n10/08;SN;aberto\n11/08;SD;aberto\n15/08;SD;aberto", id="records"
        ),
        pytest.param(
            "data | turno | vagas\n10/08 | SN | 1\n11/08 | SD | 2\n11/08 | SN | 0\n15/08 | SD | 1",
            id="numbers of vacancies",
        ),
        pytest.param("Agosto\nseg ter qua qui sex sab\n10  11  12  13  14  15\nN   D   -   -   -   D", id="a calendar"),
        pytest.param("10/08 - SD - | SN x\n11/08 - SD x | SN -\n15/08 - SD x | SN -", id="shifts with their signs"),
    ],
)
def test_open_cells_of_a_table_are_vacancies(table: str) -> None:
    text = f"HTN clínica médica, semana de 10 a 16/08\n\n{table}\n\nSemana 1.500 / fds 1.700. Fulana 91 98100-0001"
    assert curtas(text) == WEEK
    assert {each.derivacao.forma for each in vagas(text) if each.derivacao} <= {Forma.TABELA, Forma.PRODUTO}


def test_legend_decides_what_a_sign_means() -> None:
    table = "turno | 10/08 | 11/08\nSD | x | -\nSN | - | x"
    assert curtas(f"HTN\n{table}\nx = já tem médico, - = falta\n1.500") == ["08-10 noturno 1500", "08-11 diurno 1500"]
    assert curtas(f"HTN\n{table}\nx = falta médico\n1.500") == ["08-10 diurno 1500", "08-11 noturno 1500"]


def test_rows_and_columns_may_be_places_sectors_or_prices() -> None:
    by_place = "Clínica médica\nLocal | Data | Turno | R$/h\nHTN | 10/08 | SN | 120\nUPA Exemplo | 11/08 | SD | 110"
    assert inteiras(by_place) == [f"{H} | {CM} | 08-10 noturno 1440", f"{U} | {CM} | 08-11 diurno 1320"]
    by_sector = "HTN agosto\nDia\tUTI\tGO\n10\tSN\t-\n11\t-\tSD/SN\n1.900"
    assert inteiras(by_sector) == [
        f"{H} | Ginecologia e Obstetrícia | 08-11 diurno 1900",
        f"{H} | Ginecologia e Obstetrícia | 08-11 noturno 1900",
        f"{H} | Medicina Intensiva | 08-10 noturno 1900",
    ]
    assert curtas("HTN\n   D   N\n10/08   ok   1.380\n11/08   1.520   ok") == [
        "08-10 noturno 1380",
        "08-11 diurno 1520",
    ]


def test_table_in_which_all_is_taken_is_a_notice() -> None:
    assert not lida("HTN\nturno | 10/08 | 11/08\nSD | ok | ok\nSN | ok | ok").eh_oferta


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("HTN\nAGOSTO\n10 SN\n11 SD\n1.500", ["08-10 noturno 1500", "08-11 diurno 1500"]),
        ("HTN\nAGOSTO\nSN: 10, 12\nSD: 11\n1.500", ["08-10 noturno 1500", "08-11 diurno 1500", "08-12 noturno 1500"]),
        ("HTN agosto: 24(N), 25(D/N). 1.500", ["08-24 noturno 1500", "08-25 diurno 1500", "08-25 noturno 1500"]),
        ("HTN SETEMBRO\n*7-19*\n05, 06\n1.500", ["09-05 diurno 1500", "09-06 diurno 1500"]),
        ("HTN AGOSTO\n_Diurno_\n10 - 12 - 17\n1.500", ["08-10 diurno 1500", "08-12 diurno 1500", "08-17 diurno 1500"]),
    ],
)
def test_bare_days_belong_to_the_month_above_them(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


def test_condition_on_a_line_between_two_prices_is_read_without_an_error() -> None:
    assert lida("Hospital Modelo, clínico\n10/08 SD R$ 1.400\nfds\nR$ 1.600 11/08 SN").eh_oferta


def test_days_beside_a_price_are_its_condition() -> None:
    text = "HTN\n05/09 SD\n06/09 SN\n07/09 SD\n1.800, 07/09 (feriado): R$ 2.400"
    assert curtas(text) == ["09-05 diurno 1800", "09-06 noturno 1800", "09-07 diurno 2400"]


def test_words_that_no_rule_explains_are_reported() -> None:
    text = "HTN 10/08 SN clínico 1.500 xilindrado"
    read = lida(text)
    assert [text[slice(*each)] for each in read.inexplicadas] == ["xilindrado"]


def test_combination_of_lists_is_less_certain_than_a_line_that_states_one_vacancy() -> None:
    [one] = vagas("HTN 10/08 SN clínico 1.500")
    many = vagas("HTN e UPA Exemplo, clínica e UTI, 10, 11 e 12/08, SD e SN, 1.500")
    assert len(many) == 24
    assert all(each.confianca < one.confianca - 0.1 for each in many)
    assert one.derivacao is not None
    assert one.derivacao.forma is Forma.LINHA
