"""A chip's trust and the permissions that follow from it, as pure computations."""

import pytest

from app.contexts.chips.confianca import (
    BONUS,
    LIMITS,
    MedidasDoChip,
    Nivel,
    demotion,
    factors,
    level,
    permissions,
    score,
)

BEST = MedidasDoChip(
    idade_dias=60,
    taxa_resposta=0.8,
    taxa_delivery=1.0,
    tipos_midia=4,
    conversas_bidirecionais=40,
    dias_sem_erro=30,
)


def test_new_chip_without_history_has_the_base_score() -> None:
    assert score(MedidasDoChip(), "repouso") == 30


def test_score_is_between_zero_and_a_hundred() -> None:
    assert score(BEST, "operacao") == 100
    assert score(MedidasDoChip(taxa_block=1.0, erros_24h=50), "repouso") == 0


@pytest.mark.parametrize(
    ("medidas", "worth"),
    [
        (MedidasDoChip(idade_dias=15), 7.5),
        (MedidasDoChip(taxa_resposta=0.25), 10),
        (MedidasDoChip(taxa_delivery=0.475), 7.5),
        (MedidasDoChip(taxa_block=0.05), -10),
        (MedidasDoChip(tipos_midia=2), 5),
        (MedidasDoChip(erros_24h=3), -6),
        (MedidasDoChip(conversas_bidirecionais=10), 7.5),
        (MedidasDoChip(dias_sem_erro=7), 10),
    ],
)
def test_each_measure_has_its_weight(medidas: MedidasDoChip, worth: float) -> None:
    parts = factors(medidas, "repouso")
    assert sum(parts.values()) == pytest.approx(30 + worth)


def test_rates_are_fractions_and_a_percentage_counts_as_one() -> None:
    assert score(MedidasDoChip(taxa_resposta=0.5), "repouso") == 50
    assert score(MedidasDoChip(taxa_resposta=50.0), "repouso") == 50


def test_every_phase_adds_its_bonus() -> None:
    assert {fase: score(MedidasDoChip(), fase) - 30 for fase in BONUS} == {
        "repouso": 0,
        "setup": 1,
        "primeiros_contatos": 3,
        "expansao": 6,
        "pre_operacao": 10,
        "teste_graduacao": 13,
        "operacao": 15,
    }


@pytest.mark.parametrize(
    ("trust", "nivel"),
    [
        (100, "verde"), (80, "verde"), (79, "amarelo"), (60, "amarelo"), (59, "laranja"), (40, "laranja"), (39, "vermelho"),
        (20, "vermelho"), (19, "critico"), (0, "critico"),
    ],
)  # fmt: skip
def test_levels_begin_at_their_scores(trust: int, nivel: str) -> None:
    assert level(trust) == nivel


def test_each_level_has_fewer_permissions_than_the_one_above() -> None:
    may = [permissions("julia", "operacao", nivel) for nivel in Nivel]
    assert [(each.limite_hora, each.limite_dia, each.delay_minimo_segundos) for each in may] == [
        (30, 100, 45), (24, 80, 60), (15, 50, 90), (6, 20, 120), (3, 10, 180)
    ]  # fmt: skip
    assert [(each.pode_prospectar, each.pode_followup, each.pode_responder) for each in may] == [
        (True, True, True), (True, True, True), (False, True, True), (False, False, True), (False, False, True)
    ]  # fmt: skip


@pytest.mark.parametrize("fase", list(LIMITS))
def test_last_level_never_exceeds_its_phase(fase: str) -> None:
    may, whole = permissions("julia", fase, Nivel.CRITICO), permissions("julia", fase, Nivel.VERDE)
    assert (may.limite_hora, may.limite_dia) <= (whole.limite_hora, whole.limite_dia)
    assert may.limite_hora <= 3
    assert may.limite_dia <= 10


@pytest.mark.parametrize("tipo", ["listener", "scraper"])
@pytest.mark.parametrize("nivel", list(Nivel))
def test_listener_gets_no_permission_at_any_level(tipo: str, nivel: Nivel) -> None:
    may = permissions(tipo, "operacao", nivel)
    assert (may.pode_prospectar, may.pode_followup, may.pode_responder) == (False, False, False)
    assert (may.limite_hora, may.limite_dia) == (0, 0)


def test_chip_with_low_trust_or_ten_failures_in_a_row_is_demoted() -> None:
    assert demotion(20, MedidasDoChip(seguidas=9)) is None
    assert demotion(19, MedidasDoChip()) == "trust 19 is below 20"
    assert demotion(95, MedidasDoChip(seguidas=10)) == "10 failures in a row"
