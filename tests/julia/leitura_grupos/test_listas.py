"""Lists, corrections, nights and tables in layouts that no labelled author uses."""

import pytest

from tests.julia.leitura_grupos.exemplos import curtas, inteiras, vagas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "Hospital Vale Claro\nped / 12-08 / 7-19 / 1.900\nped / 19-08 / 19-7 / 2.100",
            ["08-12 diurno 1900", "08-19 noturno 2100"],
        ),
        (
            "HTN clínico\n12-08 7-19 1.500\n14-08 19-7 1.600\n21-08 7-19 1.500",
            ["08-12 diurno 1500", "08-14 noturno 1600", "08-21 diurno 1500"],
        ),
        ("HTN, clínica\n12.08 - 07/19 - 1.500\n13.08 - 19/07 - 1.600", ["08-12 diurno 1500", "08-13 noturno 1600"]),
    ],
)
def test_dates_with_dashes_or_dots_stand_before_hours(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN clínico\nDe 10/08 a 13/08\nSD 1.500 | SN 1.600\nObs: SD do dia 12 já preenchido",
            [
                "08-10 diurno 1500",
                "08-10 noturno 1600",
                "08-11 diurno 1500",
                "08-11 noturno 1600",
                "08-12 noturno 1600",
                "08-13 diurno 1500",
                "08-13 noturno 1600",
            ],
        ),
        (
            "HTN clínico\nSeg 10/08 – D / N\nTer 11/08 – completo\nQua 12/08 – N\nD=1.400 N=1.500",
            ["08-10 diurno 1400", "08-10 noturno 1500", "08-12 noturno 1500"],
        ),
        ("HTN clínico 1.500\n10/08 SD - lotado\n11/08 SD - ok\n12/08 SD - livre", ["08-12 diurno 1500"]),
        (
            "HTN clínico\n10/08 SD 🔴\n11/08 SN 🟢\n12/08 SN 🟢\n🟢 = disponível 🔴 = preenchido\n1.500",
            ["08-11 noturno 1500", "08-12 noturno 1500"],
        ),
        (
            "HTN clínico\n🗓 10/08\n🕖 07h-19h ✅ disponível\n🕖 19h-07h ✅ disponível\n🗓 11/08\n🕖 19h-07h ✅ disponível\n💰1.500",
            ["08-10 diurno 1500", "08-10 noturno 1500", "08-11 noturno 1500"],
        ),
        ("HTN clínico 10/08 SN 1500. Já a UPA Exemplo tá completa.", ["08-10 noturno 1500"]),
        (
            "Escala HTN (clínico) — faltam:\nSeg 10/8: noite\nTer 11/8: nada\nQua 12/8: dia\n1.500",
            ["08-10 noturno 1500", "08-12 diurno 1500"],
        ),
        (
            "HTN clínico\n10/08 SN ✅ Dr. Fulano\n11/08 SN ⏳\n12/08 SN ⏳\n1.500",
            ["08-11 noturno 1500", "08-12 noturno 1500"],
        ),
        (
            "10/08 - HTN\nSD: Fulano\nSN: ABERTO\n11/08 - HTN\nSD: ABERTO\nSN: Beltrana\nclínico 1.500",
            ["08-10 noturno 1500", "08-11 diurno 1500"],
        ),
    ],
)
def test_taken_shifts_of_a_list_are_left_out(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "Vagas na UPA Exemplo, ops, no HTN\nDia 10 noite\nDia 12 dia\n1.500 clínico",
            ["08-10 noturno 1500", "08-12 diurno 1500"],
        ),
        ("Clínico Hospital Vale Claro - corrigindo: Hospital Pedra Lisa. 10/08 SN 1.500", ["08-10 noturno 1500"]),
        ("HTN clínico 12/08 SN, não é mais 1.300, agora 1.600", ["08-12 noturno 1600"]),
        ("HTN clínico 12/08 SN 1.300\n\nATUALIZAÇÃO: valor subiu para 1.600", ["08-12 noturno 1600"]),
        ("Oi! Trabalho no HTN e preciso de alguém na UPA Exemplo dia 10/08 SN clínico 1.500", ["08-10 noturno 1500"]),
    ],
)
def test_the_corrected_place_and_price_count(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "Feriado municipal (11/08) – HTN\nSD – 2.000\nSN – 2.100\nclínica",
            ["08-11 diurno 2000", "08-11 noturno 2100"],
        ),
        (
            "HTN – 11/08 (terça)\n☀️ SD 1.500\n🌙 SN 1.600\n12/08 SD 1.500\nclínica",
            ["08-11 diurno 1500", "08-11 noturno 1600", "08-12 diurno 1500"],
        ),
        (
            "HTN clínico 10/08\nM (7-13) 800\nT (13-19) 800\nN (19-7) 1.600",
            ["08-10 manha 800", "08-10 noturno 1600", "08-10 tarde 800"],
        ),
        (
            "HTN clínico\nSD\n10/08 - 1.400\n11/08 - 1.400\nSN\n10/08 - 1.500",
            ["08-10 diurno 1400", "08-10 noturno 1500", "08-11 diurno 1400"],
        ),
        (
            "*UPA EXEMPLO*\n\n📆 10/08 SEGUNDA\n☀️ 1 clínico\n🌙 2 clínicos\n\n📆 11/08 TERÇA\n🌙 1 clínico\n\n💰 12h 1.500",
            ["08-10 diurno 1500", "08-10 noturno 1500", "08-11 noturno 1500"],
        ),
    ],
)
def test_shifts_below_a_day_belong_to_the_day(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN\nPediatria: 10, 12 e 14 SD\nOrtopedia: 13 SN\nped 1.900 / orto 2.400",
            [
                "Hospital Teste do Norte | Ortopedia e Traumatologia | 08-13 noturno 2400",
                "Hospital Teste do Norte | Pediatria | 08-10 diurno 1900",
                "Hospital Teste do Norte | Pediatria | 08-12 diurno 1900",
                "Hospital Teste do Norte | Pediatria | 08-14 diurno 1900",
            ],
        ),
        (
            "HTN\nPED: 10 SN\nORTO: 13 SN, 15 SD\n2.000",
            [
                "Hospital Teste do Norte | Ortopedia e Traumatologia | 08-13 noturno 2000",
                "Hospital Teste do Norte | Ortopedia e Traumatologia | 08-15 diurno 2000",
                "Hospital Teste do Norte | Pediatria | 08-10 noturno 2000",
            ],
        ),
        (
            "UPA Exemplo, agosto: 12, 15, 19 e 22, todas N. 1.650 clínico",
            [
                "UPA Exemplo Leste | Clínica Médica | 08-12 noturno 1650",
                "UPA Exemplo Leste | Clínica Médica | 08-15 noturno 1650",
                "UPA Exemplo Leste | Clínica Médica | 08-19 noturno 1650",
                "UPA Exemplo Leste | Clínica Médica | 08-22 noturno 1650",
            ],
        ),
        (
            "Agosto HTN clínico\nN: 10-11-13\nD: 12-15\n1.500",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-10 noturno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-11 noturno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-12 diurno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-13 noturno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-15 diurno 1500",
            ],
        ),
        (
            "ESCALA AGOSTO – HTN (clínica)\n11 ter ..... N\n15 sáb (N Sra da Glória) D / N\n1.500",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-11 noturno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-15 diurno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-15 noturno 1500",
            ],
        ),
    ],
)
def test_days_behind_a_label_are_days(texto: str, esperadas: list[str]) -> None:
    assert inteiras(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN clínico\nsexta SN R$ 1.400\nsábado SD R$ 1.500\ndomingo R$ 1.600 SD, R$ 1.700 SN",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-07 noturno 1400",
                "Hospital Teste do Norte | Clínica Médica | 08-08 diurno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-09 diurno 1600",
                "Hospital Teste do Norte | Clínica Médica | 08-09 noturno 1700",
            ],
        ),
        (
            "HTN clínico\nqui R$ 1.400 SD, 1.450 SN\nsex R$ 1.600 SD",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-06 diurno 1400",
                "Hospital Teste do Norte | Clínica Médica | 08-06 noturno 1450",
                "Hospital Teste do Norte | Clínica Médica | 08-07 diurno 1600",
            ],
        ),
        (
            "➡️ UPA Exemplo: sáb 7h-19h R$1.200\n➡️ Hospital Vale Claro: dom 19h-7h R$1.500\n"
            "➡️ HTN: qua 12/8 7h-19h R$1.900, PEDIATRIA",
            [
                "Hospital Teste do Norte | Pediatria | 08-12 diurno 1900",
                "Hospital Vale Claro | Clínica Médica | 08-09 noturno 1500",
                "UPA Exemplo Leste | Clínica Médica | 08-08 diurno 1200",
            ],
        ),
        (
            "Semana 10 a 14/08 HTN clínico\nSegunda SN\nTerça SD\nQuinta SD e SN\n1.500",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-10 noturno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-11 diurno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-13 diurno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-13 noturno 1500",
            ],
        ),
        (
            "UPA Exemplo sábado de manhã e domingo à tarde, alguém? 8 e 9/08. Clínico R$ 120/h, 6h cada",
            [
                "UPA Exemplo Leste | Clínica Médica | 08-08 manha 720",
                "UPA Exemplo Leste | Clínica Médica | 08-09 tarde 720",
            ],
        ),
        (
            "HTN clínico fixo toda quarta SN de agosto a partir do dia 12, 1.500",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-12 noturno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-19 noturno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-26 noturno 1500",
            ],
        ),
    ],
)
def test_weekdays_with_prices_or_dates_are_days(texto: str, esperadas: list[str]) -> None:
    assert inteiras(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "Dia 10/08! HTN: UTI SD e SN, 2.400 cada. Hospital Vale Claro: clínico SD, 1.700.",
            [
                "Hospital Teste do Norte | Medicina Intensiva | 08-10 diurno 2400",
                "Hospital Teste do Norte | Medicina Intensiva | 08-10 noturno 2400",
                "Hospital Vale Claro | Clínica Médica | 08-10 diurno 1700",
            ],
        ),
        (
            "08/08 (sáb): clínico SD HTN + clínico SN UPA Exemplo. 1.500 cada",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-08 diurno 1500",
                "UPA Exemplo Leste | Clínica Médica | 08-08 noturno 1500",
            ],
        ),
        (
            "HTN 12/08 SD e SN e UPA Exemplo 12/08 SD e SN — pediatria nos dois, 2.100",
            [
                "Hospital Teste do Norte | Pediatria | 08-12 diurno 2100",
                "Hospital Teste do Norte | Pediatria | 08-12 noturno 2100",
                "UPA Exemplo Leste | Pediatria | 08-12 diurno 2100",
                "UPA Exemplo Leste | Pediatria | 08-12 noturno 2100",
            ],
        ),
    ],
)
def test_places_of_one_line_keep_their_own_shifts(texto: str, esperadas: list[str]) -> None:
    assert inteiras(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN clínico\nseg 10 SN\nter 11 SN\nqui 13 SN\nsex 14 SN\n1.300 até quinta, sexta 1.450",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-10 noturno 1300",
                "Hospital Teste do Norte | Clínica Médica | 08-11 noturno 1300",
                "Hospital Teste do Norte | Clínica Médica | 08-13 noturno 1300",
                "Hospital Teste do Norte | Clínica Médica | 08-14 noturno 1450",
            ],
        ),
        (
            "HTN clínico\n04/09 SN\n07/09 SD\nDias normais 1.400, sete de setembro 2.000",
            [
                "Hospital Teste do Norte | Clínica Médica | 09-04 noturno 1400",
                "Hospital Teste do Norte | Clínica Médica | 09-07 diurno 2000",
            ],
        ),
        (
            "HTN\nClínico SD 1.400 SN 1.500\nPediatra SD 1.800 SN 1.900\n10/08: clínico SD e SN, pediatra SN\n11/08: pediatra SD",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-10 diurno 1400",
                "Hospital Teste do Norte | Clínica Médica | 08-10 noturno 1500",
                "Hospital Teste do Norte | Pediatria | 08-10 noturno 1900",
                "Hospital Teste do Norte | Pediatria | 08-11 diurno 1800",
            ],
        ),
        (
            "HTN clínico\n10/08 SN 1.5\n11/08 SD 1.4",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-10 noturno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-11 diurno 1400",
            ],
        ),
    ],
)
def test_price_applies_to_the_days_that_the_message_names(texto: str, esperadas: list[str]) -> None:
    assert inteiras(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("HTN, clínico, 12/08, SD, 1.350, PJ dia 25", ["08-12 diurno 1350"]),
        (
            "3 SD e 2 SN no HTN: 10/08 SD, 11/08 SD, 12/08 SD, 10/08 SN, 12/08 SN. clínico 1.450 cada",
            ["08-10 diurno 1450", "08-10 noturno 1450", "08-11 diurno 1450", "08-12 diurno 1450", "08-12 noturno 1450"],
        ),
    ],
)
def test_day_of_payment_and_number_of_shifts_are_not_days(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("HTN clínico de quinta 13/08 19h até sexta 14/08 7h, 1.500", ["08-13 noturno 1500"]),
        ("HTN clínico início 13/08 19h, término 14/08 7h, 1.500", ["08-13 noturno 1500"]),
        ("HTN clínico sáb 15/08 7h até dom 16/08 7h 3.000", ["08-15 24h 3000"]),
        (
            "Oi pessoal, o colega que ia ficar na quinta à noite no HTN desistiu, "
            "preciso de um clínico pra quinta das sete da noite às sete da manhã de sexta, valor mil e seiscentos",
            ["08-06 noturno 1600"],
        ),
        ("HTN clínico noite de segunda (10/08) para terça (11/08) 1.500", ["08-10 noturno 1500"]),
        ("HTN clínico, virada de 10 para 11/08, 19h-7h, 1.500", ["08-10 noturno 1500"]),
    ],
)
def test_a_shift_that_ends_on_the_next_day_is_one_shift(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("ortopedia / HTN / dia 12, 13 às 19 / 900", ["08-12 tarde 900"]),
        ("Sete de setembro no HTN – UTI – SD 2.300 e SN 2.400", ["09-07 diurno 2300", "09-07 noturno 2400"]),
        ("Natal no HTN, clínico, SD 2.300", ["12-25 diurno 2300"]),
        (
            "HTN clínico\n10/08 a 14/08 - SD\n(exceto 12/08)\n1.500",
            ["08-10 diurno 1500", "08-11 diurno 1500", "08-13 diurno 1500", "08-14 diurno 1500"],
        ),
        (
            "HTN clínico: sexta 14 à noite, sábado 15 o dia todo e domingo 16 de manhã. 12h 1.500 / 6h 800",
            ["08-14 noturno 1500", "08-15 diurno 1500", "08-16 manha 800"],
        ),
        ("HTN clínico amanhã e depois, SN, 1.500", ["08-04 noturno 1500", "08-05 noturno 1500"]),
    ],
)
def test_days_in_other_words_are_read(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "Hospital: HTN\nEspecialidade: Pediatria\nData: 10/08\nHorário: 07h às 19h\nValor: 1.900\n\n"
            "Hospital: UPA Exemplo\nEspecialidade: Clínica\nData: 11/08\nHorário: 19h às 07h\nValor: 1.500",
            [
                "Hospital Teste do Norte | Pediatria | 08-10 diurno 1900",
                "UPA Exemplo Leste | Clínica Médica | 08-11 noturno 1500",
            ],
        ),
        (
            "alguém pode hoje SN no hospital municipal de Vale Claro?? 1.500 + combustível",
            ["Hospital municipal de Vale Claro | Clínica Médica | 08-03 noturno 1500"],
        ),
        (
            "VC = Hospital Vale Claro, PL = Hospital Pedra Lisa\n10/08 SN VC\n11/08 SD PL\nclínico 1.500",
            [
                "Hospital Pedra Lisa | Clínica Médica | 08-11 diurno 1500",
                "Hospital Vale Claro | Clínica Médica | 08-10 noturno 1500",
            ],
        ),
    ],
)
def test_names_of_places_are_complete(texto: str, esperadas: list[str]) -> None:
    assert inteiras(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN clínico\n        SD   SN\n10/08   x    \n11/08        x\n12/08   x    x\n1.500",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-10 diurno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-11 noturno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-12 diurno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-12 noturno 1500",
            ],
        ),
        (
            "        HTN     UPA Exemplo\n10/08   SN      -\n11/08   -       SD\nclínico 1.500",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-10 noturno 1500",
                "UPA Exemplo Leste | Clínica Médica | 08-11 diurno 1500",
            ],
        ),
        (
            "| | 10/08 | 11/08 | 12/08 |\n|HTN| SN | | SD |\n|UPA Exemplo| | SD/SN | |\nclínico 1.500",
            [
                "Hospital Teste do Norte | Clínica Médica | 08-10 noturno 1500",
                "Hospital Teste do Norte | Clínica Médica | 08-12 diurno 1500",
                "UPA Exemplo Leste | Clínica Médica | 08-11 diurno 1500",
                "UPA Exemplo Leste | Clínica Médica | 08-11 noturno 1500",
            ],
        ),
    ],
)
def test_cells_belong_to_their_column_and_row(texto: str, esperadas: list[str]) -> None:
    assert inteiras(texto) == esperadas


def test_words_of_a_name_are_not_corrected_to_a_speciality() -> None:
    assert {each.especialidade.valor for each in vagas("HTN, Raimundo Nonato/PA\nclínico 11/08 SN 1.500")} == {
        "Clínica Médica"
    }
