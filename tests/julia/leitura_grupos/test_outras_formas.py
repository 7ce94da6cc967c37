"""Layouts that a new author used: legends, dotted rows, days in words, corrections, towns after a name, and prices that
depend on the length of the shift.
"""

import pytest

from app.contexts.leitura_grupos.api import Categoria
from tests.julia.leitura_grupos.exemplos import curtas, inteiras, lida, vagas

H, U, CM = "Hospital Teste do Norte", "UPA Exemplo Leste", "Clínica Médica"


@pytest.mark.parametrize(
    "texto",
    [
        "HTN clínica\n[x] 10/08 SN\n[ ] 11/08 SN\n[ ] 12/08 SD\n[x] = preenchido, [ ] = aberto\n1.500",
        "HTN clínica\n10/08 🟥 SD 🟥 SN\n11/08 🟥 SD 🟩 SN\n12/08 🟩 SD 🟥 SN\n🟩 livre 🟥 coberto\n1.500",
        "HTN clínica AGOSTO\n11 .......... SN\n12 .......... SD\n1.500",
        "HTN clínica\n11/08 ➜ N\n12/08 ➜ D\n1.500 cada",
    ],
)
def test_legends_dotted_rows_and_arrows_are_read(texto: str) -> None:
    assert curtas(texto) == ["08-11 noturno 1500", "08-12 diurno 1500"]


def test_days_in_words_are_days() -> None:
    said = "preciso de clínico pro HTN nos dias onze e vinte e dois de agosto a noite paga mil e quinhentos"
    assert curtas(said) == ["08-11 noturno 1500", "08-22 noturno 1500"]


def test_start_and_end_on_lines_of_their_own_are_one_shift() -> None:
    [vaga] = vagas("Unidade: HTN\nData: 11/08/2026\nInício: 07:00\nTérmino: 19:00\nValor: R$ 1.500,00\nclínico")
    assert (vaga.periodo.valor, f"{vaga.hora_fim.valor:%H:%M}") == ("diurno", "19:00")  # type: ignore[union-attr]


def test_a_correction_of_one_day_leaves_the_others() -> None:
    said = "HTN clínico\ndia 10 SN\ndia 12 SN\ndia 14 SD\n1.500\nCorreção: dia 12 é SD e não SN"
    assert curtas(said) == ["08-10 noturno 1500", "08-12 diurno 1500", "08-14 diurno 1500"]


@pytest.mark.parametrize(
    ("texto", "hospital", "regiao"),
    [
        ("Hospital Vida Plena Santarém 11/08 SN clínico 1.500", "Hospital Vida Plena", "PA"),
        ("Hospital Evangélico Santarém 11/08 SN clínico 1.500", "Hospital Evangélico Santarém", "PA"),
        ("Hospital Vida Plena Londrina 11/08 SN clínico 1.500", "Hospital Vida Plena Londrina", "PA"),
        ("PA 24h Lagoa Clara - Santarém/PA 11/08 SN clínico 1.500", "PA 24h Lagoa Clara", "PA"),
        ("Hosp. Engano... digo, Hospital Vida Plena, 11/08 SN clínico 1.500", "Hospital Vida Plena", "PA"),
        ("H. Plena = Hospital Vida Plena\n11/08 SN clínico 1.500", "Hospital Vida Plena", "PA"),
        ("Nefro na RimVida Serviços Médicos (Santarém-PA), 11/08 SN 1.500", "RimVida Serviços Médicos", "PA"),
        ("Empresa: Pronta Ação\n11/08 SN clínico 1.500", "Pronta Ação", "PA"),
        ("preciso de clínico na upa lagoa clara aqui em santarém 11/08 SN 1.500", "Upa Lagoa Clara", "PA"),
    ],
)
def test_name_of_a_place_ends_before_its_town_and_other_words(texto: str, hospital: str, regiao: str) -> None:
    assert [each.hospital.valor.lower() for each in vagas(texto, regiao=regiao)] == [hospital.lower()]


def test_state_behind_a_town_is_not_a_speciality() -> None:
    assert inteiras("Plantão em Jataí GO, HTN, 11/08 SN 1.500") == [f"{H} | {CM} | 08-11 noturno 1500"]


def test_state_is_read_only_if_it_is_written() -> None:
    [silent] = vagas("Hospital Vida Plena (Santarém) 11/08 SN clínico 1.500")
    [said] = vagas("Hospital Vida Plena, Santarém PA, 11/08 SN clínico 1.500")
    assert silent.uf is None
    assert said.uf is not None


def test_speciality_of_a_later_hospital_and_of_an_earlier_sector_do_not_apply() -> None:
    later = "HTN\n11/08 SN\n\nUPA Exemplo (sala vermelha)\n12/08 SD\n\n1.500"
    assert inteiras(later)[0] == f"{H} | {CM} | 08-11 noturno 1500"
    sector = "HTN\nUTI\n11/08 SN\nPS\n12/08 SD\n\n1.500"
    assert inteiras(sector)[0] == f"{H} | {CM} | 08-12 diurno 1500"


@pytest.mark.parametrize(
    ("precos", "esperadas"),
    [
        ("seg a sex 12h: 1.200\nsáb e dom 12h: 1.400\n24h: 2.700", ["1200", "1400", "2700"]),
        ("N seg a sex 1.200\nD seg a sex 1.100\nfds 12h 1.400\nfds 24h 2.700", ["1200", "1400", "2700"]),
    ],
)
def test_prices_by_weekday_and_length(precos: str, esperadas: list[str]) -> None:
    found = vagas(f"HTN clínico\nter 11/08 SN\nsáb 15/08 SD\ndom 16/08 24h\n{precos}")
    assert [f"{each.valor.valor:f}" for each in found if each.valor is not None] == esperadas


def test_price_of_the_only_period_gives_way_to_the_weekday() -> None:
    said = "HTN clínico, noites de 14/08 e 15/08. 1.250 a noite, sábado 1.450"
    assert curtas(said) == ["08-14 noturno 1250", "08-15 noturno 1450"]


def test_price_beside_a_day_in_words_is_the_price_of_that_day() -> None:
    assert curtas("HTN CLINICO HOJE SN E AMANHA SD\nPAGO 1.800 HOJE E 1.500 AMANHA") == [
        "08-03 noturno 1800",
        "08-04 diurno 1500",
    ]


def test_price_without_a_holiday_is_the_usual_price() -> None:
    said = "HTN clínico\n05/09 SD\n07/09 SD\nsem feriado 1.500, feriado 7/9 paga 2.000"
    assert curtas(said) == ["09-05 diurno 1500", "09-07 diurno 2000"]


def test_days_below_a_place_stay_with_it() -> None:
    said = "Clínica Lagoa Clara, 24h\n15/08\n2.600\ne também\nHospital Vida Plena, noturno\n17/08\n1.150"
    assert {each.split(" | ")[0] for each in inteiras(said) if "08-15" in each} == {"Clínica Lagoa Clara"}


def test_listed_dates_select_the_weekdays_of_a_month() -> None:
    assert curtas("HTN clínico\nToda sexta e sábado de agosto:\n07/08, 08/08, 14/08\nSD 1.500") == [
        "08-07 diurno 1500",
        "08-08 diurno 1500",
        "08-14 diurno 1500",
    ]


def test_week_in_brackets_gives_the_dates_of_its_weekdays() -> None:
    assert curtas("Grade HTN clínica\nSemana 2 (17/08 a 23/08)\n qua D\n dom D\n1.500") == [
        "08-19 diurno 1500",
        "08-23 diurno 1500",
    ]


def test_day_of_another_subject_is_not_a_shift() -> None:
    said = "A prova da residência é amanhã, boa sorte! Passo meu plantão de 12/08 SD no HTN, clínica, 1.500"
    assert curtas(said) == ["08-12 diurno 1500"]


def test_rows_with_bullets_have_no_header() -> None:
    rows = "➡️ 11/08 ter | 19h-07h | clínica\n➡️ 15/08 sáb | 07h-07h | clínica\n12h: 1.500\n24h: 3.000"
    assert curtas(f"HTN\n{rows}") == ["08-11 noturno 1500", "08-15 24h 3000"]


def test_an_offer_with_these_forms_stays_an_offer() -> None:
    assert lida("HTN precisa de clínico nos dias onze e doze de agosto, SN").categoria is Categoria.OFERTA


def test_hours_with_a_slash_after_a_day_are_not_a_date() -> None:
    said = "HTN clínico\nter 11 8/20\nqua 12 - 20/8\n14/08 sex 20/8\n16 dom 8/20 e 20/8\n1.500"
    assert curtas(said) == [
        "08-11 diurno 1500",
        "08-12 noturno 1500",
        "08-14 noturno 1500",
        "08-16 diurno 1500",
        "08-16 noturno 1500",
    ]


def test_days_of_a_list_stay_days_beside_hours_with_a_slash() -> None:
    assert curtas("HTN clínico\n18/9 e 19/9 7/19\nsáb 20/9 7/19\n1.500") == [
        "09-18 diurno 1500",
        "09-19 diurno 1500",
        "09-20 diurno 1500",
    ]


@pytest.mark.parametrize(
    "said",
    [
        "HTN clínico qua 12/08 SN 1.500. Postei dia 11 mas é 12, gente",
        "Passo HTN clínico 12/08 SN 1.500. E se alguém tiver um SD dia 20 eu aceito",
    ],
)
def test_offer_with_a_retraction_or_a_search_waits_for_a_person(said: str) -> None:
    assert all(each.confianca <= 0.9 for each in lida(said).vagas)


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN clínico 1.400\n10/08 SD ok | SN falta\n11/08 SD falta | SN ok\n12/08 SD ok | SN ok",
            ["08-10 noturno", "08-11 diurno"],
        ),
        (
            "HTN clínico 1.400\nSeg 10 - SD fechado / SN *aberto*\nTer 11 - completo\nQua 12 - SN *aberto*",
            ["08-10 noturno", "08-12 noturno"],
        ),
        (
            "HTN clínico\n10/08: manhã Dr Paulo, tarde livre\n11/08: manhã livre, tarde Dra Ana",
            ["08-10 tarde", "08-11 manha"],
        ),
    ],
)
def test_words_after_each_shift_tell_which_are_open(texto: str, esperadas: list[str]) -> None:
    assert [" ".join(each.split()[:2]) for each in curtas(texto)] == esperadas


def test_hospital_without_a_name_gives_no_vacancy() -> None:
    assert curtas("alguém querendo um SN dia 14/08? hospital de Marabá, 1.400") == []


def test_longer_name_behind_a_hyphen_is_another_place() -> None:
    assert all(each.hospital.valor != "Hospital Teste do Norte" for each in vagas("HTN-Sul 11/08 SN clínico 1.500"))


def test_price_with_the_length_of_its_shift() -> None:
    assert curtas("HTN clínico\n14/08 SN\n15/08 SD\nSemana 1.450/12h, fds 1.600/12h") == [
        "08-14 noturno 1450",
        "08-15 diurno 1600",
    ]


def test_hours_of_a_shift_on_a_line_of_their_own() -> None:
    found = vagas("Pediatra pra hoje noite\nHTN\n19h às 7h\nR$ 2.200")
    assert [str(each.hora_inicio.valor) for each in found if each.hora_inicio] == ["19:00:00"]


def test_title_between_a_number_and_its_name() -> None:
    found = vagas("HTN 15/08 SD clínico 1.500\n(91) 98500-0641 Sec. Neide")
    assert [each.contato_nome.valor for each in found if each.contato_nome] == ["Neide"]


def test_company_that_ends_with_its_ambulance_is_a_place() -> None:
    said = "Litoral Vida UTI Móvel\n18/08 e 19/08, plantão 12h, entrada 7h\nR$ 1.350"
    assert {(each.hospital.valor, each.especialidade.valor) for each in vagas(said)} == {
        ("Litoral Vida UTI Móvel", "Medicina de Emergência")
    }


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        # names of doctors and blanks after the shifts
        ("HTN clínico 1.400\nseg 10: SD Otávia | SN ____\nter 11: SD ____ | SN Renan", ["08-10 noturno", "08-11 diurno"]),
        # initials of weekdays without a cell before them
        (
            "HTN clínico, semana 10 a 16/08\n\n      S  T  Q  Q  S  S  D\nSD    .  x  .  .  .  .  .\n"
            "SN    x  .  .  .  .  .  .\n\nx = preciso\n1.400",
            ["08-10 noturno", "08-11 diurno"],
        ),
        # a column of weekdays with the heading "Dia"
        (
            "HTN clínico\n| Data | Dia | Manhã | Noite |\n| 14/08 | sex | ok | ABERTO |\n| 15/08 | sáb | ABERTO | ok |\n1.400",
            ["08-14 noturno", "08-15 manha"],
        ),
        # the days of a calendar, with the shifts as rows
        (
            "HTN clínico AGOSTO\n\n      SEG  TER\n      10   11\nSD     1    -\nSN     -    2\n\n1.400",
            ["08-10 diurno", "08-11 noturno"],
        ),
        # the legend is on a line with days
        ("HTN clínico semana 10 a 16/08  [x] fechado  [ ] aberto\n[x] seg SN\n[ ] ter SD\n1.400", ["08-11 diurno"]),
        # hours in two cells
        ("10/08/2026\tseg\t19:00\t07:00\tHTN\tclínico\tR$ 1.400\n11/08/2026\tter\t07:00\t19:00\tHTN\tclínico\tR$ 1.300",
         ["08-10 noturno", "08-11 diurno"]),
        # two shifts of a day in brackets
        ("AGOSTO HTN clínico\n14 (N)\n16 (D) (N)\n1.400", ["08-14 noturno", "08-16 diurno", "08-16 noturno"]),
        # weekdays of two weeks, and of the week in the heading
        ("No HTN essa semana: quinta SD clínico.\nSemana que vem: segunda SN. 1.400", ["08-06 diurno", "08-10 noturno"]),
        ("Furos HTN clínico 17 a 23/08\nqua SN\nsáb SD\n1.400", ["08-19 noturno", "08-22 diurno"]),
        # weekdays below their dates, with hours that an "x" joins
        ("HTN, restou do fds (08 e 09/08)\nSáb 19x07 clínico 1.600\nDom 07x13 clínico 950", ["08-08 noturno", "08-09 manha"]),
        # lines with a speciality and a price below their day
        ("Vagas 12/08 HTN\nClínica SD 1.400\nUTI SN 2.100", ["08-12 diurno", "08-12 noturno"]),
        # corrections
        ("O plantão do HTN que mandei não é 11/08, é 12/08 SN, clínico, 1.400", ["08-12 noturno"]),
        # the invoice's day is not a day of a shift
        ("HTN clínico 11/08 SN 1.400\nPJ, nota até dia 5 e cai dia 25", ["08-11 noturno"]),
    ],
)  # fmt: skip
def test_layouts_of_two_more_authors_in_other_words(texto: str, esperadas: list[str]) -> None:
    assert [" ".join(each.split()[:2]) for each in curtas(texto)] == esperadas


@pytest.mark.parametrize("dito", ["(sexta à noite entra como fds)", "fds já conta sexta à noite"])
def test_friday_night_with_the_price_of_the_weekend(dito: str) -> None:
    said = f"HTN clínico\n13/08 SN\n14/08 SN\n15/08 SD\nsemana 1.300, fds 1.600\n{dito}"
    assert curtas(said) == ["08-13 noturno 1300", "08-14 noturno 1600", "08-15 diurno 1600"]


def test_name_at_the_start_of_a_message_is_a_place() -> None:
    [found] = vagas("Vida Clara Sul – cardio, qui 13/08 SD, 2.000")
    assert found.hospital.valor == "Vida Clara Sul"


def test_area_code_in_brackets_is_not_a_day() -> None:
    found = vagas("HTN clínico AGOSTO\nSN: 12, 14\n1.400\nFulana Prado (12) 99200-0810")
    assert {each.contato_whatsapp.valor for each in found if each.contato_whatsapp} == {"5512992000810"}


def test_speciality_of_a_section_below_does_not_apply_above() -> None:
    said = "HTN\n14/08 SD\n\nUPA Exemplo\n15/08 SN\n\nHospital Geral Modelo\nUTI: 16/08 SD\n\nClínica 1.400 / UTI 1.700"
    assert [each.especialidade.valor for each in vagas(said)] == [CM, CM, "Medicina Intensiva"]


def test_net_price_before_the_gross_one() -> None:
    assert curtas("HTN clínico 11/08 SN, 2.000 líquido 2.300 bruto") == ["08-11 noturno 2300"]


@pytest.mark.parametrize(
    "nome", ["UPA Rosa Mar", "UPA Porto do Mar", "Hospital Sol e Mar", "PA Brisa Mar", "UPA PEDRA MAR"]
)
def test_sea_in_the_name_of_a_place_is_not_march(nome: str) -> None:
    assert curtas(f"{nome} (Salinópolis): qui 06 SN, sáb 08 SD, 1.500") == ["08-06 noturno 1500", "08-08 diurno 1500"]
    assert curtas(f"{nome}, clínico\n06 SN\n08 SD\n1.500") == ["08-06 noturno 1500", "08-08 diurno 1500"]


@pytest.mark.parametrize("mes", ["MAR", "mar/27", "em mar", "escala mar", "MARÇO"])
def test_short_form_of_march_is_the_month(mes: str) -> None:
    assert curtas(f"HTN {mes}\n06 SN\n08 SD\n1.500") == ["03-06 noturno 1500", "03-08 diurno 1500"]


def test_number_ten_is_not_december() -> None:
    assert curtas("HTN, clínico, recebe em dez dias\n06 SN\n08 SD\n1.500") == [
        "08-06 noturno 1500",
        "08-08 diurno 1500",
    ]
