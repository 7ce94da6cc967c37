"""A weighted score decides whether an extracted vacancy is imported, reviewed or discarded."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from app.contexts.vagas.importacao import Candidata, DecisaoDaImportacao, julgar, score_de
from app.contexts.vagas.limiares import Limiares, alcanca

HOJE = date(2026, 3, 10)
BOA = Candidata(
    hospital=1.0,
    especialidade=1.0,
    data=HOJE + timedelta(days=3),
    confianca_data=None,
    periodo=True,
    valor=1500.0,
    valor_tipo="fixo",
)


@pytest.mark.parametrize(
    ("changes", "score"),
    [
        ({}, 0.95), ({"valor_tipo": "a_combinar", "valor": None}, 0.935), ({"periodo": False}, 0.90), ({"hospital": 0.7}, 0.86),
        ({"hospital": 0.7, "especialidade": 0.7}, 0.77), ({"valor_tipo": "faixa"}, 0.945), ({"valor": 50.0}, 0.915),
    ],
)  # fmt: skip
def test_reference_scores(changes: dict[str, Any], score: float) -> None:
    assert score_de(replace(BOA, **changes)) == pytest.approx(score)


@pytest.mark.parametrize(
    ("changes", "decisao", "motivo"),
    [
        ({}, DecisaoDaImportacao.IMPORTAR, None),
        ({"hospital": 0.7, "especialidade": 0.7}, DecisaoDaImportacao.REVISAR, "score_baixo"),
        ({"hospital": 0.5, "confianca_data": 1.0}, DecisaoDaImportacao.REVISAR, "hospital_incerto"),
        ({"leitura": 0.94}, DecisaoDaImportacao.REVISAR, "leitura_incerta"),
        ({"leitura": 0.95}, DecisaoDaImportacao.IMPORTAR, None),
        ({"hospital": 0.2, "especialidade": 0.5}, DecisaoDaImportacao.DESCARTAR, "score_insuficiente"),
        ({"hospital": None}, DecisaoDaImportacao.REVISAR, "match_incompleto:hospital"),
        ({"data": None}, DecisaoDaImportacao.REVISAR, "match_incompleto:data"),
        ({"data": HOJE}, DecisaoDaImportacao.IMPORTAR, None),
        ({"data": HOJE - timedelta(days=1)}, DecisaoDaImportacao.DESCARTAR, "data_passada"),
        ({"data": HOJE - timedelta(days=1), "hospital": None}, DecisaoDaImportacao.DESCARTAR, "data_passada"),
        ({"bloqueado": True}, DecisaoDaImportacao.DESCARTAR, "hospital_bloqueado"),
        ({"data": HOJE + timedelta(days=91)}, DecisaoDaImportacao.IMPORTAR, "data_distante"),
    ],
)  # fmt: skip
def test_score_and_fields_decide_import_review_or_discard(
    changes: dict[str, Any], decisao: DecisaoDaImportacao, motivo: str | None
) -> None:
    parecer = julgar(replace(BOA, **changes), HOJE, Limiares())
    assert (parecer.decisao, parecer.motivo) == (decisao, motivo)


def test_limits_are_settings() -> None:
    strict = Limiares(importacao=0.96)
    assert julgar(BOA, HOJE, strict).decisao is DecisaoDaImportacao.REVISAR


def test_limit_is_reached_despite_floating_point_rounding() -> None:
    assert alcanca(0.1 + 0.2, 0.3)
    assert alcanca(0.3 + 0.25 + 0.25, 0.8)
    assert not alcanca(0.79, 0.8)
