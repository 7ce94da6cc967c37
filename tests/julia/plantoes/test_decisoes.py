"""Which changes to a vacancy are made, repeated or refused, and which doctors have the speciality that it requires."""

from datetime import date, timedelta
from typing import Any

import pytest

from app.contexts.leitura_grupos.api import Periodo
from app.contexts.plantoes.candidatos import eh_a_mesma, eh_parte
from app.contexts.plantoes.model import (
    CampoDaVagaRecusado,
    Decisao,
    Feita,
    Impedida,
    MotivoDaCancelada,
    NovaVaga,
    Ocupada,
    Repetida,
    SituacaoDaVaga,
    VagaNaoPode,
    VagaOcupada,
    decidir_anuncio,
    decidir_cancelamento,
    decidir_liberacao,
    decidir_realizada,
    decidir_reserva,
    exigir,
)
from app.contexts.plantoes.texto import oferta
from app.contexts.vagas.api import PROCURA, StatusDaVaga

TODAY = date(2026, 3, 11)
ANA, BIA = "ana", "bia"


def em(status: str, *, tem: str | None = None, oferecida: bool = False) -> SituacaoDaVaga:
    return SituacaoDaVaga(id="v", status=StatusDaVaga(status), cliente_id=tem, oferecida=oferecida)


def kind(decisao: Decisao) -> str:
    return decisao.value if isinstance(decisao, StatusDaVaga) else type(decisao).__name__


def test_only_an_open_vacancy_is_reserved_and_other_doctors_learn_that_it_is_taken() -> None:
    found = {each.value: kind(decidir_reserva(em(each, tem=BIA), quer=ANA)) for each in StatusDaVaga}
    assert found == {
        "aberta": "reservada",
        "anunciada": "reservada",
        "reservada": "Ocupada",
        "aguardando_confirmacao": "Ocupada",
        "pendente_confirmacao": "Ocupada",
        "confirmada": "Ocupada",
        "realizada": "Ocupada",
        "cancelada": "Impedida",
        "fechada": "Ocupada",
    }
    assert kind(decidir_reserva(em("reservada", tem=ANA), quer=ANA)) == "Repetida"


def test_a_released_vacancy_is_announced_again_only_if_it_was_before() -> None:
    assert kind(decidir_liberacao(em("reservada"))) == "aberta"
    assert kind(decidir_liberacao(em("reservada", oferecida=True))) == "anunciada"
    assert {kind(decidir_liberacao(em(each))) for each in PROCURA} == {"Repetida"}
    assert kind(decidir_liberacao(em("realizada"))) == "Impedida"


def test_a_shift_took_place_only_after_it_was_asked_about_and_twice_is_once() -> None:
    found = {each.value: kind(decidir_realizada(em(each))) for each in StatusDaVaga}
    assert {name for name, each in found.items() if each == "realizada"} == {"pendente_confirmacao"}
    assert {name for name, each in found.items() if each == "Repetida"} == {"realizada"}


@pytest.mark.parametrize(
    ("motivo", "allowed"),
    [
        (MotivoDaCancelada.NAO_COMPARECEU, {"pendente_confirmacao"}),
        (MotivoDaCancelada.MEDICO_DESISTIU, {"pendente_confirmacao"}),
        (MotivoDaCancelada.CANCELADA_PELO_HOSPITAL, {"pendente_confirmacao", "aberta", "anunciada"}),
        (MotivoDaCancelada.ERRO_DE_CADASTRO, {"pendente_confirmacao", "aberta", "anunciada"}),
        (MotivoDaCancelada.OUTRO, {"pendente_confirmacao", "aberta", "anunciada"}),
    ],
)
def test_a_reserved_vacancy_is_not_cancelled_and_a_no_show_needs_a_doctor(
    motivo: MotivoDaCancelada, allowed: set[str]
) -> None:
    found = {each.value: kind(decidir_cancelamento(em(each), motivo=motivo)) for each in StatusDaVaga}
    assert {name for name, each in found.items() if each == "cancelada"} == allowed
    assert {name for name, each in found.items() if each == "Repetida"} == {"cancelada"}


def test_an_announcement_needs_an_open_vacancy() -> None:
    assert {kind(decidir_anuncio(em(each))) for each in PROCURA} == {"anunciada"}
    assert kind(decidir_anuncio(em("reservada"))) == "Ocupada"
    assert kind(decidir_anuncio(em("cancelada"))) == "Impedida"


def test_a_refusal_is_an_error_only_where_a_caller_asks_for_one() -> None:
    made, again = Feita("v", StatusDaVaga.RESERVADA), Repetida("v", StatusDaVaga.RESERVADA)
    assert (exigir(made), exigir(again)) == (made, again)
    with pytest.raises(VagaOcupada, match="already taken"):
        exigir(Ocupada("v", StatusDaVaga.RESERVADA))
    with pytest.raises(VagaNaoPode, match="needs reservada"):
        exigir(Impedida("v", StatusDaVaga.ABERTA, (StatusDaVaga.RESERVADA,)))


@pytest.mark.parametrize(
    ("wrong", "campo"),
    [
        ({"data": TODAY - timedelta(days=1)}, "data"),
        ({"data": TODAY + timedelta(days=400)}, "data"),
        ({"periodo": None}, "periodo"),
        ({"hora_inicio": "19:00"}, "hora_fim"),
        ({"hora_fim": "07:00"}, "hora_inicio"),
        ({"hora_inicio": "7h", "hora_fim": "19:00"}, "hora_inicio"),
        ({"hora_inicio": "19:00", "hora_fim": "24:30"}, "hora_fim"),
        ({"valor": 15}, "valor"),
        ({"valor": 1_000_000}, "valor"),
        ({"uf": "XX"}, "uf"),
    ],
)
def test_implausible_field_is_named_in_the_error(wrong: dict[str, Any], campo: str) -> None:
    nova: dict[str, Any] = {"hospital": "H", "especialidade": "E", "data": TODAY, "periodo": Periodo.NOTURNO}
    with pytest.raises(CampoDaVagaRecusado) as refused:
        NovaVaga(**{**nova, **wrong}).recusar(TODAY)
    assert refused.value.facts["campo"] == campo


@pytest.mark.parametrize("written", ["Pediatria", "PEDIATRIA", "pediatria / UTI", "Clínica Médica e Pediatria"])
def test_a_doctor_has_the_speciality_however_it_is_written(written: str) -> None:
    assert eh_a_mesma(written, {"pediatria", "ped"})


def test_a_part_of_a_speciality_is_not_the_same() -> None:
    assert not eh_a_mesma("Cardiologia Pediátrica", {"cardiologia"})
    assert eh_parte("Cardiologia Pediátrica", {"cardiologia"})
    assert eh_parte("Cardiologia", {"cardiologia pediatrica"})
    assert not eh_parte("Cirurgia Geral", {"cirurgia vascular"})
    assert not eh_parte("Clínica Médica", {"clinica cirurgica"})


def test_an_offer_states_the_facts_and_that_julia_is_not_a_person() -> None:
    vaga = {
        "hospital": "Hospital Fictício", "cidade": "Santos", "uf": "SP", "especialidade": "Pediatria",
        "data": date(2026, 3, 20), "periodo": "Noturno", "hora_inicio": "19:00", "hora_fim": "07:00", "valor": 1500,
        "valor_tipo": "fixo",
    }  # fmt: skip
    text = oferta("Fulana Teste", vaga)
    assert "Oi, Fulana! Aqui é a Julia, assistente virtual" in text
    for line in (
        "• Hospital: Hospital Fictício (Santos/SP)",
        "• Especialidade: Pediatria",
        "• Data: sexta-feira, 20/03/2026",
        "• Período: Noturno, das 19:00 às 07:00",
        "• Valor: R$ 1.500,00",
        "responda PARAR",
    ):
        assert line in text
    bare = {**vaga, "cidade": None, "uf": None, "periodo": None, "hora_fim": None, "valor": None, "valor_tipo": None}
    less = oferta("{nome}", bare)
    assert "Oi! Aqui" in less
    assert "• Período: a partir das 19:00" in less
    assert "• Valor: a combinar" in less
    assert "{" not in less
    assert "None" not in less
