"""A pause begins, or the sending hours end, in the middle of a batch. The rest of the batch is sent only when sending
is permitted again.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import SendingWorkers, sending_workers, tally
from tests.judges.messages import End, Shut

SECOND = timedelta(seconds=1)
ZONE = ZoneInfo("America/Sao_Paulo")
EVENING = datetime(2026, 3, 11, 19, 50, tzinfo=ZONE).astimezone(UTC)
CLOSES = datetime(2026, 3, 11, 20, 0, tzinfo=ZONE)
OPENS = datetime(2026, 3, 12, 8, 0, tzinfo=ZONE)


@pytest.mark.calm
async def test_pause_and_end_of_day_stop_a_batch_that_continues_afterwards(
    places: dict[str, Path],
) -> None:
    await together(*(_run(url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _run(url: str, folder: Path) -> None:
    messages = 5_000 if LONG else 80
    done = f"while {messages} messages are sent, a pause begins, and later the sending hours end"
    figures = Figures("T22", kind(url), done)
    # A limit per second, so that some messages are left when the day ends, however fast the machine is.
    async with sending_workers(folder, url, doctors=messages, origin=EVENING, most=messages // 7, per=1.0) as office:
        await office.put(messages * 3 // 5)
        await office.begin_until_up(2)
        await office.until_left(messages // 5)
        paused = await _pause(office)
        to_go = messages - len(await office.receipts())
        await office.put(messages - messages * 3 // 5)
        # Four seconds before the day ends.
        office.clock.step(CLOSES - 4 * SECOND - office.clock.now())
        await office.passes(CLOSES + SECOND - office.clock.now())
        at_night = len(await office.receipts())
        assert messages - to_go < at_night < messages
        office.clock.step(OPENS - SECOND - office.clock.now())
        await office.until_over(by=20 * SECOND)
        left = await office.judge(is_open=lambda at: 8 <= at.astimezone(ZONE).hour < 20, shut=[paused])
        assert set((await office.ends()).values()) == {End.DELIVERED}
        last = max(each.at for each in left if each.at < CLOSES)
        early = (CLOSES - last).total_seconds()
        note = (
            f"the last message of the day was sent {early:.1f} s before the sending hours ended;"
            f" messages sent on the next day: {messages - at_night}"
        )
        figures.record_items(await tally(office, left), note)


async def _pause(office: SendingWorkers) -> Shut:
    """Pause sending for two seconds. From one second after the pause was acknowledged until its end, nothing may be
    sent.
    """
    await office.work.switches.set("pause.all", True, by="test", reason="-", now=office.clock.now())
    acknowledged = office.clock.now()
    await office.passes(2 * SECOND)
    over = office.clock.now()
    await office.work.switches.set("pause.all", False, by="test", reason="-", now=over)
    return Shut(acknowledged + SECOND, over)
