"""A gateway reports "closed" although it is open, responds slowly, and sends events twice and out of order. WhatsApp
bans one number while messages are being sent.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import SendingWorkers, revive, sending_workers, tally
from tests.judges.messages import End
from tests.julia.tables import one, rows

RATE = 5.0
SENDER, OTHER = "julia-sim", "julia-outra"
# Acknowledgements arrive before the response, and events arrive twice and out of order.
LIES = {"slow_seconds": 1.5, "sent_after": 0, "delivered_after": 0.5, "read_after": 1, "duplicated": 0.7, "late": 0.5}


async def test_gateway_with_wrong_answers_gets_no_send_twice_and_a_ban_is_final(places: dict[str, Path]) -> None:
    await together(*(_lies(url, folder) for url, folder in one_of(places, "postgresql").items()))


async def _lies(url: str, folder: Path) -> None:
    messages = 1_200 if LONG else 24
    figures = Figures(
        "T43",
        kind(url),
        f"{messages} messages are sent through a gateway that gives false answers; then WhatsApp bans the number",
    )
    async with sending_workers(
        folder, url, doctors=messages, rate=RATE, lease=15, hears=True, instances=(OTHER,), at_rest=LIES
    ) as office:
        third = messages // 3
        await office.begin_until_up(2)
        await office.put(third)
        await office.until_left(third // 2)
        await office.behave(connection_closed=True)  # the gateway reports the state open at the same time
        await office.put(third)
        await office.until("some sends are refused", lambda: _were_refused(office, 2), 600 if LONG else 60)
        await office.behave(connection_closed=False, lost_answers=0.2)
        # A chip that found the connection closed rests for five minutes. By chance this may be every chip.
        await office.until_left(third, by=timedelta(minutes=3))
        await office.instance(SENDER, state="close", code=403)
        banned_at = office.clock.now()
        await office.put(third)
        given_up = await revive(office)
        left = await office.judge()
        assert set((await office.ends()).values()) <= {End.DELIVERED, End.PARKED}
        assert _since(banned_at, await office.receipts()) == []
        chip = await one(office.work.database, "SELECT status FROM chips WHERE instance_name = :name", name=SENDER)
        assert chip["status"] == "banned"
        tried = _since(banned_at, await office.refusals())
        await office.until("every event is processed", lambda: _is_quiet(office))
        await _assert_recorded_once(office)
        note = f"sends from the banned number before Julia noticed the ban: {len(tried)}; messages given up: {given_up}"
        figures.record_items(await tally(office, left), note)


def _since(at: datetime, calls: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
    """Return the calls that the banned number made after ``at``."""
    return [each for each in calls if each["instance"] == SENDER and datetime.fromisoformat(each["at"]) > at]


async def _were_refused(office: SendingWorkers, count: int) -> bool:
    return len(await office.refusals()) >= count


async def _is_quiet(office: SendingWorkers) -> bool:
    waiting = await rows(office.work.database, "SELECT count(*) AS n FROM webhook_inbox WHERE status <> 'processada'")
    return bool(waiting[0]["n"] == 0)


async def _assert_recorded_once(office: SendingWorkers) -> None:
    """Assert that events that arrived twice are recorded once."""
    said = await rows(office.work.database, "SELECT provider_message_id FROM interacoes WHERE tipo = 'saida'")
    assert max(Counter(row["provider_message_id"] for row in said).values()) == 1
    assert len(said) == len(await office.receipts())
    counted = await one(office.work.database, "SELECT sum(msgs_enviadas_total) AS n FROM chips")
    assert counted["n"] == len(said)
