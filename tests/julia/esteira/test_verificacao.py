"""A value in a language model's answer is accepted only if the group message contains the value."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from app.contexts.esteira.verificacao import SCHEMA, verificada
from app.contexts.leitura_grupos.api import Leitura, Vocabulario

HOJE = date(2026, 3, 10)  # a Tuesday
TEXTO = "Cobertura no Hospital Inventado (Santos) sáb 14/03, noite 19 às 7, paga 1.800, tratar com Fulana 13 98100-0001"
VAGA: dict[str, Any] = {
    "hospital": "Hospital Inventado", "cidade": "Santos", "uf": None, "especialidade": "pediatra", "data": "2026-03-14",
    "data_texto": "sáb 14/03", "periodo": "noturno", "hora_inicio": "19:00", "hora_fim": "07:00", "valor": 1800,
    "valor_texto": "1.800", "contato_nome": "Fulana", "contato_whatsapp": "13981000001",
}  # fmt: skip


def read(texto: str = TEXTO, **changes: Any) -> Leitura:
    found = verificada(
        {"eh_oferta": True, "confianca": 0.9, "vagas": [{**VAGA, **changes}]}, texto, HOJE, Vocabulario.padrao()
    )
    assert found is not None
    return found


def test_values_found_in_the_message_are_kept_with_their_slice() -> None:
    (vaga,) = read().vagas
    assert (vaga.hospital.valor, vaga.especialidade.valor, vaga.data.valor) == (
        "Hospital Inventado",
        "Pediatria",
        date(2026, 3, 14),
    )
    assert (vaga.valor and vaga.valor.valor, vaga.contato_whatsapp and vaga.contato_whatsapp.valor) == (
        Decimal(1800),
        "5513981000001",
    )
    assert vaga.hospital.trecho is not None
    assert TEXTO[slice(*vaga.hospital.trecho)] == "Hospital Inventado"
    assert vaga.data.trecho is not None
    assert TEXTO[slice(*vaga.data.trecho)] == "sáb 14/03"


@pytest.mark.parametrize(
    "changes",
    [
        {"hospital": "Hospital Forjado"},
        {"hospital": "inbox"},
        {"hospital": ""},
        {"hospital": None},
        {"data": "2026-03-15"},
        {"data": "2026-04-14"},
        {"data": "14/03"},
        {"data_texto": "dia 14"},
        {"data_texto": ""},
        {"data": "2026-03-09"},
        {"periodo": "sempre"},
        {"periodo": None},
    ],
)
def test_vaga_with_an_invented_place_day_or_period_is_dropped(changes: dict[str, Any]) -> None:
    assert read(**changes).vagas == ()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"valor": 99999}, "valor"),
        ({"valor": 1900}, "valor"),
        ({"valor_texto": "1.900"}, "valor"),
        ({"valor": True}, "valor"),
        ({"contato_whatsapp": "5511900000099"}, "contato_whatsapp"),
        ({"contato_whatsapp": "0001"}, "contato_whatsapp"),
        ({"contato_nome": "Outra Pessoa"}, "contato_nome"),
        ({"cidade": "Recife"}, "cidade"),
        ({"hora_inicio": "22:00"}, "hora_inicio"),
        ({"hora_fim": "tarde"}, "hora_fim"),
    ],
)
def test_other_invented_field_is_left_out(changes: dict[str, Any], field: str) -> None:
    (vaga,) = read(**changes).vagas
    assert getattr(vaga, field) is None


NUMBERS = "Cobertura no Hospital Inventado dia 11/12/2026 das 19h às 07h por R$ 1.500, tratar com Fulana 13 98100-0001"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"contato_whatsapp": "11122026190"}, "contato_whatsapp"),  # these are digits of the day and the hour
        ({"contato_whatsapp": "1981000001"}, "contato_whatsapp"),
        ({"contato_whatsapp": "1398100000"}, "contato_whatsapp"),
        ({"hora_inicio": "19:37"}, "hora_inicio"),
        ({"hora_inicio": "11:00"}, "hora_inicio"),  # this is the number of the day
        ({"hora_fim": "07:00:59"}, "hora_fim"),
        ({"hora_fim": "13:00"}, "hora_fim"),  # this is the area code of the phone number
        ({"valor": 2026, "valor_texto": "2026"}, "valor"),
        ({"valor": 2026, "valor_texto": "11/12/2026"}, "valor"),
        ({"valor": 500, "valor_texto": "500"}, "valor"),
    ],
)
def test_digits_count_as_telephone_hour_or_price_only_when_written_so(changes: dict[str, Any], field: str) -> None:
    answer = {"data": "2026-12-11", "data_texto": "11/12/2026", "valor": 1500, "valor_texto": "R$ 1.500"}
    (true,) = read(NUMBERS, **answer).vagas
    assert getattr(true, field) is not None
    (vaga,) = read(NUMBERS, **{**answer, **changes}).vagas
    assert getattr(vaga, field) is None


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("hoje", "2026-03-10"),
        ("amanhã", "2026-03-11"),
        ("sábado", "2026-03-14"),
        ("dia 20", "2026-03-20"),
        ("20 de março", "2026-03-20"),
        ("18 a 22/03", "2026-03-20"),
    ],
)
def test_day_that_follows_from_its_words_is_kept(words: str, day: str) -> None:
    assert len(read(f"Cobertura no Hospital Inventado {words}", data=day, data_texto=words).vagas) == 1


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("hoje", "2026-03-11"),
        ("amanhã", "2026-03-20"),
        ("sábado", "2026-03-13"),
        ("sábado", "2026-04-18"),
        ("20 de março", "2026-04-20"),
        ("18 a 22/03", "2026-03-25"),
    ],
)
def test_day_that_does_not_follow_from_its_words_is_dropped(words: str, day: str) -> None:
    assert read(f"Cobertura no Hospital Inventado {words}", data=day, data_texto=words).vagas == ()


@pytest.mark.parametrize(
    ("words", "value"), [("2k", 2000), ("2,5k", 2500), ("2 mil", 2000), ("R$ 1.800,00", 1800), ("1800", 1800)]
)
def test_prices_are_read_as_people_write_them(words: str, value: int) -> None:
    (vaga,) = read(f"Cobertura no Hospital Inventado sáb 14/03 por {words}", valor=value, valor_texto=words).vagas
    assert vaga.valor is not None
    assert vaga.valor.valor == value


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"eh_oferta": "sim"},
        {"eh_oferta": True, "confianca": 1},
        {"eh_oferta": True, "confianca": "x", "vagas": []},
        "texto",
    ],
)
def test_malformed_answer_is_none(answer: Any) -> None:
    assert verificada(answer, TEXTO, HOJE, Vocabulario.padrao()) is None


def test_repeated_vaga_counts_once_and_malformed_ones_are_left_out() -> None:
    for sure in (7, 10**400):
        answer: Any = {"eh_oferta": True, "confianca": sure, "vagas": [VAGA, VAGA, "x", None, {}]}
        found = verificada(answer, TEXTO, HOJE, Vocabulario.padrao())
        assert found is not None
        assert (len(found.vagas), found.confianca) == (1, 1.0)


def test_schema_allows_no_additional_property() -> None:
    vaga = SCHEMA["properties"]["vagas"]["items"]
    assert SCHEMA["additionalProperties"] is False
    assert vaga["additionalProperties"] is False
    assert set(vaga["required"]) == set(vaga["properties"])
