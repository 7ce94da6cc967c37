"""Prices in words and for several shifts, and words next to a price that do not concern it."""

import pytest

from tests.julia.leitura_grupos.exemplos import curtas, inteiras, lida, vagas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("HTN clínico 11/08 SN. Pagam 3 mil e quatrocentos", ["08-11 noturno 3400"]),
        ("HTN clínico 11/08 SN, 1 mil e novecentos e cinquenta", ["08-11 noturno 1950"]),
        ("HTN clínico 10 a 12/08 SD. 6.000 pelos 3 diurnos", [f"08-{day} diurno 2000" for day in (10, 11, 12)]),
        (
            "R$ 4.000 pelas 4 tardes\nHTN clínico\n10 a 13/08 tarde",
            [f"08-{day} tarde 1000" for day in (10, 11, 12, 13)],
        ),
        (
            "HTN clínico\n11/08 SN\n16/08 SD\n1.500 em dia comum, 2.100 feriado",
            ["08-11 noturno 1500", "08-16 diurno 1500"],
        ),
        (
            "HTN clínico\n11/08 SN\n16/08 SD\n1.500 dia normal, 1.700 sáb e dom",
            ["08-11 noturno 1500", "08-16 diurno 1700"],
        ),
    ],
)
def test_price_is_read_in_the_unit_in_which_it_is_said(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    "texto",
    [
        "HTN clínico 11/08 SN 1.800, 12/08 SN e 13/08 SN: os demais saem a 1.500",
        "HTN clínico 11/08 SN, 12/08 SN e 15/08 SD. No do dia 15 o valor é 1.900; os outros são 1.450",
        "HTN clínico 11/08 SN, 12/08 SN e 15/08 SD. Pro dia 15 pagam 1.900, pras outras 1.450",
    ],
)
def test_price_of_the_other_shifts_is_doubted(texto: str) -> None:
    found = vagas(texto)
    assert found
    assert all(each.confianca <= 0.9 for each in found)


def test_closed_price_does_not_close_the_shift() -> None:
    assert curtas("HTN clínico 11/08 SN, 1.700 fechado por plantão") == ["08-11 noturno 1700"]
    assert curtas("HTN clínico 1.700\n11/08 SN fechado\n12/08 SN") == ["08-12 noturno 1700"]


@pytest.mark.parametrize("apoio", ["anestesista no local", "com cirurgião de retaguarda", "pediatra na casa"])
def test_doctor_who_is_already_there_is_not_wanted(apoio: str) -> None:
    found = inteiras(f"Obstetra p/ 11/08 SN, HTN, 2.000. {apoio}")
    assert found == ["Hospital Teste do Norte | Ginecologia e Obstetrícia | 08-11 noturno 2000"]


@pytest.mark.parametrize(
    "lugar", ["num hospital particular de Belém", "em hospital privado de Marabá", "numa clínica particular de Belém"]
)
def test_kind_of_a_hospital_and_its_town_are_not_its_name(lugar: str) -> None:
    found = lida(f"preciso de clínico dia 11/08 SN {lugar}, 1.600")
    assert found.eh_oferta
    assert not found.vagas


def test_correction_that_names_the_wrong_day_keeps_the_other_days() -> None:
    said = "HTN clínico 1.500\n11/08 SN\n12/08 SD\n13/08 SN\nCorreção: não é 13/08, é 14/08 SN"
    assert curtas(said) == ["08-11 noturno 1500", "08-12 diurno 1500", "08-14 noturno 1500"]


@pytest.mark.parametrize("nota", ["(lista atualizada hoje)", "as datas da outra unidade saem amanhã"])
def test_day_of_the_list_is_not_a_day_of_a_shift(nota: str) -> None:
    assert curtas(f"HTN clínico {nota}\n11/08 SN\n13/08 SD\n1.500") == ["08-11 noturno 1500", "08-13 diurno 1500"]
