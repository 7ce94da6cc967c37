"""Health of the chips: the findings, and how much each lowers the score."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.contexts.chips.saude import Saude, document, judge
from batuta.health.finding import Severity

AT = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)


def chip(**facts: Any) -> Saude:
    known = {
        "telefone": "0001", "status": "active", "trust": 90, "level": "verde", "connected": True, "circuit": "closed",
        "circuit_failures": 0, "rests_until": None, "may_prospect": True, "may_follow_up": True, "may_answer": True,
        "sent_today": 0, "errors": 0,
    }  # fmt: skip
    return Saude(**{**known, **facts})


def judge_all(*chips: Saude, is_configured: bool = True) -> tuple[list[tuple[str, Severity]], int]:
    report = judge(chips, is_configured=is_configured)
    return [(each.cause, each.severity) for each in report.findings], report.lost


def test_unconfigured_chips_have_no_findings() -> None:
    assert judge_all(is_configured=False) == ([], 0)
    assert document([], is_configured=False, at=AT)["status"] == "not_configured"


def test_no_active_and_no_connected_chip_are_critical() -> None:
    assert judge_all() == ([("chips.none_active", Severity.CRITICAL)], 20)
    assert judge_all(chip(status="warming"), chip(status="degraded")) == (
        [("chips.none_active", Severity.CRITICAL)],
        20,
    )
    assert judge_all(chip(connected=False), chip(status="warming")) == (
        [("chips.none_connected", Severity.CRITICAL)],
        20,
    )


def test_gateway_outage_explains_a_disconnected_line() -> None:
    (finding,) = judge([chip(connected=False)], is_configured=True).findings
    assert finding.because == ("connectivity.evolution",)


@pytest.mark.parametrize(("connected", "findings", "lost"), [(10, 0, 0), (8, 0, 0), (7, 0, 4), (5, 0, 4), (4, 1, 12)])
def test_cost_grows_as_fewer_chips_are_connected(connected: int, findings: int, lost: int) -> None:
    found, cost = judge_all(*(chip(connected=n < connected) for n in range(10)))
    assert (len(found), cost) == (findings, lost)
    assert {severity for _, severity in found} <= {Severity.WARNING}


@pytest.mark.parametrize(
    ("low", "warned", "lost"), [(0, False, 0), (3, False, 0), (4, True, 0), (6, True, 4), (8, True, 8)]
)
def test_many_chips_with_low_trust_are_a_warning(low: int, warned: bool, lost: int) -> None:
    found, cost = judge_all(*(chip(trust=39 if n < low else 60) for n in range(10)))
    assert found == ([("chips.low_trust", Severity.WARNING)] if warned else [])
    assert cost == lost


def test_page_names_every_figure() -> None:
    pool = [
        chip(sent_today=3, errors=1),
        chip(trust=65, level="amarelo", connected=False),
        chip(trust=30, level="vermelho", may_prospect=False, may_follow_up=False),
        chip(circuit="open", circuit_failures=3),
        chip(rests_until=AT),
    ]
    found = document(pool, is_configured=True, at=AT)
    assert set(found) == {"status", "message", "summary", "capacidade", "chips", "timestamp"}
    assert found["status"] == "healthy"
    assert found["summary"] == {
        "total": 5, "disponiveis": 2, "saudaveis": 3, "atencao": 1, "criticos": 1, "circuit_aberto": 1, "desconectados": 1,
        "trust_medio": 73.0, "banidos": 0,
    }  # fmt: skip
    assert found["capacidade"] == {"prospeccao": 1, "followup": 1, "resposta": 2}
    assert found["chips"][0] == {
        "telefone": "0001", "trust_score": 90, "trust_level": "verde", "health": "saudavel", "circuit_state": "closed",
        "circuit_falhas": 0, "evolution_connected": True, "pode_prospectar": True, "pode_followup": True,
        "pode_responder": True, "msgs_hoje": 3, "erros_24h": 1, "is_available": True,
    }  # fmt: skip
    assert [each["is_available"] for each in found["chips"]] == [True, False, True, False, False]


@pytest.mark.parametrize(
    ("pool", "status"),
    [
        ([], "critical"),
        ([chip(status="paused")], "critical"),
        ([chip(), chip(trust=70), chip(trust=70), chip(trust=70)], "degraded"),
        ([chip(), chip(circuit="open"), chip(circuit="open")], "degraded"),
        ([chip(), chip(circuit="open")], "healthy"),
    ],
)
def test_status_is_the_worst_that_applies(pool: list[Saude], status: str) -> None:
    assert document(pool, is_configured=True, at=AT)["status"] == status
