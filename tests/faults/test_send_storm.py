"""Answers are lost and workers are killed all the time: no message leaves twice, and every one has a truthful end."""

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from app.contexts.mensagens.fila import FILA_MENSAGENS
from batuta.testing.messages import End
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import PostOffice, post_office
from tests.faults.tally import Tally
from tests.julia import one

RATE = 30.0


async def test_lost_answers_and_a_storm_of_kills_double_nothing_and_lose_nothing(places: Mapping[str, Path]) -> None:
    await together(*(_storm(url, folder) for url, folder in places.items()))


async def _storm(url: str, folder: Path) -> None:
    messages, shares, pause = (1_000, (0.1, 0.3, 0.5), (0.3, 1.5)) if LONG else (45, (0.1, 0.3, 0.5), (0.5, 1.0))
    figures = Figures(
        "T39",
        kind(url),
        f"answers lost on 10 to 50 % of {messages} sends, half a campaign's; workers killed -9 all the time",
    )
    chance = random.Random(20260311)
    async with post_office(folder, url, doctors=messages, rate=RATE, lease=45) as office:
        campaign = await office.campaign()
        async with office.storm(2, chance, pause):
            for n, share in enumerate(shares, start=1):
                await office.told(lost_answers=share, broken_answers=share / 5)
                part = messages // len(shares)
                await office.put(part // 2)
                await office.put(part - part // 2, "campanha", campanha_id=campaign)
                await office.until_left(n * part * 3 // 4, within=300 if LONG else 20)
        await office.begin_until_up(2)
        await office.until_over(within=600 if LONG else 40)
        died = await _revive(office)
        await office.until_over(within=60)
        left = await office.judge()
        ends = Counter((await office.ends()).values())
        assert ends.keys() <= {End.DELIVERED, End.PARKED}, ends
        counted = await one(office.work.database, "SELECT enviados FROM campanhas")
        sent = [row for row in (await office.rows()).values() if row["status"] == "enviada"]
        assert counted["enviados"] == sum(row["campanha_id"] == campaign for row in sent)
        lost = sum(each["told"] != "answered" for each in await office.receipts())
        times = Counter(each.id for each in left)
        tally = Tally(
            items=len(office.accepted), lost=len(office.accepted) - len(times), doubled=sum(n > 1 for n in times.values()),
            effects=len(left), in_vain=0,
        )  # fmt: skip
        figures.record_items(
            tally,
            f"{office.killed} kills, {lost} answers lost, {ends[End.PARKED]} parked, {died} given up after three kills, revived",
        )


async def _revive(office: PostOffice) -> int:
    """Whoever was there at three kills is given up, and provably unsent; a person looks, and tries again."""
    dead = [row for row in (await office.rows()).values() if row["status"] == "erro"]
    for row in dead:
        assert row["erro"] in ("its worker died 3 times while it ran", "never arrived"), row
        assert await office.work.queues[FILA_MENSAGENS.name].revive(row["id"])
    return len(dead)
