"""The time limit for a hand-off and its reminders, tested without a database."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.contexts.handoffs.links import Links
from app.contexts.handoffs.model import lembrete_devido, prazo
from app.contexts.mensagens.limites import HORARIO

ZONE, HOUR = ZoneInfo("America/Sao_Paulo"), timedelta(hours=1)
WEDNESDAY = datetime(2026, 3, 11, 11, 0, tzinfo=ZONE)
LATER = datetime(2026, 3, 30, 7, 0, tzinfo=ZONE)
HANDOFF, JTI = "00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000002"


def test_time_limit_is_48_hours() -> None:
    assert prazo(WEDNESDAY, LATER, HORARIO, ZONE) == WEDNESDAY + 48 * HOUR


def test_time_limit_of_a_night_counts_from_the_opening() -> None:
    friday_night = datetime(2026, 3, 13, 21, 0, tzinfo=ZONE)
    assert prazo(friday_night, LATER, HORARIO, ZONE) == datetime(2026, 3, 18, 8, 0, tzinfo=ZONE)


def test_time_limit_ends_when_the_shift_begins() -> None:
    assert prazo(WEDNESDAY, WEDNESDAY + 5 * HOUR, HORARIO, ZONE) == WEDNESDAY + 5 * HOUR


def test_shift_before_the_opening_has_no_time_for_a_hand_off() -> None:
    night = datetime(2026, 3, 11, 22, 0, tzinfo=ZONE)
    assert prazo(night, night + 9 * HOUR, HORARIO, ZONE) is None


@pytest.mark.parametrize(
    ("age", "queued", "due"),
    [
        (1.9, 0, None),
        (2, 0, 1),
        (5, 1, None),
        (24, 1, 2),
        (35, 2, None),
        (36, 2, 3),
        (47, 3, None),
        (30, 0, 2),
        (40, 1, 3),
    ],
)
def test_reminders_are_due_after_2_24_and_36_hours(age: float, queued: int, due: int | None) -> None:
    now = WEDNESDAY + age * HOUR
    assert lembrete_devido(now, contatado_em=WEDNESDAY, ultimo_em=None, pedido=queued) == due


def test_late_reminder_is_not_followed_by_the_next_one() -> None:
    sent = WEDNESDAY + 23.5 * HOUR
    due = [
        lembrete_devido(WEDNESDAY + age * HOUR, contatado_em=WEDNESDAY, ultimo_em=sent, pedido=1)
        for age in (24, 25.4, 25.5)
    ]
    assert due == [None, None, 2]


def test_link_proves_its_hand_off_until_the_time_limit() -> None:
    links, until = Links("https://julia.example/", "k" * 40), datetime(2026, 3, 13, tzinfo=UTC)
    url = links.criar(HANDOFF, JTI, until)
    assert url.startswith("https://julia.example/handoffs/confirmar?token=")
    token = url.partition("=")[2]
    proof = links.ler(token, now=until - HOUR)
    assert proof is not None
    assert (proof.handoff_id, proof.jti) == (HANDOFF, JTI)
    assert links.ler(token, now=until) is None
    assert Links("https://julia.example", "other" * 8).ler(token, now=until - HOUR) is None


def test_changed_token_proves_nothing() -> None:
    links, until = Links("https://julia.example", "k" * 40), datetime(2026, 3, 13, tzinfo=UTC)
    token = links.criar(HANDOFF, JTI, until).partition("=")[2]
    for at in range(len(token)):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        if at < len(token) - 1:  # the last character has unused bits
            assert links.ler(changed, now=until - HOUR) is None
    for strange in ("", "x", "é", token + token, "=" * 10, date.min.isoformat()):
        assert links.ler(strange, now=until - HOUR) is None
