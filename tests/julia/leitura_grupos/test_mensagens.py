"""Messages as people write them, and the fields that the rules read from them."""

import pytest

from app.contexts.leitura_grupos.api import Categoria
from tests.julia.leitura_grupos.exemplos import curtas, inteiras, lida, vagas

H, U, G = "Hospital Teste do Norte", "UPA Exemplo Leste", "Hospital Geral Modelo"
CM, PED = "Clínica Médica", "Pediatria"


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        pytest.param(
            "ESCALA AGOSTO - HTN\nCM\n\nQua 05/08\n▪ SD - 1.500\n▪ SN - 1.600\nSáb 08/08\n▪ SN - 1.800",
            [f"{H} | {CM} | 08-05 diurno 1500", f"{H} | {CM} | 08-05 noturno 1600", f"{H} | {CM} | 08-08 noturno 1800"],
            id="a day above its shifts",
        ),
        pytest.param(
            "📢 UPA EXEMPLO LESTE\n➡️ Clínica Médica\n🗓️ 06/08 🌙 Noite\n🗓️ 07/08 ☀️ Dia / 🌙 Noite\n➡️ Pediatria\n🗓️ 08/08 ☀️ Dia\n"
            "💰 Clínica: R$ 1.400\n💰 Pediatria: R$ 1.900",
            [
                f"{U} | {CM} | 08-06 noturno 1400",
                f"{U} | {CM} | 08-07 diurno 1400",
                f"{U} | {CM} | 08-07 noturno 1400",
                f"{U} | {PED} | 08-08 diurno 1900",
            ],
            id="specialities as headings and prices by speciality at the end",
        ),
        pytest.param(
            "HGM\n12/08 SD CM 1500\n12/08 SN PED 1900\n13/08 SD ORTO 2000 (preenchido)",
            [f"{G} | {CM} | 08-12 diurno 1500", f"{G} | {PED} | 08-12 noturno 1900"],
            id="a table with a filled line",
        ),
        pytest.param(
            "1) HTN – UTI – 10/08 – noturno – 2.100\n2) HTN – PS – 11/08 – diurno – 1.500\n"
            "3) UPA Exemplo – pediatra – 12/08 – cinderela – 900",
            [
                f"{H} | {CM} | 08-11 diurno 1500",
                f"{H} | Medicina Intensiva | 08-10 noturno 2100",
                f"{U} | {PED} | 08-12 cinderela 900",
            ],
            id="a numbered list in which every line says all",
        ),
        pytest.param(
            "Hospital Teste do Norte\nClínica médica:\n - 10/08 SN\n - 11/08 SD\nCirurgia geral:\n - 12/08 SN\n"
            "Valores: CM 1.500 | CG 2.100",
            [
                f"{H} | Cirurgia Geral | 08-12 noturno 2100",
                f"{H} | {CM} | 08-10 noturno 1500",
                f"{H} | {CM} | 08-11 diurno 1500",
            ],
            id="prices of two specialities on one line",
        ),
        pytest.param(
            "HTN E UPA EXEMPLO: clínico dia 12/08 SN. R$ 1.600",
            [f"{H} | {CM} | 08-12 noturno 1600", f"{U} | {CM} | 08-12 noturno 1600"],
            id="two hospitals for one day",
        ),
        pytest.param(
            "Preciso de 2 clínicos e 1 pediatra HTN dia 20/08 SD. CM 1.500 PED 1.900",
            [f"{H} | {CM} | 08-20 diurno 1500", f"{H} | {PED} | 08-20 diurno 1900"],
            id="two specialities wanted, each with its price",
        ),
        pytest.param(
            "Hospital Modelo da Serra - Caxias do Sul/RS precisa de ortopedista\n"
            "dia 12/08 das 08h às 20h\ndia 13/08 das 20h às 08h\nR$ 170,00/h",
            [
                "Hospital Modelo da Serra | Ortopedia e Traumatologia | 08-12 diurno 2040",
                "Hospital Modelo da Serra | Ortopedia e Traumatologia | 08-13 noturno 2040",
            ],
            id="an unknown hospital, paid by the hour",
        ),
        pytest.param(
            "UPA 24h Exemplo Leste, clínico, 10/08, SN, 1500",
            [f"{U} | {CM} | 08-10 noturno 1500"],
            id="24h in a name is no shift",
        ),
        pytest.param(
            "Porta da UPA Exemplo, 15/08: clínico ou cirurgião, SD, 1.400",
            [f"{U} | {CM} | 08-15 diurno 1400"],
            id="either of two is the first",
        ),
        pytest.param(
            "Vida Teste Remoções precisa de médico emergencista dia 08/08 das 7 às 19h, R$ 1.300",
            ["Vida Teste Remoções | Medicina de Emergência | 08-08 diurno 1300"],
            id="a company that carries patients",
        ),
        pytest.param(
            "Plantão UTI HTN 10/08 19-7h 2.000. Exige título ou residência em clínica médica.",
            [f"{H} | Medicina Intensiva | 08-10 noturno 2000"],
            id="what is required is not what is wanted",
        ),
        pytest.param(
            "Plantões HTN\n10/08 SN cirurgia 2.000\n\nps: também procuro plantão de GO em Belém dia 12/08 SD",
            [f"{H} | Cirurgia Geral | 08-10 noturno 2000"],
            id="a request beside an offer gives no vaga",
        ),
        pytest.param(
            "Santa Casa de Exemplópolis/MG precisa de pediatra 10/08 SD 1.700",
            [f"Santa Casa de Exemplópolis | {PED} | 08-10 diurno 1700"],
            id="a name that its town makes",
        ),
        pytest.param(
            "Doutores, vagas p/ UPA Exemplo Leste:\n\n*Segunda 10/08*\n- 1 clínico SD\n- 2 clínicos SN\n\n"
            "*Terça 11/08*\n- 1 pediatra SD\n"
            "CM: 1.400 / PED: 1.800",
            [f"{U} | {CM} | 08-10 diurno 1400", f"{U} | {CM} | 08-10 noturno 1400", f"{U} | {PED} | 08-11 diurno 1800"],
            id="posts counted below each day",
        ),
        pytest.param(
            "HTN: Clínica Médica R$ 1.500, Pediatria R$ 1.900. Dia 10/08, SN",
            [f"{H} | {CM} | 08-10 noturno 1500", f"{H} | {PED} | 08-10 noturno 1900"],
            id="a speciality that begins like a clinic",
        ),
        pytest.param(
            "HTN (GO) - pendências:\n- Sáb 15/08 D\n- Sáb 15/08 N\nR$ 2.200 (D) / R$ 2.400 (N)",
            [
                f"{H} | Ginecologia e Obstetrícia | 08-15 diurno 2200",
                f"{H} | Ginecologia e Obstetrícia | 08-15 noturno 2400",
            ],
            id="one letter for a shift",
        ),
        pytest.param(
            "HTN + UPA Exemplo, CM, 07/09 (feriado) e 08/09:\nHTN SD nos dois dias\nUPA SN só no feriado\n"
            "Semana 1.500 / feriado 1.800",
            [
                f"{H} | {CM} | 09-07 diurno 1800",
                f"{H} | {CM} | 09-08 diurno 1500",
                f"{U} | {CM} | 09-07 noturno 1800",
            ],
            id="a short name later on, and a line for the holiday alone",
        ),
        pytest.param(
            "Passo plantões: UPA Exemplo dia 17 e 19 (SD) e HTN dia 21 (SN). CM, 1.350 na UPA e 1.600 no HTN",
            [f"{H} | {CM} | 08-21 noturno 1600", f"{U} | {CM} | 08-17 diurno 1350", f"{U} | {CM} | 08-19 diurno 1350"],
            id="a price for each hospital, listed after them",
        ),
        pytest.param(
            "Hospital São Modelo de Exemplópolis/MG precisa de pediatra 10/08 SD 1.700",
            [f"Hospital São Modelo | {PED} | 08-10 diurno 1700"],
            id="a name without its town",
        ),
    ],
)
def test_lists_and_sections_become_vagas(texto: str, esperadas: list[str]) -> None:
    assert inteiras(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("Surgiu uma vaga no HTN p/ esta quinta, noturno. Clínico. Paga 1.700 c/ nota", ["08-06 noturno 1700"]),
        (
            "Preciso de clínico no HTN de 10 a 12/08, SD, 1.500",
            ["08-10 diurno 1500", "08-11 diurno 1500", "08-12 diurno 1500"],
        ),
        ("HTN clínico dias 8, 9 e 15, SN, 1.600", ["08-08 noturno 1600", "08-09 noturno 1600", "08-15 noturno 1600"]),
        (
            "HTN clínico 30/08 a 02/09 SN 1.500",
            ["08-30 noturno 1500", "08-31 noturno 1500", "09-01 noturno 1500", "09-02 noturno 1500"],
        ),
        ("HTN clínico toda quinta SN, R$ 1.550 por plantão", ["08-06 noturno 1550"]),
        (
            "HTN clínico, todas as sextas SN de agosto, 1.450",
            ["08-07 noturno 1450", "08-14 noturno 1450", "08-21 noturno 1450", "08-28 noturno 1450"],
        ),
        ("HTN clínico, quartas de agosto a partir de 19/08, SN, 1.500", ["08-19 noturno 1500", "08-26 noturno 1500"]),
        ("HTN clínico semana que vem: terça SD, quinta SN. 1.500", ["08-11 diurno 1500", "08-13 noturno 1500"]),
        ("HTN clínico fim de semana SD 1.700", ["08-08 diurno 1700", "08-09 diurno 1700"]),
        ("HTN clínico depois de amanhã SN 1.500", ["08-05 noturno 1500"]),
        ("HTN clínico 8 de agosto, SN, 1.500", ["08-08 noturno 1500"]),
        ("HTN clínico 08.08 SN 1.500", ["08-08 noturno 1500"]),
        ("HTN clínico 08/08/26 SN 1.500", ["08-08 noturno 1500"]),
        (
            "HTN cardiologia\nSETEMBRO\nDias: 01, 03 e 08\n07:00 às 13:00\nR$ 1.000",
            ["09-01 manha 1000", "09-03 manha 1000", "09-08 manha 1000"],
        ),
        (
            "Preciso cobrir sexta (07/08) manhã e sábado (08/08) noite na UPA Exemplo. R$ 800 a manhã e R$ 1.500 a noite",
            ["08-07 manha 800", "08-08 noturno 1500"],
        ),
        (
            "plantao htn dia 8 e 9 agora, sd e sn, clinico, 1.600 sd e 1.750 sn",
            ["08-08 diurno 1600", "08-08 noturno 1750", "08-09 diurno 1600", "08-09 noturno 1750"],
        ),
        (
            "PEDIATRIA HTN\nSD - 05/08, 06/08\nSN - 07/08\nR$1900 SD / R$2000 SN",
            ["08-05 diurno 1900", "08-06 diurno 1900", "08-07 noturno 2000"],
        ),
        (
            "HTN clínico\nSD 07/08 e 08/08\nSeg a sex 1.500 / sáb e dom 1.800",
            ["08-07 diurno 1500", "08-08 diurno 1800"],
        ),
        ("HTN, clínico, 07/09 SD. Valor dia útil 1.500, feriado 2.200", ["09-07 diurno 2200"]),
        ("Sábado e domingo: HTN, SD, pediatra. Sáb 1.800, dom 2.000", ["08-08 diurno 1800", "08-09 diurno 2000"]),
        ("HTN 08/08 clínico 24h 3.200, pode dividir em 12h", ["08-08 24h 3200"]),
        ("HTN 08/08 (sab) 07-07h GO 4.200", ["08-08 24h 4200"]),
        ("HTN clínico 12h noite 10/08, 6h = 750 / 12h = 1.500", ["08-10 noturno 1500"]),
        ("Vagas UPA Exemplo\n~05/08 SN~\n06/08 SN\nClínico, R$ 1.400", ["08-06 noturno 1400"]),
        ("UPA Exemplo CM\nSáb 08/08: dia ✔️ noite ❌ fechado\nR$ 1.500", ["08-08 diurno 1500"]),
        ("HTN clínico 11/08 SN 1.500\n*Correção*: valor 1.700", ["08-11 noturno 1700"]),
        ("HTN clínico SN: quinta 13/08, não... corrigindo: quarta 12/08. 1.400", ["08-12 noturno 1400"]),
        ("Errata: no HTN o plantão é dia 12/08 e não 11/08, SN, clínico, 1.500", ["08-12 noturno 1500"]),
        ("HTN clínico 10/08 SN, pagamento dia 20, 1.500", ["08-10 noturno 1500"]),
        ("HTN clínico 10/08 SN 1.500 + deslocamento de R$ 200", ["08-10 noturno 1500"]),
        ("HTN clínico 10/08 SN. Valor a combinar", ["08-10 noturno"]),
    ],
)
def test_days_shifts_and_prices_become_vagas(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "nome", "numero"),
    [
        ("HTN clínico 10/08 SN 1.500. Falar com Fulana 91 98100-0001", "Fulana", "5591981000001"),
        ("HTN clínico 10/08 SN 1.500. (91) 98100-0001 Fulana", "Fulana", "5591981000001"),
        ("HTN clínico 10/08 SN 1.500. Dra. Fulana Clara: wa.me/5591981000001", "Fulana Clara", "5591981000001"),
        ("htn clinico 10/08 sn 1500 pj fulana 91981000001", "Fulana", "5591981000001"),
        ("HTN clínico 10/08 SN 1.500\n📞 Fulana\n+55 91 9 8100 0001", "Fulana", "5591981000001"),
        ("HTN clínico 10/08 SN 1.500. chama a Fulana no 98100-0001", "Fulana", None),
        ("HTN clínico 10/08 SN 1.500. Ligar 091 98100-0001", None, "5591981000001"),
        ("HTN clínico 10/08 SN 1.500. Chama no pv. Grupo: https://chat.whatsapp.com/EXEMPLO123", None, None),
        ("HTN clínico 10/08 SN 1.500. Me chama no pv - Fulana", "Fulana", None),
    ],
)
def test_contact_of_an_offer(texto: str, nome: str | None, numero: str | None) -> None:
    [each] = vagas(texto)
    assert (each.contato_nome and each.contato_nome.valor, each.contato_whatsapp and each.contato_whatsapp.valor) == (
        nome,
        numero,
    )


def test_each_hospital_has_its_own_one_of_two_numbers() -> None:
    texto = "HTN (CM) 10/08 SD 1.600\nHGM (PED) 11/08 SN 1.900\nFulana 91 98100-0001 (Belém)\nBeltrana 53 98100-0002 (Pelotas)"
    found = {each.hospital.valor: each.contato_nome.valor for each in vagas(texto) if each.contato_nome}
    assert found == {H: "Fulana", G: "Beltrana"}


@pytest.mark.parametrize(
    ("texto", "forma"),
    [
        ("HTN clínico 10/08 SN 1.500 PJ 30 dias", "PJ, 30 dias"),
        ("HTN clínico 10/08 SN 1.500 PJ ou PF", "PJ/PF"),
        ("HTN clínico 10/08 SN 1.500 pago na saída do plantão, pix", "à vista, pix"),
        ("HTN clínico 10/08 SN 1.500 RPA, pagamento todo dia 15", "RPA, dia 15"),
        ("HTN clínico 10/08 SN 1.500", None),
    ],
)
def test_form_of_payment(texto: str, forma: str | None) -> None:
    assert {each.forma_pagamento and each.forma_pagamento.valor for each in vagas(texto)} == {forma}


@pytest.mark.parametrize(
    ("categoria", "texto"),
    [
        (Categoria.OFERTA, "HTN hoje SN clínico, alguém?"),
        (Categoria.OFERTA, "Passo SN de sexta HTN"),
        (Categoria.OFERTA, "Vaga de UTI neo no HTN, setembro, valor e datas no pv"),
        (Categoria.OFERTA, "Médicos disponíveis para hoje à noite? HTN precisa de reforço, clínico, 1.800"),
        (
            Categoria.OFERTA,
            "Plantão extra HTN 10/08 noite 1.550 (tem enfermeiro, equipe completa, estacionamento coberto)",
        ),
        (Categoria.OFERTA, "Tenho SD dia 12 no HTN e não vou poder fazer. Quem pode? Aceito troca também"),
        (Categoria.PROCURA, "Alguém passando SN essa semana? Aceito HTN ou UPA Exemplo"),
        (Categoria.PROCURA, "Dra. Fulana, pediatra, disponível dias 8, 9 e 15/08 (SD ou SN) região de Belém"),
        (Categoria.PROCURA, "Preciso de plantão dia 07/08 e 08/08, HTN ou UPA, tanto faz"),
        (
            Categoria.PROCURA,
            "Residente de cirurgia procura plantão de PS nos fins de semana de agosto, 07-19h ou 19-07h",
        ),
        (Categoria.PROCURA, "Tem plantão pra ortopedista em agosto?"),
        (Categoria.PROCURA, "Estou com o dia 12/08 livre, se alguém quiser passar plantão no HTN"),
        (Categoria.OUTRO, "Alguém troca o SN do dia 10/08 pelo SD do dia 12/08 no HTN?"),
        (Categoria.OUTRO, "Preciso de enfermeira para plantão sábado 08/08 na UPA Exemplo, 12h, R$ 250"),
        (Categoria.OUTRO, "HTN contrata fisioterapeuta plantonista 12x36 noturno. Enviar CV"),
        (Categoria.OUTRO, "Vaga para médico do trabalho, 20h semanais, R$ 9.000, CLT. Belém"),
        (Categoria.OUTRO, "[vídeo]"),
        (Categoria.OUTRO, "https://exemplo.com/vaga/123"),
        (Categoria.OUTRO, "  ...  "),
        (Categoria.AVISO, "Cancelado o plantão de amanhã na UPA Exemplo, pessoal"),
        (Categoria.AVISO, "Reunião da clínica médica quinta 06/08 às 19h no HTN"),
        (Categoria.AVISO, "Escala de setembro do HTN publicada, confiram"),
        (Categoria.CONVERSA, "Quanto a UPA Exemplo paga o SN de fim de semana?"),
        (Categoria.CONVERSA, "Fechado então, te vejo sábado às 7h no HTN"),
        (Categoria.CONVERSA, "Bom plantão a todos que estão no HTN hoje a noite"),
        (
            Categoria.PROPAGANDA,
            "Curso de emergências no HTN dias 15 e 16/08, 8h às 18h, R$ 900. Inscrições 91 98100-0001",
        ),
        (Categoria.PROPAGANDA, "Alugo sala para consultório próximo ao HTN, R$ 1.500/mês. 91 98100-0001"),
        (Categoria.SPAM, "Ganhe até R$ 3.000 por semana trabalhando de casa, clique no link bit.exemplo/x"),
    ],
)
def test_category_of_short_messages(categoria: Categoria, texto: str) -> None:
    assert lida(texto).categoria is categoria


@pytest.mark.parametrize(
    ("texto", "esperada"),
    [
        ("Presiso de pediatira no Hosptal Teste do Norte sabdo SN 1.800", f"{H} | {PED} | 08-08 noturno 1800"),
        ("Vaga de anestesita HTN 10/08 notruno 2.000", f"{H} | Anestesiologia | 08-10 noturno 2000"),
        ("Precisamos de ortopedsta no HTN domigno SD 1.900", f"{H} | Ortopedia e Traumatologia | 08-09 diurno 1900"),
    ],
)
def test_word_with_one_wrong_letter_is_recognised(texto: str, esperada: str) -> None:
    assert inteiras(texto) == [esperada]


def test_corrected_word_keeps_its_original_slice() -> None:
    texto = "Vaga de anestesita HTN 10/08 notruno 2.000"
    [each] = vagas(texto)
    assert each.especialidade.trecho is not None
    assert texto[slice(*each.especialidade.trecho)] == "anestesita"
    assert each.periodo.trecho is not None
    assert texto[slice(*each.periodo.trecho)] == "notruno"


def test_name_of_a_person_is_not_corrected_to_a_word() -> None:
    [each] = vagas("HTN clínico 10/08 SN 1.500. Falar com Amanda 91 98100-0001")
    assert each.contato_nome is not None
    assert each.contato_nome.valor == "Amanda"


def test_offer_without_a_hospital_or_a_day_has_no_vagas() -> None:
    read = lida("Preciso de clínico pra amanhã SD, hospital particular em Belém, 1.900 à vista. Detalhes no pv")
    assert (read.eh_oferta, read.vagas) == (True, ())
