"""Notations for lists, prices and names, each read as a person would read it."""

import pytest

from app.contexts.leitura_grupos.api import Categoria
from tests.julia.leitura_grupos.exemplos import curtas, inteiras, lida, vagas

OFERTA, PROCURA, AVISO, OUTRO = Categoria.OFERTA, Categoria.PROCURA, Categoria.AVISO, Categoria.OUTRO


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "UPA Exemplo\n\nM 11/08 - 650\nT 11/08 - 650\nN 12/08 - 1300\n\nM=7-13 T=13-19 N=19-7\nsó CM",
            ["08-11 manha 650", "08-11 tarde 650", "08-12 noturno 1300"],
        ),
        (
            "HTN - pediatria\nSeg 10 - M e T\nTer 11 - N\nQui 13 - M, T e N\n\nM/T = 750; N = 1.500",
            [
                "08-10 manha 750",
                "08-10 tarde 750",
                "08-11 noturno 1500",
                "08-13 manha 750",
                "08-13 noturno 1500",
                "08-13 tarde 750",
            ],
        ),
    ],
)
def test_single_letter_is_a_shift_before_or_after_a_day_and_before_its_price(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


def test_legend_of_shift_letters_gives_their_hours() -> None:
    [first, *_] = vagas("UPA Exemplo\nM 11/08 - 650\nN 12/08 - 1300\nM=7-13 N=19-7\nsó CM")
    assert (f"{first.hora_inicio.valor:%H:%M}", f"{first.hora_fim.valor:%H:%M}") == ("07:00", "13:00")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN - ORTO - 11 e 13/08 SD; 12/08 SN - 1.800/2.000 (D/N)",
            ["08-11 diurno 1800", "08-12 noturno 2000", "08-13 diurno 1800"],
        ),
        (
            "UPA Exemplo dia 11 SN, dia 15 SD. 1,55k/1,7k (semana/fds). Fulana 91 98100-0001",
            ["08-11 noturno 1550", "08-15 diurno 1700"],
        ),
        (
            "HTN clínica médica\nter 11/08 D\nqui 13/08 D\nter 18/08 D\n1.400 (ter) 1.450 (qui)",
            ["08-11 diurno 1400", "08-13 diurno 1450", "08-18 diurno 1400"],
        ),
        (
            "6 e 7/09 HTN, clínica, SN. Domingo 1.400. Segunda feriado 1.700. Fulana 91 98100-0001",
            ["09-06 noturno 1400", "09-07 noturno 1700"],
        ),
    ],
)
def test_prices_side_by_side_belong_to_the_words_beside_them(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


def test_hospital_is_recognised_again_by_any_word_of_its_name() -> None:
    texto = "Hospital Teste do Norte clínica\n10/08 SN\n\nHospital Geral Modelo pediatria\n11/08 SD\n\nNorte 1.650 | Modelo 1.800"
    assert curtas(texto, regiao=None) == ["08-10 noturno 1650", "08-11 diurno 1800"]


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("QUEM PEGA? HTN / ORTOPEDIA / SEGUNDA DIA 10 / 24H / R$ 3.800 / PJ À VISTA", ["08-10 24h 3800"]),
        ("Corrigindo a anterior: NÃO é 12/08, é 13/08 (quinta) o SD de GO no HTN. 1.950", ["08-13 diurno 1950"]),
        ("HTN UTI dias 10 e 12/08 SN 1.850. Contratação PJ, repasse dia 15", ["08-10 noturno 1850", "08-12 noturno 1850"]),
        (
            "UPA Exemplo CM terças e quintas de agosto (11, 13, 18, 20), SN 19-7, 1.450",
            ["08-11 noturno 1450", "08-13 noturno 1450", "08-18 noturno 1450", "08-20 noturno 1450"],
        ),
        (
            "UPA Exemplo CM terças e quintas de agosto, SN 1.450",
            [f"08-{day:02} noturno 1450" for day in (4, 6, 11, 13, 18, 20, 25, 27)],
        ),
        ("HTN pediatria\nTurnos abertos na semana de 10/08:\nTer 11 - SN 1.500", ["08-11 noturno 1500"]),
        (
            "HTN - obstetra - agosto\n05 ✔️SN\n06 ✔️SD ✔️SN\n(✔️ = turno disponível)\n1.900",
            ["08-05 noturno 1900", "08-06 diurno 1900", "08-06 noturno 1900"],
        ),
        (
            "UPA Exemplo 07/09 feriado: D 1.900, N 1.900. 08/09: D 1.400.\n12h cada, 7/19 e 19/7. Clínica",
            ["09-07 diurno 1900", "09-07 noturno 1900", "09-08 diurno 1400"],
        ),
        (
            "Clínico dia 10/08 no HTN. 7h às 19h: R$ 1.900. 19h às 7h: R$ 2.000. Também 12 e 13/08 diurno, 7h às 19h, R$ 1.700.",
            ["08-10 diurno 1900", "08-10 noturno 2000", "08-12 diurno 1700", "08-13 diurno 1700"],
        ),
        ("HTN obstetra agosto:\n05 SN\n06 - SD\n1.900", ["08-05 noturno 1900", "08-06 diurno 1900"]),
        (
            "HTN ortopedia agosto: 06, 08 SD e 05, 07 SN. 1.850",
            ["08-05 noturno 1850", "08-06 diurno 1850", "08-07 noturno 1850", "08-08 diurno 1850"],
        ),
        (
            "HTN ortopedia: 04, 06 e 08/08 SD; 05 e 07/08 SN. 1.850. Obs: dia 04 ok com Dr. Fulano (preenchido), restante aberto",
            ["08-05 noturno 1850", "08-06 diurno 1850", "08-07 noturno 1850", "08-08 diurno 1850"],
        ),
    ],
)  # fmt: skip
def test_days_are_counted_as_a_person_would(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN - pediatria e UTI ped\n10/08 seg SN (ped) 1.800\n11/08 ter SN (UTI ped) 2.400",
            ["Medicina Intensiva Pediátrica | 08-11 noturno 2400", "Pediatria | 08-10 noturno 1800"],
        ),
        (
            "Fim de semana (8 e 9/08) HTN:\n- sáb: pediatra dia\n- sáb: clínico noite\n- dom: clínico dia\n"
            "clínico 1.500 / pediatra 1.800",
            ["Clínica Médica | 08-08 noturno 1500", "Clínica Médica | 08-09 diurno 1500", "Pediatria | 08-08 diurno 1800"],
        ),
    ],
)  # fmt: skip
def test_each_line_has_the_speciality_it_names(texto: str, esperadas: list[str]) -> None:
    assert [each.partition(" | ")[2] for each in inteiras(texto)] == esperadas


def test_negated_speciality_is_ignored() -> None:
    assert inteiras("Pediatra p/ HTN: 1.800 SD sáb 08/08. Não é UTI, é enfermaria.") == [
        "Hospital Teste do Norte | Pediatria | 08-08 diurno 1800"
    ]


@pytest.mark.parametrize(
    ("texto", "nome"),
    [
        ("UPA Exemplo porta sábado, o dia, 12h, pagam 1.250. 91 98100-0001 Nonato", "Nonato"),
        ("Passo meu SD de domingo na UPA Exemplo, 1.480. É carnaval e eu queria descansar kkk 91 98100-0001", None),
        ("passo meu plantão de amanhã 07h às 19h HTN porta, 1.400, vcs escolhem kkk. 91 98100-0001", None),
        ("Algum anjo dia 8 SD na UPA Exemplo Leste? 1.550. Só quero ir no batizado da minha sobrinha 🥹 91 98100-0001", None),
        ("Clínico p/ UPA Exemplo 08/08 SD, 650. Cida da secretaria de saúde 91 98100-0001", "Cida"),
        ("Furo no HTN dia 10/08 SN 1.600, quem quiser me chama 91 98100-0001 meu nome é Railda", "Railda"),
        ("Olá, meu nome é Fulana, sou da escala do HTN. Clínico dia 10/08 SN, R$ 2.200. Meu contato: 91 98100-0001", "Fulana"),
        ("SD de GO dia 13/08 no HTN. Valor continua 1.950. 91 98100-0001 Solange", "Solange"),
    ],
)  # fmt: skip
def test_contact_name_is_read_and_other_words_beside_a_number_are_not(texto: str, nome: str | None) -> None:
    [first, *_] = vagas(texto)
    assert (None if first.contato_nome is None else first.contato_nome.valor) == nome


@pytest.mark.parametrize(
    ("texto", "categoria"),
    [
        ("sexta não tem ninguém na pediatria do HTN kkkk socorro, dia 14/8 das 7 às 19, 1700", OFERTA),
        ("UPA Exemplo - troca não, é vaga mesmo! dia 11 SN, dia 12 SD. 1,5k. Fulana 91 98100-0001", OFERTA),
        ("Vendo não, troco: meu 24h de 15/08 pelo 24h de 22/08 no HTN. Alguém?", OUTRO),
        ("Tenho disponível dias 25, 27 e 29 SD ou SN. Pediatra com RQE. 91 98100-0001", PROCURA),
        ("Tenho disponível dia 25/08 SD no HTN, clínica, 1.500. 91 98100-0001", OFERTA),
        ("vou passar agosto em Belém, qualquer plantão noturno de clínica me serve, alguém ajuda?", PROCURA),
        ("Fechou a noite do dia 3 no HTN ✅ obrigada, gente", AVISO),
        ("Pessoal: a partir de 15/08 só entra no HTN com crachá novo. Retirar no RH das 8h às 17h.", AVISO),
        ("Alerta: seu cadastro no CRM será suspenso hoje. Regularize em exemplo.site informando CPF e senha", Categoria.SPAM),
    ],
)  # fmt: skip
def test_whole_sentence_decides_the_category(texto: str, categoria: Categoria) -> None:
    assert lida(texto).categoria is categoria


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "HTN sala vermelha\n10/08 07h as 19h ✅ ok fechado\n10/08 19h as 07h\nR$ 2.000",
            ["08-10 noturno 2000"],
        ),
        ("CINDERELA HOJE 19h-01h no HTN e amanhã tbm. 700 reais clínico", ["08-03 cinderela 700", "08-04 cinderela 700"]),
        (
            "HTN, clínica, dia 10 de agosto 19h-7h. 1.300. Ou então dia 11 no mesmo horário",
            ["08-10 noturno 1300", "08-11 noturno 1300"],
        ),
        ("HTN / UTI NEO / 10-08 E 12-08 / 19H-07H / 2.050 / PJ", ["08-10 noturno 2050", "08-12 noturno 2050"]),
        (
            "sábado e domingo no HTN plantão noturno clínico mil quatrocentos e cinquenta cada um",
            ["08-08 noturno 1450", "08-09 noturno 1450"],
        ),
        (
            "Vaga p/ cirurgião no HTN. Dias 10 e 11/08, 24h cada. Valor total R$ 9.000 (2 plantões)",
            ["08-10 24h 4500", "08-11 24h 4500"],
        ),
        (
            "Feriado 07/09 e emenda 08/09 - HTN - CM\nSD nos dois dias\nFeriado: 1.900 | dia normal: 1.500",
            ["09-07 diurno 1900", "09-08 diurno 1500"],
        ),
        ("bão dia! furo amanhã no HTN, clínica, noite. Quem puder chama", ["08-04 noturno"]),
        ("HTN sala vermelha SN 14/08, 145/h. Fulano 91 98100-0001", ["08-14 noturno 1740"]),
        ("HTN\nClínica: 10/08 SN\nOrto: 11/08 SD\nR$ 1.500 / 1.800 respectivamente", ["08-10 noturno 1500", "08-11 diurno 1800"]),
        (
            "Preciso passar: SD 13/08 no HTN, cardiologia, e SN 14/08 no HTN, UTI. 1.800 e 2.000. Meu zap 91 98100-0001",
            ["08-13 diurno 1800", "08-14 noturno 2000"],
        ),
    ],
)  # fmt: skip
def test_omitted_or_unusual_forms_are_understood(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        (
            "Dia 05/08 HTN: MANHÃ neuro 900 | TARDE neuro 900 | NOITE clínica 1.500",
            ["Clínica Médica | 08-05 noturno 1500", "Neurologia | 08-05 manha 900", "Neurologia | 08-05 tarde 900"],
        ),
        (
            "HTN: clínica SD 18/08, 1.700; UTI SN 18/08, 2.000; orto SD 19/08, 1.850",
            [
                "Clínica Médica | 08-18 diurno 1700", "Medicina Intensiva | 08-18 noturno 2000",
                "Ortopedia e Traumatologia | 08-19 diurno 1850",
            ],
        ),
        (
            "HTN URO e NEFRO\nuro: 10/08 SD 1.900\nnefro: 11/08 manhã 850 e tarde 850",
            ["Nefrologia | 08-11 manha 850", "Nefrologia | 08-11 tarde 850", "Urologia | 08-10 diurno 1900"],
        ),
        (
            "HTN 10/08 e 11/08 clínica SN e pediatria SD. Clínica 1.500, pediatria 1.750",
            [
                "Clínica Médica | 08-10 noturno 1500", "Clínica Médica | 08-11 noturno 1500",
                "Pediatria | 08-10 diurno 1750", "Pediatria | 08-11 diurno 1750",
            ],
        ),
        ("10/08 HTN: psiq SD 2.200 | infecto SD 2.000", ["Infectologia | 08-10 diurno 2000", "Psiquiatria | 08-10 diurno 2200"]),
    ],
)  # fmt: skip
def test_each_speciality_has_its_own_shift_and_price(texto: str, esperadas: list[str]) -> None:
    assert [each.partition(" | ")[2] for each in inteiras(texto)] == esperadas


@pytest.mark.parametrize(
    ("texto", "hospitais"),
    [
        ("Geral Modelo pediatria 10/08 SD 1.500", {"Hospital Geral Modelo"}),
        ("Hosp. Ger. Modelo pediatria 10/08 SD 1.500", {"Hospital Geral Modelo"}),
        ("SAMU Amostra não é com a gente. Nossa vaga é no HTN: sala vermelha, 10/08 SN, 1.750", {"Hospital Teste do Norte"}),
        ("Hospital de Teste do Estado (HTN)\nClínica: 10/08 SN 1.500", {"Hospital Teste do Norte"}),
        (
            "tem doutor p fazer 24h domingo no Acre, hospital santa fictícia? clínico 2.900. Fulano 91 98100-0001",
            {"Hospital Santa Fictícia"},
        ),
    ],
)  # fmt: skip
def test_hospital_is_found_by_its_common_names(texto: str, hospitais: set[str]) -> None:
    assert {each.hospital.valor for each in vagas(texto)} == hospitais


@pytest.mark.parametrize(
    ("texto", "abertas", "fechadas"),
    [
        ("HTN clínico noturno R$ 1.500\n10, 11 (fechado) e 12/08", [12], []),
        ("HTN clínico noturno 10/08, 11/08 (preenchido), 12/08 R$ 1.500", [10, 12], [11]),
        ("HTN clínico noturno de 10 a 12/08 R$ 1.500, 11 já foi", [10, 12], [11]),
        ("HTN clínico noturno: só 12/08 R$ 1.500, 10 e 11 fechados", [12], []),
        ("HTN clínico noturno: só 12/08, 10 e 11 fechados", [12], [10]),
        ("HTN clínico dias 10, 11 e 12/08 SN R$ 1.500. Dia 11 fechado", [10, 12], [11]),
        ("HTN clínico 10 e 11/08 SN fechados, 12/08 SN R$ 1.500", [12], [10, 11]),
    ],
)
def test_only_the_day_marked_as_taken_is_closed(texto: str, abertas: list[int], fechadas: list[int]) -> None:
    read = lida(texto)
    assert [each.data.valor.day for each in read.vagas] == abertas
    taken = () if read.fechamento is None else read.fechamento.vagas
    assert sorted({each.data.valor.day for each in taken}) == fechadas


@pytest.mark.parametrize("texto", ["semana de 0", "semana de 40h", "HTN semana de 35/08 SN", "semana de 10-08- R$"])
def test_week_of_something_else_is_not_a_date(texto: str) -> None:
    assert lida(texto).vagas == ()
