"""The function that judges the demonstration detects every broken rule about messages and vacancies."""

from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from scripts.day_judge import Evidence, broken_promises
from simulador.evolution.vida import Receipt

DAY = datetime(2026, 11, 24, tzinfo=ZoneInfo("America/Sao_Paulo"))
OUT, OTHER = "5511900000005", "5511900000006"
RESERVED = {"vaga_id": "v", "ordem": 1, "de": "aberta", "para": "reservada"}


def receipt(id: str, number: str, hour: int, minute: int) -> Receipt:
    at = DAY + timedelta(hours=hour, minutes=minute)
    return Receipt(
        n=1, at=at.isoformat(), id=id, instance="julia-sim", number=number, jid=number, text="-", answer="answered"
    )


def message(id: str, tipo: str, status: str = "enviada") -> dict[str, object]:
    return {"id": id, "tipo": tipo, "status": status, "envio_estado": None, "provider_message_id": id}


@pytest.fixture
def kept() -> Evidence:
    """The evidence of a day with one offer in the morning, on which no rule about messages or vacancies was broken."""
    return Evidence(
        DAY, DAY, [receipt("a", OUT, 8, 34)], OUT, [], [message("a", "oferta")], [{"id": "v", "status": "reservada"}],
        [RESERVED], [],
    )  # fmt: skip


def test_kept_promises_yield_nothing(kept: Evidence) -> None:
    assert broken_promises(kept) == []


@pytest.mark.parametrize(
    ("sent", "promise"),
    [
        (receipt("b", OUT, 9, 40), "opted out"),
        (receipt("b", OUT, 14, 0), "opted out"),
        (receipt("b", OTHER, 7, 59), "out of hours"),
        (receipt("b", OTHER, 20, 0), "out of hours"),
        (receipt("b", OTHER, 15, 10), "during the pause"),
        (receipt("a", OTHER, 10, 0), "sent 2 times"),
        (receipt("c", OTHER, 10, 0), "has no row"),
    ],
)
def test_forbidden_message_is_a_broken_promise(kept: Evidence, sent: Receipt, promise: str) -> None:
    rows = [*kept.messages, *([message("b", "oferta")] if sent.id == "b" else [])]
    wrong = broken_promises(replace(kept, receipts=[*kept.receipts, sent], messages=rows))
    assert len(wrong) == 1
    assert promise in wrong[0]


def test_reply_in_the_minute_of_the_opt_out_is_a_broken_promise(kept: Evidence) -> None:
    rows = [*kept.messages, message("b", "resposta")]
    (wrong,) = broken_promises(replace(kept, receipts=[*kept.receipts, receipt("b", OUT, 9, 40)], messages=rows))
    assert "resposta was sent at 09:40 to a person who opted out" in wrong


def test_message_in_doubt_and_one_that_was_not_sent_are_broken_promises(kept: Evidence) -> None:
    rows = [*kept.messages, {**message("b", "oferta", "processando"), "envio_estado": "parked"}, message("c", "oferta")]
    assert len(broken_promises(replace(kept, messages=rows))) == 2


def test_second_reservation_and_a_state_without_history_are_broken_promises(kept: Evidence) -> None:
    assert "reserved twice" in broken_promises(replace(kept, history=[RESERVED, {**RESERVED, "ordem": 2}]))[0]
    assert "history ends with" in broken_promises(replace(kept, shifts=[{"id": "v", "status": "aberta"}]))[0]
