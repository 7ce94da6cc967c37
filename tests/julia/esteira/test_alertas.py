"""The computation of the groups pipeline's alerts from its figures."""

from datetime import UTC, datetime, timedelta

import pytest

from app.contexts.esteira.metricas import percentil
from app.contexts.esteira.saude import Fluxo, MedidasDosGrupos, Sinais, julgar, status_de
from batuta.health.finding import Severity

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
WELL = MedidasDosGrupos(now=NOW)


def severities(sinais: Sinais) -> dict[str, Severity]:
    return {each.cause.removeprefix("grupos."): each.severity for each in julgar(sinais)}


def test_quiet_pipeline_raises_no_alert() -> None:
    assert severities(Sinais(medidas=WELL)) == {}


@pytest.mark.parametrize(
    ("stuck", "status"), [(0, "healthy"), (100, "healthy"), (101, "degraded"), (500, "degraded"), (501, "unhealthy")]
)
def test_number_of_stuck_rows_decides_the_status(stuck: int, status: str) -> None:
    assert status_de(MedidasDosGrupos(now=NOW, travados=stuck)) == status


def test_dead_and_old_rows_raise_alerts_beyond_their_limits() -> None:
    assert severities(Sinais(medidas=MedidasDosGrupos(now=NOW, erros=10, antigos=5))) == {}
    assert severities(Sinais(medidas=MedidasDosGrupos(now=NOW, erros=11, antigos=6))) == {
        "fila_travada": Severity.ERROR, "itens_pendentes_antigos": Severity.WARNING,
    }  # fmt: skip


def test_no_vacancy_from_many_offers_is_critical_and_from_few_is_ignored() -> None:
    assert severities(Sinais(medidas=WELL, seco=Fluxo(mensagens=90, passaram=20))) == {
        "conversao_zero": Severity.CRITICAL
    }
    assert severities(Sinais(medidas=WELL, seco=Fluxo(mensagens=90, passaram=19))) == {}
    assert severities(Sinais(medidas=WELL, seco=Fluxo(mensagens=90, passaram=20, vagas=1, aproveitadas=1))) == {}


def test_one_value_everywhere_is_a_misreading_and_at_one_hospital_its_price() -> None:
    everywhere = Sinais(medidas=WELL, valor=202.0, valor_vezes=60, valor_todas=100, valor_lugares=9)
    assert severities(everywhere) == {"valor_repetido": Severity.WARNING}
    assert severities(Sinais(medidas=WELL, valor=1500.0, valor_vezes=60, valor_todas=100, valor_lugares=1)) == {}
    assert severities(Sinais(medidas=WELL, valor=1500.0, valor_vezes=40, valor_todas=100, valor_lugares=9)) == {}


def test_stage_whose_discards_deviate_from_the_week_before_is_named() -> None:
    week = Fluxo(mensagens=1000, passaram=400, recusadas=40, vagas=900, vagas_descartadas=90)
    usual = Fluxo(mensagens=100, passaram=45, recusadas=5, vagas=90, vagas_descartadas=10)
    assert severities(Sinais(medidas=WELL, hoje=usual, semana=week)) == {}
    broken = Fluxo(mensagens=100, passaram=90, recusadas=85, vagas=50, vagas_descartadas=50)
    assert set(severities(Sinais(medidas=WELL, hoje=broken, semana=week))) == {
        "descarte_desvia.heuristica", "descarte_desvia.extracao", "descarte_desvia.importacao",
    }  # fmt: skip
    assert severities(Sinais(medidas=WELL, hoje=Fluxo(mensagens=10, passaram=10), semana=week)) == {}


def test_expensive_day_and_lost_canary_raise_alerts() -> None:
    since = NOW - timedelta(minutes=31)
    lost = Sinais(medidas=WELL, custo_hoje=1.01, canario_em=since, canario_chegou=False)
    assert severities(lost) == {"custo_alto": Severity.WARNING, "canario": Severity.CRITICAL}
    assert severities(Sinais(medidas=WELL, canario_em=NOW, canario_chegou=False)) == {}


def test_percentile_of_an_empty_list_is_none() -> None:
    assert (percentil([], 0.5), percentil([3.0], 0.99), percentil([1.0, 2.0, 3.0, 4.0], 0.5)) == (None, 3.0, 3.0)
