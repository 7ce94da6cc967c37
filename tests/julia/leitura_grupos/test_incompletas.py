"""Offers without a place or a day: their other fields are read, and nothing is invented."""

from datetime import date, datetime, time
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from app.contexts.leitura_grupos.api import Leitura, Periodo, ValorTipo, ler
from app.contexts.leitura_grupos.montagem.montar import MAIS_INCOMPLETAS

WHEN = datetime(2026, 3, 11, 12, tzinfo=ZoneInfo("America/Sao_Paulo"))


def lida(texto: str) -> Leitura:
    return ler(texto, enviado_em=WHEN, grupo="Plantões Teste")


def test_offer_without_a_place_has_its_other_fields_with_their_slices() -> None:
    texto = "Preciso de pediatra, dia 20/03, 19h às 7h, R$ 1.500, chama no pv"
    leitura = lida(texto)
    assert (leitura.eh_oferta, leitura.vagas) == (True, ())
    (vaga,) = leitura.incompletas
    assert vaga.hospital is None
    assert vaga.data is not None
    assert vaga.periodo is not None
    assert vaga.hora_inicio is not None
    assert vaga.valor is not None
    assert (vaga.data.valor, vaga.periodo.valor, vaga.hora_inicio.valor) == (
        date(2026, 3, 20), Periodo.NOTURNO, time(19),
    )  # fmt: skip
    assert (vaga.especialidade.valor, vaga.valor.valor) == ("Pediatria", Decimal(1500))
    assert vaga.valor.trecho is not None
    assert texto[slice(*vaga.valor.trecho)] == "R$ 1.500"
    assert vaga.confianca == 0


def test_offer_without_a_day_has_its_place() -> None:
    (vaga,) = lida(
        "Hospital Fictício com vagas de anestesia, valor a combinar. Datas com Fulana 41 98900-0517"
    ).incompletas
    assert vaga.hospital is not None
    assert vaga.valor_tipo is not None
    assert vaga.contato_whatsapp is not None
    assert (vaga.hospital.valor, vaga.data, vaga.periodo) == ("Hospital Fictício", None, None)
    assert (vaga.valor_tipo.valor, vaga.contato_whatsapp.valor) == (ValorTipo.A_COMBINAR, "5541989000517")


def test_each_day_keeps_its_own_shift_and_price() -> None:
    found = lida("Vagas de ortopedia, me chama no privado\n20/03 SD R$ 1.500\n21/03 SN R$ 1.700").incompletas
    read = [
        (each.data and each.data.valor.day, each.periodo and each.periodo.valor.value, each.valor and each.valor.valor)
        for each in found
    ]
    assert read == [(20, "diurno", Decimal(1500)), (21, "noturno", Decimal(1700))]


@pytest.mark.parametrize(
    "texto",
    [
        "Plantão de pediatria no Hospital Fictício dia 20/03 SN R$ 1.500",  # complete
        "Plantão de pediatria no Hospital Fictício dia 01/03 SN R$ 1.500",  # past
        "Plantão de pediatria dia 01/03 SN R$ 1.500, chama no pv",  # past, and without a place
        "Plantão de pediatria dia 20/03 SN preenchido",
        "Disponível para plantão dia 20/03 noturno, pediatria",
        "bom dia grupo",
    ],
)
def test_complete_past_taken_or_other_message_is_not_incomplete(texto: str) -> None:
    assert lida(texto).incompletas == ()


@pytest.mark.parametrize(
    ("texto", "abertas"),
    [
        ("VAGA PREENCHIDA\nHospital Fictício\nPediatria\n20/03 SN\n21/03 SN", []),
        ("PREENCHIDA\nHospital Fictício\nPediatria\n20/03 SN\n\nABERTAS\n21/03 SN R$ 1.500", [21]),
        ("PREENCHIDAS:\n20/03 SN\nHospital Fictício\nPediatria R$ 1.500\n21/03 SN", [21]),
        ("Meu voo foi cancelado\nHospital Fictício\nPediatria R$ 1.500\n20/03 SN, quem assume?", [20]),
    ],
)
def test_headline_preenchida_covers_the_whole_message_unless_some_are_open(texto: str, abertas: list[int]) -> None:
    assert [each.data.valor.day for each in lida(texto).vagas] == abertas


def test_long_list_without_a_place_is_cut() -> None:
    days = "\n".join(f"{1 + n % 28:02d}/{4 + n // 28:02d} SN" for n in range(60))
    assert len(lida(f"Vagas de pediatria, R$ 1.500, chama no pv\n{days}").incompletas) == MAIS_INCOMPLETAS


def test_day_speciality_and_price_are_an_offer_without_hours() -> None:
    (vaga,) = lida("Plantão de anestesia no dia 25/03, R$ 3.000, chamar inbox").incompletas
    assert vaga.hospital is None
    assert vaga.data is not None
    assert (vaga.data.valor, vaga.especialidade.valor) == (date(2026, 3, 25), "Anestesiologia")
