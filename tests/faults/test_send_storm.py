"""The gateway's answers are lost and workers are killed continuously. No message is sent twice, and the final state
recorded for each message is correct.
"""

import random
from collections import Counter
from pathlib import Path

from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import revive, sending_workers, tally
from tests.judges.messages import End
from tests.julia.tables import one

RATE = 5.0


async def test_lost_answers_and_a_storm_of_kills_double_and_lose_no_message(places: dict[str, Path]) -> None:
    await together(*(_storm(url, folder) for url, folder in one_of(places, "postgresql").items()))


async def _storm(url: str, folder: Path) -> None:
    messages, pause = (1_500, (0.3, 1.5)) if LONG else (30, (0.2, 0.6))
    done = (
        f"workers that send {messages} messages are killed repeatedly, and 10 to 50 % of the gateway's answers are lost"
    )
    figures, chance, shares = Figures("T39", kind(url), done), random.Random(20260311), (0.1, 0.3, 0.5)
    async with sending_workers(folder, url, doctors=messages, rate=RATE, lease=15) as office:
        campaign, part = await office.campaign(), messages // len(shares)
        async with office.storm(2, chance, pause):
            for n, share in enumerate(shares, start=1):
                await office.behave(lost_answers=share, broken_answers=share / 5)
                await office.put(part // 2)
                await office.put(part - part // 2, "campanha", campanha_id=campaign)
                await office.until_left(n * part * 3 // 4)
        await office.begin_until_up(2)
        given_up = await revive(office)
        left = await office.judge()
        ends = Counter((await office.ends()).values())
        assert ends.keys() <= {End.DELIVERED, End.PARKED}, ends
        counted = await one(office.work.database, "SELECT enviados FROM campanhas")
        sent = [row for row in (await office.rows()).values() if row["status"] == "enviada"]
        assert counted["enviados"] == sum(row["campanha_id"] == campaign for row in sent)
        lost = sum(each["answer"] != "answered" for each in await office.receipts())
        kills = f"kills of workers: {office.killed}; lost answers: {lost}; "
        kills += f"messages left for a person's decision: {ends[End.PARKED]}"
        figures.record_items(
            await tally(office, left), f"{kills}; messages given up after three kills and then retried: {given_up}"
        )
