"""Decisions about a campaign: its audience, its text and its status changes."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.contexts.campanhas.model import (
    OUTSIDE,
    Acao,
    CampanhaRecusada,
    CampoDesconhecido,
    ChaveSolta,
    FiltroDesconhecido,
    FiltroRecusado,
    Filtros,
    Lugar,
    StatusDaCampanha,
    TextoAusente,
    depois,
    espera,
    filtros_de,
    recorte,
)
from app.contexts.campanhas.publico import Candidato, MotivoDaExclusao, escolher, motivo
from app.contexts.campanhas.texto import campos, preenchido
from app.contexts.mensagens.guardrails import RegrasDeEnvio
from batuta.guard.base import Hold
from batuta.schedule.window import Window

NOW = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
ZONE = ZoneInfo("America/Sao_Paulo")
WELL = Candidato(id="a", nome="Ana", especialidade="Pediatria")


def why(**changed: Any) -> MotivoDaExclusao | None:
    return motivo(replace(WELL, **changed), Filtros(), {"nome", "especialidade"}, NOW)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"removido": True}, MotivoDaExclusao.CADASTRO_REMOVIDO),
        ({"optout": True}, MotivoDaExclusao.OPTOUT),
        ({"telefone_invalido": True}, MotivoDaExclusao.TELEFONE_INVALIDO),
        ({"conversa_humana": True}, MotivoDaExclusao.CONVERSA_HUMANA),
        ({"ultima_entrada": NOW - 30 * MINUTE, "ja_respondeu": True}, MotivoDaExclusao.CONVERSA_AGORA),
        ({"esfriando": True}, MotivoDaExclusao.ESFRIANDO),
        ({"esfriando": True, "esfriando_ate": NOW + MINUTE}, MotivoDaExclusao.ESFRIANDO),
        ({"esfriando": True, "esfriando_ate": NOW - MINUTE}, None),
        ({"proximo_contato": NOW + MINUTE}, MotivoDaExclusao.PROXIMO_CONTATO),
        ({"contatos_7d": 4}, None),
        ({"contatos_7d": 5}, MotivoDaExclusao.LIMITE_CONTATOS),
        ({"outra_campanha_em": NOW - 3 * DAY}, MotivoDaExclusao.OUTRA_CAMPANHA),
        ({"outra_campanha_em": NOW - 3 * DAY - MINUTE}, None),
        ({"na_fila_de_outra": True}, MotivoDaExclusao.OUTRA_CAMPANHA),
        ({"ultima_saida": NOW - 7 * DAY}, MotivoDaExclusao.CONTATADO_HA_POUCO),
        ({"ultima_saida": NOW - 8 * DAY}, None),
        ({"ultima_entrada": NOW - 7 * DAY, "ja_respondeu": True}, MotivoDaExclusao.RESPONDEU_HA_POUCO),
        ({"ultima_entrada": NOW - 8 * DAY, "ja_respondeu": True}, None),
        ({"campanhas_recebidas": 2}, MotivoDaExclusao.NUNCA_RESPONDEU),
        ({"campanhas_recebidas": 1}, None),
        ({"campanhas_recebidas": 2, "ja_respondeu": True}, None),
        ({"pressao": 50}, None),
        ({"pressao": 51}, MotivoDaExclusao.PRESSAO_ALTA),
        ({"nome": " "}, MotivoDaExclusao.SEM_NOME),
        ({"especialidade": None}, MotivoDaExclusao.SEM_ESPECIALIDADE),
        ({"optout": True, "pressao": 99, "nome": None}, MotivoDaExclusao.OPTOUT),
    ],
)
def test_exclusion_has_the_first_reason_that_applies(changed: dict[str, Any], reason: MotivoDaExclusao | None) -> None:
    assert why(**changed) is reason


def test_never_contacted_doctors_come_first_then_the_oldest_then_the_id() -> None:
    people = [
        replace(WELL, id="d", ultima_saida=NOW - 8 * DAY),
        replace(WELL, id="c", ultima_saida=NOW - 9 * DAY),
        replace(WELL, id="b"),
        replace(WELL, id="a"),
    ]
    for order in (people, people[::-1]):
        chosen = escolher(order, Filtros(quantidade_alvo=3), (), campanha_id=1, ja_escolhidos=0, now=NOW)
        assert [each.cliente_id for each in chosen] == ["a", "b", "c", "d"]
        assert [each.motivo for each in chosen] == [None, None, None, MotivoDaExclusao.ACIMA_DO_LIMITE]


def test_random_order_is_reproducible_and_differs_between_campaigns() -> None:
    people = [replace(WELL, id=str(n)) for n in range(50)]
    drawn = [
        [
            each.cliente_id
            for each in escolher(order, Filtros(aleatorio=True), (), campanha_id=id, ja_escolhidos=0, now=NOW)
        ]
        for id, order in ((1, people), (1, people[::-1]), (2, people))
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_excluded_doctor_takes_no_place_and_earlier_choices_count() -> None:
    people = [replace(WELL, id="a", optout=True), replace(WELL, id="b"), replace(WELL, id="c")]
    chosen = escolher(people, Filtros(quantidade_alvo=2), (), campanha_id=1, ja_escolhidos=1, now=NOW)
    assert [each.motivo for each in chosen] == [MotivoDaExclusao.OPTOUT, None, MotivoDaExclusao.ACIMA_DO_LIMITE]


@pytest.mark.parametrize("corpo", ["Olá, {nome} ({especialidade})", "Olá, {{nome}} ({{ Especialidade }})"])
def test_placeholder_with_one_or_two_braces_is_filled(corpo: str) -> None:
    assert preenchido(corpo, {"nome": " Ana\n", "especialidade": "Pediatria"}) == "Olá, Ana (Pediatria)"
    assert campos(corpo) == {"nome", "especialidade"}


def test_value_that_looks_like_a_placeholder_is_not_filled_again() -> None:
    assert preenchido("Olá, {nome}", {"nome": "{especialidade}", "especialidade": "x"}) == "Olá, {especialidade}"


def test_doctor_without_a_required_field_gets_no_text() -> None:
    assert preenchido("Olá, {nome}", {"nome": None, "especialidade": "x"}) is None
    assert preenchido("Olá", {"nome": None, "especialidade": None}) == "Olá"


@pytest.mark.parametrize(
    ("corpo", "error"),
    [
        ("Olá, {hospital}", CampoDesconhecido),
        ("Olá, {{valor}}", CampoDesconhecido),
        ("Olá, {}", CampoDesconhecido),
        ("Olá, {nome", ChaveSolta),
        ("Olá, {{{nome}}}", ChaveSolta),
        ("  ", TextoAusente),
        (None, TextoAusente),
    ],
)
def test_text_with_an_unfillable_placeholder_is_refused(corpo: str | None, error: type[CampanhaRecusada]) -> None:
    with pytest.raises(error):
        campos(corpo)


def test_every_specialty_and_region_counts_with_and_without_accents() -> None:
    filtros = filtros_de({"especialidades": ["pediatria", "CLINICA MEDICA"], "regioes": ["sp", "Niteroi"]})
    present = [
        Lugar("Pediatria", "São Paulo", "SP"),
        Lugar("Clínica médica", "Niterói", "RJ"),
        Lugar("Ortopedia", "Recife", "PE"),
    ]
    cut = recorte(filtros, present)
    assert (cut.especialidades, cut.cidades, cut.estados) == (("Clínica médica", "Pediatria"), ("Niterói",), ("SP",))
    nothing = recorte(Filtros(), present)
    assert (nothing.especialidades, nothing.cidades, nothing.estados) == (None, None, None)


@pytest.mark.parametrize(
    ("valor", "error"),
    [
        ({"especialidade": "Pediatria"}, FiltroDesconhecido),
        ({"especialidades": "Pediatria"}, FiltroRecusado),
        ({"regioes": [1]}, FiltroRecusado),
        ({"regioes": ["São\x00Paulo"]}, FiltroRecusado),
        ({"chips_excluidos": ["\ud800"]}, FiltroRecusado),
        ({"quantidade_alvo": 0}, FiltroRecusado),
        ({"quantidade_alvo": True}, FiltroRecusado),
        ({"quantidade_alvo": 10_001}, FiltroRecusado),
        ({"modo_selecao": "melhor"}, FiltroRecusado),
        ({"excluir_opt_out": False}, FiltroRecusado),
        ({"clientes_especificos": ["ana"]}, FiltroRecusado),
        ([], FiltroRecusado),
    ],
)
def test_filter_without_effect_is_refused(valor: Any, error: type[CampanhaRecusada]) -> None:
    with pytest.raises(error):
        filtros_de(valor)


@pytest.mark.parametrize(
    ("acao", "status", "began", "after"),
    [
        (Acao.AGENDAR, StatusDaCampanha.RASCUNHO, False, StatusDaCampanha.AGENDADA),
        (Acao.AGENDAR, StatusDaCampanha.AGENDADA, False, StatusDaCampanha.AGENDADA),
        (Acao.AGENDAR, StatusDaCampanha.ATIVA, True, None),
        (Acao.PAUSAR, StatusDaCampanha.AGENDADA, False, StatusDaCampanha.PAUSADA),
        (Acao.PAUSAR, StatusDaCampanha.ATIVA, True, StatusDaCampanha.PAUSADA),
        (Acao.PAUSAR, StatusDaCampanha.RASCUNHO, False, None),
        (Acao.RETOMAR, StatusDaCampanha.PAUSADA, False, StatusDaCampanha.AGENDADA),
        (Acao.RETOMAR, StatusDaCampanha.PAUSADA, True, StatusDaCampanha.ATIVA),
        (Acao.RETOMAR, StatusDaCampanha.ATIVA, True, None),
        (Acao.CANCELAR, StatusDaCampanha.PAUSADA, True, StatusDaCampanha.CANCELADA),
        (Acao.CANCELAR, StatusDaCampanha.CONCLUIDA, True, None),
        (Acao.CANCELAR, StatusDaCampanha.CANCELADA, True, None),
    ],
)
def test_status_after_each_action(
    acao: Acao, status: StatusDaCampanha, began: bool, after: StatusDaCampanha | None
) -> None:
    assert depois(acao, status, began=began) is after


def test_each_of_the_four_pauses_and_the_window_hold_the_start() -> None:
    free = RegrasDeEnvio(zone=ZONE, is_production=True, is_simulated=False)
    assert espera(free, NOW) is None
    hold = Hold(NOW + MINUTE, "held")
    for held in (replace(free, paused=hold), replace(free, campaigns=hold), replace(free, safe_mode=hold)):
        assert espera(held, NOW) == "held"
    assert espera(replace(free, window=Window(opens=time(14))), NOW) == OUTSIDE()
    assert espera(replace(free, window=Window(opens=time(10))), NOW) is None
