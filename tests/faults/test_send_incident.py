"""No worker sends the messages of a campaign, so an alert is raised. Workers then send the backlog at the chip's pace,
until one refusal by the gateway stops the chip.
"""

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from batuta.health.finding import Severity
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import SendingWorkers, sending_workers
from tests.faults.waiting import slowness
from tests.julia.tables import one, write

RATE = 5.0
MINUTE = timedelta(minutes=1)
STEP = timedelta(seconds=10 if LONG else 20)
CHIP, GAP = "julia-sim", 45
# Limits of a chip in operation.
PACED = "UPDATE chips SET limite_hora = 30, limite_dia = 100, delay_minimo_segundos = 45 WHERE tipo = 'julia'"


@pytest.mark.calm
async def test_missing_consumer_raises_an_alert_and_one_refusal_stops_the_chip(
    places: dict[str, Path],
) -> None:
    await together(*(_incident(url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _incident(url: str, folder: Path) -> None:
    figures = Figures(
        "incident",
        kind(url),
        "50 messages become due while no worker runs; then a worker starts, and WhatsApp restricts the number",
    )
    async with sending_workers(folder, url, doctors=50, rate=RATE, most=None, lease=60) as office:
        await write(office.work.database, PACED)
        await office.stop(*await office.begin_until_up())  # the worker starts and exits normally
        campaign = await office.campaign()
        await office.put(50, "campanha", campanha_id=campaign)
        enqueued = office.clock.now()
        await office.hurry("an alert is raised", lambda: _is_deserted(office), timedelta(seconds=15), every=0.3)
        alerted_after = office.clock.now() - enqueued
        assert alerted_after <= 2 * MINUTE * (1 if LONG else slowness())
        await office.begin_until_up(2)
        await office.hurry("some leave", lambda: _left(office, 3), STEP, every=0.3)
        await office.behave(restricted=[CHIP])
        await office.hurry("it is refused", lambda: _refused(office, 1), STEP, every=0.3)
        quiet = office.clock.now() + (14 if LONG else 2) * MINUTE

        async def has_passed() -> bool:
            return office.clock.now() >= quiet

        await office.hurry("time passes", has_passed, STEP, every=0.3)
        refusals = await office.refusals()
        assert len(refusals) == 1, refusals
        instants = sorted(each.at for each in await office.deliveries())
        gaps = [(later - sooner).total_seconds() for sooner, later in pairwise(instants)]
        assert min(gaps) >= GAP
        counted = await one(office.work.database, "SELECT enviados FROM campanhas")
        assert counted["enviados"] == len(instants)  # messages sent, not messages enqueued
        assert datetime.fromisoformat(refusals[0]["at"]) > instants[-1]
        note = (
            f"an alert was sent after {alerted_after.total_seconds():.0f} s; shortest time between two sends: {min(gaps):.0f} s;"
            " no send followed WhatsApp's refusal"
        )
        figures.record_bare(50, note)


async def _is_deserted(office: SendingWorkers) -> bool:
    found = (await office.work.health.look(fresh=True)).findings
    return any(each.cause == "queue.deserted.fila_mensagens" and each.severity is Severity.CRITICAL for each in found)


async def _left(office: SendingWorkers, count: int) -> bool:
    return len(await office.receipts()) >= count


async def _refused(office: SendingWorkers, count: int) -> bool:
    return len(await office.refusals()) >= count
