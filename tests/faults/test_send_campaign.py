"""A campaign is sent while its workers are killed continuously. It reaches each recipient once, and counts only
messages that were actually sent.
"""

import random
from pathlib import Path
from typing import Any

from app.composition.julia import julia_of
from app.contexts.campanhas.model import TipoDeCampanha
from app.contexts.campanhas.service import NovaCampanha
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import SendingWorkers, revive, sending_workers, tally
from tests.judges.messages import Accepted, End
from tests.julia.tables import one

RATE = 5.0
# Slow enough that some kills happen during the campaign, however fast the machine is.
PACE: dict[str, Any] = {"most": 8, "per": 5.0}
KILLS = 150


async def test_campaign_reaches_each_recipient_once_under_repeated_kills(
    places: dict[str, Path],
) -> None:
    await together(*(_goes_out(url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _goes_out(url: str, folder: Path) -> None:
    people, pause = (5_000, (0.5, 2.5)) if LONG else (24, (0.2, 0.6))
    pace = {} if LONG else PACE
    figures = Figures(
        "T01, T39", kind(url), f"the workers are killed repeatedly while they send a campaign to {people} doctors"
    )
    chance, at_rest = random.Random(20260311), {"lost_answers": 0.05}
    async with sending_workers(folder, url, doctors=people, rate=RATE, lease=15, at_rest=at_rest, **pace) as office:
        id = await _scheduled(office, people)
        async with office.storm(2, chance, pause):
            await office.until("the storm is over", lambda: _are_sent_or_given_up(office, people * 9 // 10))
        await office.begin_until_up(2)
        await office.until("every message is queued", lambda: _is_queued(office, id))
        for row in (await office.rows()).values():
            office.accepted.append(Accepted(row["id"], row["telefone_destino"], row["created_at"]))
        assert len(office.accepted) == people
        given_up = await revive(office)
        left = await office.judge()
        ends = list((await office.ends()).values())
        assert {*ends} <= {End.DELIVERED, End.PARKED}
        counted = await _campaign(office, id)
        assert (counted["total_destinatarios"], counted["enviados"]) == (people, ends.count(End.DELIVERED))
        if End.PARKED not in ends:
            await office.until("it is concluded", lambda: _is_concluded(office, id))
        note = f"kills of workers: {office.killed}; messages left for a person's decision: {ends.count(End.PARKED)}; "
        note += f"messages given up after three kills and then retried: {given_up}"
        figures.record_items(await tally(office, left), note)


async def _scheduled(office: SendingWorkers, people: int) -> int:
    made = julia_of(office.work).campaigns.campanhas
    nova = NovaCampanha(
        nome="teste",
        tipo=TipoDeCampanha.OFERTA,
        corpo="[SIMULADO] Olá, {nome}.",
        audience_filters={"quantidade_alvo": people},
    )
    id = await made.criar(nova, by="test")
    await made.agendar(id, None, by="test")
    return id


async def _campaign(office: SendingWorkers, id: int) -> dict[str, Any]:
    return await one(office.work.database, "SELECT * FROM campanhas WHERE id = :id", id=id)


async def _are_sent_or_given_up(office: SendingWorkers, count: int) -> bool:
    """Return whether the kills may end: there were enough of them, or every message has either been sent or died after
    three worker crashes.
    """
    given_up = sum(row["status"] == "erro" for row in (await office.rows()).values())
    return office.killed >= KILLS or len(await office.receipts()) + given_up >= count


async def _is_queued(office: SendingWorkers, id: int) -> bool:
    return (await _campaign(office, id))["enfileirada_em"] is not None


async def _is_concluded(office: SendingWorkers, id: int) -> bool:
    return bool((await _campaign(office, id))["status"] == "concluida")
