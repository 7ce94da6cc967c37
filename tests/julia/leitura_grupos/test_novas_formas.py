"""Forms of days, weeks, shifts and departments that no labelled author uses, each in several spellings."""

import pytest

from app.contexts.leitura_grupos.api import Categoria
from tests.julia.leitura_grupos.exemplos import curtas, inteiras, lida, vagas

H, U = "Hospital Teste do Norte", "UPA Exemplo Leste"
CM, UTI = "Clínica Médica", "Medicina Intensiva"


@pytest.mark.parametrize(
    "texto",
    [
        "HTN\nSD ter 11, qui 13\n1.500",
        "HTN\nSD: ter 11, qui 13, 1.500",
        "HTN SD terça 11, quinta 13. 1.500",
        "HTN\nSD dia 11, qui 13 - 1.500",
        "HTN\nDiurno ter 11, qui 13 e sáb 15\n1.500",
    ],
)
def test_weekday_behind_a_comma_belongs_to_the_next_day(texto: str) -> None:
    assert curtas(texto)[:2] == ["08-11 diurno 1500", "08-13 diurno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN clínico: 2 p/ quinta 13/08 (SD), 1 p/ sexta 14/08 (SN). 1.500",
        "HTN: 1 clínico p/ quinta 13/08 SD e 1 p/ sexta 14/08 SN, 1.500",
        "HTN, preciso: 3 para quinta 13/08 SD; 1 para sexta 14/08 SN; 1.500",
        "HTN clínica, 1 pra quinta 13/08 (SD) e 2 pra sexta 14/08 (SN), 1.500",
        "HTN 2 p/ 13/08 SD, 1 p/ 14/08 SN 1.500",
    ],
)
def test_number_of_doctors_before_a_day_is_not_the_start_of_a_night(texto: str) -> None:
    assert curtas(texto) == ["08-13 diurno 1500", "08-14 noturno 1500"]


@pytest.mark.parametrize("texto", ["HTN noite de 10 para 11/08, 1.500", "HTN SN de sex pra sáb (14 pra 15), 1.500"])
def test_night_between_two_days_belongs_to_the_first(texto: str) -> None:
    assert len(curtas(texto)) == 1
    assert curtas(texto)[0][6:] == "noturno 1500"


@pytest.mark.parametrize(
    "texto",
    [
        "HTN clínico 14/08 (sexta), das 19h às 7h do dia 15/08. 1.500",
        "HTN clínico, 14/08 das 19 às 7h de 15/08, 1.500",
        "HTN clínico, dia 14/08, das 19h até as 7h do dia 15/08, 1.500",
        "HTN clínico sexta 14/08 das 19:00 às 07:00 de 15/08. 1.500",
    ],
)
def test_day_on_which_a_shift_ends_is_not_a_shift(texto: str) -> None:
    assert curtas(texto) == ["08-14 noturno 1500"]


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("Semana que vem HTN: seg SN, qua SD; essa semana ainda tem sáb SD. 1.500", ["08-08 d", "08-10 n", "08-12 d"]),
        ("HTN essa semana: qui SN. Semana que vem: qui SD. 1.500", ["08-06 n", "08-13 d"]),
        (
            "HTN\nSemana 1 (03 a 09/08): qua N\nSemana 2 (10 a 16/08): ter N, sáb D\n1.500",
            ["08-05 n", "08-11 n", "08-15 d"],
        ),
        ("HTN\nsemana de 10/08: ter SN\nsemana de 17/08: ter SD\n1.500", ["08-11 n", "08-18 d"]),
        ("HTN qua SD e sex SN da semana que vem, 1.500", ["08-12 d", "08-14 n"]),
    ],
)
def test_each_week_applies_to_the_weekdays_behind_it(texto: str, esperadas: list[str]) -> None:
    assert [each[:7] for each in curtas(texto)] == esperadas


@pytest.mark.parametrize(
    "texto",
    [
        "preciso pro dia 08 e 09 no HTN, sábado noite e domingo dia, 1.500",
        "HTN 08 e 09/08: sábado SN e domingo SD. 1.500",
        "HTN sábado SN, domingo SD (08 e 09/08), 1.500",
    ],
)
def test_weekdays_say_which_shift_each_of_the_dates_has(texto: str) -> None:
    assert curtas(texto) == ["08-08 noturno 1500", "08-09 diurno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN dias 11, 13 e 15/08, noturno, diurno e noturno respectivamente. 1.500",
        "HTN: SN, SD e SN, respectivamente nos dias 11, 13 e 15/08, 1.500",
        "No HTN 11, 13 e 15/08 (SN, SD e SN respectivamente), 1.500",
    ],
)
def test_shifts_that_repeat_are_paired_with_the_days_in_order(texto: str) -> None:
    assert curtas(texto) == ["08-11 noturno 1500", "08-13 diurno 1500", "08-15 noturno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN clínico segunda a sexta SD (10 a 12/08) e sábado 15/08 SN. 1.500",
        "HTN clínico: SD (10 a 12/08) e 15/08 SN, 1.500",
        "HTN, clínico, SD (10, 11 e 12/08) e sábado 15/08 SN - 1.500",
    ],
)
def test_shift_before_days_in_brackets_does_not_apply_to_the_next_day(texto: str) -> None:
    assert curtas(texto) == [*(f"08-{day} diurno 1500" for day in (10, 11, 12)), "08-15 noturno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "UPA Exemplo, clínico. Agosto: SD todos os sábados; SN todos os domingos. 1.500",
        "UPA Exemplo clínico agosto - SD todo sábado; SN todo domingo - 1.500",
    ],
)
def test_semicolon_separates_shifts_that_precede_their_days(texto: str) -> None:
    found = curtas(texto)
    assert {each[6:12] for each in found if each[:5] in ("08-08", "08-15", "08-22", "08-29")} == {"diurno"}
    assert {each[6:13] for each in found if each[:5] in ("08-09", "08-16", "08-23", "08-30")} == {"noturno"}


@pytest.mark.parametrize(
    "texto",
    [
        "HTN sábado 15/08 (SD) — já consegui o SN. Quem puder? 1.500",
        "HTN 15/08 SD, já fechei o SN. 1.500",
        "HTN: 15/08 SD (já passei o SN), 1.500",
        "HTN 15/08 SD. Já pegaram o SN! 1.500",
    ],
)
def test_shift_behind_a_word_for_taken_is_taken(texto: str) -> None:
    assert curtas(texto) == ["08-15 diurno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "O SD de amanhã no HTN já foi. Continua em aberto o SN de amanhã e o SD de quinta. clínico 1.500",
        "HTN amanhã SN e quinta SD, clínico, 1.500",
        "HTN: amanhã, terça, SN; quinta SD; clínico 1.500",
    ],
)
def test_weekday_next_to_tomorrow_is_a_day_of_a_shift(texto: str) -> None:
    assert curtas(texto) == ["08-04 noturno 1500", "08-06 diurno 1500"]


def test_weekday_that_repeats_today_adds_nothing() -> None:
    assert curtas("HTN hoje segunda SN e amanhã terça SN, 1.500") == ["08-03 noturno 1500", "08-04 noturno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN\nUTI 11/08 SN e 13/08 SD\nPS 12/08 SN\n1.500",
        "HTN UTI 11/08 SN, 13/08 SD; porta 12/08 SN. 1.500",
        "HTN\nUTI: 11/08 SN, 13/08 SD\nPS: 12/08 SN\nUTI 1.500, PS 1.500",
        "HTN\nUTI - 11/08 SN | 13/08 SD\nEnfermaria - 12/08 SN\n1.500",
    ],
)
def test_department_of_a_line_takes_precedence_over_the_speciality_of_another_line(texto: str) -> None:
    found = [
        f"{H} | {CM} | 08-12 noturno 1500",
        f"{H} | {UTI} | 08-11 noturno 1500",
        f"{H} | {UTI} | 08-13 diurno 1500",
    ]
    assert inteiras(texto) == found


@pytest.mark.parametrize("nome", ["UPA Exemplo Sul", "UPA Exemplo Nova", "UPA Exemplo II", "UPA Exemplo Norte"])
def test_name_that_continues_is_another_place(nome: str) -> None:
    assert {each.hospital.valor for each in vagas(f"{nome} - Belém/PA\n11/08 SN\n1.500")} == {nome}


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("HTN agosto\nSN 09, 12 e 16\nSD 11\n1.500", ["08-09 n", "08-11 d", "08-12 n", "08-16 n"]),
        ("HTN\nAgosto/2026\nClínica: SN 09, 12 | SD 11\n1.500", ["08-09 n", "08-11 d", "08-12 n"]),
        ("HTN AGOSTO: N09 N12 D11\n1.500", ["08-09 n", "08-11 d", "08-12 n"]),
        ("HTN\nago 09 N\nago 11 D\n1.500", ["08-09 n", "08-11 d"]),
        ("HTN agosto\nP12D: 11, 14\nP12N: 12\n1.500", ["08-11 d", "08-12 n", "08-14 d"]),
        ("HTN\nqua 12/08 (D)\nsáb 15/08 (D) e (N)\n1.500", ["08-12 d", "08-15 d", "08-15 n"]),
        ("HTN agosto\n12/08 SN (2)\n15/08 SD (1)\n1.500", ["08-12 n", "08-15 d"]),
        ("HTN\n12/8 - n\n15/8 - d, n\n1.500", ["08-12 n", "08-15 d", "08-15 n"]),
        ("HTN uti 12/08 n, 15/08 d; 1.500", ["08-12 n", "08-15 d"]),
    ],
)
def test_short_notations_of_days_with_their_shifts(texto: str, esperadas: list[str]) -> None:
    assert [each[:7] for each in curtas(texto)] == esperadas


@pytest.mark.parametrize(
    "texto",
    [
        "HTN\nseg 10/08\n D ok\n N falta 1\nter 11/08\n D falta 2\n N ok\n1.500",
        "HTN\nseg 10: D Paulo / N ?\nter 11: D ? / N Bruna\n1.500",
        "HTN\n10/08: SD Paulo | SN ??\n11/08: SD falta 1 | SN Bruna\n1.500",
        "HTN\n10/08 SD ok / SN falta 2 vagas\n11/08 SD aberto / SN ok\n1.500",
    ],
)
def test_rota_says_for_each_shift_whether_it_is_open(texto: str) -> None:
    assert curtas(texto) == ["08-10 noturno 1500", "08-11 diurno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN 13/08, clínico, entra 13h sai 19h, 700",
        "HTN 13/08 clínico entrada 13h saída 19h 700",
        "HTN clínico 13/08 entrada 13:00, saída: 19:00, 700",
    ],
)
def test_hour_of_leaving_ends_the_shift(texto: str) -> None:
    assert curtas(texto) == ["08-13 tarde 700"]


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN\nD: 12 e 13/8\nN: 14/8\n1.400 D, 1.600 N",
            ["08-12 diurno 1400", "08-13 diurno 1400", "08-14 noturno 1600"],
        ),
        ("HTN 12/8 SN, 15/8 SD\n1.400 dia de semana, 1.600 sáb/dom", ["08-12 noturno 1400", "08-15 diurno 1600"]),
    ],
)
def test_condition_behind_each_price(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    "texto",
    ["HTN clínico\n07/09 SN\n08/09 SN\n1.400, feriado dobra", "HTN clínico\n14/08 SN\n15/08 SN\n1.400 / fds + 100"],
)
def test_price_that_depends_on_another_one_is_doubted(texto: str) -> None:
    assert all(each.confianca <= 0.9 for each in vagas(texto))


def test_row_without_a_vacancy_is_taken() -> None:
    assert curtas("HTN\n12/08 SD 1.500 - 1 vaga\n12/08 SN 1.500 - 0 vagas") == ["08-12 diurno 1500"]


def test_hours_from_seven_to_seven_with_an_x_are_a_whole_day() -> None:
    assert curtas("HTN 12/08 07x07 3.000") == ["08-12 24h 3000"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN: preciso de 1 clínico quinta dia, 1 sexta noite e 2 no sábado dia. 1.500",
        "HTN clínico: 2 quinta SD, 1 sexta SN, 1 sábado SD, 1.500",
        "HTN clínica - 2 qui SD / 1 sex SN / 3 sáb SD / 1.500",
    ],
)
def test_number_before_a_weekday_that_does_not_fit_counts_doctors(texto: str) -> None:
    assert curtas(texto) == ["08-06 diurno 1500", "08-07 noturno 1500", "08-08 diurno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN\n11/08 SN ✔\n12/08 SD\n13/08 SN ✔\n14/08 SD\n✔ = preenchido\n1.500",
        "HTN 1.500\n11/08 SN ✓\n12/08 SD\n13/08 SN ✓\n14/08 SD\n(✓ fechado)",
        "HTN\n● 11/08 SN\n12/08 SD\n● 13/08 SN\n14/08 SD\n● ocupado\n1.500",
    ],
)
def test_legend_may_explain_only_the_sign_for_taken_shifts(texto: str) -> None:
    assert curtas(texto) == ["08-12 diurno 1500", "08-14 diurno 1500"]


@pytest.mark.parametrize("sinal", ["✔", "✓", "🔴", "●", "◆"])
def test_sign_at_the_end_of_some_lines_is_doubted(sinal: str) -> None:
    found = vagas(f"HTN clínico 1.500\n11/08 SN {sinal}\n12/08 SD\n13/08 SN {sinal}\n14/08 SD")
    assert all(each.confianca <= 0.9 for each in found)


def test_day_of_payment_after_the_kind_of_contract_is_not_a_shift() -> None:
    assert curtas("HTN clínico 12/08 SD 1.500, PJ até dia 20") == ["08-12 diurno 1500"]


@pytest.mark.parametrize("dia", ["sáb 12", "dia 12 (quinta)", "terça-feira 12", "dia 12, dom"])
def test_day_with_another_weekday_is_doubted(dia: str) -> None:
    [found] = vagas(f"HTN clínico {dia} SN 1.500")
    assert f"{found.data.valor:%d/%m}" == "12/08"
    assert found.confianca <= 0.9


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN\nsex 07 - 24h\nsáb 08 - 12h noite\ndom 09 - 12h dia\n100 reais a hora",
            ["08-07 24h 2400", "08-08 noturno 1200", "08-09 diurno 1200"],
        ),
        (
            "HTN\nsábado 08 - 12h (noite) 1.500\ndomingo 09 - 12hs diurnas 1.500",
            ["08-08 noturno 1500", "08-09 diurno 1500"],
        ),
        ("HTN\nqui 13 - 6h manhã\nsex 14 - 6h tarde\n700", ["08-13 manha 700", "08-14 tarde 700"]),
    ],
)
def test_length_behind_a_day_is_not_the_end_of_a_shift(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    "texto",
    [
        "HTN orto, D/N: 12/08, 13/08; D: 14/08; N: 15/08. 12h 1.800",
        "HTN orto SD: 14/08; SN: 15/08; plantão de 12h 1.800",
    ],
)
def test_length_at_the_end_of_a_line_does_not_move_shifts_to_other_days(texto: str) -> None:
    assert [each[:7] for each in curtas(texto) if each[:5] in ("08-14", "08-15")] == ["08-14 d", "08-15 n"]


@pytest.mark.parametrize("rotulo", ["Horário: 19/07", "horário: 19 / 7", "*Hora:* 19/7", "Turno: 19/07"])
def test_hours_with_a_slash_behind_a_label(rotulo: str) -> None:
    assert curtas(f"Local: HTN\nData: sábado 15/08\n{rotulo}\nClínico 1.500") == ["08-15 noturno 1500"]


@pytest.mark.parametrize(
    "fim", ["Pgto: 10/09", "pagamento dia 10/09", "Recebimento em 10/09", "pagto até 10/09", "nota até 10/09"]
)
def test_date_of_payment_is_not_a_shift(fim: str) -> None:
    assert curtas(f"HTN clínico\n12/08 SN 1.500\n{fim}") == ["08-12 noturno 1500"]


def test_signs_before_several_days_of_a_line_follow_the_legend() -> None:
    text = "HTN\n(x) 12/08 SD   ( ) 12/08 SN\n( ) 13/08 SD   (x) 13/08 SN\n(x) preenchido ( ) disponível\n1.500"
    assert curtas(text) == ["08-12 noturno 1500", "08-13 diurno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN - semana 10 a 16/08\n2ª N\n3ª D\n6ª N\n1.500",
        "HTN semana que vem\n2a N\n3a D\n6a N\n1.500",
        "HTN semana de 10/08\n2ª SN\n3ª SD\n6ª SN\n1.500",
    ],
)
def test_short_weekday_before_a_letter(texto: str) -> None:
    assert curtas(texto) == ["08-10 noturno 1500", "08-11 diurno 1500", "08-14 noturno 1500"]


@pytest.mark.parametrize(
    "texto", ["HTN\n_quarta_ 12 N\n_sábado_ 15 D\n_1.500_", "_HTN_\n_12/08_ qua _SN_\n15/08 _sáb_ SD\n_R$ 1.500_"]
)
def test_italics_do_not_hide_words(texto: str) -> None:
    assert curtas(texto) == ["08-12 noturno 1500", "08-15 diurno 1500"]


@pytest.mark.parametrize(
    "texto", ["HTN 14/08, 12h (D) e 15/08, 12h (N). 1.500", "HTN 14/08 - 12h (D), 15/08 - 12h (N) 1.500"]
)
def test_letter_in_brackets_behind_a_length_is_the_shift(texto: str) -> None:
    assert curtas(texto) == ["08-14 diurno 1500", "08-15 noturno 1500"]


@pytest.mark.parametrize("nome", ["Santa Júlia", "Santa Rosália do Norte", "São Gaspar"])
def test_saint_before_a_town_is_a_place(nome: str) -> None:
    assert {each.hospital.valor for each in vagas(f"{nome} - Santarém/PA\nclínico\n11/08 SN\n1.500")} == {nome}


def test_name_without_capitals_continues_behind_dom() -> None:
    assert {each.hospital.valor for each in vagas("hospital dom gaspar precisa clinico 11/08 sn 1500")} == {
        "Hospital Dom Gaspar"
    }


@pytest.mark.parametrize(
    "texto",
    [
        "HTN agosto\nD: 12, 13*, 14\nN: 15*, 16\n(* já coberto)\n1.500",
        "HTN\n12/08 SD\n13/08 SD*\n14/08 SD\n15/08 SN*\n16/08 SN\n* preenchido\n1.500",
        "HTN\n12/08 SD\n14/08 SD\n15/08* SN\n16/08 SN\n*= fechado\n1.500",
    ],
)
def test_note_says_that_days_with_an_asterisk_are_taken(texto: str) -> None:
    assert curtas(texto) == ["08-12 diurno 1500", "08-14 diurno 1500", "08-16 noturno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN agosto\n11 ter: N\n12 qua: -\n13 qui: D\n1.500",
        "HTN\nter 11/08 N\nqua 12/08 -\nqui 13/08 D\n1.500",
        "HTN\n11/08 (ter): SN\n12/08 (qua): ---\n13/08 (qui): SD\n1.500",
    ],
)
def test_dash_in_place_of_a_shift_means_that_the_day_is_taken(texto: str) -> None:
    assert curtas(texto) == ["08-11 noturno 1500", "08-13 diurno 1500"]


def test_taken_day_below_a_shift_leaves_the_other_shift_open() -> None:
    text = "HTN\n07h-19h:\n12/08 - preciso\n13/08 - Marcos\n19h-07h:\n12/08 - Júlia\n13/08 - preciso\n1.500"
    assert curtas(text) == ["08-12 diurno 1500", "08-13 noturno 1500"]


def test_clinic_is_a_column_next_to_other_specialities() -> None:
    text = "HTN\n           Clínica   UTI\n12/08 SD      1        0\n12/08 SN      0        1\n13/08 SD      2        0\n1.500"
    assert inteiras(text) == [
        f"{H} | {CM} | 08-12 diurno 1500",
        f"{H} | {CM} | 08-13 diurno 1500",
        f"{H} | {UTI} | 08-12 noturno 1500",
    ]


@pytest.mark.parametrize(
    "texto", ["HTN\n5ª 13 SN\n6ª 14 SD\n1.500", "HTN\n5ª 13/08 SN\n6ª 14/08 SD\n1.500", "HTN 5ª 13 N, 6ª 14 D. 1.500"]
)
def test_short_weekday_before_a_day(texto: str) -> None:
    assert curtas(texto) == ["08-13 noturno 1500", "08-14 diurno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN, 3 plantões clínicos por 4.500 o pacote: 12/08 SN, 13/08 SN, 14/08 SN",
        "HTN clínico 15/08 SD e 16/08 SD, 3.000 o fim de semana",
        "HTN clínico\n12/08 SN\n13/08 SN\ncombo 3.000",
        "HTN clínico 12/08 SN, 13/08 SN, 14/08 SN, 4.500",
    ],
)
def test_price_that_may_be_the_sum_of_several_shifts_is_doubted(texto: str) -> None:
    found = vagas(texto)
    assert found
    assert all(each.confianca <= 0.9 for each in found)


def test_time_of_a_copied_message_is_not_a_shift() -> None:
    text = "[03/08 08:12] Fulana Escalas: HTN clínico 12/08 SN 1.500\n[03/08/2026, 08:13:01] Fulana Escalas: e 13/08 SD 1.500"
    assert curtas(text) == ["08-12 noturno 1500", "08-13 diurno 1500"]


@pytest.mark.parametrize("texto", ["HTN\nUTI N 12/08\nUTI D 15/08\n1.500", "HTN UTI N: 12/08; UTI D: 15/08. 1.500"])
def test_letter_between_a_unit_and_a_day_is_the_shift(texto: str) -> None:
    assert inteiras(texto) == [f"{H} | {UTI} | 08-12 noturno 1500", f"{H} | {UTI} | 08-15 diurno 1500"]


@pytest.mark.parametrize("titulo", ["HTN CLÍNICA AGO", "HTN clínica ago", "HTN CLÍNICA - AGO"])
def test_short_month_ends_a_name(titulo: str) -> None:
    assert inteiras(f"{titulo}\n12 SN / 15 SD\n1.500") == [
        f"{H} | {CM} | 08-12 noturno 1500",
        f"{H} | {CM} | 08-15 diurno 1500",
    ]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN clínico\n1. Quarta 12/08 - 19h/07h\n2. Sexta 14/08 - 19h/07h\n1.500",
        "HTN clínico\n1) Quarta 12/08 SN\n2) Sexta 14/08 SN\n1.500",
        "HTN clínico\n1. qua 12 SN\n2. sex 14 SN\n1.500",
    ],
)
def test_number_of_an_item_is_not_a_day(texto: str) -> None:
    assert curtas(texto) == ["08-12 noturno 1500", "08-14 noturno 1500"]


def test_hours_with_a_slash_behind_a_dotted_date_do_not_make_a_long_range() -> None:
    text = "HTN\n12.08.26 - 07/19\n13.08.26 - 19/07\n16.08.26 - 07/07\n12h 1.500 / 24h 3.000"
    assert curtas(text) == ["08-12 diurno 1500", "08-13 noturno 1500", "08-16 24h 3000"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN clínico\nSN: 12, 14, 16\nSD: 13, 15\n1.500",
        "HTN clínico\nNoites: 12,14,16\nDias: 13,15\n1.500",
        "HTN clínico agosto\nSN: 12,14,16\nSD: 13,15\n1.500",
        "HTN clínico\nSN > 12, 14 e 16\nSD > 13 e 15\n1.500",
    ],
)
def test_days_listed_behind_shifts_need_no_month(texto: str) -> None:
    assert [each[:7] for each in curtas(texto)] == ["08-12 n", "08-13 d", "08-14 n", "08-15 d", "08-16 n"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN\ndia 12 (qua) D: Fábio N: vaga\ndia 13 (qui) D: vaga N: Lia\n1.500",
        "HTN\n12/08 SD: Fábio SN: vaga\n13/08 SD: vaga SN: Lia\n1.500",
    ],
)
def test_names_and_open_shifts_on_one_line_without_a_separator(texto: str) -> None:
    assert curtas(texto) == ["08-12 noturno 1500", "08-13 diurno 1500"]


@pytest.mark.parametrize("texto", ["HTN: sáb 15 D e N, dom 16 D. 1.500", "HTN sábado 15 D/N, domingo 16 D, 1.500"])
def test_letters_behind_a_weekday_and_its_day(texto: str) -> None:
    assert curtas(texto) == ["08-15 diurno 1500", "08-15 noturno 1500", "08-16 diurno 1500"]


def test_town_with_the_name_of_a_holiday_is_not_a_day() -> None:
    assert curtas("Hospital Vida Plena/Natal clínico\nSN: 12, 14\nSD: 13, 15\n1.500")[0] == "08-12 noturno 1500"


@pytest.mark.parametrize(
    "texto",
    [
        "HTN orto: dias 5, 6 e 7 de agosto - 5 e 6 noturno, 7 diurno. 1.500",
        "HTN clínico, 12 e 13 de agosto, 12 noite e 13 dia, 1.500",
        "HTN clínico 12 e 13/08 (12 SN / 13 SD) 1.500",
    ],
)
def test_days_that_are_repeated_with_shifts_are_read_or_doubted(texto: str) -> None:
    found = vagas(texto)
    right = len(found) == len({each.data.valor for each in found})
    assert right or all(each.confianca <= 0.9 for each in found)


@pytest.mark.parametrize(
    "texto",
    [
        "ESCALA HTN - AGOSTO\n11 SN Fulano\n12 SD Beltrana\n12 SN Sicrano\n13 SD Fulano\nqualquer furo me avisem",
        "Escala HTN\n11/08 ter SN: Fulano Silva\n12/08 qua SD: Dra. Beltrana\n13/08 qui SD: Sicrano",
        "Escala da UPA Exemplo\nSáb 15 SD Fulano | SN Beltrana\nDom 16 SD Sicrana | SN Fulano\nBom descanso",
    ],
)
def test_rota_with_a_name_on_each_line_is_a_notice(texto: str) -> None:
    read = lida(texto)
    assert (read.categoria, read.vagas) == (Categoria.AVISO, ())


@pytest.mark.parametrize(
    "texto",
    [
        "Vagas HTN\n11/08 SN Pediatria\n12/08 SD Pediatria\n13/08 SD Ortopedia",
        "Plantões disponíveis, valor inbox\n11/08 SN HTN\n12/08 SD HTN\n13/08 SD HGM",
        "HTN 1.500\n11 SN Clínica\n12 SD Clínica\n13 SN Pediatria",
    ],
)
def test_speciality_or_place_behind_each_shift_is_not_a_name(texto: str) -> None:
    assert len(vagas(texto)) == 3


@pytest.mark.parametrize(
    "texto",
    [
        "Hospital veterinário em Belém precisa de plantonista dia 15/08 SN, 500",
        "Preciso de plantonista 15/08 SD, clínica de cães e gatos, R$ 500, CRMV ativo",
        "Plantonista para a Clínica Veterinária Modelo, sáb 15/08 noturno, 450, falar inbox",
    ],
)
def test_veterinary_shift_is_for_another_profession(texto: str) -> None:
    assert lida(texto).categoria is Categoria.OUTRO


def test_doctor_near_a_veterinary_hospital_is_an_offer() -> None:
    assert curtas("HTN, ao lado do hospital veterinário, precisa de médico clínico 15/08 SN 1.500")


@pytest.mark.parametrize(
    "texto",
    [
        "HTN clínico dias 12 e 13/08, tarde/noite (14h às 02h), 1.500",
        "HTN clínico 12/08 tarde e noite das 13h às 23h. 1.500",
        "HTN clínico 12/08 manhã/tarde (8h-18h) 1.500",
    ],
)
def test_hours_behind_two_periods_are_one_shift_or_in_doubt(texto: str) -> None:
    found = vagas(texto)
    assert len(found) == len({each.data.valor for each in found}) or all(each.confianca <= 0.9 for each in found)


@pytest.mark.parametrize(
    "frase",
    [
        "A de 18/08 já está com o Dr. Fulano",
        "a de 18/08 já foi",
        "a do dia 18 já está com a Dra. Beltrana",
        "O dia 18 ficou com o Fulano",
    ],
)
def test_day_that_a_later_line_takes_back_is_removed_or_in_doubt(frase: str) -> None:
    found = vagas(
        f"HTN - terças de agosto (11, 18 e 25), SN, clínica\nR$ 1.500 por plantão\n{frase}\nPagamento mensal, PJ."
    )
    assert found
    assert all(each.confianca <= 0.9 for each in found if each.data.valor.day == 18)
    assert {each.data.valor.day for each in found if each.confianca > 0.9} == {11, 25}


@pytest.mark.parametrize(
    ("horas", "periodo"),
    [
        ("de sete da manhã até sete da noite", "diurno"),
        ("das sete da manhã até as sete da noite", "diurno"),
        ("de sete da noite até sete da manhã", "noturno"),
        ("de uma da tarde a sete da noite", "tarde"),
    ],
)
def test_hours_in_words_with_parts_of_the_day_are_one_shift(horas: str, periodo: str) -> None:
    assert curtas(f"preciso de clínico no HTN na sexta dia 14/08 {horas}, valor 1.500") == [f"08-14 {periodo} 1500"]


@pytest.mark.parametrize(
    ("texto", "categoria"),
    [
        ("Alugo meu apê no centro, 2 quartos, 2.300 + condomínio", Categoria.PROPAGANDA),
        ("Passo meu apê na praia, 3/4, 2.800 + cond.", Categoria.PROPAGANDA),
        ("Passo meu apê, 1/4 vista mar, 2.500 + cond.", Categoria.PROPAGANDA),
        ("Conteúdo exclusivo e chamada de vídeo 🔥 link na bio", Categoria.SPAM),
        ("Dobre seu dinheiro em 10 dias, depósito mínimo de R$ 100", Categoria.SPAM),
        ("Oi pai, mudei de número. consegue me fazer um pix de 900? devolvo hoje", Categoria.SPAM),
        ("Aqui é o Dr. Fulano, troquei de número. Pode fazer um pix de 1.200 pra mim? Devolvo amanhã", Categoria.SPAM),
        ("Gente, troquei de número, salvem este contato", Categoria.AVISO),
        ("Cuidado com golpe: dizem que troquei de número e pedem um pix de 900", Categoria.AVISO),
    ],
)
def test_flats_are_advertising_and_requests_for_a_pix_are_spam(texto: str, categoria: Categoria) -> None:
    assert lida(texto).categoria is categoria


@pytest.mark.parametrize(
    "preco",
    [
        "Feriado clínica 2.400",
        "feriado p/ clínico: R$ 2.400",
        "Clínica em feriado 2.400",
        "Feriados da clínica = 2.400",
    ],
)
def test_price_of_a_holiday_with_a_speciality_between_is_read_or_doubted(preco: str) -> None:
    days = "CLÍNICA\n05/09 sáb SD\n07/09 seg SD (feriado)\nPEDIATRIA\n12/09 sáb SD"
    text = f"HTN\n{days}\n\nClínica: SD 1.500\nPediatria 1.900\n{preco}"
    holiday = [each for each in vagas(text) if each.data.valor.day == 7]
    assert holiday
    assert all(each.confianca <= 0.9 or (each.valor is not None and each.valor.valor == 2400) for each in holiday)


@pytest.mark.parametrize(
    "linha",
    ["07/09 SN anestesia - a combinar", "07/09 SN anestesia (valor a combinar)", "07/09 SN anestesia, valor no pv"],
)
def test_line_with_a_price_to_be_agreed_does_not_get_another_price(linha: str) -> None:
    text = (
        f"HTN\n05/09 SN clínica\n06/09 SD clínica\n1.700\n\nHGM\n12/09 24h cirurgião 4.000\n{linha}\n\nFalar com Fulana"
    )
    agreed = [each for each in vagas(text) if each.data.valor.day == 7]
    assert agreed
    assert all(each.confianca <= 0.9 or each.valor is None for each in agreed)


@pytest.mark.parametrize(
    "horas", ["tarde/noite (14h às 02h)", "tarde e noite das 13h às 23h", "tarde + noite, 13h-01h"]
)
def test_hours_behind_afternoon_and_night_are_one_shift(horas: str) -> None:
    assert curtas(f"HTN clínico 12/08 {horas} 1.500") == ["08-12 tarde 1500"]


def test_two_periods_with_their_own_hours_stay_two_shifts() -> None:
    assert len(vagas("HTN clínico 12/08 tarde (13h-19h) e noite (19h-7h) 1.500")) == 2
