"""Many messages are due at once and the limit is small. Several processes together send as fast as the limit allows,
and no window exceeds it.
"""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.guard_harness import over
from tests.faults.send_harness import SendingWorkers, sending_workers, tally
from tests.judges.messages import End

MOST, PER = (50, 10.0) if LONG else (20, 3.0)
WINDOWS = 20 if LONG else 1
PROCESSES = 8 if LONG else 3


@pytest.mark.calm
async def test_many_messages_are_sent_at_the_pace_of_the_limit_and_no_window_exceeds_it(
    places: dict[str, Path],
) -> None:
    await together(*(_pace(url, folder) for url, folder in one_of(places, "postgresql").items()))


async def _pace(url: str, folder: Path) -> None:
    messages = MOST * WINDOWS + MOST // 3
    done = f"{PROCESSES} processes send {messages} messages that are due at once; the limit is {MOST} messages in {PER:g} s"
    figures = Figures("T36", kind(url), done)
    async with sending_workers(folder, url, doctors=messages, most=MOST, per=PER) as office:
        await office.begin_until_up(PROCESSES)
        await office.put(messages)
        await office.until_left(messages)
        await office.until_over(by=timedelta(seconds=1))
        left = await office.judge()
        instants = sorted(each.at for each in left)
        assert over(instants, MOST, PER) == 0
        assert set((await office.ends()).values()) == {End.DELIVERED}
        # The time from the first message of each window to the first of the next must be at least the limit's period,
        # and hardly longer.
        cycles = [(instants[n + MOST] - instants[n]).total_seconds() for n in range(0, len(instants) - MOST, MOST)]
        used = PER * len(cycles) / sum(cycles)
        assert used >= (0.95 if LONG else 0.2)  # in a short window the delays of a busy machine dominate
        became, alone = await tally(office, left), f"; {await _measure_latency(office)}" if LONG else ""
        figures.record_items(
            became, f"no period of {PER:g} s exceeded the limit; used share of the limit: {used:.0%}{alone}"
        )


async def _measure_latency(office: SendingWorkers) -> str:
    """Return the time from enqueueing a message to its receipt when nothing delays the message."""
    await office.passes(timedelta(seconds=PER))
    ids: list[str] = []
    for _ in range(MOST - 5):
        ids += await office.put(1)
        await office.passes(timedelta(milliseconds=150))
    await office.until_left(len(office.accepted))
    accepted = {each.id: each.at for each in office.accepted}
    took = sorted(
        (each.at - accepted[each.id]).total_seconds() for each in await office.deliveries() if each.id in {*ids}
    )
    slowest = took[len(took) * 99 // 100]
    assert slowest < 1
    return f"time until a single message is sent: p50 {took[len(took) // 2]:.2f} s, p99 {slowest:.2f} s"
