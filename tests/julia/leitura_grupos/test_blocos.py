"""Layouts of prose, rotas (duty rosters) and price lists: several places, parallel lists, statuses in a rota, and
prices that depend on a condition.
"""

import pytest

from app.contexts.leitura_grupos.api import Vocabulario, ler
from tests.julia.leitura_grupos.exemplos import SEGUNDA, curtas, inteiras, vagas

H, U = "Hospital Teste do Norte", "UPA Exemplo Leste"
CM = "Clínica Médica"


@pytest.mark.parametrize(
    "texto",
    [
        "Temos plantões no HTN, dia 10/08, noturno, R$ 1.500, e na UPA Exemplo, dia 11/08, diurno, R$ 1.400. Falar com Fulana.",
        "HTN 10/08 SN 1.500; UPA Exemplo 11/08 SD 1.400. Clínica, PJ.",
        "Temos duas vagas: 1. HTN, clínico, 10/08, das 19h às 7h, 1.500; 2. UPA Exemplo, clínico, 11/08, das 7h às 19h, 1.400.",
        "✦ SEGUNDA 10/08\n  – HTN, clínico, noite\n✦ TERÇA 11/08\n  – UPA Exemplo, clínico, dia\nValores: HTN 1.500 | UPA 1.400",
    ],
)
def test_each_place_keeps_its_own_days(texto: str) -> None:
    assert inteiras(texto) == [f"{H} | {CM} | 08-10 noturno 1500", f"{U} | {CM} | 08-11 diurno 1400"]


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("HTN dias 10 e 11/08, SD e SN respectivamente, 1.500", ["08-10 diurno 1500", "08-11 noturno 1500"]),
        ("HTN sem clínico na segunda e na terça, diurno e noturno, respectivamente. 1.500. Fulana 91 98100-0001",
         ["08-04 noturno 1500", "08-10 diurno 1500"]),
        ("HTN, dia 10/08, SD e SN, R$ 1.400 e 1.600 respectivamente", ["08-10 diurno 1400", "08-10 noturno 1600"]),
        ("HTN 10, 11 e 12/08 SN. Valores 1.400, 1.500 e 1.600, respectivamente",
         ["08-10 noturno 1400", "08-11 noturno 1500", "08-12 noturno 1600"]),
    ],
)  # fmt: skip
def test_respectivamente_pairs_lists_in_their_order(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


def test_lists_that_are_paired_are_not_multiplied() -> None:
    places = "HTN e UPA Exemplo precisam de clínico no SD de 10/08 e 11/08, respectivamente. R$ 1.500"
    assert inteiras(places) == [f"{H} | {CM} | 08-10 diurno 1500", f"{U} | {CM} | 08-11 diurno 1500"]


@pytest.mark.parametrize(
    "rota",
    [
        "10/08 SN – Dra. Marcela\n11/08 SN – VAGO\n12/08 SD – descoberto",
        "HTN;10/08;SN;Dr. Renan\nHTN;11/08;SN;aberta\nHTN;12/08;SD;aberta",
        "Seg 10/08 SN: Marcela Teste\nTer 11/08 SN: ____\nQua 12/08 SD: aberto",
    ],
)
def test_rows_of_a_rota_with_a_name_are_taken(rota: str) -> None:
    assert curtas(f"Escala HTN clínica\n{rota}\n1.500") == ["08-11 noturno 1500", "08-12 diurno 1500"]


@pytest.mark.parametrize(
    "texto",
    [
        "HTN clínico 10/08, das 1900h às 0700h, 1.500",
        "HTN >> clínico >> 10/08 >> 19:00 >> 07:00 >> 1.500",
        "10/08; segunda; 19:00; 07:00; HTN; Clínica; 1.500",
        "HTN clínico 10AGO26 noturno 1.500",
        "HTN clínico 10/08 🌙 1.500",
        "HTN clínico, dia 10 do corrente, noite, 1.500",
        "HTN clínico 2ª-feira 10 SN, agosto, 1.500",
    ],
)
def test_hours_and_days_are_read_in_other_forms(texto: str) -> None:
    assert curtas(texto) == ["08-10 noturno 1500"]


@pytest.mark.parametrize(
    ("precos", "esperados"),
    [
        ("Semana D 1.400 N 1.500\nFDS D 1.600 N 1.700", (1400, 1500, 1600, 1700)),
        ("Clínica – semana: D 1.400 / N 1.500 – fds: D 1.600 / N 1.700", (1400, 1500, 1600, 1700)),
        ("Clínica R$ 1.400 (semana) / R$ 1.600 (fds)", (1400, 1400, 1600, 1600)),
        ("SD 1.400 | SN 1.500. 15/08: 1.900", (1400, 1500, 1900, 1900)),
    ],
)
def test_lists_of_prices_are_read_by_condition(precos: str, esperados: tuple[int, ...]) -> None:
    found = curtas(f"HTN clínica\n10/08 SD e SN\n15/08 SD e SN\n{precos}")
    shifts = ("08-10 diurno", "08-10 noturno", "08-15 diurno", "08-15 noturno")
    assert found == [f"{shift} {price}" for shift, price in zip(shifts, esperados, strict=True)]


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("HTN AGOSTO\n1ª semana: 10 (noite), 12 (dia e noite)\n1.500",
         ["08-10 noturno 1500", "08-12 diurno 1500", "08-12 noturno 1500"]),
        ("HTN AGOSTO\nSEG\tTER\tQUA\n10(D)\t\t12(N)\n1.500", ["08-10 diurno 1500", "08-12 noturno 1500"]),
        ("HTN clínica noite 10 11 e 12 de agosto 1.500", ["08-10 noturno 1500", "08-11 noturno 1500", "08-12 noturno 1500"]),
        ("HTN agosto clínica\n10 N / 11 N / 12 D\n~11 N~ já foi\n1.500", ["08-10 noturno 1500", "08-12 diurno 1500"]),
    ],
)  # fmt: skip
def test_bare_days_are_read_with_their_shifts(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("escrito", "nome"),
    [
        ("Hospital Neomater Teste de São Bernardo do Campo/SP", "Hospital Neomater Teste"),
        ("Hospital Padre Teste de Pirapora", "Hospital Padre Teste"),
        ("Hospital Nossa Senhora de Fátima", "Hospital Nossa Senhora de Fátima"),
        ("Santa Casa de Pirapora", "Santa Casa de Pirapora"),
        ("UPA 24h Jardim Teste", "UPA 24h Jardim Teste"),
    ],
)
def test_town_is_cut_off_the_name_of_a_hospital(escrito: str, nome: str) -> None:
    (found,) = vagas(f"{escrito} precisa de clínico 10/08 SN 1.500")
    assert found.hospital.valor == nome


def test_more_vacancies_than_the_text_states_lower_the_confidence() -> None:
    (stated,) = vagas("HTN clínico 10/08 SN R$ 1.500")
    multiplied = vagas("HTN e UPA Exemplo clínico e pediatra 10/08 e 11/08 SD e SN R$ 1.500")
    assert len(multiplied) == 16
    assert max(each.confianca for each in multiplied) < stated.confianca


def test_row_with_a_day_is_not_the_header_of_a_table() -> None:
    rows = "HTN\n10/08 segunda | 7h-19h | clínica\n11/08 terça | 19h-7h | ped\n1.500"
    assert inteiras(rows) == [f"{H} | {CM} | 08-10 diurno 1500", f"{H} | Pediatria | 08-11 noturno 1500"]


@pytest.mark.parametrize("pagamento", ["Crédito dia 18", "PJ dia 18", "Pagamento via cooperativa até dia 18"])
def test_day_of_payment_is_not_a_day_of_a_shift(pagamento: str) -> None:
    assert curtas(f"HTN clínica\n10/08 SN\n1.500\n{pagamento}") == ["08-10 noturno 1500"]


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("HTN semana q vem: quarta SN e quinta SD, 1.500", ["08-12 noturno 1500", "08-13 diurno 1500"]),
        ("HTN clínica\nSeg 10 🌙\nTer 11 ☀️\n1.500", ["08-10 noturno 1500", "08-11 diurno 1500"]),
        ("Passo 2 noites no HTN: 10 e 12. 1.500 cada", ["08-10 noturno 1500", "08-12 noturno 1500"]),
    ],
)
def test_short_forms_of_days(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


@pytest.mark.parametrize(
    ("texto", "hospital", "area"),
    [
        ("Hospital Vida Modelo Lages/SC, clínico 10/08 SD 1.500", "Hospital Vida Modelo", CM),
        ("gente o hospital santo modelo de lages SC ta sem médico dia 10/08 SD, 1.500", "Hospital Santo Modelo", CM),
        ("SAMU 192 Lages/SC\n10/08 SD\n1.500", "SAMU 192", "Medicina de Emergência"),
        ("PSF Morro Modelo, Lages/SC, médico 10/08 SD 1.500", "PSF Morro Modelo", "Medicina de Família e Comunidade"),
        ("Hospital Infantil Modelo\nPorta: 10/08 SD\n1.500", "Hospital Infantil Modelo", "Pediatria"),
        ("Remoções Vida Modelo precisa de médico 10/08 SD, 1.500", "Remoções Vida Modelo", "Medicina de Emergência"),
        ("Sta Casa Amostra - Campo Grande - GO\n10/08 SD 1.500", "Santa Casa de Amostra", "Ginecologia e Obstetrícia"),
    ],
)
def test_town_ends_a_name_and_a_name_implies_a_speciality(texto: str, hospital: str, area: str) -> None:
    assert inteiras(texto) == [f"{hospital} | {area} | 08-10 diurno 1500"]


def test_initials_of_the_hospitals_town_are_not_a_speciality() -> None:
    known = {"canonico": "Santa Casa Modelo", "cidade": "Campo Grande", "uf": "MS", "aliases": ["Sta Casa"]}
    found = ler(
        "Sta Casa CG - ortopedia, 10/08 SD", enviado_em=SEGUNDA, vocabulario=Vocabulario.de({"hospitais": [known]})
    )
    assert [each.especialidade.valor for each in found.vagas] == ["Ortopedia e Traumatologia"]
