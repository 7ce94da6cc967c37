"""The function that judges recorded messages detects eight kinds of falsified evidence, each with a separate check."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.judges.messages import Accepted, Delivery, End, MessageCheck, SendRules, Shut, judge_messages

NOON = datetime(2026, 3, 11, 15, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ASKED = [Accepted(f"m{n}", f"p{n % 2}", NOON, place=n) for n in range(6)]
LEFT = [Delivery(f"m{n}", f"p{n % 2}", NOON + n * MINUTE) for n in range(4)]
ENDS = {
    "m0": End.DELIVERED,
    "m1": End.DELIVERED,
    "m2": End.DELIVERED,
    "m3": End.PARKED,
    "m4": End.FAILED,
    "m5": End.CANCELLED,
}
RULES = SendRules(
    read_at=NOON + 60 * MINUTE,
    within=30 * MINUTE,
    is_open=lambda at: at < NOON + 30 * MINUTE,
    shut=[Shut(NOON + 10 * MINUTE, NOON + 20 * MINUTE), Shut(NOON + 5 * MINUTE, NOON + 60 * MINUTE, frozenset({"p9"}))],
)


def checks(
    asked: list[Accepted] = ASKED, left: list[Delivery] = LEFT, ends: dict[str, End] = ENDS, rules: SendRules = RULES
) -> set[MessageCheck]:
    return {each.check for each in judge_messages(asked, left, ends, rules)}


def test_truthful_run_passes() -> None:
    assert checks() == set()


@pytest.mark.parametrize(
    ("left", "ends", "caught"),
    [
        ([*LEFT, replace(LEFT[0], at=NOON + 4 * MINUTE)], ENDS, {MessageCheck.ONCE, MessageCheck.IN_ORDER}),
        (LEFT, ENDS | {"m4": End.OPEN}, {MessageCheck.TERMINAL}),
        (LEFT, {id: end for id, end in ENDS.items() if id != "m5"}, {MessageCheck.TERMINAL}),
        (LEFT[1:], ENDS, {MessageCheck.TRUTHFUL}),
        ([*LEFT, Delivery("m4", "p0", NOON + 5 * MINUTE)], ENDS, {MessageCheck.TRUTHFUL}),
        ([*LEFT[:3], replace(LEFT[3], at=NOON + 40 * MINUTE)], ENDS, {MessageCheck.IN_HOURS}),
        ([replace(LEFT[0], at=NOON + 3 * MINUTE), *LEFT[1:]], ENDS, {MessageCheck.IN_ORDER}),
        ([*LEFT, Delivery("m7", "p0", NOON)], ENDS, {MessageCheck.NO_GHOST}),
    ],
    ids=[
        "doubled",
        "no end",
        "forgotten",
        "not sent",
        "sent all the same",
        "too late",
        "in the wrong order",
        "unasked",
    ],
)
def test_each_false_history_is_caught_by_its_check(
    left: list[Delivery], ends: dict[str, End], caught: set[MessageCheck]
) -> None:
    assert checks(left=left, ends=ends) == caught


def test_message_during_a_pause_or_after_an_opt_out_is_out_of_hours() -> None:
    paused = [*LEFT[:3], replace(LEFT[3], at=NOON + 15 * MINUTE)]
    assert checks(left=paused) == {MessageCheck.IN_HOURS}
    asked = [*ASKED, Accepted("m8", "p9", NOON)]
    ends = ENDS | {"m8": End.DELIVERED}
    assert checks(asked, [*LEFT, Delivery("m8", "p9", NOON + 4 * MINUTE)], ends) == set()
    assert checks(asked, [*LEFT, Delivery("m8", "p9", NOON + 6 * MINUTE)], ends) == {MessageCheck.IN_HOURS}


def test_message_to_another_recipient_is_a_ghost() -> None:
    assert checks(left=[replace(LEFT[0], recipient="p1"), *LEFT[1:]]) == {MessageCheck.NO_GHOST}


def test_young_message_may_still_be_open() -> None:
    assert checks(ends=ENDS | {"m4": End.OPEN}, rules=replace(RULES, read_at=NOON + 20 * MINUTE)) == set()
